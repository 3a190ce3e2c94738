mod fault;
mod form;
mod machine;
mod matching;
mod order;
mod seat;
mod stats;
mod terms;

use super::{Collective, Schedule};
use machine::Machine;
use matching::Matching;

pub use fault::{Fault, Wait};
pub use stats::Stats;

/// Proves that the schedules of all ranks together carry out the collective, by running them on
/// symbols: what a chunk holds is the set of ranks folded into it, and in which order they were.
/// Of which chunk a symbol is, its place tells: a message or a local step that would carry it to
/// another chunk is a fault.
///
/// Beyond the meaning of [`Step`](super::Step) it proves that no run depends on timing, that no rank
/// waits forever, that no contribution is lost or counted twice, that nothing is sent for nothing,
/// and that all ranks fold in the same order and so end with the same bits (taking a fold of two
/// operands to commute).
///
/// It takes time and memory in proportion to the chunks that are moved.
///
/// # Errors
///
/// The first [`Fault`] found.
///
/// # Panics
///
/// If there are no schedules, or the root of a broadcast is not among them.
pub fn check(
    collective: Collective,
    schedules: &[Schedule],
    semantics: Semantics,
) -> Result<Stats, Fault> {
    assert!(!schedules.is_empty(), "no schedules to check");
    let matching = Matching::of(schedules)?;
    let mut machine = Machine::new(collective, schedules, &matching, semantics);
    machine.run()?;
    Ok(Stats::of(schedules, machine.result()?))
}

