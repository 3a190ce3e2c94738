//! The protocol by which a member sleeps and is woken, without the system calls.
//!
//! Who publishes: publish; fence; `ring` if the member sleeps. Who sleeps: `arm` (which ends in a
//! fence); look for news again; sleep. The fences are sequentially consistent, so one comes
//! first: either the publisher sees the member armed, or the member sees the news.

use crate::sync::{AtomicU32, Ordering, fence};

const AWAKE: u32 = 0;

/// Whether a member sleeps and how, and whether it is gone; all zero at first.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Doorbell {
    state: AtomicU32,
    closed: AtomicU32,
}

/// How a member sleeps: what wakes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// A futex wake of [`Doorbell::futex`].
    Futex = 1,
    /// A datagram to its socket.
    Datagram = 2,
}

impl Doorbell {
    /// Announces that the owner is about to sleep.
    pub(crate) fn arm(&self, sleep: Sleep) {
        // Release: a ringer sees the address to send a datagram to. A swap, as it is ordered with
        // the swap of a ringer that comes late for an earlier sleep.
        self.state.swap(sleep as u32, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// The owner is awake.
    pub(crate) fn disarm(&self) {
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Whether the owner was seen asleep. Needs a sequentially consistent fence after what was
    /// published.
    pub(crate) fn sleeps(&self) -> bool {
        self.state.load(Ordering::Relaxed) != AWAKE
    }

    /// Marks the owner awake; how to wake it, unless it was awake or another ringer wakes it.
    pub(crate) fn ring(&self) -> Option<Sleep> {
        match self.state.swap(AWAKE, Ordering::AcqRel) {
            1 => Some(Sleep::Futex),
            2 => Some(Sleep::Datagram),
            _ => None,
        }
    }

    /// The word to wait on, as long as it holds what `arm` put there.
    pub(crate) fn futex(&self) -> &AtomicU32 {
        &self.state
    }

    /// Marks the owner as gone. What it published before is seen by who sees this.
    pub(crate) fn close(&self) {
        self.closed.store(1, Ordering::Release);
    }

    /// Whether the owner is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) != 0
    }
}
