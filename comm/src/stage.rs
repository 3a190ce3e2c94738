//! The memory that an operation works on: the caller's buffers, and copies of them where the
//! caller's must stay as they are.

use std::ops::Range;

use tutti_topo::Rank;
use tutti_topo::schedule::Collective;

use crate::call::Call;
use crate::layout::{Blocks, block};

/// The buffers of a call.
pub(crate) struct Buffers<'a> {
    /// The contribution of this rank; `None` if it is in `into`.
    pub(crate) from: Option<&'a [u8]>,
    /// The result.
    pub(crate) into: &'a mut [u8],
}

/// What the steps of a schedule see of the buffers: two of its vectors.
pub(crate) struct Memory<'a> {
    pub(crate) input: &'a [u8],
    pub(crate) data: &'a mut [u8],
}

/// What stands behind the vectors of one operation.
pub(crate) struct Stage {
    input: Source,
    /// Stands in for the result while the operation runs.
    work: Option<Vec<u8>>,
    /// The bytes of `work` that are the result.
    result: Range<usize>,
}

enum Source {
    Nothing,
    From,
    Into,
    Copy(Vec<u8>),
}

impl Stage {
    /// Brings to its place what no step moves: the blocks that a rank has for itself, and
    /// contributions that are worked on.
    pub(crate) fn new(
        call: &Call,
        blocks: &Blocks,
        me: Rank,
        size: u32,
        buffers: &mut Buffers,
    ) -> Stage {
        let element = call.data_type.size() as u64;
        let own = block(call, blocks, me, size);
        let own = (own.start * element) as usize..(own.end * element) as usize;
        let mut stage = Stage { input: Source::Nothing, work: None, result: 0..0 };
        let Buffers { from, into } = buffers;
        match (call.collective, &from) {
            (Collective::AllReduce, Some(from)) => into.copy_from_slice(from),
            (Collective::Broadcast { root } | Collective::Reduce { root }, Some(from))
                if root == me =>
            {
                into.copy_from_slice(from);
            }
            (Collective::Reduce { .. }, Some(from)) => stage.work = Some(from.to_vec()),
            (Collective::AllGather, Some(from)) => into[own].copy_from_slice(from),
            (Collective::ReduceScatter, Some(from)) => {
                stage.work = Some(from.to_vec());
                stage.result = own;
            }
            (Collective::Gather { root }, Some(from)) if root == me => {
                into[own].copy_from_slice(from);
            }
            (Collective::Gather { root }, from) if root != me => {
                stage.input = if from.is_some() { Source::From } else { Source::Into };
            }
            (Collective::Scatter { root }, Some(from)) if root == me => {
                into.copy_from_slice(&from[own]);
                stage.input = Source::From;
            }
            (Collective::Scatter { root }, None) if root == me => stage.input = Source::Into,
            (Collective::AllToAll | Collective::AllToAllV, None) => {
                stage.input = Source::Copy(into.to_vec());
            }
            (Collective::AllToAll | Collective::AllToAllV, Some(from)) => {
                into[received_from_me(blocks, &own, me, element)].copy_from_slice(&from[own]);
                stage.input = Source::From;
            }
            _ => {}
        }
        stage
    }

    /// The vectors, for a while.
    pub(crate) fn lend<'a>(&'a mut self, buffers: &'a mut Buffers) -> Memory<'a> {
        let into: &mut [u8] = &mut *buffers.into;
        let (input, into): (&[u8], &mut [u8]) = match &self.input {
            Source::Nothing => (&[], into),
            Source::From => (buffers.from.unwrap_or(&[]), into),
            Source::Into => (into, &mut []),
            Source::Copy(copy) => (copy, into),
        };
        Memory { input, data: self.work.as_deref_mut().unwrap_or(into) }
    }

    /// Hands the result over to the caller's buffer.
    pub(crate) fn finish(&mut self, buffers: &mut Buffers) {
        if let Some(work) = self.work.take()
            && !self.result.is_empty()
        {
            buffers.into.copy_from_slice(&work[self.result.clone()]);
        }
    }
}

/// Where the block that a rank has for itself lies in the result of an all-to-all.
fn received_from_me(blocks: &Blocks, sent: &Range<usize>, me: Rank, element: u64) -> Range<usize> {
    let Blocks::Pairs { from, .. } = blocks else { return sent.clone() };
    let start = (from[..me.index()].iter().sum::<u64>() * element) as usize;
    start..start + sent.len()
}
