//! Which bytes pass the board in which round, and where they lie: in messages and in memory.

use std::ops::Range;

use tutti_topo::Rank;
use tutti_topo::schedule::Collective;

use super::Cut;
use crate::layout::block;
use crate::request::Job;

/// The bytes of a collective as streams from each rank to each other, cut into windows: in every
/// round one window of each stream passes.
///
/// A rank has either the same bytes for all, so that its message is one window, or others for
/// each, so that its message is a window for every other rank by number. With shares, the result of the
/// window before follows.
pub(super) struct Streams {
    job: Job,
    shares: bool,
    me: Rank,
    size: u32,
    /// Whether the contribution lies in a buffer of its own.
    given: bool,
    /// The bytes of a window, a multiple of every element's size.
    step: usize,
    windows: u64,
}

/// Bytes that go from a message (or from the contribution) to a place in the result.
pub(super) struct Window {
    pub(super) message: Range<usize>,
    pub(super) place: Range<usize>,
}

/// Windows start on cache lines of the messages, more or less; and elements are not split.
const LINE: usize = 64;

impl Streams {
    pub(super) fn new(
        job: &Job,
        cut: Cut,
        (me, size): (Rank, u32),
        limit: usize,
        given: bool,
    ) -> Streams {
        let job = job.clone();
        let mut streams =
            Streams { job, shares: cut.shares, me, size, given, step: LINE, windows: 1 };
        let longest = match streams.collective() {
            Collective::Barrier => 0,
            _ if streams.is_personal() || streams.collective().has_blocks() => {
                let longest = (0..size).map(|rank| streams.block(Rank(rank)).len()).max();
                longest.unwrap_or(0)
            }
            _ => streams.all(),
        };
        let in_message = match (cut.shares, streams.is_personal()) {
            (true, _) => size as usize,
            (false, true) => (size as usize - 1).max(1),
            (false, false) => 1,
        };
        if longest <= LINE {
            return streams;
        }
        let most = (limit / in_message / LINE * LINE).max(LINE);
        let wanted = longest.div_ceil(cut.depth.max(1) as usize).next_multiple_of(LINE);
        streams.step = wanted.clamp(LINE, most);
        streams.windows = longest.div_ceil(streams.step) as u64;
        streams
    }

    pub(super) fn collective(&self) -> Collective {
        self.job.call.collective
    }

    pub(super) fn me(&self) -> Rank {
        self.me
    }

    pub(super) fn shares(&self) -> bool {
        self.shares
    }

    /// Whether every rank folds the same.
    pub(super) fn all_fold_all(&self) -> bool {
        self.collective() == Collective::AllReduce && !self.shares
    }

    /// The other rank of two.
    pub(super) fn only_other(&self) -> Option<Rank> {
        (self.size == 2).then(|| Rank(1 - self.me.0))
    }

    /// In how many rounds windows pass.
    pub(super) fn windows(&self) -> u64 {
        self.windows
    }

    /// How many rounds there are: with shares one more, for the last results.
    pub(super) fn rounds(&self) -> u64 {
        self.windows + u64::from(self.shares)
    }

    /// Whether this rank must see the message of another.
    pub(super) fn needs(&self, rank: Rank) -> bool {
        match self.collective() {
            Collective::Broadcast { root } | Collective::Scatter { root } => {
                self.me != root && rank == root
            }
            Collective::Reduce { root } | Collective::Gather { root } => {
                self.me == root && rank != root
            }
            _ => rank != self.me,
        }
    }

