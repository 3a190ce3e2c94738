//! The index protocol of a ring with one producer and one consumer, without its bytes.
//!
//! `tail` counts the bytes ever published, `head` those ever released; neither wraps within the
//! life of a machine. The byte counted `i` lives at `i % capacity`. Each side keeps its own index
//! and a copy of the other's, so that a shared line moves only when there is something to learn.

use std::fmt;

use crate::sync::{AtomicU64, Ordering};

/// The shared part of a ring, all zero at first. The two indices have different writers, so each
/// has its own pair of cache lines (processors prefetch lines in pairs).
#[repr(C)]
#[derive(Default)]
pub(crate) struct Indices {
    tail: Line,
    head: Line,
}

#[repr(C, align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// The sender's end.
pub(crate) struct Producer {
    tail: u64,
    /// The consumer's index when last seen.
    head: u64,
    capacity: u64,
    /// The last `room` was less than wanted, and nothing was reported since.
    starved: bool,
}

impl Producer {
    pub(crate) fn new(capacity: usize) -> Producer {
        Producer { tail: 0, head: 0, capacity: capacity as u64, starved: false }
    }

    /// How many bytes may be written from [`at`](Producer::at) on. Looks at the consumer's index
    /// only if it does not know of `want` bytes of room.
    pub(crate) fn room(&mut self, shared: &Indices, want: usize) -> Result<usize, Corrupt> {
        let mut room = self.capacity - (self.tail - self.head);
        if room < want as u64 {
            // Acquire: the consumer's reads of the bytes happen before our writes to them.
            let head = shared.head.0.load(Ordering::Acquire);
            let filled = self.tail.wrapping_sub(head);
            if filled > self.tail - self.head {
                return Err(Corrupt { tail: self.tail, head, capacity: self.capacity });
            }
            self.head = head;
            room = self.capacity - filled;
        }
        self.starved = room < want as u64;
        Ok(room as usize)
    }

    /// The index of the next byte to write.
    pub(crate) fn at(&self) -> u64 {
        self.tail
    }

    /// Hands over the `len` bytes written from [`at`](Producer::at) on: at most the last `room`.
    pub(crate) fn publish(&mut self, shared: &Indices, len: usize) {
        self.tail += len as u64;
        debug_assert!(self.tail - self.head <= self.capacity);
        // Release: our writes of the bytes happen before the consumer's reads.
        shared.tail.0.store(self.tail, Ordering::Release);
    }

    /// Whether room has come since a `room` that fell short. Says so once.
    pub(crate) fn news(&mut self, shared: &Indices) -> bool {
        let news = self.starved && shared.head.0.load(Ordering::Relaxed) != self.head;
        self.starved &= !news;
        news
    }
}

/// The receiver's end.
pub(crate) struct Consumer {
    head: u64,
    /// The producer's index when last shown to the caller.
    tail: u64,
    /// The producer's index when last seen, shown or not.
    noticed: u64,
    capacity: u64,
}

impl Consumer {
    pub(crate) fn new(capacity: usize) -> Consumer {
        Consumer { head: 0, tail: 0, noticed: 0, capacity: capacity as u64 }
    }

    /// How many bytes may be read from [`at`](Consumer::at) on.
    pub(crate) fn ready(&mut self, shared: &Indices) -> Result<usize, Corrupt> {
        // Acquire: the producer's writes of the bytes happen before our reads.
        let tail = shared.tail.0.load(Ordering::Acquire);
        let filled = tail.wrapping_sub(self.head);
        if filled > self.capacity || filled < self.tail - self.head {
            return Err(Corrupt { tail, head: self.head, capacity: self.capacity });
        }
        self.tail = tail;
        self.noticed = tail;
        Ok(filled as usize)
    }

    /// The index of the next byte to read.
    pub(crate) fn at(&self) -> u64 {
        self.head
    }

    /// How many bytes the last `ready` showed that were not released.
    pub(crate) fn shown(&self) -> usize {
        (self.tail - self.head) as usize
    }

