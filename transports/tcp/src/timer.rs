use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// A descriptor that becomes readable at a time, so that who waits for descriptors only does not
/// miss it.
pub(crate) struct Timer {
    fd: OwnedFd,
    at: Option<Instant>,
}

impl Timer {
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Timer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        registry.register(&mut SourceFd(&fd.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Timer { fd, at: None })
    }

    /// Goes off at `at`, in place of what was set before; never, if `None`.
    pub(crate) fn set(&mut self, at: Option<Instant>) -> io::Result<()> {
        if self.at == at {
            return Ok(());
        }
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let wait = at.map(|at| at.saturating_duration_since(Instant::now()));
        let it_value = match wait.map(Timespec::try_from) {
            // Zero would mean never.
            Some(Ok(wait)) if wait == zero => Timespec { tv_nsec: 1, ..zero },
            Some(Ok(wait)) => wait,
            None | Some(Err(_)) => zero,
        };
        let times = Itimerspec { it_interval: zero, it_value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &times)?;
        self.at = at;
        Ok(())
    }

    /// Takes note that it went off.
    pub(crate) fn rang(&mut self) {
        // Fails only if it was set anew in between.
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
        self.at = None;
    }
}
