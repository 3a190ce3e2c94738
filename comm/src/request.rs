//! What a caller asks for, checked against the buffers that come with it.

use std::sync::Arc;

use tutti_topo::Rank;
use tutti_topo::schedule::Collective;

use crate::call::Call;
use crate::fold::Scale;
use crate::layout::Blocks;
use crate::{DataType, Element, Reduction};

/// One collective call on buffers whose type is known when the program runs; see
/// [`Communicator::run`](crate::Communicator::run).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is to be done.
    pub collective: Collective,
    /// The type of the elements.
    pub data_type: DataType,
    /// How contributions are combined, where they are.
    pub reduction: Reduction,
    /// The sizes of the blocks, where there are blocks.
    pub counts: Counts,
    /// What this rank multiplies its contribution by, for [`Reduction::PremulSum`] alone. Each rank
    /// has its own.
    pub scale: Option<Scale>,
}

/// The sizes of the blocks of a collective, in elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Counts {
    /// All blocks have the same size, which the buffers tell.
    #[default]
    Even,
    /// One block for each rank (all_gather_v, reduce_scatter_v, gather_v, scatter_v): the same list
    /// on all ranks.
    Listed(Vec<usize>),
    /// What this rank has for each, and what each has for it (all_to_all_v).
    Pairs {
        /// The blocks that are sent, by receiver.
        to: Vec<usize>,
        /// The blocks that are received, by sender.
        from: Vec<usize>,
    },
}

/// A request that fits its buffers.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) call: Call,
    pub(crate) blocks: Blocks,
    pub(crate) scale: Option<Scale>,
}

impl Request {
    /// A request with blocks of the same size, if there are any, that sums, if it reduces.
    pub fn new(collective: Collective, data_type: DataType) -> Self {
        let (reduction, counts) = (Reduction::Sum, Counts::Even);
        Request { collective, data_type, reduction, counts, scale: None }
    }

    /// The same with another reduction.
    pub fn by(self, reduction: Reduction) -> Self {
        Request { reduction, ..self }
    }

    /// The same by [`Reduction::PremulSum`], with this rank's contribution times `number`, which must
    /// be of the request's type.
    pub fn scaled<T: Element>(self, number: T) -> Self {
        Request { scale: Some(Scale::new(number)), ..self.by(Reduction::PremulSum) }
    }

    /// The same with blocks of these sizes.
    pub fn with_counts(self, counts: Counts) -> Self {
        Request { counts, ..self }
    }

    /// What rank `me` of `size` is to do with buffers of so many bytes; `from` is `None` in place.
    ///
    /// # Errors
    ///
    /// What does not fit, in one line.
    pub(crate) fn fit(
        &self,
        me: Rank,
        size: u32,
        from: Option<usize>,
        into: usize,
    ) -> Result<Job, String> {
        if self.collective.reduces() {
            self.reduction.applies_to(self.data_type)?;
            self.fit_scale()?;
        }
        if let Some(root) = self.collective.root()
            && root.0 >= size
        {
            return Err(format!("root {root} is outside a group of {size}"));
        }
        let from = from.map(|bytes| self.elements(bytes, "contribution")).transpose()?;
        let fit = Fit {
            collective: self.collective,
            me: me.index(),
            size: size as usize,
            from,
            into: self.elements(into, "result")?,
        };
        let (count, blocks) = match &self.counts {
            Counts::Even if self.collective == Collective::AllToAllV => {
                return Err("the sizes of the blocks are missing".into());
            }
            Counts::Even => (fit.even()?, Blocks::Even),
            Counts::Listed(counts) => (fit.listed(counts)?, Blocks::Listed(list(counts))),
            Counts::Pairs { to, from } => {
                fit.pairs(to, from)?;
                (0, Blocks::Pairs { to: list(to), from: list(from) })
            }
        };
        let Request { collective, data_type, reduction, .. } = *self;
        let counts = match &blocks {
            Blocks::Listed(counts) => hash(counts),
            _ => 0,
        };
        let call = Call { collective, data_type, reduction, count, counts };
        Ok(Job { call, blocks, scale: self.scale.filter(|_| collective.reduces()) })
    }

