use std::cell::Cell;
use std::io;

use tutti_transport::{Board, Error, Peer, Posted, Round};

use super::Shm;
use crate::flags::{self, Flag, HEADS};
use crate::layout::longest_message;
use crate::mapping::Shared;
use crate::sync::{AtomicU64, Ordering};

/// What a member says of one of its messages. A short message follows at once, on the same line.
#[repr(C, align(128))]
pub(crate) struct Head {
    flag: Flag,
    tag: AtomicU64,
    /// The message's length, and shifted by 32 where it lies among those of its member.
    place: AtomicU64,
    _short: [AtomicU64; SHORT / 8],
}

// SAFETY: atomics, and padding.
unsafe impl Shared for Head {}

/// The longest message that lies on the line of its head.
pub(crate) const SHORT: usize = 40;
/// Where it starts.
const SHORT_AT: usize = 24;
/// Others start on lines of their own.
pub(crate) const LINE: usize = 64;
/// Of the memory for messages one has at most this part: those of the last [`HEADS`] rounds and
/// the gap at the end, which is less than one message, never overlap then.
pub(crate) const SHARE: usize = 8;

/// How far this member is on the board.
pub(super) struct Standing {
    /// The round of its last post; 0 before the first.
    round: u64,
    /// The tags of its messages, by head.
    tags: [u64; HEADS as usize],
    /// Where the next message goes that is not short, among those of this member.
    next: usize,
    /// By member.
    seen: Vec<Seen>,
}

/// What is known of a member.
#[derive(Default)]
struct Seen {
    /// The last round of which this member knows that the other has posted in it, with a tag that
    /// was compared.
    round: Cell<u64>,
    /// Whether its messages are mapped in.
    mapped: Cell<bool>,
}

impl Standing {
    pub(super) fn new(members: usize) -> Standing {
        let seen = (0..members).map(|_| Seen::default()).collect();
        Standing { round: 0, tags: [0; HEADS as usize], next: 0, seen }
    }
}

impl Board for Shm {
    fn limit(&self) -> usize {
        longest_message(self.segment.layout().board_bytes)
    }

    fn post(&mut self, tag: u64, parts: &[&[u8]]) -> Result<Posted, Error> {
        let (len, limit) = (parts.iter().map(|part| part.len()).sum(), self.limit());
        assert!(len <= limit, "a message of {len} bytes is posted, the limit is {limit}");
        let round = self.standing.round + 1;
        if let Some(before) = flags::before(round) {
            for member in 0..self.standing.seen.len() {
                match self.compare(member, before) {
                    Posted::Yes => {}
                    other => return Ok(other),
                }
            }
        }
        let me = self.members.me();
        let (offset, at) = if len <= SHORT {
            (self.head_at(me, round) + SHORT_AT, 0)
        } else {
            let at = self.make_room(len).map_err(|source| no_room(source, &self.segment))?;
            (self.segment.layout().messages(me) + at, at)
        };
        let mut end = offset;
        for part in parts {
            // SAFETY: the place holds messages of round `round - 4` and before, as the last four
            // messages lie elsewhere (by their number for a head, by `SHARE` for the others). All
            // have posted in round `round - 2`, so nobody reads those any more, and nobody reads the
            // new one before its flag is up. The slices that this member has of its own are gone,
            // as `self` is borrowed mutably.
            unsafe { self.segment.common().write(end, part) };
            end += part.len();
        }
        let head = self.head(me, round);
        head.tag.store(tag, Ordering::Relaxed);
        head.place.store((at as u64) << 32 | len as u64, Ordering::Relaxed);
        head.flag.raise(round);
        self.standing.tags[flags::head(round)] = tag;
        self.standing.round = round;
        self.wake_others();
        Ok(Posted::Yes)
    }

    fn read(&self, peer: Peer, round: Round) -> Option<(u64, &[u8])> {
        let member = self.members.place(peer)?;
        let round = match round {
            Round::Current => self.standing.round,
            Round::Last => self.standing.round.checked_sub(1)?,
        };
        if round == 0 || !self.has_posted(member, round) {
            return None;
        }
        self.standing.seen[member].round.set(self.standing.seen[member].round.get().max(round));
        let head = self.head(member, round);
        let place = head.place.load(Ordering::Relaxed);
        // A member that breaks the protocol can give any place, but not one out of bounds.
        let len = (place as u32 as usize).min(self.limit());
        let offset = if len <= SHORT {
            self.head_at(member, round) + SHORT_AT
        } else {
            self.map_in(member);
            let last = self.segment.layout().board_bytes.saturating_sub(len);
            self.segment.layout().messages(member) + ((place >> 32) as usize).min(last)
        };
        // SAFETY: the member has posted in this round, so the message stands; it writes over it
        // when all have posted two rounds later, which the borrow of `self` keeps away.
        let message = unsafe { self.segment.common().slice(offset, len) };
        Some((head.tag.load(Ordering::Relaxed), message))
    }
}

impl Shm {
    /// The last round in which a member has posted, for one that is about to sleep.
    pub(super) fn last_posted(&self, member: usize) -> u64 {
        let heads = (0..HEADS).map(|round| self.head(member, round).flag.last());
        heads.max().expect("there are heads")
    }

    /// Whether a member has posted in a round: one of the last two of this member.
    fn has_posted(&self, member: usize, round: u64) -> bool {
        self.standing.seen[member].round.get() >= round
            || self.head(member, round).flag.is_up(round)
    }

