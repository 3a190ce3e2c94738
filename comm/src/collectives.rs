//! The collectives as typed calls: each in place, from one buffer into another, and started.

use tutti_topo::Rank;
use tutti_topo::schedule::Collective;

use crate::Reduction;
use crate::communicator::Communicator;
use crate::data_type::{Element, bytes_of, bytes_of_mut};
use crate::error::{Error, ErrorKind};
use crate::request::{Counts, Request};
use crate::work::Work;

/// # Collectives
///
/// Every rank passes the same type, reduction, root and counts, and buffers that fit them: for
/// `n` elements and `size` ranks as each call says. The calls without `_into` work in place. All
/// block until this rank's part is done: a rank that only sends may return before the others have
/// received, and hear of a mismatch only by its next call. Those that begin with `start_` return at
/// once; the result comes by [`Work::wait`], and started operations run in the order of their start.
///
/// A reduction folds in an order that depends on group and plan alone, so a repeated run gets the
/// same bits, and so do all ranks. Integers wrap; NaN propagates, also through min and max; averages
/// of integers divide toward zero.
///
/// Errors of all: [`ErrorKind::Argument`] for buffers, counts or a root that do not fit (nothing was
/// sent, and the communicator goes on); [`ErrorKind::Failed`]: a rank called something else, died, aborted, or
/// nothing moved for [`Config::deadline`](crate::Config::deadline). The contents of results are then undefined.
impl Communicator {
    /// Replaces `data` by its element-wise combination over all ranks.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn all_reduce<T: Element>(
        &self,
        data: &mut [T],
        reduction: Reduction,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::AllReduce, T::DATA_TYPE).by(reduction),
            None,
            bytes_of_mut(data),
        )
    }

    /// As [`all_reduce`](Communicator::all_reduce), with the result in `into`, as long as `from`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn all_reduce_into<T: Element>(
        &self,
        from: &[T],
        into: &mut [T],
        reduction: Reduction,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::AllReduce, T::DATA_TYPE).by(reduction),
            Some(bytes_of(from)),
            bytes_of_mut(into),
        )
    }

    /// Starts an [`all_reduce`](Communicator::all_reduce) of `data`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn start_all_reduce<T: Element>(
        &self,
        data: Vec<T>,
        reduction: Reduction,
    ) -> Result<Work<T>, Error> {
        self.start(&Request::new(Collective::AllReduce, T::DATA_TYPE).by(reduction), None, data)
    }

    /// Replaces `data` by the sum over all ranks, each rank's contribution times its own `scale`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn all_reduce_premultiplied<T: Element>(
        &self,
        data: &mut [T],
        scale: T,
    ) -> Result<(), Error> {
        let request = Request::new(Collective::AllReduce, T::DATA_TYPE).scaled(scale);
        self.run(&request, None, bytes_of_mut(data))
    }

    /// As [`reduce`](Communicator::reduce) by sum, each rank's contribution times its own `scale`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn reduce_premultiplied<T: Element>(
        &self,
        data: &mut [T],
        scale: T,
        root: Rank,
    ) -> Result<(), Error> {
        let request = Request::new(Collective::Reduce { root }, T::DATA_TYPE).scaled(scale);
        self.run(&request, None, bytes_of_mut(data))
    }

    /// As [`reduce_scatter`](Communicator::reduce_scatter) by sum, each rank's contribution times
    /// its own `scale`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn reduce_scatter_premultiplied<T: Element>(
        &self,
        data: &mut [T],
        scale: T,
    ) -> Result<(), Error> {
        let request = Request::new(Collective::ReduceScatter, T::DATA_TYPE).scaled(scale);
        self.run(&request, None, bytes_of_mut(data))
    }

    /// Replaces `data` by that of rank `root`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn broadcast<T: Element>(&self, data: &mut [T], root: Rank) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::Broadcast { root }, T::DATA_TYPE),
            None,
            bytes_of_mut(data),
        )
    }

    /// As [`broadcast`](Communicator::broadcast), with the result in `into`; `from` counts on the root
    /// only, where it is as long.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn broadcast_into<T: Element>(
        &self,
        from: &[T],
        into: &mut [T],
        root: Rank,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::Broadcast { root }, T::DATA_TYPE),
            Some(bytes_of(from)),
            bytes_of_mut(into),
        )
    }

    /// Starts a [`broadcast`](Communicator::broadcast) of `data`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn start_broadcast<T: Element>(&self, data: Vec<T>, root: Rank) -> Result<Work<T>, Error> {
        self.start(&Request::new(Collective::Broadcast { root }, T::DATA_TYPE), None, data)
    }

    /// Replaces `data` on rank `root` by its element-wise combination over all ranks; on the others it
    /// is undefined afterwards.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn reduce<T: Element>(
        &self,
        data: &mut [T],
        reduction: Reduction,
        root: Rank,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::Reduce { root }, T::DATA_TYPE).by(reduction),
            None,
            bytes_of_mut(data),
        )
    }

    /// As [`reduce`](Communicator::reduce), with the result in `into`, which counts on the root only,
    /// where it is as long as `from`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn reduce_into<T: Element>(
        &self,
        from: &[T],
        into: &mut [T],
        reduction: Reduction,
        root: Rank,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::Reduce { root }, T::DATA_TYPE).by(reduction),
            Some(bytes_of(from)),
            bytes_of_mut(into),
        )
    }

    /// Starts a [`reduce`](Communicator::reduce) of `data`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn start_reduce<T: Element>(
        &self,
        data: Vec<T>,
        reduction: Reduction,
        root: Rank,
    ) -> Result<Work<T>, Error> {
        self.start(
            &Request::new(Collective::Reduce { root }, T::DATA_TYPE).by(reduction),
            None,
            data,
        )
    }

    /// Fills `data`, `size` blocks of which this rank's own is in its place, with the blocks of all.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn all_gather<T: Element>(&self, data: &mut [T]) -> Result<(), Error> {
        self.run(&Request::new(Collective::AllGather, T::DATA_TYPE), None, bytes_of_mut(data))
    }

    /// Puts the `from` of all ranks, by rank, into `into`, `size` times as long.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn all_gather_into<T: Element>(&self, from: &[T], into: &mut [T]) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::AllGather, T::DATA_TYPE),
            Some(bytes_of(from)),
            bytes_of_mut(into),
        )
    }

    /// Starts an [`all_gather_into`](Communicator::all_gather_into); the result is `size` times as long.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn start_all_gather<T: Element>(&self, from: Vec<T>) -> Result<Work<T>, Error> {
        let into = self.zeros(from.len().saturating_mul(self.size() as usize))?;
        self.start(&Request::new(Collective::AllGather, T::DATA_TYPE), Some(from), into)
    }

    /// As [`all_gather`](Communicator::all_gather) with a block of `counts[r]` elements from each rank `r`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn all_gather_v<T: Element>(&self, data: &mut [T], counts: &[usize]) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::AllGather, T::DATA_TYPE)
                .with_counts(Counts::Listed(counts.to_vec())),
            None,
            bytes_of_mut(data),
        )
    }

    /// As [`all_gather_into`](Communicator::all_gather_into) with `counts[r]` elements from each rank `r`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn all_gather_v_into<T: Element>(
        &self,
        from: &[T],
        into: &mut [T],
        counts: &[usize],
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::AllGather, T::DATA_TYPE)
                .with_counts(Counts::Listed(counts.to_vec())),
            Some(bytes_of(from)),
            bytes_of_mut(into),
        )
    }

    /// Starts an [`all_gather_v_into`](Communicator::all_gather_v_into).
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn start_all_gather_v<T: Element>(
        &self,
        from: Vec<T>,
        counts: &[usize],
    ) -> Result<Work<T>, Error> {
        let into = self.zeros(total(counts))?;
        self.start(
            &Request::new(Collective::AllGather, T::DATA_TYPE)
                .with_counts(Counts::Listed(counts.to_vec())),
            Some(from),
            into,
        )
    }

    /// Replaces this rank's block of `data`, which is `size` blocks, by that of the element-wise
    /// combination over all ranks; the others are undefined afterwards.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn reduce_scatter<T: Element>(
        &self,
        data: &mut [T],
        reduction: Reduction,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::ReduceScatter, T::DATA_TYPE).by(reduction),
            None,
            bytes_of_mut(data),
        )
    }

    /// Puts this rank's block of the element-wise combination over all ranks into `into`; `from` is
    /// `size` times as long.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn reduce_scatter_into<T: Element>(
        &self,
        from: &[T],
        into: &mut [T],
        reduction: Reduction,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::ReduceScatter, T::DATA_TYPE).by(reduction),
            Some(bytes_of(from)),
            bytes_of_mut(into),
        )
    }

    /// Starts a [`reduce_scatter_into`](Communicator::reduce_scatter_into); the result is this rank's
    /// block.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn start_reduce_scatter<T: Element>(
        &self,
        from: Vec<T>,
        reduction: Reduction,
    ) -> Result<Work<T>, Error> {
        let into = self.zeros(from.len() / self.size() as usize)?;
        self.start(
            &Request::new(Collective::ReduceScatter, T::DATA_TYPE).by(reduction),
            Some(from),
            into,
        )
    }

    /// As [`reduce_scatter`](Communicator::reduce_scatter) with a block of `counts[r]` elements for each
    /// rank `r`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn reduce_scatter_v<T: Element>(
        &self,
        data: &mut [T],
        counts: &[usize],
        reduction: Reduction,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::ReduceScatter, T::DATA_TYPE)
                .by(reduction)
                .with_counts(Counts::Listed(counts.to_vec())),
            None,
            bytes_of_mut(data),
        )
    }

    /// As [`reduce_scatter_into`](Communicator::reduce_scatter_into) with `counts[r]` elements for each
    /// rank `r`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn reduce_scatter_v_into<T: Element>(
        &self,
        from: &[T],
        into: &mut [T],
        counts: &[usize],
        reduction: Reduction,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::ReduceScatter, T::DATA_TYPE)
                .by(reduction)
                .with_counts(Counts::Listed(counts.to_vec())),
            Some(bytes_of(from)),
            bytes_of_mut(into),
        )
    }

    /// Starts a [`reduce_scatter_v_into`](Communicator::reduce_scatter_v_into).
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn start_reduce_scatter_v<T: Element>(
        &self,
        from: Vec<T>,
        counts: &[usize],
        reduction: Reduction,
    ) -> Result<Work<T>, Error> {
        let into = self.zeros(self.own(counts))?;
        self.start(
            &Request::new(Collective::ReduceScatter, T::DATA_TYPE)
                .by(reduction)
                .with_counts(Counts::Listed(counts.to_vec())),
            Some(from),
            into,
        )
    }

    /// Fills `data` of rank `root`, `size` blocks of which its own is in its place, with the `data` of the
    /// others, a block each.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn gather<T: Element>(&self, data: &mut [T], root: Rank) -> Result<(), Error> {
        self.run(&Request::new(Collective::Gather { root }, T::DATA_TYPE), None, bytes_of_mut(data))
    }

    /// Puts the `from` of all ranks, by rank, into `into` of rank `root`, `size` times as long; on the
    /// others `into` does not count.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn gather_into<T: Element>(
        &self,
        from: &[T],
        into: &mut [T],
        root: Rank,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::Gather { root }, T::DATA_TYPE),
            Some(bytes_of(from)),
            bytes_of_mut(into),
        )
    }

    /// Starts a [`gather_into`](Communicator::gather_into); the result is empty on ranks other than
    /// `root`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn start_gather<T: Element>(&self, from: Vec<T>, root: Rank) -> Result<Work<T>, Error> {
        let blocks = if root == self.rank() { self.size() as usize } else { 0 };
        let into = self.zeros(from.len().saturating_mul(blocks))?;
        self.start(&Request::new(Collective::Gather { root }, T::DATA_TYPE), Some(from), into)
    }

    /// As [`gather`](Communicator::gather) with `counts[r]` elements from each rank `r`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn gather_v<T: Element>(
        &self,
        data: &mut [T],
        counts: &[usize],
        root: Rank,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::Gather { root }, T::DATA_TYPE)
                .with_counts(Counts::Listed(counts.to_vec())),
            None,
            bytes_of_mut(data),
        )
    }

    /// As [`gather_into`](Communicator::gather_into) with `counts[r]` elements from each rank `r`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn gather_v_into<T: Element>(
        &self,
        from: &[T],
        into: &mut [T],
        counts: &[usize],
        root: Rank,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::Gather { root }, T::DATA_TYPE)
                .with_counts(Counts::Listed(counts.to_vec())),
            Some(bytes_of(from)),
            bytes_of_mut(into),
        )
    }

    /// Starts a [`gather_v_into`](Communicator::gather_v_into); the result is empty on ranks other than
    /// `root`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn start_gather_v<T: Element>(
        &self,
        from: Vec<T>,
        counts: &[usize],
        root: Rank,
    ) -> Result<Work<T>, Error> {
        let into = if root == self.rank() { self.zeros(total(counts))? } else { Vec::new() };
        self.start(
            &Request::new(Collective::Gather { root }, T::DATA_TYPE)
                .with_counts(Counts::Listed(counts.to_vec())),
            Some(from),
            into,
        )
    }

    /// Fills `data` of each rank, one block, with its block of the `data` of rank `root`, which is `size`
    /// blocks and stays as it is.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn scatter<T: Element>(&self, data: &mut [T], root: Rank) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::Scatter { root }, T::DATA_TYPE),
            None,
            bytes_of_mut(data),
        )
    }

    /// Puts each rank's block of the `from` of rank `root` into `into`; `from` is `size` times as long
    /// on the root, and does not count on the others.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn scatter_into<T: Element>(
        &self,
        from: &[T],
        into: &mut [T],
        root: Rank,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::Scatter { root }, T::DATA_TYPE),
            Some(bytes_of(from)),
            bytes_of_mut(into),
        )
    }

    /// Starts a [`scatter_into`](Communicator::scatter_into) of blocks of `count` elements.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn start_scatter<T: Element>(
        &self,
        from: Vec<T>,
        count: usize,
        root: Rank,
    ) -> Result<Work<T>, Error> {
        self.start(
            &Request::new(Collective::Scatter { root }, T::DATA_TYPE),
            Some(from),
            self.zeros(count)?,
        )
    }

    /// As [`scatter`](Communicator::scatter) with `counts[r]` elements for each rank `r`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn scatter_v<T: Element>(
        &self,
        data: &mut [T],
        counts: &[usize],
        root: Rank,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::Scatter { root }, T::DATA_TYPE)
                .with_counts(Counts::Listed(counts.to_vec())),
            None,
            bytes_of_mut(data),
        )
    }

    /// As [`scatter_into`](Communicator::scatter_into) with `counts[r]` elements for each rank `r`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn scatter_v_into<T: Element>(
        &self,
        from: &[T],
        into: &mut [T],
        counts: &[usize],
        root: Rank,
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::Scatter { root }, T::DATA_TYPE)
                .with_counts(Counts::Listed(counts.to_vec())),
            Some(bytes_of(from)),
            bytes_of_mut(into),
        )
    }

    /// Starts a [`scatter_v_into`](Communicator::scatter_v_into).
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn start_scatter_v<T: Element>(
        &self,
        from: Vec<T>,
        counts: &[usize],
        root: Rank,
    ) -> Result<Work<T>, Error> {
        let into = self.zeros(self.own(counts))?;
        self.start(
            &Request::new(Collective::Scatter { root }, T::DATA_TYPE)
                .with_counts(Counts::Listed(counts.to_vec())),
            Some(from),
            into,
        )
    }

    /// Replaces the `size` blocks of `data`, the `r`-th of which is for rank `r`, by those that the
    /// others have for this rank.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn all_to_all<T: Element>(&self, data: &mut [T]) -> Result<(), Error> {
        self.run(&Request::new(Collective::AllToAll, T::DATA_TYPE), None, bytes_of_mut(data))
    }

    /// As [`all_to_all`](Communicator::all_to_all), with the result in `into`, as long as `from`.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn all_to_all_into<T: Element>(&self, from: &[T], into: &mut [T]) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::AllToAll, T::DATA_TYPE),
            Some(bytes_of(from)),
            bytes_of_mut(into),
        )
    }

    /// Starts an [`all_to_all_into`](Communicator::all_to_all_into).
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn start_all_to_all<T: Element>(&self, from: Vec<T>) -> Result<Work<T>, Error> {
        let into = self.zeros(from.len())?;
        self.start(&Request::new(Collective::AllToAll, T::DATA_TYPE), Some(from), into)
    }

    /// As [`all_to_all`](Communicator::all_to_all) with `counts[r]` elements for rank `r`, and as many from
    /// it.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn all_to_all_v<T: Element>(&self, data: &mut [T], counts: &[usize]) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::AllToAllV, T::DATA_TYPE)
                .with_counts(Counts::Pairs { to: counts.to_vec(), from: counts.to_vec() }),
            None,
            bytes_of_mut(data),
        )
    }

    /// As [`all_to_all_into`](Communicator::all_to_all_into) with `to[r]` elements for rank `r` and
    /// `of[r]` from it; what one rank sends another must be what that receives.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn all_to_all_v_into<T: Element>(
        &self,
        from: &[T],
        to: &[usize],
        into: &mut [T],
        of: &[usize],
    ) -> Result<(), Error> {
        self.run(
            &Request::new(Collective::AllToAllV, T::DATA_TYPE)
                .with_counts(Counts::Pairs { to: to.to_vec(), from: of.to_vec() }),
            Some(bytes_of(from)),
            bytes_of_mut(into),
        )
    }

    /// Starts an [`all_to_all_v_into`](Communicator::all_to_all_v_into).
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn start_all_to_all_v<T: Element>(
        &self,
        from: Vec<T>,
        to: &[usize],
        of: &[usize],
    ) -> Result<Work<T>, Error> {
        let into = self.zeros(total(of))?;
        self.start(
            &Request::new(Collective::AllToAllV, T::DATA_TYPE)
                .with_counts(Counts::Pairs { to: to.to_vec(), from: of.to_vec() }),
            Some(from),
            into,
        )
    }

    /// Returns when every rank has called it.
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn barrier(&self) -> Result<(), Error> {
        self.run(&barrier(), None, &mut [0])
    }

    /// Starts a [`barrier`](Communicator::barrier).
    ///
    /// # Errors
    ///
    /// As [all collectives](Communicator#collectives).
    pub fn start_barrier(&self) -> Result<Work<u8>, Error> {
        self.start(&barrier(), None, vec![0])
    }

    /// Memory for a result of so many elements.
    fn zeros<T: Element>(&self, count: usize) -> Result<Vec<T>, Error> {
        T::new_vec_zeroed(count).map_err(|_| {
            let what = format!("no memory for a result of {count} {}", T::DATA_TYPE);
            Error::new(Some(self.rank()), ErrorKind::Argument(what))
        })
    }

    /// This rank's count, or 0 where the list is too short, which the check of the request tells.
    fn own(&self, counts: &[usize]) -> usize {
        counts.get(self.rank().index()).copied().unwrap_or(0)
    }
}

/// A barrier runs on one element.
fn barrier() -> Request {
    Request::new(Collective::Barrier, crate::DataType::U8)
}

/// The sum of the counts, or 0 where it is too large, which the check of the request tells.
fn total(counts: &[usize]) -> usize {
    counts.iter().try_fold(0_usize, |sum, &count| sum.checked_add(count)).unwrap_or(0)
}
