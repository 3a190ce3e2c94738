//! Collective algorithms as straight-line lists of steps.
//!
//! A schedule is made by a pure function of (rank, [`Shape`]), [`Algorithm::schedule`], and has
//! three readers: the checker ([`check()`]) runs it on symbols, a rehearsal on a clock, the
//! executor on a transport. None of them knows which algorithm it reads.
//!
//! A new algorithm is a file with a function that fills in `rounds`, a line in the table in
//! `algorithm.rs`, and a proof over group sizes beside it.

mod algorithm;
mod binomial;
mod bruck;
mod chain;
mod check;
mod collective;
mod double_binary_tree;
mod flat;
mod halving_doubling;
mod hierarchical;
mod pairwise;
mod recursive_doubling;
mod ring;
mod rounds;
mod shape;

#[cfg(test)]
mod injection;
#[cfg(test)]
mod proof;

use crate::Rank;

pub use check::{Fault, Semantics, Stats, Wait, check};

/// One of the vectors of a rank. All have the same chunks; which of them hold something, and where
/// it lies in memory, depends on the collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vector {
    /// What becomes the caller's result, and where it is worked on; in most collectives the
    /// caller's contribution before.
    Data,
    /// The caller's contribution where it must not be written: see [`Collective`].
    Input,
    /// Memory of the executor; holds nothing at the start.
    Scratch,
}

/// A run of neighbouring chunks of one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// The vector it lies in.
    pub vector: Vector,
    /// Its first chunk.
    pub first: u32,
    /// How many chunks it has, at least one.
    pub len: u32,
}

/// One move of one rank. A chunk is an index; its bytes are bound when the schedule runs.
///
/// Meaning: steps start in order and finish in any order. Two steps of a rank that touch the same
/// chunk, at least one of them writing it, take effect in list order. Messages from one rank to
/// another are received in the order they are sent, and each send is met by one receive of a part
/// with the same chunk count and the same chunk indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Send the part as it stands.
    Send {
        /// The receiver.
        to: Rank,
        /// What is sent.
        part: Part,
    },
    /// Overwrite the part with what `from` sends.
    Recv {
        /// The sender.
        from: Rank,
        /// What is overwritten.
        part: Part,
    },
    /// Fold what `from` sends into the part.
    RecvReduce {
        /// The sender.
        from: Rank,
        /// What is folded into.
        part: Part,
    },
    /// Fold one local part into another with the same chunks (of the other vector).
    Reduce {
        /// What is read.
        from: Part,
        /// What is folded into.
        into: Part,
    },
    /// Overwrite one local part by another with the same chunks (of the other vector).
    Copy {
        /// What is read.
        from: Part,
        /// What is overwritten.
        into: Part,
    },
}

/// What one rank does in one collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Into how many chunks of nearly equal size each vector is cut, at least 1. The same on all
    /// ranks.
    pub chunks: u32,
    /// The steps in the order in which they start.
    pub steps: Vec<Step>,
}

/// What is to be reached.
///
/// All-gather, reduce-scatter, gather and scatter work on one block for each rank: block `r` is
/// chunk `r`. An all-to-all works on one block for each pair of ranks: what `from` has for `to` is
/// chunk `from * size + to`. Such chunks may differ in size, and need not lie one after the other.
/// The block that a rank has for itself is in place already, or is copied there before: no step
/// moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// Every rank ends with the fold over all ranks' data.
    AllReduce,
    /// Every rank ends with the data of `root`.
    Broadcast {
        /// The rank whose data is spread.
        root: Rank,
    },
    /// `root` ends with the fold over all ranks' data; what the others end with is undefined.
    Reduce {
        /// The rank that has the result.
        root: Rank,
    },
    /// Every rank ends with the blocks of all, of which it has its own at the start.
    AllGather,
    /// Every rank ends with its own block of the fold over all ranks' data; what it ends with in
    /// the others is undefined.
    ReduceScatter,
    /// `root` ends with the blocks of all; those of the others are their input.
    Gather {
        /// The rank that has the result.
        root: Rank,
    },
    /// Every rank but `root` ends with its own block of the root's input.
    Scatter {
        /// The rank that has all blocks.
        root: Rank,
    },
    /// Every rank ends with the blocks that the others have for it in their input.
    AllToAll,
    /// As [`AllToAll`](Collective::AllToAll), but no rank knows the sizes of blocks that are neither
    /// from it nor for it.
    AllToAllV,
    /// No rank leaves before every rank has entered.
    Barrier,
}

/// A way to carry out a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// Exchanges through shared memory in which every rank takes, or folds, straight from its
    /// peers' messages what it needs: in `depth` rounds. It has no steps: the transport's board
    /// carries it. Only within one host.
    Fused,
    /// The same for an all-reduce in which each rank folds a share of the data, and posts the
    /// result for the others: in `depth` rounds and one more.
    FusedShares,
    /// Every rank sends what it has for another straight there; folds are in `order` of the shape.
    Flat,
    /// A ring: reduce-scatter, all-gather, or one after the other for an all-reduce.
    Ring,
    /// Recursive doubling: pairs exchange everything, the distance doubles.
    RecursiveDoubling,
    /// Reduce-scatter over distances that halve, all-gather over distances that double, or one
    /// after the other for an all-reduce; the least bytes in the fewest rounds for any group size.
    HalvingDoubling,
    /// Two complementary binary trees, each carrying half of the data, pipelined.
    DoubleBinaryTree,
    /// What crosses between groups crosses once, and is spread or folded inside them.
    Hierarchical,
    /// Binomial tree from the root, or to it.
    Binomial,
    /// Pipelined chain from the root, or to it.
    Chain,
    /// Every rank exchanges blocks with the one at each distance (all-to-all).
    Pairwise,
    /// All-to-all in the fewest rounds: blocks travel over the distances that are powers of two.
    Bruck,
}

/// All that a generator needs to know beside the rank: the group, and how the plan cuts the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The order in which the algorithm visits the ranks (a permutation of `0..size`): ring
    /// neighbours and tree parents are taken by position in it, so that few edges leave a host.
    pub order: Vec<Rank>,
    /// The ranks by host or supernode (a partition of `order` without empty lists), each list in
    /// the order in which its ring runs; only [`Algorithm::Hierarchical`] reads it.
    pub groups: Vec<Vec<Rank>>,
    /// Into how many pieces a pipelined algorithm cuts what it moves, at least 1.
    pub depth: u32,
    /// How many copies of the algorithm run side by side on slices of the data, at least 1. Every
    /// second copy visits the ranks in the opposite order.
    pub channels: u32,
}
