//! Where the elements of a case lie in a rank's buffers, and what they are.

use tutti::{Collective, Rank};

use super::case::{Act, Case};

/// A run of elements in a buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    /// Where it starts in the buffer, in elements.
    pub(super) at: u64,
    pub(super) len: u64,
    /// The rank that contributed the elements, or `None` for the fold over all ranks'.
    pub(super) of: Option<u32>,
    /// The number of its first element among those that a rank contributes.
    pub(super) first: u64,
}

/// The buffers of one rank.
pub(super) struct Places {
    /// The elements of the buffer that is only read; 0 in place.
    pub(super) from_len: u64,
    /// The elements of the buffer of the result.
    pub(super) into_len: u64,
    /// What the rank contributes: in `from`, or in place in `into`.
    pub(super) contribution: Vec<Run>,
    /// What must be in `into` at the end.
    pub(super) result: Vec<Run>,
    /// Whether all ranks end with the same bits.
    pub(super) alike: bool,
}

impl Places {
    pub(super) fn of(case: &Case, me: u32) -> Places {
        let Act::Collective(collective) = case.act else { return Places::of_ring(case, me) };
        let in_place = case.in_place;
        let start = |rank: u32| (0..rank).map(|rank| case.block(rank)).sum::<u64>();
        let (own, own_start) = (case.block(me), start(me));
        let all: u64 = match collective.has_blocks() {
            true => start(case.ranks),
            false => case.count,
        };
        let is_root = collective.root().is_some_and(|root| root.0 == me);
        let whole = |of| vec![Run { at: 0, len: all, of, first: 0 }];
        let block = |at, of| vec![Run { at, len: own, of, first: own_start }];
        let gathered = || {
            let run = |rank| {
                let (at, len) = (start(rank), case.block(rank));
                Run { at, len, of: Some(rank), first: at }
            };
            (0..case.ranks).map(run).collect::<Vec<Run>>()
        };
        let (mine, in_own_block) = (Some(me), if in_place { own_start } else { 0 });
        // Contribution, its length; result, its length.
        let (contribution, given, result, got) = match collective {
            Collective::Barrier => (Vec::new(), 0, Vec::new(), 1),
            Collective::AllReduce => (whole(mine), all, whole(None), all),
            Collective::Broadcast { root } => (whole(mine), all, whole(Some(root.0)), all),
            Collective::Reduce { .. } if is_root => (whole(mine), all, whole(None), all),
            Collective::Reduce { .. } => (whole(mine), all, Vec::new(), 0),
            Collective::AllGather => (block(in_own_block, mine), own, gathered(), all),
            Collective::Gather { .. } if is_root => {
                (block(in_own_block, mine), own, gathered(), all)
            }
            Collective::Gather { .. } => (block(0, mine), own, Vec::new(), 0),
            Collective::ReduceScatter => {
                let got = if in_place { all } else { own };
                (whole(mine), all, block(in_own_block, None), got)
            }
            Collective::Scatter { root } if is_root => {
                let got = if in_place { all } else { own };
                (whole(mine), all, block(in_own_block, Some(root.0)), got)
            }
            Collective::Scatter { root } => (Vec::new(), 0, block(0, Some(root.0)), own),
            Collective::AllToAll | Collective::AllToAllV => {
                let sent = pairs(case, |other| (me, other));
                let received = pairs(case, |other| (other, me));
                let len = |runs: &[Run]| runs.iter().map(|run| run.len).sum();
                let lens = (len(&sent), len(&received));
                (sent, lens.0, received, lens.1)
            }
        };
        let alike = matches!(
            collective,
            Collective::AllReduce | Collective::Broadcast { .. } | Collective::AllGather
        );
        Places {
            from_len: if in_place { 0 } else { given },
            into_len: if in_place { given.max(got) } else { got },
            contribution,
            result,
            alike,
        }
    }

    /// Both buffers of a rank that sends to its next and receives from the one before.
    fn of_ring(case: &Case, me: u32) -> Places {
        let run = |of| vec![Run { at: 0, len: case.count, of: Some(of), first: 0 }];
        let (_, previous) = case.neighbours(Rank(me));
        Places {
            from_len: case.count,
            into_len: case.count,
            contribution: run(me),
            result: run(previous.0),
            alike: false,
        }
    }
}

/// The blocks between one rank and each other, one after the other; `ends` gives sender and
/// receiver. The elements for each receiver have numbers of their own.
fn pairs(case: &Case, ends: impl Fn(u32) -> (u32, u32)) -> Vec<Run> {
    let mut at = 0;
    let run = |other| {
        let (from, to) = ends(other);
        let len = case.pair(from, to);
        at += len;
        Run { at: at - len, len, of: Some(from), first: u64::from(to) << 40 }
    };
    (0..case.ranks).map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti::{DataType, Reduction};

    fn case(collective: Collective, uneven: bool, in_place: bool) -> Case {
        let (data_type, reduction) = (DataType::F32, Reduction::Sum);
        let act = Act::Collective(collective);
        Case { act, data_type, reduction, ranks: 4, count: 40, uneven, in_place }
    }

    #[test]
    fn in_place_blocks_lie_where_the_result_has_them() {
        let places = Places::of(&case(Collective::AllGather, false, true), 2);
        assert_eq!((places.from_len, places.into_len), (0, 40));
        assert_eq!(places.contribution, [Run { at: 20, len: 10, of: Some(2), first: 20 }]);
        assert_eq!(places.result[3], Run { at: 30, len: 10, of: Some(3), first: 30 });
    }

    #[test]
    fn uneven_blocks_add_up_to_the_data() {
        for ranks in 1..9 {
            let case = Case {
                ranks,
                count: 40 * u64::from(ranks),
                ..case(Collective::AllGather, true, false)
            };
            assert_eq!((0..ranks).map(|rank| case.block(rank)).sum::<u64>(), case.count);
            for me in 0..ranks {
                let pairs: u64 = (0..ranks).map(|to| case.pair(me, to)).sum();
                assert_eq!(pairs, case.count, "{ranks} ranks");
            }
        }
    }

    #[test]
    fn a_rank_other_than_the_root_has_no_result_of_a_gather() {
        let gather = Collective::Gather { root: Rank(1) };
        let places = Places::of(&case(gather, false, false), 0);
        assert_eq!((places.from_len, places.into_len, places.result.len()), (10, 0, 0));
        let places = Places::of(&case(gather, false, false), 1);
        assert_eq!((places.from_len, places.into_len, places.result.len()), (10, 40, 4));
    }

    #[test]
    fn both_ends_of_a_pair_number_its_elements_alike() {
        let case = case(Collective::AllToAllV, true, false);
        let (sent, received) = (Places::of(&case, 1).contribution, Places::of(&case, 3).result);
        assert_eq!(
            (sent[3].len, sent[3].first, sent[3].of),
            (received[1].len, received[1].first, received[1].of)
        );
    }
}
