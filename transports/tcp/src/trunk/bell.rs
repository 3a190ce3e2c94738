//! Descriptors by which a thread that sleeps in the kernel hears of another thread's news.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, epoll, eventfd};

/// Readable from its ring until it is silenced.
pub(super) struct Bell(OwnedFd);

impl Bell {
    pub(super) fn new() -> io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(super) fn ring(&self) {
        // Fails only where it rings already, more often than can be counted.
        _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(super) fn silence(&self) {
        // Fails only where it does not ring.
        _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A channel's bell, and a descriptor that is readable when it rings or the network has news.
pub(super) struct Watch {
    pub(super) bell: Bell,
    both: OwnedFd,
}

impl Watch {
    pub(super) fn new(network: BorrowedFd<'_>) -> io::Result<Watch> {
        let (bell, both) = (Bell::new()?, epoll::create(epoll::CreateFlags::CLOEXEC)?);
        for fd in [bell.as_fd(), network] {
            epoll::add(&both, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        Ok(Watch { bell, both })
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.both.as_fd()
    }
}
