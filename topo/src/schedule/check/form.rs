use super::Fault;
use super::matching::{ranks, steps};
use super::order::Access;
use crate::Rank;
use crate::schedule::{Part, Schedule, Step, Vector};

/// Looks at each step by itself.
///
/// # Errors
///
/// The first rank that cuts the data in its own way, or step with an impossible part or peer.
pub(super) fn well_formed(schedules: &[Schedule]) -> Result<(), Fault> {
    let expected = schedules[0].chunks;
    for (rank, schedule) in ranks(schedules) {
        let chunks = schedule.chunks;
        if chunks != expected || chunks == 0 {
            return Err(Fault::Chunks { rank, chunks, expected });
        }
        for (index, step) in steps(schedule) {
            for (access, part) in step.accesses() {
                in_bounds(rank, index, part, chunks)?;
                if access == Access::Writes && part.vector == Vector::Input {
                    return Err(Fault::ReadOnly { rank, step: index });
                }
            }
            possible(rank, index, step, schedules.len())?;
        }
    }
    Ok(())
}

fn in_bounds(rank: Rank, step: u32, part: Part, chunks: u32) -> Result<(), Fault> {
    let Part { first, len, .. } = part;
    match len > 0 && len <= chunks && first <= chunks - len {
        true => Ok(()),
        false => Err(Fault::Bounds { rank, step, first, len, chunks }),
    }
}

fn possible(rank: Rank, index: u32, step: &Step, size: usize) -> Result<(), Fault> {
    match *step {
        Step::Send { to: peer, .. }
        | Step::Recv { from: peer, .. }
        | Step::RecvReduce { from: peer, .. } => match peer != rank && peer.index() < size {
            true => Ok(()),
            false => Err(Fault::Peer { rank, step: index, peer }),
        },
        Step::Reduce { from, into } | Step::Copy { from, into } => {
            let same_chunks = (from.first, from.len) == (into.first, into.len);
            match same_chunks && from.vector != into.vector {
                true => Ok(()),
                false => Err(Fault::Local { rank, step: index }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: Rank = Rank(1);
    const ONE: Part = Part { vector: crate::schedule::Vector::Data, first: 1, len: 1 };

    /// The fault of two ranks with two chunks and these steps.
    fn fault(zero: &[Step], one: &[Step]) -> Fault {
        let schedules = [zero, one].map(|steps| Schedule { chunks: 2, steps: steps.to_vec() });
        well_formed(&schedules).expect_err("a fault")
    }

    #[test]
    fn a_message_to_oneself_or_a_stranger_is_named() {
        for peer in [Rank(0), Rank(2)] {
            let fault = fault(&[Step::Send { to: peer, part: ONE }], &[]);
            assert_eq!(fault, Fault::Peer { rank: Rank(0), step: 0, peer });
        }
    }

    #[test]
    fn a_write_to_the_input_is_named() {
        let fault = fault(&[], &[Step::Recv { from: Rank(0), part: Part::input(0, 1) }]);
        assert_eq!(fault, Fault::ReadOnly { rank: OTHER, step: 0 });
    }

    #[test]
    fn a_part_beyond_the_chunks_is_named() {
        for (first, len) in [(0, 0), (2, 1), (1, 2), (u32::MAX, 2)] {
            let send = Step::Send { to: OTHER, part: Part::data(first, len) };
            let expected = Fault::Bounds { rank: Rank(0), step: 0, first, len, chunks: 2 };
            assert_eq!(fault(&[send], &[]), expected);
        }
    }

    #[test]
    fn a_local_step_across_chunks_or_within_a_vector_is_named() {
        for from in [Part::scratch(0, 1), Part::data(1, 1)] {
            let fault = fault(&[], &[Step::Copy { from, into: ONE }]);
            assert_eq!(fault, Fault::Local { rank: OTHER, step: 0 });
        }
    }

    #[test]
    fn ranks_that_cut_differently_are_named() {
        let cut = |chunks| Schedule { chunks, steps: vec![] };
        let fault = well_formed(&[cut(2), cut(3)]).err();
        assert_eq!(fault, Some(Fault::Chunks { rank: OTHER, chunks: 3, expected: 2 }));
        let fault = well_formed(&[cut(0)]).err();
        assert_eq!(fault, Some(Fault::Chunks { rank: Rank(0), chunks: 0, expected: 0 }));
    }
}
