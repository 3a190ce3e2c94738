//! Where everything is in a segment.
//!
//! ```text
//! header, peers | members | ring indices | heads || messages, by member || ring data, by ring
//! ```
//!
//! All before the first `||` is the control part: committed from the start. It and the messages
//! are mapped by everybody, rings by their two ends.

use rustix::param::page_size;

use crate::error::Error;
use crate::flags::HEADS;
use crate::ring::Indices;
use crate::shm::{Head, LINE, SHARE, SHORT};
use crate::waker::Member;

/// Sizes of a segment. The leader chooses; the others take them from the segment.
#[derive(Clone, Debug)]
pub struct Options {
    /// The capacity of a ring, in bytes: a power of two and a multiple of the page size, at most
    /// 1 GiB. A pair of members that exchange data takes twice as much memory.
    pub ring_bytes: usize,
    /// What a member has for its messages on the board, in bytes: a multiple of the page size, at
    /// most 1 GiB. A message has at most an eighth of it. Messages are written all over it in
    /// turn; if that is more than the second-level cache holds, a writer finds no line that its
    /// readers still have there, and they find the message in the cache that all cores share,
    /// both of which is several times as fast.
    pub board_bytes: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { ring_bytes: 256 << 10, board_bytes: 1536 << 10 }
    }
}

impl Options {
    /// The longest message on the board, in bytes.
    pub fn longest_message(&self) -> usize {
        longest_message(self.board_bytes)
    }
}

/// The longest message on a board.
pub(crate) fn longest_message(board_bytes: usize) -> usize {
    (board_bytes / SHARE / LINE * LINE).max(SHORT)
}

/// The most members a segment has room for.
pub(crate) const MEMBERS_MAX: usize = 512;
/// Bytes of the header before the list of peers.
pub(crate) const HEADER: usize = 64;

const LINES: usize = 128;

/// The offsets of a segment's parts, in bytes. Sums of the limits above, so none overflows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) members: usize,
    pub(crate) ring_bytes: usize,
    pub(crate) board_bytes: usize,
    members_at: usize,
    indices_at: usize,
    heads_at: usize,
    messages_at: usize,
    data_at: usize,
}

impl Layout {
    pub(crate) fn new(members: usize, options: &Options) -> Result<Layout, Error> {
        let &Options { ring_bytes, board_bytes } = options;
        check(members, ring_bytes, board_bytes)?;
        let members_at = (HEADER + 4 * members).next_multiple_of(LINES);
        let indices_at = members_at + members * size_of::<Member>();
        let heads_at = indices_at + members * members * size_of::<Indices>();
        let heads = members * HEADS as usize * size_of::<Head>();
        let messages_at = (heads_at + heads).next_multiple_of(page_size());
        let data_at = messages_at + members * board_bytes;
        Ok(Layout {
            members,
            ring_bytes,
            board_bytes,
            members_at,
            indices_at,
            heads_at,
            messages_at,
            data_at,
        })
    }

    /// The length of the control part.
    pub(crate) fn control(&self) -> usize {
        self.messages_at
    }

    /// The length of the control part and the messages together.
    pub(crate) fn common(&self) -> usize {
        self.data_at
    }

    /// The length of the segment.
    pub(crate) fn total(&self) -> u64 {
        self.data_at as u64 + (self.members * self.members) as u64 * self.ring_bytes as u64
    }

    /// Where the [`Member`] is.
    pub(crate) fn member(&self, member: usize) -> usize {
        assert!(member < self.members);
        self.members_at + member * size_of::<Member>()
    }

    /// Where the [`Indices`] of a ring are.
    pub(crate) fn indices(&self, from: usize, to: usize) -> usize {
        self.indices_at + self.ring(from, to) * size_of::<Indices>()
    }

    /// Where the bytes of a ring are.
    pub(crate) fn data(&self, from: usize, to: usize) -> u64 {
        self.data_at as u64 + self.ring(from, to) as u64 * self.ring_bytes as u64
    }

    /// Where the [`Head`] is that is about a member's message of some rounds.
    pub(crate) fn head(&self, member: usize, head: usize) -> usize {
        assert!(member < self.members && head < HEADS as usize);
        self.heads_at + (member * HEADS as usize + head) * size_of::<Head>()
    }

    /// Where a member's `board_bytes` for messages are.
    pub(crate) fn messages(&self, member: usize) -> usize {
        assert!(member < self.members);
        self.messages_at + member * self.board_bytes
    }

    /// The number of a ring: those to one member are neighbours, as it polls them together.
    fn ring(&self, from: usize, to: usize) -> usize {
        assert!(from < self.members && to < self.members);
        to * self.members + from
    }
}

fn check(members: usize, ring_bytes: usize, board_bytes: usize) -> Result<(), Error> {
    let what = if !(1..=MEMBERS_MAX).contains(&members) {
        format!("a segment has 1 to {MEMBERS_MAX} members, not {members}")
    } else if !ring_bytes.is_power_of_two() || !ring_bytes.is_multiple_of(page_size()) {
        let page = page_size();
        format!("ring_bytes is {ring_bytes}, not a power of two and multiple of {page}")
    } else if ring_bytes > 1 << 30 {
        format!("ring_bytes is {ring_bytes}, more than 1 GiB")
    } else if !board_bytes.is_multiple_of(page_size()) {
        let page = page_size();
        format!("board_bytes is {board_bytes}, not a multiple of {page}")
    } else if board_bytes > 1 << 30 {
        format!("board_bytes is {board_bytes}, more than 1 GiB")
    } else {
        return Ok(());
    };
    Err(Error::Argument { what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_without_overlap() {
        for members in [1, 2, 3, 7, MEMBERS_MAX] {
            let layout = Layout::new(members, &Options::default()).unwrap();
            let last = members - 1;
            let parts = [
                (HEADER, 4 * members),
                (layout.member(0), 0),
                (layout.member(last), size_of::<Member>()),
                (layout.indices(0, 0), 0),
                (layout.indices(last, last), size_of::<Indices>()),
                (layout.head(0, 0), 0),
                (layout.head(last, HEADS as usize - 1), size_of::<Head>()),
                (layout.control(), 0),
                (layout.messages(0), 0),
                (layout.messages(last), layout.board_bytes),
                (layout.common(), 0),
            ];
            for pair in parts.windows(2) {
                assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{members} members: {pair:?}");
            }
            assert_eq!(layout.data(0, 0), layout.common() as u64);
            assert_eq!(layout.data(last, last) + layout.ring_bytes as u64, layout.total());
        }
    }

    #[test]
    fn sizes_that_cannot_be_mapped_are_refused() {
        let (good, page) = (Options::default(), page_size());
        for ring_bytes in [0, 1, page / 2, 3 * page, 2 << 30] {
            assert!(Layout::new(2, &Options { ring_bytes, ..good.clone() }).is_err());
        }
        for board_bytes in [1, page - 1, (1 << 30) + page] {
            assert!(Layout::new(2, &Options { board_bytes, ..good.clone() }).is_err());
        }
        assert!(Layout::new(0, &good).is_err() && Layout::new(MEMBERS_MAX + 1, &good).is_err());
    }
}
