use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

/// What a member sleeps on: readable from the first ring until the end of a wait.
pub(super) struct Bell(OwnedFd);

impl Bell {
    pub(super) fn new() -> io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    pub(super) fn ring(&self) {
        // Fails only if the count is at its limit: then it is rung already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Sleeps until it rings, one of `also` is readable, or `limit` has passed.
    pub(super) fn wait(&self, also: &[BorrowedFd<'_>], limit: Duration) -> io::Result<()> {
        let all = std::iter::once(self.0.as_fd()).chain(also.iter().copied());
        let mut fds: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        // A limit beyond what the system can count is for ever.
        match poll(&mut fds, Timespec::try_from(limit).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        // Fails only if it did not ring.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
        Ok(())
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
