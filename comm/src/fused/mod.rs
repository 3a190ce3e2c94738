//! The short way inside a host: a collective as rounds of messages on the transport's board, with no
//! steps and no copies but those into the messages and out of them.
//!
//! In each round every rank posts a window of what it has for the others, and deals with the
//! windows of the others where they lie. An all-reduce goes either way: every rank folds all
//! (one round, if it fits), or each folds its share and posts the result with the next window.

mod streams;

use std::ops::Range;

use tutti_topo::Rank;
use tutti_topo::schedule::Collective;
use tutti_transport::{Board, Posted, Round, Transport};

use crate::call::Fingerprint;
use crate::executor::{Fault, Group};
use crate::fold::Kernel;
use crate::request::Job;
use crate::stage::Buffers;
use streams::{Streams, Window};

/// The largest group that uses a board: every rank reads every other's message.
pub(crate) const MAX_RANKS: usize = 64;

/// How a plan cuts a fused operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Whether each rank folds a share of an all-reduce, instead of everything.
    pub(crate) shares: bool,
    /// In how many windows it passes, if they fit on the board.
    pub(crate) depth: u32,
}

/// One collective under way on a board.
pub(crate) struct FusedOperation {
    streams: Streams,
    kernel: Kernel,
    tag: u64,
    /// This rank's contribution, where others must not see it as the caller gave it.
    prepared: Option<Vec<u8>>,
    /// The round under way; those before are over.
    round: u64,
    /// Whether this rank's message of the round stands.
    posted: bool,
    /// The messages of all ranks below this one stand, or are not waited for.
    seen: u32,
    /// Who must post before this rank can.
    late: Option<Rank>,
}

impl FusedOperation {
    pub(crate) fn new(
        job: &Job,
        cut: Cut,
        (me, size): (Rank, u32),
        print: Fingerprint,
        kernel: Kernel,
        limit: usize,
        buffers: &Buffers,
    ) -> Self {
        let prepared = kernel.needs_scale().then(|| {
            let mut prepared = buffers.from.unwrap_or(buffers.into).to_vec();
            kernel.prepare(&mut prepared);
            prepared
        });
        FusedOperation {
            streams: Streams::new(job, cut, (me, size), limit, buffers.from.is_some()),
            kernel,
            tag: print.tag(),
            prepared,
            round: 0,
            posted: false,
            seen: 0,
            late: None,
        }
    }

    /// Moves on as far as the others' messages allow, and looks so often at one that is missing;
    /// says whether anything changed.
    pub(crate) fn progress(
        &mut self,
        buffers: &mut Buffers,
        group: &Group,
        transport: &mut dyn Transport,
        polls: u32,
    ) -> Result<bool, Fault> {
        let board = transport.board().expect("the plan is fused only where there is a board");
        let before = (self.round, self.posted, self.seen);
        while !self.is_done() {
            if !self.posted && !self.post(buffers, group, board)? {
                break;
            }
            if !self.look(group, board, polls)? {
                break;
            }
            if self.streams.shares() && self.round < self.streams.windows() {
                self.fold(Round::Current, self.round, buffers, group, board)?;
            }
            self.round += 1;
            (self.posted, self.seen) = (false, 0);
            if self.is_done() {
                self.deal(Round::Current, buffers, group, board)?;
            }
        }
        Ok(before != (self.round, self.posted, self.seen))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.round == self.streams.rounds()
    }

    pub(crate) fn waits_for(&self) -> Option<Rank> {
        if self.is_done() { None } else { self.late.or(Some(Rank(self.seen))) }
    }

    /// Posts the message of the round, and deals with those of the round before; `false` if that
    /// must wait.
    fn post(
        &mut self,
        buffers: &mut Buffers,
        group: &Group,
        board: &mut dyn Board,
    ) -> Result<bool, Fault> {
        let source = self.prepared.as_deref().or(buffers.from).unwrap_or(buffers.into);
        let posted = match self.streams.only_part(self.round, source) {
            Some(part) => board.post(self.tag, &[part]),
            None => {
                let mut parts: [&[u8]; MAX_RANKS + 1] = [&[]; MAX_RANKS + 1];
                let count = self.streams.parts(self.round, source, buffers.into, &mut parts);
                board.post(self.tag, &parts[..count])
            }
        };
        let rank_of = |peer| group.peers.iter().position(|other| *other == peer);
        let rank_of = |peer| Rank(rank_of(peer).expect("a member of the group") as u32);
        match posted.map_err(|source| Fault::Transport { rank: None, source })? {
            Posted::Yes => {}
            Posted::NotYet(peer) => {
                self.late = Some(rank_of(peer));
                return Ok(false);
            }
            Posted::Differs(peer) => {
                return Err(Fault::Mismatch { rank: rank_of(peer), theirs: None });
            }
        }
        (self.posted, self.late) = (true, None);
        if self.round > 0 {
            self.deal(Round::Last, buffers, group, board)?;
        }
        Ok(true)
    }

