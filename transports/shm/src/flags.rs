//! The flag protocol of the board, without its messages.
//!
//! Each member has two slots; round `n` uses slot `n % 2`, whose flag its owner sets to `n` when
//! the message stands. A member overwrites its slot for round `n + 1` once it has seen every
//! flag of round `n`: whoever has posted in round `n` reads no message of round `n - 1` any more.

use crate::sync::{AtomicU64, Ordering};

/// The round whose message a slot holds; 0 at first. On the cache line of the message's start.
#[repr(transparent)]
#[derive(Default)]
pub(crate) struct Flag(AtomicU64);

/// How far one member is.
#[derive(Default)]
pub(crate) struct Rounds {
    current: u64,
}

impl Rounds {
    /// The slot of the current round.
    pub(crate) fn slot(&self) -> usize {
        (self.current % 2) as usize
    }

    /// The slot of the next round.
    pub(crate) fn next_slot(&self) -> usize {
        1 - self.slot()
    }

    /// Whether the owner of `flag`, that of its slot of the current round, has posted in it.
    /// Before the first round, when there is nothing to post, everybody has.
    pub(crate) fn posted(&self, flag: &Flag) -> bool {
        // Acquire: the owner's writes to this slot happen before our reads of it, and its reads
        // of our slot for the next round (it holds the message of the last) before our writes.
        flag.0.load(Ordering::Acquire) == self.current
    }

    /// Whether any round has begun.
    pub(crate) fn started(&self) -> bool {
        self.current > 0
    }

    /// The current round's number.
    pub(crate) fn current(&self) -> u64 {
        self.current
    }

    /// Starts the next round. Its message stands in this member's [`next_slot`](Rounds::next_slot),
    /// which has the flag `flag`, and every member had [`posted`](Rounds::posted) in the current.
    pub(crate) fn publish(&mut self, flag: &Flag) {
        self.current += 1;
        flag.0.store(self.current, Ordering::Release);
    }
}
