//! A checker that accepts everything proves nothing: here every algorithm is broken in one place
//! at a time, and the checker must object each time.

use super::proof::{Random, groups_of, schedules};
use super::{Algorithm, Collective, Part, Schedule, Semantics, Shape, Step, Vector, check};
use crate::Rank;

/// How many broken copies are tried of an algorithm in a shape: a sample, if there are more.
const MOST: usize = 600;
const SEED: u64 = 20_250_601;

#[test]
fn every_broken_all_reduce_is_found() {
    every_broken(Collective::AllReduce);
}

#[test]
fn every_broken_broadcast_is_found() {
    every_broken(Collective::Broadcast { root: Rank(1) });
}

#[test]
fn every_broken_reduce_is_found() {
    every_broken(Collective::Reduce { root: Rank(1) });
}

#[test]
fn every_broken_all_gather_is_found() {
    every_broken(Collective::AllGather);
}

#[test]
fn every_broken_reduce_scatter_is_found() {
    every_broken(Collective::ReduceScatter);
}

#[test]
fn every_broken_gather_is_found() {
    every_broken(Collective::Gather { root: Rank(1) });
}

#[test]
fn every_broken_scatter_is_found() {
    every_broken(Collective::Scatter { root: Rank(1) });
}

#[test]
fn every_broken_all_to_all_is_found() {
    every_broken(Collective::AllToAll);
}

fn every_broken(collective: Collective) {
    let algorithms = Algorithm::all_for(collective).iter().copied();
    for algorithm in algorithms.filter(|algorithm| !algorithm.is_fused()) {
        shapes().for_each(|shape| break_everywhere(algorithm, collective, &shape));
    }
}

fn shapes() -> impl Iterator<Item = Shape> {
    let groups: [&[u32]; 9] =
        [&[2], &[1, 2], &[2, 2], &[3, 2], &[7], &[4, 4], &[1, 3, 5], &[6, 7], &[4, 4, 4, 4]];
    let channels = [1, 2].into_iter();
    channels.flat_map(move |channels| {
        let shape = move |sizes| Shape { depth: 2, channels, ..groups_of(sizes) };
        groups.map(shape)
    })
}

fn break_everywhere(algorithm: Algorithm, collective: Collective, shape: &Shape) {
    let sound = schedules(algorithm, collective, shape);
    let mut places = places(&sound);
    let mut random = Random(SEED);
    while places.len() > MOST {
        places.swap_remove(random.below(places.len()));
    }
    for (rank, index, instead) in places {
        let mut broken = sound.clone();
        broken[rank].steps.splice(index..=index, instead.iter().copied());
        for semantics in [Semantics::Eager, Semantics::Rendezvous] {
            assert!(
                check(collective, &broken, semantics).is_err(),
                "{algorithm:?} {semantics:?} {shape:?} (seed {SEED}): rank {rank} step {index} is \
                 {instead:?} instead of {:?} and the checker does not object",
                sound[rank].steps[index],
            );
        }
    }
}

/// Every step of every rank with everything that it is wrongly replaced by, one at a time.
fn places(schedules: &[Schedule]) -> Vec<(usize, usize, Vec<Step>)> {
    let mut places = Vec::new();
    for (rank, schedule) in schedules.iter().enumerate() {
        for (index, &step) in schedule.steps.iter().enumerate() {
            let mut put = |instead: &[Step]| places.push((rank, index, instead.to_vec()));
            put(&[]);
            put(&[step, step]);
            redirected(step, schedules.len() as u32).for_each(|step| put(&[step]));
            moved(step, schedule.chunks).iter().for_each(|&step| put(&[step]));
            put(&[in_other_vector(step)]);
            other_kind(step).iter().for_each(|&step| put(&[step]));
        }
    }
    places
}

fn redirected(step: Step, size: u32) -> impl Iterator<Item = Step> {
    let peer = step.peer();
    let others = (0..size).map(Rank).filter(move |&rank| peer.is_some_and(|peer| peer != rank));
    others.map(move |other| {
        let mut step = step;
        step.peer_mut().into_iter().for_each(|peer| *peer = other);
        step
    })
}

/// The step one chunk further and one chunk back; of a local step both parts or one.
fn moved(step: Step, chunks: u32) -> Vec<Step> {
    let mut steps = Vec::new();
    for by in [1, chunks - 1].into_iter().filter(|by| by % chunks != 0) {
        let part = |part: Part| Part { first: (part.first + by) % chunks, ..part };
        steps.push(with_parts(step, part, part));
        if step.peer().is_none() {
            steps.push(with_parts(step, part, |into| into));
            steps.push(with_parts(step, |from| from, part));
        }
    }
    steps
}

fn in_other_vector(step: Step) -> Step {
    let other = |part: Part| match part.vector {
        Vector::Data => Part { vector: Vector::Scratch, ..part },
        Vector::Input | Vector::Scratch => Part { vector: Vector::Data, ..part },
    };
    with_parts(step, other, other)
}

/// Overwriting for folding and the other way round.
fn other_kind(step: Step) -> Option<Step> {
    match step {
        Step::Send { .. } => None,
        Step::Recv { from, part } => Some(Step::RecvReduce { from, part }),
        Step::RecvReduce { from, part } => Some(Step::Recv { from, part }),
        Step::Reduce { from, into } => Some(Step::Copy { from, into }),
        Step::Copy { from, into } => Some(Step::Reduce { from, into }),
    }
}

/// The step with `read` applied to the part it reads and `write` to the one it writes.
fn with_parts(mut step: Step, read: impl Fn(Part) -> Part, write: impl Fn(Part) -> Part) -> Step {
    match &mut step {
        Step::Send { part, .. } => *part = read(*part),
        Step::Recv { part, .. } | Step::RecvReduce { part, .. } => *part = write(*part),
        Step::Reduce { from, into } | Step::Copy { from, into } => {
            (*from, *into) = (read(*from), write(*into));
        }
    }
    step
}
