//! The flag protocol of the board, without its messages.
//!
//! Each member has [`HEADS`] heads; the message of round `n` stands under head `n % HEADS`, whose flag its
//! owner sets to `n`. Who posts in round `n` has dealt with all messages up to round `n - 2`. A
//! member posts in round `n` once it has seen every flag of round `n - 2`: then nobody reads a message of
//! round `n - 4` any more, whose head and bytes it overwrites.

use crate::sync::{AtomicU64, Ordering};

/// How many rounds may be read or written at the same time.
pub(crate) const HEADS: u64 = 4;

/// The round whose message a head is about; 0 at first. On the cache line of the message's start.
#[repr(transparent)]
#[derive(Default)]
pub(crate) struct Flag(AtomicU64);

impl Flag {
    /// Whether the owner of this flag, that of its head of `round`, has posted in it.
    pub(crate) fn is_up(&self, round: u64) -> bool {
        // Acquire: the owner's writes of its message happen before our reads of it, and its reads of
        // our messages up to `round - 2` before our writes over them.
        self.0.load(Ordering::Acquire) == round
    }

    /// The last round for which it was raised, for one that does not go on to read the message.
    pub(crate) fn last(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Posts the message of `round`. Every member's flag of `round - 2` was seen up.
    pub(crate) fn raise(&self, round: u64) {
        self.0.store(round, Ordering::Release);
    }
}

/// The number of the head of a round.
pub(crate) fn head(round: u64) -> usize {
    (round % HEADS) as usize
}

/// The round whose flags must all be up before a member posts in `round`, if there is one.
pub(crate) fn before(round: u64) -> Option<u64> {
    round.checked_sub(2).filter(|&before| before > 0)
}