    fn fit_scale(&self) -> Result<(), String> {
        let Request { reduction, data_type, .. } = self;
        match self.scale {
            None if *reduction == Reduction::PremulSum => {
                Err(format!("{reduction} needs a scale: build the request by Request::scaled"))
            }
            Some(_) if *reduction != Reduction::PremulSum => {
                Err(format!("{reduction} takes no scale: only premul_sum does"))
            }
            Some(scale) if scale.data_type() != *data_type => {
                Err(format!("a scale of {} does not fit {data_type}", scale.data_type()))
            }
            _ => Ok(()),
        }
    }

    fn elements(&self, bytes: usize, what: &str) -> Result<u64, String> {
        let (size, data_type) = (self.data_type.size(), self.data_type);
        match bytes.is_multiple_of(size) {
            true => Ok((bytes / size) as u64),
            false => Err(format!(
                "a {what} of {bytes} bytes is no whole number of {data_type} ({size} bytes each)"
            )),
        }
    }
}

fn list(counts: &[usize]) -> Arc<[u64]> {
    counts.iter().map(|&count| count as u64).collect()
}

/// The FNV-1a hash of the counts, by words; never 0.
fn hash(counts: &[u64]) -> u32 {
    let hash = counts.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, count| {
        (hash ^ count).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
    });
    ((hash ^ (hash >> 32)) as u32).max(1)
}

/// The buffers of a call in elements, and the rules for them.
struct Fit {
    collective: Collective,
    me: usize,
    size: usize,
    from: Option<u64>,
    into: u64,
}

impl Fit {
    fn is_root(&self) -> bool {
        self.collective.root().is_some_and(|root| root.index() == self.me)
    }

    /// The count of the call when all blocks have the same size.
    fn even(&self) -> Result<u64, String> {
        let &Fit { from, into, .. } = self;
        match (self.collective, from) {
            (Collective::AllReduce, Some(from)) => self.equal("the result", into, from),
            (Collective::Broadcast { .. } | Collective::Reduce { .. }, Some(from))
                if self.is_root() =>
            {
                self.equal("the result", into, from)
            }
            (Collective::Reduce { .. }, Some(from)) => Ok(from),
            (Collective::AllGather, Some(from)) => self.equal("the result", into, self.all(from)?),
            (Collective::Gather { .. }, Some(from)) if self.is_root() => {
                self.equal("the result", into, self.all(from)?)
            }
            (Collective::Gather { .. }, Some(from)) => self.all(from),
            (Collective::ReduceScatter, Some(from)) => {
                self.equal("the contribution", from, self.all(into)?)
            }
            (Collective::Scatter { .. }, Some(from)) if self.is_root() => {
                self.equal("the contribution", from, self.all(into)?)
            }
            (Collective::AllToAll, Some(from)) => {
                self.divided(self.equal("the result", into, from)?)
            }
            (Collective::Gather { .. } | Collective::Scatter { .. }, _) if !self.is_root() => {
                self.all(into)
            }
            (Collective::AllGather | Collective::ReduceScatter | Collective::AllToAll, None)
            | (Collective::Gather { .. } | Collective::Scatter { .. }, None) => self.divided(into),
            _ => Ok(into),
        }
    }

    /// The count of the call when each rank has a block of its own size.
    fn listed(&self, counts: &[usize]) -> Result<u64, String> {
        let total = self.sum("counts", counts)?;
        let own = counts[self.me] as u64;
        let (from, into) = match (self.collective, self.from) {
            (Collective::AllGather, Some(_)) => (Some(own), Some(total)),
            (Collective::Gather { .. }, Some(_)) => (Some(own), self.is_root().then_some(total)),
            (Collective::ReduceScatter, Some(_)) => (Some(total), Some(own)),
            (Collective::Scatter { .. }, Some(_)) => (self.is_root().then_some(total), Some(own)),
            (Collective::Gather { .. } | Collective::Scatter { .. }, None) if !self.is_root() => {
                (None, Some(own))
            }
            (
                Collective::AllGather
                | Collective::ReduceScatter
                | Collective::Gather { .. }
                | Collective::Scatter { .. },
                None,
            ) => (None, Some(total)),
            _ => return Err("it takes no list of counts".into()),
        };
        if let (Some(from), Some(expected)) = (self.from, from) {
            self.equal("the contribution", from, expected)?;
        }
        if let Some(expected) = into {
            self.equal("the result", self.into, expected)?;
        }
        Ok(total)
    }

