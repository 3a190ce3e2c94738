//! A communicator's part of the line to the hub: what it is in, the verdict, control exchanges.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use super::control::{Control, Wire};
use super::record::RecordCell;
use super::wire::{GroupId, Inbox, ToHub, Trouble, WHOLE};
use crate::error::Cause;

/// How long a rank that has reported trouble waits for the hub's verdict.
const VERDICT_TIME: Duration = Duration::from_secs(2);

/// One communicator on the line. Dropping it says good-bye for this communicator; the last of the
/// line's ends the line too.
pub(crate) struct Monitor {
    control: Arc<Control>,
    group: GroupId,
    state: Arc<State>,
    round: u64,
    /// How many monitored barriers this rank has come to.
    barriers: u64,
}

/// What a communicator tells the hub and hears from it.
#[derive(Default)]
pub(super) struct State {
    pub(super) record: RecordCell,
    broken: AtomicBool,
    verdict: OnceLock<Arc<Cause>>,
    heard: Mutex<Heard>,
    news: Condvar,
}

#[derive(Default)]
struct Heard {
    exchanged: Option<(u64, Vec<Vec<u8>>)>,
    /// The round, who was missing, and after how long.
    barrier: Option<(u64, Vec<u32>, Duration)>,
    verdict: bool,
    /// Why there is no hub any more, where its end was announced.
    alone: Option<Cause>,
}

/// Ends a communicator from any thread; see [`AbortHandle::abort`].
#[derive(Clone)]
pub struct AbortHandle(Option<(Arc<Wire>, GroupId, Arc<State>)>);

impl Monitor {
    /// The communicator of all ranks, over a line on which the hub's welcome has been read; `inbox`
    /// holds what came after.
    pub(crate) fn start(line: TcpStream, inbox: Inbox) -> io::Result<Monitor> {
        let state = Arc::new(State::default());
        let control = Control::start(line, inbox, (WHOLE, Arc::clone(&state)))?;
        Ok(Monitor { control: Arc::new(control), group: WHOLE, state, round: 0, barriers: 0 })
    }

    /// A communicator of some of the ranks, given by their ranks among all, on the same line. Every
    /// one of them opens the same `group` with the same list.
    pub(crate) fn open(&self, group: GroupId, ranks: Vec<u32>) -> Monitor {
        let state = Arc::new(State::default());
        let wire = self.control.wire();
        wire.enter(group, Arc::clone(&state));
        wire.say(group, &ToHub::Open { ranks });
        Monitor { control: Arc::clone(&self.control), group, state, round: 0, barriers: 0 }
    }

    pub(crate) fn record(&self) -> &RecordCell {
        &self.state.record
    }

    /// Whether a verdict has come. One atomic load.
    pub(crate) fn is_broken(&self) -> bool {
        self.state.broken.load(Ordering::Acquire)
    }

    pub(crate) fn verdict(&self) -> Option<Arc<Cause>> {
        self.state.verdict.get().cloned()
    }

    pub(crate) fn abort_handle(&self) -> AbortHandle {
        let wire = Arc::clone(self.control.wire());
        AbortHandle(Some((wire, self.group, Arc::clone(&self.state))))
    }

    /// Tells the hub that nothing has moved for a while.
    pub(crate) fn stall(&self) {
        self.say(&ToHub::Stall(self.state.record.read()));
    }

    /// Reports trouble and waits for the verdict of the hub, which is the same on all ranks.
    /// Blocks for [`VERDICT_TIME`] at most; `fallback` is the verdict if the hub is silent.
    pub(crate) fn report(&self, trouble: Trouble, fallback: Cause) -> Arc<Cause> {
        self.say(&ToHub::Trouble { record: self.state.record.read(), trouble });
        let heard = self.state.heard();
        let no_answer = |heard: &mut Heard| !heard.verdict && heard.alone.is_none();
        drop(self.state.news.wait_timeout_while(heard, VERDICT_TIME, no_answer));
        self.verdict().unwrap_or_else(|| {
            self.state.conclude(fallback.clone());
            Arc::new(fallback)
        })
    }

