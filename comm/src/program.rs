//! A schedule made ready to run: for each step the earlier steps it must not overtake, and for
//! each peer and direction the queue of steps that share that stream of bytes.

use std::collections::HashMap;
use std::ops::Range;

use tutti_topo::Rank;
use tutti_topo::schedule::{Part, Schedule, Step, Vector};

/// What runs one after another: all sends to one rank, all receives from one, or local work.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) way: Way,
    /// Its steps, which lie one after another.
    pub(crate) steps: Range<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    To(Rank),
    From(Rank),
    Local,
}

/// A schedule with its dependencies. Made once per plan; knows no bytes.
///
/// A dependency is weaker than "after": where two steps touch the same chunks, the later one may
/// run as far as the earlier one has run, byte by byte.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) chunks: u64,
    /// Lane after lane.
    pub(crate) steps: Vec<Step>,
    pub(crate) lanes: Vec<Lane>,
    /// For step `i`, the steps in `after[first[i]..first[i + 1]]` come first.
    after: Vec<u32>,
    first: Vec<u32>,
    /// The chunks that scratch memory is used for, in order.
    scratch: Vec<u32>,
}

impl Program {
    pub(crate) fn new(schedule: Schedule) -> Self {
        let Schedule { chunks, steps } = schedule;
        let (after, first) = dependencies(chunks, &steps);
        let parts = steps.iter().flat_map(touches).map(|(part, _)| part);
        let scratch = parts.filter(|part| part.vector == Vector::Scratch);
        let mut scratch: Vec<u32> =
            scratch.flat_map(|part| part.first..part.first + part.len).collect();
        scratch.sort_unstable();
        scratch.dedup();
        let (lanes, order) = lanes(&steps);
        let (after, first) = renumbered(&order, &after, &first);
        let steps = order.iter().map(|&step| steps[step as usize]).collect();
        Program { chunks: chunks.into(), steps, lanes, after, first, scratch }
    }

    /// How many chunks scratch memory is used for.
    pub(crate) fn scratch_slots(&self) -> u64 {
        self.scratch.len() as u64
    }

    /// The number of a chunk among those that scratch memory is used for.
    pub(crate) fn scratch_slot(&self, chunk: u32) -> u64 {
        self.scratch.partition_point(|&other| other < chunk) as u64
    }

    /// The steps that `step` must not overtake.
    pub(crate) fn after(&self, step: usize) -> &[u32] {
        let (from, to) = (self.first[step], self.first[step + 1]);
        &self.after[from as usize..to as usize]
    }
}

/// The parts a step touches, and whether it writes them.
fn touches(step: &Step) -> impl Iterator<Item = (Part, bool)> + use<> {
    let (one, two) = match *step {
        Step::Send { part, .. } => ((part, false), None),
        Step::Recv { part, .. } | Step::RecvReduce { part, .. } => ((part, true), None),
        Step::Reduce { from, into } | Step::Copy { from, into } => {
            ((into, true), Some((from, false)))
        }
    };
    std::iter::once(one).chain(two)
}

/// Who touched one chunk last.
#[derive(Default)]
struct Touched {
    writer: Option<u32>,
    readers: Vec<u32>,
}

/// Per step the last writer of each of its chunks; for a writer, instead of it the readers since, if
/// there are any: these follow that writer.
fn dependencies(chunks: u32, steps: &[Step]) -> (Vec<u32>, Vec<u32>) {
    let mut touched: HashMap<(Vector, u32), Touched> = HashMap::new();
    let (mut after, mut first) = (Vec::new(), vec![0]);
    for (index, step) in steps.iter().enumerate() {
        let mut before = Vec::new();
        for (part, writes) in touches(step) {
            for chunk in part.first..part.first + part.len {
                assert!(chunk < chunks, "chunk {chunk} is outside a schedule of {chunks} chunks");
                let chunk = touched.entry((part.vector, chunk)).or_default();
                if !writes || chunk.readers.is_empty() {
                    before.extend(chunk.writer);
                }
                if writes {
                    before.append(&mut chunk.readers);
                    chunk.writer = Some(index as u32);
                } else {
                    chunk.readers.push(index as u32);
                }
            }
        }
        before.sort_unstable();
        before.dedup();
        before.retain(|&step| step != index as u32);
        after.append(&mut before);
        first.push(after.len() as u32);
    }
    (after, first)
}