    fn pairs(&self, to: &[usize], from: &[usize]) -> Result<(), String> {
        if self.collective != Collective::AllToAllV {
            return Err("it takes no counts by pair".into());
        }
        let (sent, received) = (self.sum("send counts", to)?, self.sum("receive counts", from)?);
        if to[self.me] != from[self.me] {
            let (to, from) = (to[self.me], from[self.me]);
            return Err(format!("this rank sends itself {to} elements and receives {from}"));
        }
        match self.from {
            Some(given) => self.equal("the contribution", given, sent)?,
            None if to == from => 0,
            None => return Err("in place, it receives from each rank as much as it sends".into()),
        };
        self.equal("the result", self.into, received).map(drop)
    }

    fn equal(&self, what: &str, given: u64, expected: u64) -> Result<u64, String> {
        match given == expected {
            true => Ok(given),
            false => Err(format!("{what} has {given} elements, expected {expected}")),
        }
    }

    /// The elements of all blocks, when one has so many.
    fn all(&self, block: u64) -> Result<u64, String> {
        let all = block.checked_mul(self.size as u64);
        all.ok_or_else(|| format!("{} blocks of {block} elements are too many", self.size))
    }

    fn divided(&self, elements: u64) -> Result<u64, String> {
        match elements.is_multiple_of(self.size as u64) {
            true => Ok(elements),
            false => Err(format!("{elements} elements are not {} equal blocks", self.size)),
        }
    }

