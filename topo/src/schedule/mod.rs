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
mod chain;
mod check;
mod double_binary_tree;
mod flat;
mod halving_doubling;
mod hierarchical;
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

/// One of the two vectors of a rank. Both are cut into the same chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vector {
    /// The caller's elements: the contribution before, the result after.
    Data,
    /// Memory of the executor, as long as the data; holds nothing at the start.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// Every rank ends with the fold over all ranks' data.
    AllReduce,
    /// Every rank ends with the data of `root`.
    Broadcast {
        /// The rank whose data is spread.
        root: Rank,
    },
    /// No rank leaves before every rank has entered.
    Barrier,
}

/// A way to carry out a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// One shared-memory exchange in which every rank folds straight from its peers' slots. It
    /// has no steps: the transport's board carries it. Only within one host, only small.
    Fused,
    /// Every rank sends everything to every other, and all fold in `order` of the shape (as a
    /// broadcast: the root sends everything to every other).
    Flat,
    /// Ring reduce-scatter, then ring all-gather.
    Ring,
    /// Recursive doubling: pairs exchange everything, the distance doubles.
    RecursiveDoubling,
    /// Reduce-scatter over distances that halve, then all-gather over distances that double; the
    /// least bytes in the fewest rounds for any group size.
    HalvingDoubling,
    /// Two complementary binary trees, each carrying half of the data, pipelined.
    DoubleBinaryTree,
    /// Reduce-scatter inside each group, all-reduce across groups, all-gather inside.
    Hierarchical,
    /// Binomial tree from the root (broadcast).
    Binomial,
    /// Pipelined chain from the root (broadcast).
    Chain,
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