    /// This rank's message, if it is the same for all: a window of its contribution `source`.
    pub(super) fn only_part<'a>(&self, round: u64, source: &'a [u8]) -> Option<&'a [u8]> {
        (!self.is_personal()).then(|| self.outgoing(self.me, round, source))
    }

    /// Puts the parts of this rank's message for each of the others together, and returns how many
    /// there are; `result` is where the results of its share are.
    pub(super) fn parts<'a>(
        &self,
        round: u64,
        source: &'a [u8],
        result: &'a [u8],
        parts: &mut [&'a [u8]],
    ) -> usize {
        let mut count = 0;
        let mut add = |part| {
            parts[count] = part;
            count += 1;
        };
        for to in self.others(self.me) {
            add(self.outgoing(to, round, source));
        }
        if self.shares && round > 0 {
            add(&result[self.own_window(round - 1).place]);
        }
        count
    }

    /// The window that this rank has for another.
    fn outgoing<'a>(&self, to: Rank, round: u64, source: &'a [u8]) -> &'a [u8] {
        let window = self.window(self.len(self.me, to), round);
        let at = self.source_at(to);
        // A rank that has nothing for others may have no memory where it would be.
        if window.is_empty() { &[] } else { &source[at + window.start..at + window.end] }
    }

    /// The length of a rank's message.
    pub(super) fn message_len(&self, rank: Rank, round: u64) -> usize {
        if !self.is_personal() {
            return self.window(self.len(rank, rank), round).len();
        }
        let result = match round.checked_sub(1) {
            Some(before) if self.shares => self.window(self.block(rank).len(), before).len(),
            _ => 0,
        };
        self.before(rank, Rank(self.size), round) + result
    }

    /// Where this rank's window of what it folds lies in its contribution and in the result.
    pub(super) fn own_window(&self, index: u64) -> Window {
        let whole = match self.collective() {
            Collective::ReduceScatter => self.block(self.me),
            _ if self.shares => self.block(self.me),
            _ => 0..self.all(),
        };
        let window = self.window(whole.len(), index);
        let message = whole.start + window.start..whole.start + window.end;
        let apart = self.collective() == Collective::ReduceScatter && self.given;
        let place = if apart { window } else { message.clone() };
        Window { message, place }
    }

    /// The part of a rank's message that this one folds in a round.
    pub(super) fn folded_part(&self, rank: Rank, index: u64) -> Range<usize> {
        let len = self.window(self.len(rank, self.me), index).len();
        let start = if self.is_personal() { self.before(rank, self.me, index) } else { 0 };
        start..start + len
    }

    /// What a rank's message has for this one to copy in a round.
    pub(super) fn incoming(&self, rank: Rank, round: u64) -> Option<Window> {
        if !self.needs(rank) {
            return None;
        }
        if self.shares {
            let window = self.window(self.block(rank).len(), round.checked_sub(1)?);
            let start = self.before(rank, Rank(self.size), round);
            let at = self.block(rank).start;
            let message = start..start + window.len();
            return Some(Window { message, place: at + window.start..at + window.end });
        }
        let window = self.window(self.len(rank, self.me), round);
        let start = if self.is_personal() { self.before(rank, self.me, round) } else { 0 };
        let at = match self.collective() {
            Collective::AllGather | Collective::Gather { .. } | Collective::AllToAll => {
                self.block(rank).start
            }
            _ => 0,
        };
        let message = start..start + window.len();
        Some(Window { message, place: at + window.start..at + window.end })
    }

    /// What this rank has for itself, in a contribution of its own and in the result.
    pub(super) fn own_block(&self) -> Option<Window> {
        let own = self.block(self.me);
        let window = |message: Range<usize>, place| Some(Window { message, place });
        match self.collective() {
            Collective::Broadcast { root } if root == self.me => {
                window(0..self.all(), 0..self.all())
            }
            Collective::AllGather => window(0..own.len(), own),
            Collective::Gather { root } if root == self.me => window(0..own.len(), own),
            Collective::Scatter { root } if root == self.me => window(own.clone(), 0..own.len()),
            Collective::AllToAll => window(own.clone(), own),
            _ => None,
        }
    }

    /// Whether a rank has other bytes for each of the others.
    fn is_personal(&self) -> bool {
        self.shares
            || matches!(
                self.collective(),
                Collective::ReduceScatter | Collective::Scatter { .. } | Collective::AllToAll
            )
    }

    /// How many bytes `from` has for `to`; where it has the same for all, `to` does not count.
    fn len(&self, from: Rank, to: Rank) -> usize {
        match self.collective() {
            Collective::Broadcast { root } if from != root => 0,
            Collective::Reduce { root } if from == root => 0,
            Collective::Gather { root } if from == root => 0,
            Collective::Scatter { root } if from != root => 0,
            Collective::AllGather | Collective::Gather { .. } => self.block(from).len(),
            Collective::Barrier => 0,
            _ if self.is_personal() => self.block(to).len(),
            _ => self.all(),
        }
    }

    /// Where the stream to a rank starts in this rank's contribution.
    fn source_at(&self, to: Rank) -> usize {
        match self.collective() {
            Collective::AllGather if !self.given => self.block(self.me).start,
            _ if self.is_personal() => self.block(to).start,
            _ => 0,
        }
    }

    /// The bytes in a message of `from` before the part for `to`.
    fn before(&self, from: Rank, to: Rank, round: u64) -> usize {
        let others = self.others(from).take_while(|other| *other < to);
        others.map(|other| self.window(self.len(from, other), round).len()).sum()
    }

    fn others(&self, than: Rank) -> impl Iterator<Item = Rank> + use<> {
        (0..self.size).map(Rank).filter(move |rank| *rank != than)
    }

    /// The window of a stream of so many bytes that passes in a round.
    fn window(&self, len: usize, round: u64) -> Range<usize> {
        let end = |round: u64| len.min((round as usize).saturating_mul(self.step));
        end(round)..end(round + 1)
    }

    fn all(&self) -> usize {
        self.job.call.len_bytes() as usize
    }

    /// The bytes of a rank's block, or of its share of the data.
    fn block(&self, rank: Rank) -> Range<usize> {
        let call = &self.job.call;
        let element = call.data_type.size();
        let elements = if self.shares {
            let start = |rank: u32| {
                (u128::from(call.count) * u128::from(rank) / u128::from(self.size)) as u64
            };
            start(rank.0)..start(rank.0 + 1)
        } else {
            block(call, &self.job.blocks, rank, self.size)
        };
        elements.start as usize * element..elements.end as usize * element
    }
}
