//! The short way: a small collective as one exchange over the transport's board, with no steps.

use tutti_topo::Rank;
use tutti_topo::schedule::Collective;
use tutti_transport::{Board, Transport};

use crate::call::{Call, Fingerprint};
use crate::executor::{Fault, Group};
use crate::fold::Kernel;

/// The largest group that uses a board: every rank reads every other's message.
pub(crate) const MAX_RANKS: usize = 64;

/// One collective under way on a board.
pub(crate) struct FusedOperation {
    collective: Collective,
    tag: u64,
    kernel: Kernel,
    posted: bool,
    /// All ranks below this one have posted.
    seen: u32,
    done: bool,
}

impl FusedOperation {
    pub(crate) fn new(call: &Call, fingerprint: Fingerprint, kernel: Kernel) -> Self {
        FusedOperation {
            collective: call.collective,
            tag: fingerprint.tag(),
            kernel,
            posted: false,
            seen: 0,
            done: false,
        }
    }

    /// Moves on as far as the others' messages allow; says whether anything changed.
    pub(crate) fn progress(
        &mut self,
        data: &mut [u8],
        group: &Group,
        transport: &mut dyn Transport,
    ) -> Result<bool, Fault> {
        let board = transport.board().expect("the plan is fused only where there is a board");
        let before = (self.posted, self.seen, self.done);
        if !self.posted {
            let message = if self.contributes(group.me) { &*data } else { &[] };
            let posted = board.post(self.tag, message);
            self.posted = posted.map_err(|source| Fault::Transport { rank: None, source })?;
        }
        if self.posted && self.look(data.len(), group, board)? {
            self.take(data, group, board);
            self.done = true;
        }
        Ok(before != (self.posted, self.seen, self.done))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    pub(crate) fn waits_for(&self) -> Option<Rank> {
        (!self.done).then_some(Rank(self.seen))
    }

    fn contributes(&self, rank: Rank) -> bool {
        match self.collective {
            Collective::Broadcast { root } => rank == root,
            _ => true,
        }
    }

    /// Whether every rank has posted, and the same operation: also those of a broadcast that have
    /// nothing to say, so that a mismatch is an error on all.
    fn look(&mut self, len: usize, group: &Group, board: &dyn Board) -> Result<bool, Fault> {
        while self.seen < group.size() {
            let rank = Rank(self.seen);
            let expected = if self.contributes(rank) { len } else { 0 };
            match board.read(group.peers[rank.index()]) {
                None => return Ok(false),
                Some((tag, message)) if tag == self.tag && message.len() == expected => {}
                Some(_) => return Err(Fault::Mismatch { rank, theirs: None }),
            }
            self.seen += 1;
        }
        Ok(true)
    }

    fn take(&self, data: &mut [u8], group: &Group, board: &dyn Board) {
        let message = |rank: Rank| board.read(group.peers[rank.index()]).expect("seen before").1;
        match self.collective {
            Collective::Broadcast { root } => data.copy_from_slice(message(root)),
            Collective::AllReduce => {
                let mut messages: [&[u8]; MAX_RANKS] = [&[]; MAX_RANKS];
                for rank in 0..group.size() {
                    messages[rank as usize] = message(Rank(rank));
                }
                self.kernel.fold_all(data, &messages[..group.peers.len()]);
            }
            _ => {} // a barrier: that all have posted is all there is to it
        }
    }
}
