//! How a rank waits: it spins, yields, then parks in the transport; and what ends a wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tutti_transport::Transport;

use crate::bootstrap::Monitor;
use crate::error::Cause;

/// The longest sleep before the wait looks again at the verdict and at the clock.
const SLICE: Duration = Duration::from_millis(20);
/// How long nothing moves before the hub is asked whether the ranks agree.
const STALL: Duration = Duration::from_millis(10);
/// A pause between polls that is no wait: longer than any sleep of [`SLICE`], even on a busy host.
const AWAY: Duration = Duration::from_secs(1);
/// How often a spinning rank offers its core to others: the scheduler may have put the rank it
/// waits for on the same one.
const SHARE: Duration = Duration::from_micros(4);
/// As many looks at a flag as take some microseconds.
const POLLS: u32 = 256;
/// How long an operation may still run on what a dead rank had sent, without moving.
const GRACE: Duration = Duration::from_millis(100);

/// How long to wait, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Look so often at what is awaited most before anything else is done, the clock read included.
    pub(crate) polls: u32,
    /// Poll without giving up the core for so long;
    pub(crate) spin: Duration,
    /// then give it up between polls for so long; then sleep.
    pub(crate) yielding: Duration,
    /// Nothing may move for so long.
    pub(crate) deadline: Duration,
}

impl Patience {
    /// Spins only where every rank of the host has a core: a spinning rank would hold up the
    /// one it waits for.
    pub(crate) fn new(spin: Duration, deadline: Duration, ranks_here: usize, cores: f64) -> Self {
        let crowded = ranks_here as f64 > cores;
        Patience {
            polls: if crowded || spin.is_zero() { 1 } else { POLLS },
            spin: if crowded { Duration::ZERO } else { spin },
            yielding: Duration::from_micros(if crowded { 100 } else { 200 }),
            deadline,
        }
    }
}

/// Why a wait ended before its operation.
#[derive(Debug)]
pub(crate) enum Interrupt {
    Verdict(Arc<Cause>),
    Deadline,
    System(tutti_transport::Error),
}

/// The standstill of one operation: since when nothing has moved, and what was done about it.
#[derive(Default)]
pub(crate) struct Idle {
    since: Option<Instant>,
    /// When the operation was last polled.
    polled: Option<Instant>,
    stall_told: bool,
    /// For how long nothing had moved when the core was last given up.
    yielded: Duration,
}

impl Idle {
    /// Something moved.
    fn reset(&mut self) {
        *self = Idle { stall_told: self.stall_told, ..Idle::default() };
    }

    /// To be called after each poll: takes note that something moved, or rests before the next one.
    /// Says whether there is to be a next one: not when `until` has passed.
    ///
    /// # Errors
    ///
    /// When the wait is over: by a verdict, the deadline, or a system that refuses to sleep.
    pub(crate) fn pause(
        &mut self,
        moved: bool,
        until: Option<Instant>,
        patience: &Patience,
        monitor: Option<&Monitor>,
        transport: &mut dyn Transport,
    ) -> Result<bool, Interrupt> {
        if moved {
            self.reset();
            return ended(monitor).map_or(Ok(true), |cause| Err(Interrupt::Verdict(cause)));
        }
        let idle = self.check(patience, monitor)?;
        if until.is_some_and(|until| until <= Instant::now()) {
            return Ok(false);
        }
        self.rest(idle, patience, transport)?;
        Ok(true)
    }

    /// To be called after each poll that moved nothing; returns for how long that has lasted. Time in
    /// which nobody polled (the caller computes, the process was stopped) does not count.
    ///
    /// # Errors
    ///
    /// When the wait is over: by a verdict or by the deadline.
    fn check(
        &mut self,
        patience: &Patience,
        monitor: Option<&Monitor>,
    ) -> Result<Duration, Interrupt> {
        let now = Instant::now();
        let away = self.polled.map_or(Duration::ZERO, |polled| now - polled);
        self.polled = Some(now);
        let since = self.since.get_or_insert(now);
        if away >= AWAY {
            *since += away;
        }
        let idle = now.saturating_duration_since(*since);
        if let Some(cause) = verdict(monitor)
            && (idle >= GRACE || ends_at_once(&cause))
        {
            return Err(Interrupt::Verdict(cause));
        }
        if idle >= patience.deadline {
            return Err(Interrupt::Deadline);
        }
        if idle >= STALL && !self.stall_told {
            self.stall_told = true;
            monitor.inspect(|monitor| monitor.stall());
        }
        Ok(idle)
    }

    /// Rests before the next poll, shorter or longer by how long nothing has moved.
    ///
    /// # Errors
    ///
    /// If the system refuses to sleep.
    fn rest(
        &mut self,
        idle: Duration,
        patience: &Patience,
        transport: &mut dyn Transport,
    ) -> Result<(), Interrupt> {
        if idle < patience.spin && idle < self.yielded + SHARE {
            std::hint::spin_loop();
        } else if idle < patience.spin + patience.yielding {
            self.yielded = idle;
            std::thread::yield_now();
        } else {
            let limit = SLICE.min(patience.deadline - idle);
            transport.park(&[], limit).map_err(Interrupt::System)?;
        }
        Ok(())
    }
}

fn verdict(monitor: Option<&Monitor>) -> Option<Arc<Cause>> {
    monitor.filter(|monitor| monitor.is_broken()).and_then(Monitor::verdict)
}

/// A verdict that ends also an operation that still moves.
pub(crate) fn ended(monitor: Option<&Monitor>) -> Option<Arc<Cause>> {
    verdict(monitor).filter(|cause| ends_at_once(cause))
}

/// Whether nothing that is under way can be of use any more. After a death the operation may
/// still complete with what the dead rank had sent.
fn ends_at_once(cause: &Cause) -> bool {
    !matches!(cause, Cause::Died { .. } | Cause::Left { .. } | Cause::HubLost { .. })
}