    /// Whether a member has posted in a round, and with this member's tag.
    fn compare(&self, member: usize, round: u64) -> Posted {
        let seen = &self.standing.seen[member].round;
        if seen.get() >= round {
            return Posted::Yes;
        }
        let head = self.head(member, round);
        if !head.flag.is_up(round) {
            Posted::NotYet(self.members.peers()[member])
        } else if head.tag.load(Ordering::Relaxed) != self.standing.tags[flags::head(round)] {
            Posted::Differs(self.members.peers()[member])
        } else {
            seen.set(round);
            Posted::Yes
        }
    }

    /// Where a message of this length goes among those of this member.
    fn make_room(&mut self, len: usize) -> io::Result<usize> {
        let me = self.members.me();
        if !self.standing.seen[me].mapped.replace(true) {
            self.segment.commit_messages(me).inspect_err(|_| {
                self.standing.seen[me].mapped.set(false);
            })?;
        }
        let fits = self.standing.next + len <= self.segment.layout().board_bytes;
        let at = if fits { self.standing.next } else { 0 };
        self.standing.next = at + len.next_multiple_of(LINE);
        Ok(at)
    }

    /// Maps the messages of a member in, all at once instead of page by page.
    fn map_in(&self, member: usize) {
        if !self.standing.seen[member].mapped.replace(true)
            && let Err(why) = self.segment.commit_messages(member)
        {
            tracing::debug!(%why, "shared memory is mapped in page by page");
        }
    }

    fn head(&self, member: usize, round: u64) -> &Head {
        self.segment.common().at(self.head_at(member, round))
    }

    fn head_at(&self, member: usize, round: u64) -> usize {
        self.segment.layout().head(member, flags::head(round))
    }
}

fn no_room(source: io::Error, segment: &crate::segment::Segment) -> Error {
    let len = segment.layout().board_bytes;
    let what = format!(
        "cannot commit {len} bytes of shared memory for messages on the board: free memory, raise \
         the memory limit, or choose smaller board_bytes"
    );
    Error::Io { peer: None, what, source }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use tutti_transport::Transport;

    use super::*;
    use crate::testing::{group, pair};
    use crate::{Options, Shm};

    #[test]
    fn every_round_shows_every_member_the_same_messages() {
        for n in 1..=4 {
            let members = group(n, &Options::default());
            thread::scope(|scope| {
                for mut member in members {
                    scope.spawn(move || (1..=500).for_each(|round| play(&mut member, round)));
                }
            });
        }
    }

    /// One round: the sizes go through nothing, one line, and more.
    fn play(member: &mut Shm, round: u64) {
        let message = |peer: Peer| vec![peer.0 as u8 ^ round as u8; (round as usize * 13) % 200];
        let mine = message(member.me());
        while member.post(round, &[&mine]).unwrap() != Posted::Yes {
            member.park(&[], Duration::from_secs(1)).unwrap();
        }
        for peer in member.peers().to_vec() {
            let shown = loop {
                match member.read(peer, Round::Current) {
                    Some((tag, shown)) => break (tag, shown.to_vec()),
                    None => member.park(&[], Duration::from_secs(1)).unwrap(),
                }
            };
            assert_eq!(shown, (round, message(peer)));
        }
    }

    #[test]
    fn messages_wrap_and_never_touch_those_that_may_be_read() {
        let options = Options { board_bytes: 4096, ..Options::default() };
        let mut both = group(2, &options);
        let (mut b, mut a) = (both.pop().unwrap(), both.pop().unwrap());
        let message =
            |me: u8, round: usize| vec![me ^ round as u8; (round * 131) % (a.limit() + 1)];
        let messages: Vec<_> =
            (0..200).map(|round| [message(0, round), message(1, round)]).collect();
        for (round, [first, second]) in messages.iter().enumerate() {
            let tag = round as u64;
            assert_eq!(a.post(tag, &[first]).unwrap(), Posted::Yes);
            assert_eq!(b.post(tag, &[second]).unwrap(), Posted::Yes);
            assert_eq!(b.read(Peer(0), Round::Current), Some((tag, &first[..])));
            assert_eq!(a.read(Peer(1), Round::Current), Some((tag, &second[..])));
            if round > 0 {
                let [first, second] = &messages[round - 1];
                assert_eq!(b.read(Peer(0), Round::Last), Some((tag - 1, &first[..])));
                assert_eq!(a.read(Peer(1), Round::Last), Some((tag - 1, &second[..])));
            }
        }
    }

    #[test]
    fn a_board_without_memory_for_messages_takes_short_ones() {
        let mut both = group(2, &Options { board_bytes: 0, ..Options::default() });
        let (mut b, mut a) = (both.pop().unwrap(), both.pop().unwrap());
        assert_eq!(a.limit(), SHORT);
        assert_eq!(a.post(1, &[&[7; SHORT]]).unwrap(), Posted::Yes);
        assert_eq!(b.post(1, &[]).unwrap(), Posted::Yes);
        assert_eq!(b.read(Peer(0), Round::Current), Some((1, &[7; SHORT][..])));
    }

    #[test]
    fn a_forged_place_shows_nothing_beyond_the_messages() {
        let (mut a, mut b) = pair();
        a.post(0, &[b"x"]).unwrap();
        b.post(0, &[b"y"]).unwrap();
        for place in [u64::MAX, u64::from(u32::MAX), u64::MAX << 32 | 4096] {
            a.head(0, 1).place.store(place, Ordering::Relaxed);
            let shown = b.read(Peer(0), Round::Current).unwrap().1;
            let end = shown.as_ptr() as usize + shown.len();
            let head: *const Head = b.head(0, 1);
            let base = head as usize - b.head_at(0, 1);
            assert!(shown.len() <= b.limit());
            assert!(end <= base + b.segment.layout().messages(0) + b.segment.layout().board_bytes);
        }
    }
}
