//! What one row of the table measures.

use tutti::{Collective, Counts, DataType, Rank, Reduction, Request};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Collective(Collective),
    /// Every rank sends its data to the next and receives that of the one before.
    SendRecv,
}

/// One act at one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) act: Act,
    pub(super) data_type: DataType,
    /// Of no meaning where nothing is combined.
    pub(super) reduction: Reduction,
    pub(super) ranks: u32,
    /// Elements of one rank's data; where it has blocks, of all of them together.
    pub(super) count: u64,
    /// Whether blocks differ in size; their mean is the same then.
    pub(super) uneven: bool,
    /// Whether the contribution lies in the buffer of the result.
    pub(super) in_place: bool,
}

impl Case {
    /// The bytes of the data.
    pub(super) fn bytes(&self) -> u64 {
        self.count * self.data_type.size() as u64
    }

    /// What a rank asks for in every iteration, if it asks for a collective.
    pub(super) fn request(&self, me: Rank) -> Option<Request> {
        let Act::Collective(collective) = self.act else { return None };
        let request = Request::new(collective, self.data_type).by(self.reduction);
        let list =
            |count: &dyn Fn(u32) -> u64| (0..self.ranks).map(|r| count(r) as usize).collect();
        Some(request.with_counts(match collective {
            Collective::AllToAllV => Counts::Pairs {
                to: list(&|to| self.pair(me.0, to)),
                from: list(&|from| self.pair(from, me.0)),
            },
            _ if self.uneven && collective.has_blocks() => {
                Counts::Listed(list(&|rank| self.block(rank)))
            }
            _ => Counts::Even,
        }))
    }

    /// The rank that `me` sends to, or receives from, in a ring.
    pub(super) fn neighbours(&self, me: Rank) -> (Rank, Rank) {
        let at = |distance: u32| Rank((me.0 + distance) % self.ranks);
        (at(1), at(self.ranks - 1))
    }

    /// The elements of a rank's block.
    pub(super) fn block(&self, rank: u32) -> u64 {
        self.mean().saturating_add_signed(if self.uneven { self.lopsided(rank) } else { 0 })
    }

    /// The elements that one rank has for another.
    pub(super) fn pair(&self, from: u32, to: u32) -> u64 {
        let uneven = self.uneven && self.ranks.is_multiple_of(2);
        let around = if uneven { self.lopsided((from + to) % self.ranks) } else { 0 };
        self.mean().saturating_add_signed(around)
    }

    fn mean(&self) -> u64 {
        self.count / u64::from(self.ranks)
    }

    /// Of each two neighbours one gets half of its mean more, the other as much less.
    fn lopsided(&self, rank: u32) -> i64 {
        let half = (self.mean() / 2) as i64;
        match rank % 2 {
            _ if rank + 1 == self.ranks && rank.is_multiple_of(2) => 0,
            0 => half,
            _ => -half,
        }
    }

    /// The bytes that pass each rank's link at best, by the bytes of the data.
    pub(super) fn bus_factor(&self) -> f64 {
        let others = f64::from(self.ranks - 1) / f64::from(self.ranks);
        match self.act {
            Act::Collective(Collective::AllReduce) => 2.0 * others,
            Act::Collective(Collective::Broadcast { .. } | Collective::Reduce { .. }) => 1.0,
            Act::Collective(Collective::Barrier) => 0.0,
            Act::SendRecv => 1.0,
            Act::Collective(_) => others,
        }
    }

    /// The name of the collective in reports.
    pub(super) fn name(&self) -> &'static str {
        match self.act {
            Act::SendRecv => "send_recv",
            Act::Collective(Collective::AllGather) if self.uneven => "all_gather_v",
            Act::Collective(Collective::ReduceScatter) if self.uneven => "reduce_scatter_v",
            Act::Collective(Collective::Gather { .. }) if self.uneven => "gather_v",
            Act::Collective(Collective::Scatter { .. }) if self.uneven => "scatter_v",
            Act::Collective(collective) => collective.name(),
        }
    }

    /// The type's name, if the collective has elements.
    pub(super) fn type_name(&self) -> Option<&'static str> {
        (!self.is_barrier()).then(|| self.data_type.name())
    }

    pub(super) fn is_barrier(&self) -> bool {
        self.act == Act::Collective(Collective::Barrier)
    }

    /// Whether contributions are combined.
    pub(super) fn reduces(&self) -> bool {
        matches!(self.act, Act::Collective(collective) if collective.reduces())
    }

    /// The reduction's name, if the collective has one.
    pub(super) fn reduction_name(&self) -> Option<&'static str> {
        self.reduces().then(|| self.reduction.name())
    }
}