/// When a send is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Semantics {
    /// At once: the transport has room for everything.
    Eager,
    /// When its receive has started: the transport holds nothing.
    Rendezvous,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rank;
    use crate::schedule::{Part, Step};
    use Semantics::{Eager, Rendezvous};

    const DATA: Part = Part { vector: crate::schedule::Vector::Data, first: 0, len: 1 };
    const SCRATCH: Part = Part { vector: crate::schedule::Vector::Scratch, first: 0, len: 1 };

    fn send(to: u32, part: Part) -> Step {
        Step::Send { to: Rank(to), part }
    }

    fn recv(from: u32, part: Part) -> Step {
        Step::Recv { from: Rank(from), part }
    }

    fn recv_reduce(from: u32, part: Part) -> Step {
        Step::RecvReduce { from: Rank(from), part }
    }

    fn run<const N: usize>(
        collective: Collective,
        steps: [&[Step]; N],
        semantics: Semantics,
    ) -> Result<Stats, Fault> {
        let schedules = steps.map(|steps| Schedule { chunks: 1, steps: steps.to_vec() });
        check(collective, &schedules, semantics)
    }

    fn all_reduce<const N: usize>(steps: [&[Step]; N]) -> Fault {
        let fault = run(Collective::AllReduce, steps, Rendezvous).unwrap_err();
        assert_eq!(run(Collective::AllReduce, steps, Eager), Err(fault.clone()));
        fault
    }

    fn stuck(waits: &[(u32, u32, u32)]) -> Fault {
        let wait =
            |&(rank, step, on): &(u32, u32, u32)| Wait { rank: Rank(rank), step, on: Rank(on) };
        Fault::Stuck { waits: waits.iter().map(wait).collect() }
    }

    #[test]
    fn an_exchange_passes_although_both_ends_send_what_they_fold_into() {
        let steps =
            [&[send(1, DATA), recv_reduce(1, DATA)][..], &[send(0, DATA), recv_reduce(0, DATA)]];
        for semantics in [Eager, Rendezvous] {
            let stats = run(Collective::AllReduce, steps, semantics).unwrap();
            let expected = Stats { chunks: 1, messages: 2, moves: 2, moves_per_rank: 1, rounds: 1 };
            assert_eq!(stats, expected);
        }
    }

    #[test]
    fn a_swap_in_place_is_stuck_on_a_transport_that_holds_nothing() {
        let steps = [&[send(1, DATA), recv(1, DATA)][..], &[send(0, DATA), recv(0, DATA)]];
        let fault = run(Collective::AllReduce, steps, Rendezvous).unwrap_err();
        assert_eq!(fault, stuck(&[(0, 0, 1), (1, 0, 0)]));
        assert_eq!(
            fault.to_string(),
            "stuck: rank 0 waits at step 0 for rank 1, rank 1 waits at step 0 for rank 0"
        );
        let fault = run(Collective::AllReduce, steps, Eager).unwrap_err();
        assert_eq!(fault, Fault::Lost { rank: Rank(0), chunk: 0, missing: Rank(0) });
    }

    #[test]
    fn ranks_that_all_wait_before_they_send_are_stuck() {
        let fault = all_reduce([
            &[recv_reduce(1, DATA), send(2, DATA)],
            &[recv_reduce(2, DATA), send(0, DATA)],
            &[recv_reduce(0, DATA), send(1, DATA)],
        ]);
        assert_eq!(fault, stuck(&[(0, 0, 1), (1, 0, 2), (2, 0, 0)]));
    }

    #[test]
    fn a_lost_contribution_is_named() {
        let fault = all_reduce([&[recv_reduce(1, DATA)], &[send(0, DATA)]]);
        assert_eq!(fault, Fault::Lost { rank: Rank(1), chunk: 0, missing: Rank(0) });
    }

    #[test]
    fn a_contribution_counted_twice_is_named() {
        let twice = [send(0, DATA), send(0, DATA)];
        let fault = all_reduce([&[recv_reduce(1, DATA), recv_reduce(1, DATA)], &twice]);
        assert_eq!(fault, Fault::Twice { rank: Rank(0), step: 1, chunk: 0, again: Rank(1) });
    }

    #[test]
    fn sending_nothing_is_a_fault() {
        let fault = all_reduce([&[send(1, SCRATCH)], &[recv(0, DATA)]]);
        assert_eq!(fault, Fault::Nothing { rank: Rank(0), step: 0, chunk: 0 });
    }

    #[test]
    fn folding_into_nothing_is_a_fault() {
        let fault = all_reduce([&[send(1, DATA)], &[recv_reduce(0, SCRATCH)]]);
        assert_eq!(fault, Fault::Nothing { rank: Rank(1), step: 0, chunk: 0 });
    }

    #[test]
    fn what_a_rank_other_than_the_root_holds_counts_as_nothing() {
        let collective = Collective::Broadcast { root: Rank(1) };
        let fault = run(collective, [&[send(1, DATA)], &[recv(0, DATA)]], Eager).unwrap_err();
        assert_eq!(fault, Fault::Nothing { rank: Rank(0), step: 0, chunk: 0 });
    }

    #[test]
    fn a_result_that_nobody_brought_is_missing_the_root() {
        let collective = Collective::Broadcast { root: Rank(1) };
        let fault = run(collective, [&[], &[]], Eager).unwrap_err();
        assert_eq!(fault, Fault::Lost { rank: Rank(0), chunk: 0, missing: Rank(1) });
    }

    #[test]
    fn folds_in_different_orders_are_a_fault() {
        // Rank 0 makes (0 1) 2, rank 1 makes (0 1) 2 and rank 2 makes (0 2) 1.
        let fault = all_reduce([
            &[send(1, DATA), send(2, DATA), recv_reduce(1, DATA), recv_reduce(2, DATA)],
            &[send(0, DATA), send(2, DATA), recv_reduce(0, DATA), recv_reduce(2, DATA)],
            &[send(0, DATA), send(1, DATA), recv_reduce(0, DATA), recv_reduce(1, DATA)],
        ]);
        assert_eq!(fault, Fault::Order { rank: Rank(2), chunk: 0 });
    }

    #[test]
    fn a_move_of_what_is_there_already_is_a_fault() {
        let collective = Collective::Broadcast { root: Rank(0) };
        let twice = [recv(0, DATA), recv(0, DATA)];
        let fault = run(collective, [&[send(1, DATA), send(1, DATA)], &twice], Rendezvous);
        assert_eq!(fault, Err(Fault::Idle { rank: Rank(1), step: 1, chunk: 0 }));
    }

    #[test]
    fn a_local_step_waits_for_the_receive_before_it() {
        let stats = run(
            Collective::Broadcast { root: Rank(0) },
            [&[send(1, DATA)][..], &[recv(0, SCRATCH), Step::Copy { from: SCRATCH, into: DATA }]],
            Rendezvous,
        );
        assert_eq!(stats.map(|stats| stats.rounds), Ok(1));
    }
}