/// The lanes, and the steps in the order of their lanes.
fn lanes(steps: &[Step]) -> (Vec<Lane>, Vec<u32>) {
    let mut lanes: Vec<(Way, Vec<u32>)> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let way = match *step {
            Step::Send { to, .. } => Way::To(to),
            Step::Recv { from, .. } | Step::RecvReduce { from, .. } => Way::From(from),
            Step::Reduce { .. } | Step::Copy { .. } => Way::Local,
        };
        match lanes.iter_mut().find(|lane| lane.0 == way) {
            Some(lane) => lane.1.push(index as u32),
            None => lanes.push((way, vec![index as u32])),
        }
    }
    let mut order = Vec::new();
    let lanes = lanes.into_iter().map(|(way, mut steps)| {
        let start = order.len() as u32;
        order.append(&mut steps);
        Lane { way, steps: start..order.len() as u32 }
    });
    (lanes.collect(), order)
}

/// The lists of [`dependencies`] for steps in another order.
fn renumbered(order: &[u32], after: &[u32], first: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut place = vec![0; order.len()];
    order.iter().zip(0..).for_each(|(&step, new)| place[step as usize] = new);
    let (mut moved, mut starts) = (Vec::with_capacity(after.len()), vec![0]);
    for &step in order {
        let (from, to) = (first[step as usize] as usize, first[step as usize + 1] as usize);
        moved.extend(after[from..to].iter().map(|&before| place[before as usize]));
        starts.push(moved.len() as u32);
    }
    (moved, starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(first: u32, len: u32) -> Part {
        Part { vector: Vector::Data, first, len }
    }

    #[test]
    fn exchange_makes_the_fold_follow_the_send() {
        let peer = Rank(1);
        let program = Program::new(Schedule {
            chunks: 1,
            steps: vec![
                Step::Send { to: peer, part: data(0, 1) },
                Step::RecvReduce { from: peer, part: data(0, 1) },
                Step::Send { to: Rank(2), part: data(0, 1) },
            ],
        });
        assert!(program.after(0).is_empty());
        assert_eq!(program.after(1), [0]);
        assert_eq!(program.after(2), [1]);
        assert_eq!(program.lanes.len(), 3);
        assert_eq!(program.scratch_slots(), 0);
    }

    #[test]
    fn two_readers_do_not_wait_for_each_other_and_the_writer_waits_for_both() {
        let program = Program::new(Schedule {
            chunks: 4,
            steps: vec![
                Step::Send { to: Rank(1), part: data(0, 4) },
                Step::Send { to: Rank(2), part: data(1, 2) },
                Step::Recv { from: Rank(3), part: data(2, 2) },
                Step::Recv { from: Rank(3), part: data(0, 1) },
            ],
        });
        assert!(program.after(1).is_empty());
        assert_eq!(program.after(2), [0, 1]);
        assert_eq!(program.after(3), [0]);
    }

    #[test]
    fn steps_lie_lane_after_lane_and_keep_what_they_wait_for() {
        let (send, receive) = (|to| Step::Send { to, part: data(0, 1) }, data(0, 1));
        let program = Program::new(Schedule {
            chunks: 1,
            steps: vec![
                send(Rank(1)),
                Step::RecvReduce { from: Rank(1), part: receive },
                send(Rank(1)),
                Step::Recv { from: Rank(1), part: receive },
            ],
        });
        let lanes: Vec<_> = program.lanes.iter().map(|lane| (lane.way, &lane.steps)).collect();
        assert_eq!(lanes, [(Way::To(Rank(1)), &(0..2)), (Way::From(Rank(1)), &(2..4))]);
        let after: Vec<_> = (0..4).map(|step| program.after(step)).collect();
        assert_eq!(after, [&[][..], &[2], &[0], &[1]]);
    }
}
