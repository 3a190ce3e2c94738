//! A transport whose members live in one process, for tests.

mod bell;
mod board;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::{Board, Error, Peer, Transport};
use bell::Bell;
use board::{MemoryBoard, Rounds};

/// A group of `n` members, peers 0 to `n - 1` of each other, which may go to different threads.
///
/// Every direction of every pair holds `capacity` bytes, taken and not yet consumed. A transport
/// must show at least 4 KiB at once; with a smaller capacity this one shows less, to test that an
/// executor makes do with any split of its messages, down to single bytes.
///
/// # Panics
///
/// If `capacity` is 0, or the system has no descriptors left.
pub fn group(n: usize, capacity: usize) -> Vec<Memory> {
    make(n, capacity, None)
}

/// As [`group`], with a [`Board`] for messages of at most `limit` bytes.
///
/// # Panics
///
/// As [`group`].
pub fn group_with_board(n: usize, capacity: usize, limit: usize) -> Vec<Memory> {
    make(n, capacity, Some(limit))
}

fn make(n: usize, capacity: usize, limit: Option<usize>) -> Vec<Memory> {
    assert!(capacity > 0, "a link that holds no byte moves none");
    let bells: Arc<[Bell]> = (0..n).map(|_| Bell::new().expect("an eventfd")).collect();
    let links = Arc::new(Mutex::new((0..n * n).map(|_| Link::default()).collect()));
    let rounds = Arc::new(Mutex::new(Rounds::new(n)));
    let member = |me| Memory {
        me,
        n,
        capacity,
        bells: bells.clone(),
        links: links.clone(),
        arrived: (0..n).map(|_| Arrived::default()).collect(),
        board: limit.map(|limit| MemoryBoard::new(me, limit, rounds.clone(), bells.clone())),
    };
    (0..n).map(member).collect()
}

/// One member of a [`group`]. Dropping it closes its end of every link.
///
/// A member is a peer of itself too: what it sends to its own number arrives there.
pub struct Memory {
    me: usize,
    n: usize,
    capacity: usize,
    bells: Arc<[Bell]>,
    /// From member `f` to member `t` at index `f * n + t`.
    links: Arc<Mutex<Vec<Link>>>,
    arrived: Vec<Arrived>,
    board: Option<MemoryBoard>,
}

/// One direction between two members.
#[derive(Default)]
struct Link {
    /// Taken, and not yet shown.
    queue: VecDeque<u8>,
    /// Taken, and not yet consumed.
    held: usize,
    /// One of its ends was dropped.
    closed: bool,
}

/// The bytes that `peek` shows: those from `start` on.
#[derive(Default)]
struct Arrived {
    bytes: Vec<u8>,
    start: usize,
}

impl Transport for Memory {
    fn send(&mut self, peer: Peer, bytes: &[u8]) -> Result<usize, Error> {
        let mut links = lock(&self.links);
        let link = &mut links[self.me * self.n + peer.index()];
        if link.closed {
            return Err(Error::Closed { peer });
        }
        let taken = bytes.len().min(self.capacity - link.held);
        link.queue.extend(&bytes[..taken]);
        link.held += taken;
        drop(links);
        if taken > 0 {
            self.bells[peer.index()].ring();
        }
        Ok(taken)
    }

    fn peek(&mut self, peer: Peer) -> Result<&[u8], Error> {
        let mut links = lock(&self.links);
        let link = &mut links[peer.index() * self.n + self.me];
        let arrived = &mut self.arrived[peer.index()];
        if !link.queue.is_empty() {
            arrived.bytes.drain(..arrived.start);
            arrived.start = 0;
            arrived.bytes.extend(link.queue.drain(..));
        }
        let shown = &arrived.bytes[arrived.start..];
        if shown.is_empty() && link.closed {
            return Err(Error::Closed { peer });
        }
        Ok(shown)
    }

    fn consume(&mut self, peer: Peer, len: usize) {
        let arrived = &mut self.arrived[peer.index()];
        let shown = arrived.bytes.len() - arrived.start;
        assert!(len <= shown, "{len} bytes consumed where {shown} are shown");
        arrived.start += len;
        lock(&self.links)[peer.index() * self.n + self.me].held -= len;
        self.bells[peer.index()].ring();
    }

    fn park(&mut self, also: &[BorrowedFd<'_>], limit: Duration) -> Result<(), Error> {
        let waited = self.bells[self.me].wait(also, limit);
        waited.map_err(|source| Error::Io { peer: None, what: "cannot wait".into(), source })
    }

    fn news(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bells[self.me].as_fd())
    }

    fn kind(&self, _peer: Peer) -> &'static str {
        "memory"
    }

    fn board(&mut self) -> Option<&mut dyn Board> {
        self.board.as_mut().map(|board| board as &mut dyn Board)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let mut links = lock(&self.links);
        for other in 0..self.n {
            links[self.me * self.n + other].closed = true;
            links[other * self.n + self.me].closed = true;
        }
        drop(links);
        self.bells.iter().for_each(Bell::ring);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics with this lock held")
}