    /// Whether every message that this rank needs in the round stands, and belongs to the same
    /// operation.
    fn look(&mut self, group: &Group, board: &dyn Board, polls: u32) -> Result<bool, Fault> {
        while self.seen < group.size() {
            let rank = Rank(self.seen);
            if self.streams.needs(rank) {
                let peer = group.peer(rank);
                let read = || {
                    board.read(peer, Round::Current).or_else(|| {
                        std::hint::spin_loop();
                        None
                    })
                };
                match (0..polls).find_map(|_| read()) {
                    None => return Ok(false),
                    Some((tag, message))
                        if tag == self.tag
                            && message.len() == self.streams.message_len(rank, self.round) => {}
                    Some(_) => return Err(Fault::Mismatch { rank, theirs: None }),
                }
            }
            self.seen += 1;
        }
        Ok(true)
    }

    /// Deals with the messages of the last round that is over: `round` on the board.
    fn deal(
        &self,
        round: Round,
        buffers: &mut Buffers,
        group: &Group,
        board: &dyn Board,
    ) -> Result<(), Fault> {
        let index = self.round - 1;
        match self.streams.collective() {
            Collective::Barrier => Ok(()),
            Collective::Reduce { root } if root != self.streams.me() => Ok(()),
            Collective::AllReduce if self.streams.shares() => {
                self.copy(round, index, buffers, group, board)
            }
            collective if collective.reduces() => self.fold(round, index, buffers, group, board),
            _ => self.copy(round, index, buffers, group, board),
        }
    }

    /// Copies what the others have for this rank in the windows of one round to its place.
    fn copy(
        &self,
        round: Round,
        index: u64,
        buffers: &mut Buffers,
        group: &Group,
        board: &dyn Board,
    ) -> Result<(), Fault> {
        for rank in (0..group.size()).map(Rank) {
            if let Some(Window { message, place }) = self.streams.incoming(rank, index) {
                let bytes = part(rank, round, message, group, board)?;
                buffers.into[place].copy_from_slice(bytes);
            }
        }
        if index == 0
            && let Some(from) = buffers.from
            && let Some(Window { message, place }) = self.streams.own_block()
        {
            buffers.into[place].copy_from_slice(&from[message]);
        }
        Ok(())
    }

    /// Folds a window of what all ranks contribute into its place.
    fn fold(
        &self,
        round: Round,
        index: u64,
        buffers: &mut Buffers,
        group: &Group,
        board: &dyn Board,
    ) -> Result<(), Fault> {
        let streams = &self.streams;
        let Window { message: own, place } = streams.own_window(index);
        let own = self.prepared.as_deref().or(buffers.from).map(|given| &given[own]);
        let into = &mut buffers.into[place];
        let theirs = |rank| part(rank, round, streams.folded_part(rank, index), group, board);
        if let (Some(rank), None) = (streams.only_other(), own) {
            self.kernel.fold_in(into, &[theirs(rank)?]);
            return Ok(());
        }
        // Where every rank folds everything, all must do it in the same order.
        let by_rank = streams.all_fold_all() && streams.only_other().is_none();
        let mut messages: [&[u8]; MAX_RANKS] = [&[]; MAX_RANKS];
        let mut count = 0;
        let mut add = |message| {
            messages[count] = message;
            count += 1;
        };
        if !by_rank {
            own.into_iter().for_each(&mut add);
        }
        for rank in (0..group.size()).map(Rank).filter(|rank| by_rank || *rank != streams.me()) {
            add(theirs(rank)?);
        }
        match own {
            None if !by_rank => self.kernel.fold_in(into, &messages[..count]),
            _ => self.kernel.fold_all(into, &messages[..count]),
        }
        Ok(())
    }
}

/// A part of the message of a rank whose message was seen.
///
/// # Errors
///
/// If the rank has changed its message since.
fn part<'a>(
    rank: Rank,
    round: Round,
    part: Range<usize>,
    group: &Group,
    board: &'a dyn Board,
) -> Result<&'a [u8], Fault> {
    let message = board.read(group.peer(rank), round);
    let part = message.and_then(|(_, message)| message.get(part));
    part.ok_or(Fault::Mismatch { rank, theirs: None })
}
