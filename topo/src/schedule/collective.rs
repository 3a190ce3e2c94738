use super::{Collective, Vector};
use crate::Rank;

impl Collective {
    /// One of each kind; the root, where there is one, is rank 0.
    pub const KINDS: [Collective; 10] = {
        let root = Rank(0);
        [
            Collective::AllReduce,
            Collective::Broadcast { root },
            Collective::Reduce { root },
            Collective::AllGather,
            Collective::ReduceScatter,
            Collective::Gather { root },
            Collective::Scatter { root },
            Collective::AllToAll,
            Collective::AllToAllV,
            Collective::Barrier,
        ]
    };

    /// The name in settings, reports and tables.
    pub fn name(self) -> &'static str {
        match self {
            Collective::AllReduce => "all_reduce",
            Collective::Broadcast { .. } => "broadcast",
            Collective::Reduce { .. } => "reduce",
            Collective::AllGather => "all_gather",
            Collective::ReduceScatter => "reduce_scatter",
            Collective::Gather { .. } => "gather",
            Collective::Scatter { .. } => "scatter",
            Collective::AllToAll => "all_to_all",
            Collective::AllToAllV => "all_to_all_v",
            Collective::Barrier => "barrier",
        }
    }

    /// The rank that all data comes from or goes to, if there is one.
    pub fn root(self) -> Option<Rank> {
        match self {
            Collective::Broadcast { root }
            | Collective::Reduce { root }
            | Collective::Gather { root }
            | Collective::Scatter { root } => Some(root),
            _ => None,
        }
    }

    /// The same with another root, where there is one.
    pub fn with_root(mut self, new: Rank) -> Collective {
        match &mut self {
            Collective::Broadcast { root }
            | Collective::Reduce { root }
            | Collective::Gather { root }
            | Collective::Scatter { root } => *root = new,
            _ => {}
        }
        self
    }

    /// Whether contributions are folded.
    pub fn reduces(self) -> bool {
        matches!(
            self,
            Collective::AllReduce | Collective::Reduce { .. } | Collective::ReduceScatter
        )
    }

    /// Whether chunks are blocks with an owner, so that no plan may cut the data in its own way.
    pub fn has_blocks(self) -> bool {
        match self {
            Collective::AllReduce
            | Collective::Broadcast { .. }
            | Collective::Reduce { .. }
            | Collective::Barrier => false,
            Collective::AllGather
            | Collective::ReduceScatter
            | Collective::Gather { .. }
            | Collective::Scatter { .. }
            | Collective::AllToAll
            | Collective::AllToAllV => true,
        }
    }

    /// Whether the chunk of that vector of `rank` holds something at the start.
    pub(super) fn starts_with(self, rank: Rank, vector: Vector, chunk: u32, size: u32) -> bool {
        match (self, vector) {
            (_, Vector::Scratch) => false,
            (Collective::Scatter { root }, Vector::Input) => rank == root && chunk != root.0,
            (Collective::Gather { root }, Vector::Input) => rank != root && chunk == rank.0,
            (Collective::AllToAll | Collective::AllToAllV, Vector::Input) => {
                let (from, to) = (chunk / size, chunk % size);
                from == rank.0 && to != from
            }
            (_, Vector::Input) => false,
            (Collective::AllReduce | Collective::Reduce { .. }, _) => true,
            (Collective::ReduceScatter | Collective::Barrier, _) => true,
            (Collective::Broadcast { root }, _) => rank == root,
            (Collective::AllGather, _) => chunk == rank.0,
            (Collective::Gather { root }, _) => rank == root && chunk == root.0,
            (Collective::Scatter { .. } | Collective::AllToAll | Collective::AllToAllV, _) => false,
        }
    }

    /// Whether `rank` has that chunk of its data as a result at the end.
    pub(super) fn ends_with(self, rank: Rank, chunk: u32, size: u32) -> bool {
        match self {
            Collective::AllReduce
            | Collective::Broadcast { .. }
            | Collective::AllGather
            | Collective::Barrier => true,
            Collective::Reduce { root } | Collective::Gather { root } => rank == root,
            Collective::ReduceScatter => chunk == rank.0,
            Collective::Scatter { root } => rank != root && chunk == rank.0,
            Collective::AllToAll | Collective::AllToAllV => {
                let (from, to) = (chunk / size, chunk % size);
                to == rank.0 && from != to
            }
        }
    }

    /// The only rank that brings the chunk, where chunks are moved and not folded.
    pub(super) fn source(self, chunk: u32, size: u32) -> Option<Rank> {
        match self {
            Collective::AllReduce
            | Collective::Reduce { .. }
            | Collective::ReduceScatter
            | Collective::Barrier => None,
            Collective::Broadcast { root } | Collective::Scatter { root } => Some(root),
            Collective::AllGather | Collective::Gather { .. } => Some(Rank(chunk)),
            Collective::AllToAll | Collective::AllToAllV => Some(Rank(chunk / size)),
        }
    }
}