    /// Gives every rank the blobs of all, by rank. Blocks until all have called it; `call` is what
    /// the caller knows it by, and must be the same on all.
    ///
    /// # Errors
    ///
    /// The verdict, if one comes; `None` if `limit` passes.
    pub(crate) fn exchange(
        &mut self,
        call: &str,
        blob: &[u8],
        limit: Duration,
    ) -> Result<Vec<Vec<u8>>, Option<Arc<Cause>>> {
        let round = self.round;
        self.round += 1;
        self.say(&ToHub::Exchange { round, call: call.into(), blob: blob.to_vec() });
        self.state.wait(limit, |heard| {
            heard.exchanged.take_if(|(done, _)| *done == round).map(|(_, blobs)| blobs)
        })
    }

    /// Waits in a monitored barrier until all ranks have come, or for `limit`; returns which ranks
    /// had not come, and after how long.
    ///
    /// # Errors
    ///
    /// The verdict, if one comes; `None` if the hub does not answer.
    pub(crate) fn barrier(
        &mut self,
        limit: Duration,
    ) -> Result<(Vec<u32>, Duration), Option<Arc<Cause>>> {
        let round = self.barriers;
        self.barriers += 1;
        self.say(&ToHub::Barrier { round, limit });
        self.state.wait(limit.saturating_add(VERDICT_TIME), |heard| {
            let over = heard.barrier.take_if(|(over, ..)| *over == round);
            over.map(|(_, missing, after)| (missing, after))
        })
    }

    fn say(&self, message: &ToHub) {
        self.control.wire().say(self.group, message);
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // How far it came, so that the hub knows whom its leaving keeps waiting.
        self.say(&ToHub::Record(self.state.record.read()));
        self.control.wire().leave(self.group);
    }
}

impl AbortHandle {
    pub(crate) fn none() -> Self {
        AbortHandle(None)
    }

    /// Ends every operation of the communicator, on all its ranks, with
    /// [`Cause::Aborted`]. Returns at once; may be called from any thread, and again.
    pub fn abort(&self) {
        let Some((wire, group, state)) = &self.0 else { return };
        let record = state.record.read();
        wire.say(*group, &ToHub::Trouble { record, trouble: Trouble::Abort });
    }
}

impl State {
    /// Waits until `take` finds what it looks for in what the hub has said.
    ///
    /// # Errors
    ///
    /// The verdict, if one comes; `None` if `limit` passes.
    fn wait<T>(
        &self,
        limit: Duration,
        mut take: impl FnMut(&mut Heard) -> Option<T>,
    ) -> Result<T, Option<Arc<Cause>>> {
        let until = Instant::now().checked_add(limit);
        let mut heard = self.heard();
        loop {
            if let Some(found) = take(&mut heard) {
                return Ok(found);
            }
            if heard.verdict {
                return Err(self.verdict.get().cloned());
            }
            if let Some(cause) = &heard.alone {
                return Err(Some(Arc::new(cause.clone())));
            }
            let left = until
                .map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(None);
            }
            let wait = self.news.wait_timeout(heard, left);
            heard = wait.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    /// The first cause stands.
    pub(super) fn conclude(&self, cause: Cause) {
        _ = self.verdict.set(Arc::new(cause));
        self.broken.store(true, Ordering::Release);
        self.heard().verdict = true;
        self.news.notify_all();
    }

    /// There is no hub any more: what needs none goes on, what does fails with this cause.
    pub(super) fn go_on_alone(&self, cause: Cause) {
        self.heard().alone = Some(cause);
        self.news.notify_all();
    }

    pub(super) fn barrier_over(&self, round: u64, missing: Vec<u32>, after: Duration) {
        self.heard().barrier = Some((round, missing, after));
        self.news.notify_all();
    }

    pub(super) fn exchanged(&self, round: u64, blobs: Vec<Vec<u8>>) {
        self.heard().exchanged = Some((round, blobs));
        self.news.notify_all();
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