    fn sum(&self, what: &str, counts: &[usize]) -> Result<u64, String> {
        if counts.len() != self.size {
            return Err(format!("{} {what} for a group of {}", counts.len(), self.size));
        }
        let sum = counts.iter().try_fold(0, |sum: u64, &count| sum.checked_add(count as u64));
        sum.ok_or_else(|| format!("the {what} are too large to be added up"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: Rank = Rank(1);

    fn fit(
        collective: Collective,
        me: u32,
        from: Option<usize>,
        into: usize,
    ) -> Result<u64, String> {
        let request = Request::new(collective, DataType::U8);
        request.fit(Rank(me), 4, from, into).map(|job| job.call.count)
    }

    #[test]
    fn the_count_is_that_of_all_blocks_on_every_rank() {
        let gather = Collective::Gather { root: ROOT };
        assert_eq!(fit(gather, 1, Some(3), 12), Ok(12));
        assert_eq!(fit(gather, 0, Some(3), 0), Ok(12));
        assert_eq!(fit(gather, 1, None, 12), Ok(12));
        assert_eq!(fit(gather, 0, None, 3), Ok(12));
        let scatter = Collective::Scatter { root: ROOT };
        assert_eq!(fit(scatter, 1, Some(12), 3), Ok(12));
        assert_eq!(fit(scatter, 0, Some(0), 3), Ok(12));
        assert_eq!(fit(Collective::AllGather, 2, Some(3), 12), Ok(12));
        assert_eq!(fit(Collective::ReduceScatter, 2, Some(12), 3), Ok(12));
        assert_eq!(fit(Collective::AllToAll, 2, Some(12), 12), Ok(12));
    }

    #[test]
    fn buffers_that_do_not_fit_are_refused_in_words() {
        let why = |collective, me, from, into| fit(collective, me, from, into).unwrap_err();
        assert_eq!(
            why(Collective::AllGather, 0, Some(3), 11),
            "the result has 11 elements, expected 12"
        );
        assert_eq!(why(Collective::AllToAll, 0, None, 7), "7 elements are not 4 equal blocks");
        assert_eq!(
            why(Collective::ReduceScatter, 0, Some(13), 3),
            "the contribution has 13 elements, expected 12"
        );
        let huge = usize::MAX / 2;
        assert!(why(Collective::AllGather, 0, Some(huge), 0).ends_with("are too many"));
        let outside = Collective::Reduce { root: Rank(4) };
        assert_eq!(why(outside, 0, None, 1), "root 4 is outside a group of 4");
        assert_eq!(why(Collective::AllToAllV, 0, None, 1), "the sizes of the blocks are missing");
    }

    #[test]
    fn a_reduction_that_does_not_apply_is_refused_where_it_matters() {
        let fit = |collective| {
            let request = Request::new(collective, DataType::F32).by(Reduction::Band);
            request.fit(Rank(0), 4, None, 16).map(drop)
        };
        assert!(fit(Collective::AllReduce).unwrap_err().starts_with("band does not apply"));
        assert_eq!(fit(Collective::AllGather), Ok(()));
    }

    #[test]
    fn a_premultiplied_sum_needs_a_scale_of_its_type_and_nothing_else_takes_one() {
        let fit = |request: Request| request.fit(Rank(0), 4, None, 16).map(drop);
        let request = || Request::new(Collective::AllReduce, DataType::F32);
        assert_eq!(fit(request().scaled(2.0f32)), Ok(()));
        let why = fit(request().by(Reduction::PremulSum)).unwrap_err();
        assert!(why.starts_with("premul_sum needs a scale"), "{why}");
        let why = fit(request().scaled(2.0f32).by(Reduction::Max)).unwrap_err();
        assert!(why.starts_with("max takes no scale"), "{why}");
        let why = fit(request().scaled(2.0f64)).unwrap_err();
        assert_eq!(why, "a scale of fp64 does not fit fp32");
    }

    #[test]
    fn lists_of_counts_must_fit_group_and_buffers() {
        let list = |counts: &[usize], from, into| {
            let request = Request::new(Collective::AllGather, DataType::U8);
            let request = request.with_counts(Counts::Listed(counts.to_vec()));
            request.fit(Rank(2), 4, from, into).map(|job| job.call.count)
        };
        assert_eq!(list(&[1, 2, 3, 4], Some(3), 10), Ok(10));
        assert_eq!(list(&[1, 2, 3], Some(3), 6).unwrap_err(), "3 counts for a group of 4");
        assert!(list(&[1, 2, 3, 4], Some(4), 10).unwrap_err().contains("expected 3"));
        let huge = usize::MAX / 2 + 1;
        assert!(list(&[huge, huge, 0, 0], Some(0), 0).unwrap_err().contains("too large"));
    }

    #[test]
    fn different_lists_with_one_sum_are_told_apart() {
        let counts = |counts: &[usize]| {
            let request = Request::new(Collective::AllGather, DataType::U8);
            let request = request.with_counts(Counts::Listed(counts.to_vec()));
            request.fit(Rank(0), 2, None, 4).unwrap().call.counts
        };
        assert_ne!(counts(&[1, 3]), counts(&[3, 1]));
        assert_ne!(counts(&[2, 2]), 0);
    }

    #[test]
    fn pairs_must_agree_on_what_a_rank_has_for_itself() {
        let pairs = |to: &[usize], from: &[usize], given, into| {
            let request = Request::new(Collective::AllToAllV, DataType::U8);
            let counts = Counts::Pairs { to: to.to_vec(), from: from.to_vec() };
            request.with_counts(counts).fit(Rank(0), 2, given, into).map(drop)
        };
        assert_eq!(pairs(&[1, 5], &[1, 0], Some(6), 1), Ok(()));
        assert!(pairs(&[1, 5], &[2, 0], Some(6), 2).unwrap_err().contains("sends itself 1"));
        assert!(pairs(&[1, 5], &[1, 0], None, 1).unwrap_err().starts_with("in place"));
    }
}
