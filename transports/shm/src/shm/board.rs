use tutti_transport::{Board, Error, Peer};

use super::Shm;
use crate::flags::Flag;
use crate::mapping::Shared;
use crate::segment::Segment;
use crate::sync::{AtomicU64, Ordering};

/// The start of a slot: its flag and what its message is. The message follows at once if the line
/// has room for it, otherwise on the next line.
#[repr(C)]
struct Head {
    flag: Flag,
    tag: AtomicU64,
    len: AtomicU64,
}

// SAFETY: atomics only.
unsafe impl Shared for Head {}

/// The first line of a slot, in bytes.
pub(crate) const LINE: usize = 64;
/// The longest message on the first line.
const INLINE: usize = LINE - size_of::<Head>();

impl Board for Shm {
    fn limit(&self) -> usize {
        self.segment.layout().board_bytes
    }

    fn post(&mut self, tag: u64, bytes: &[u8]) -> Result<bool, Error> {
        let (len, limit) = (bytes.len(), self.limit());
        assert!(len <= limit, "a message of {len} bytes is posted, the limit is {limit}");
        let mut members = 0..self.peers().len();
        if !members.all(|member| self.has_posted(member)) {
            return Ok(false);
        }
        let (me, slot) = (self.members.me(), self.rounds.next_slot());
        let head = head(&self.segment, me, slot);
        head.tag.store(tag, Ordering::Relaxed);
        head.len.store(len as u64, Ordering::Relaxed);
        // SAFETY: this slot holds the message of the last round but one. All have posted in the
        // last, so nobody reads it any more, and nobody reads the new one before `publish`. The
        // slices that this member has of its own are gone, as `self` is borrowed mutably.
        unsafe { self.segment.control().write(message(&self.segment, me, slot, len), bytes) };
        self.rounds.publish(&head.flag);
        self.wake_others();
        Ok(true)
    }

    fn read(&self, peer: Peer) -> Option<(u64, &[u8])> {
        let member = self.members.place(peer)?;
        if !self.rounds.started() || !self.has_posted(member) {
            return None;
        }
        let slot = self.rounds.slot();
        let head = head(&self.segment, member, slot);
        // A member that breaks the protocol can give any length, but not one out of bounds.
        let len = head.len.load(Ordering::Relaxed).min(self.limit() as u64) as usize;
        // SAFETY: the member has posted in this round, so the message stands; it writes to the
        // slot when all have posted in the next, which the borrow of `self` keeps away.
        let message =
            unsafe { self.segment.control().slice(message(&self.segment, member, slot, len), len) };
        Some((head.tag.load(Ordering::Relaxed), message))
    }
}

impl Shm {
    /// Whether a member has posted in the current round.
    pub(super) fn has_posted(&self, member: usize) -> bool {
        let head = head(&self.segment, member, self.rounds.slot());
        self.rounds.posted(&head.flag)
    }
}

fn head(segment: &Segment, member: usize, slot: usize) -> &Head {
    segment.control().at(segment.layout().slot(member, slot))
}

/// Where a message of this length is.
fn message(segment: &Segment, member: usize, slot: usize, len: usize) -> usize {
    let offset = if len <= INLINE { size_of::<Head>() } else { LINE };
    segment.layout().slot(member, slot) + offset
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
        while !member.post(round, &mine).unwrap() {
            member.park(&[], Duration::from_secs(1)).unwrap();
        }
        for peer in member.peers().to_vec() {
            let shown = loop {
                match member.read(peer) {
                    Some((tag, shown)) => break (tag, shown.to_vec()),
                    None => member.park(&[], Duration::from_secs(1)).unwrap(),
                }
            };
            assert_eq!(shown, (round, message(peer)));
        }
    }

    #[test]
    fn a_member_cannot_run_ahead_by_more_than_a_round() {
        let (mut a, mut b) = pair();
        assert!(a.read(Peer(0)).is_none());
        assert!(a.post(1, b"one").unwrap());
        assert!(!a.post(2, b"two").unwrap());
        assert_eq!((a.read(Peer(0)), a.read(Peer(1))), (Some((1, &b"one"[..])), None));
        assert!(b.post(7, b"first").unwrap());
        assert!(a.post(2, b"two").unwrap());
        assert_eq!(b.read(Peer(0)), Some((1, &b"one"[..])));
        assert!(b.post(8, b"second").unwrap());
        assert_eq!(b.read(Peer(0)), Some((2, &b"two"[..])));
    }

    #[test]
    fn the_longest_message_arrives_whole() {
        let (mut a, mut b) = pair();
        let longest: Vec<_> = (0..a.limit()).map(|i| i as u8).collect();
        assert!(a.post(0, &longest).unwrap() && b.post(0, &[]).unwrap());
        assert_eq!(b.read(Peer(0)), Some((0, &longest[..])));
        assert_eq!(b.read(Peer(1)), Some((0, &[][..])));
    }

    #[test]
    fn a_forged_length_shows_no_more_than_the_limit() {
        let (mut a, mut b) = pair();
        assert!(a.post(0, b"x").unwrap() && b.post(0, b"y").unwrap());
        head(&a.segment, 0, a.rounds.slot()).len.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(b.read(Peer(0)).unwrap().1.len(), b.limit());
    }
}