    /// Gives the first `len` bytes back to the producer.
    ///
    /// # Panics
    ///
    /// If `len` is more than [`shown`](Consumer::shown).
    pub(crate) fn release(&mut self, shared: &Indices, len: usize) {
        assert!(len <= self.shown(), "{len} bytes are consumed, {} were shown", self.shown());
        self.head += len as u64;
        // Release: our reads of the bytes happen before the producer's writes to them.
        shared.head.0.store(self.head, Ordering::Release);
    }

    /// Whether the ring was full before the last `release`, that of `len` bytes: only then can
    /// the producer sleep for want of room. Needs a sequentially consistent fence after `release`.
    pub(crate) fn was_full(&self, shared: &Indices, len: usize) -> bool {
        let before = self.head - len as u64;
        shared.tail.0.load(Ordering::Relaxed).wrapping_sub(before) >= self.capacity
    }

    /// Whether bytes have come that were neither shown nor reported. Says so once.
    pub(crate) fn news(&mut self, shared: &Indices) -> bool {
        let tail = shared.tail.0.load(Ordering::Relaxed);
        let news = tail != self.noticed;
        self.noticed = tail;
        news
    }
}

/// Indices that no run of the protocol leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Corrupt {
    tail: u64,
    head: u64,
    capacity: u64,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Corrupt { tail, head, capacity } = self;
        write!(f, "its ring of {capacity} bytes has its tail at {tail} and its head at {head}")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn bytes_released_are_room_again() {
        let shared = Indices::default();
        let (mut tx, mut rx) = (Producer::new(8), Consumer::new(8));
        assert_eq!(tx.room(&shared, 100), Ok(8));
        tx.publish(&shared, 6);
        assert_eq!(rx.ready(&shared), Ok(6));
        rx.release(&shared, 5);
        assert_eq!((tx.room(&shared, 1), tx.room(&shared, 3)), (Ok(2), Ok(7)));
    }

    #[test]
    fn a_tail_beyond_the_capacity_is_corrupt() {
        let shared = Indices::default();
        shared.tail.0.store(9, Ordering::Relaxed);
        assert!(Consumer::new(8).ready(&shared).is_err());
    }

    #[test]
    fn a_tail_that_goes_back_is_corrupt() {
        let shared = Indices::default();
        let (mut tx, mut rx) = (Producer::new(8), Consumer::new(8));
        tx.publish(&shared, 5);
        assert_eq!(rx.ready(&shared), Ok(5));
        shared.tail.0.store(4, Ordering::Relaxed);
        assert!(rx.ready(&shared).is_err());
    }

    #[test]
    fn a_head_beyond_the_tail_or_going_back_is_corrupt() {
        let shared = Indices::default();
        let mut tx = Producer::new(8);
        tx.publish(&shared, 5);
        shared.head.0.store(6, Ordering::Relaxed);
        assert!(tx.room(&shared, 8).is_err());
        shared.head.0.store(3, Ordering::Relaxed);
        assert_eq!(tx.room(&shared, 8), Ok(6));
        shared.head.0.store(2, Ordering::Relaxed);
        assert!(tx.room(&shared, 8).is_err());
    }

    #[test]
    fn news_is_told_once() {
        let shared = Indices::default();
        let (mut tx, mut rx) = (Producer::new(4), Consumer::new(4));
        assert!(!rx.news(&shared));
        tx.publish(&shared, 4);
        assert!(rx.news(&shared) && !rx.news(&shared));
        assert_eq!((rx.ready(&shared), tx.room(&shared, 1)), (Ok(4), Ok(0)));
        rx.release(&shared, 2);
        assert!(tx.news(&shared) && !tx.news(&shared));
    }

    #[test]
    fn freed_room_is_no_news_to_a_producer_that_lacked_none() {
        let shared = Indices::default();
        let (mut tx, mut rx) = (Producer::new(4), Consumer::new(4));
        assert_eq!(tx.room(&shared, 3), Ok(4));
        tx.publish(&shared, 3);
        assert_eq!(rx.ready(&shared), Ok(3));
        rx.release(&shared, 3);
        assert!(!tx.news(&shared) && !rx.was_full(&shared, 3));
    }
}
