//! A rank's line to the hub: one sleeping thread that answers for the rank and hears the verdict.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::record::RecordCell;
use super::wire::{FromHub, Inbox, ToHub, Trouble, encode};
use crate::error::Cause;
use crate::service;

/// How long a rank that has reported trouble waits for the hub's verdict.
const VERDICT_TIME: Duration = Duration::from_secs(2);

/// The line of one communicator. Dropping it says good-bye and ends the thread.
pub(crate) struct Monitor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    round: u64,
}

struct Shared {
    line: TcpStream,
    /// Held while a frame is written, so that frames do not mix.
    writing: Mutex<()>,
    record: RecordCell,
    broken: AtomicBool,
    closing: AtomicBool,
    verdict: OnceLock<Arc<Cause>>,
    heard: Mutex<Heard>,
    news: Condvar,
}

#[derive(Default)]
struct Heard {
    exchanged: Option<(u64, Vec<Vec<u8>>)>,
    verdict: bool,
}

/// Ends a communicator from any thread; see [`AbortHandle::abort`].
#[derive(Clone)]
pub struct AbortHandle(Option<Arc<Shared>>);

impl Monitor {
    /// Takes over a line on which the hub's welcome has been read; `inbox` holds what came after.
    pub(crate) fn start(line: TcpStream, inbox: Inbox) -> io::Result<Monitor> {
        line.set_read_timeout(None)?;
        let shared = Arc::new(Shared {
            line,
            writing: Mutex::new(()),
            record: RecordCell::default(),
            broken: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            verdict: OnceLock::new(),
            heard: Mutex::default(),
            news: Condvar::new(),
        });
        let listener = Arc::clone(&shared);
        let thread = service::spawn("tutti-monitor", move || listener.listen(inbox))?;
        Ok(Monitor { shared, thread: Some(thread), round: 0 })
    }

    pub(crate) fn record(&self) -> &RecordCell {
        &self.shared.record
    }

    /// Whether a verdict has come. One atomic load.
    pub(crate) fn is_broken(&self) -> bool {
        self.shared.broken.load(Ordering::Acquire)
    }

    pub(crate) fn verdict(&self) -> Option<Arc<Cause>> {
        self.shared.verdict.get().cloned()
    }

    pub(crate) fn abort_handle(&self) -> AbortHandle {
        AbortHandle(Some(Arc::clone(&self.shared)))
    }

    /// Tells the hub that nothing has moved for a while.
    pub(crate) fn stall(&self) {
        self.shared.say(&ToHub::Stall(self.shared.record.read()));
    }

    /// Reports trouble and waits for the verdict of the hub, which is the same on all ranks.
    /// Blocks for [`VERDICT_TIME`] at most; `fallback` is the verdict if the hub is silent.
    pub(crate) fn report(&self, trouble: Trouble, fallback: Cause) -> Arc<Cause> {
        self.shared.say(&ToHub::Trouble { record: self.shared.record.read(), trouble });
        let heard = self.shared.heard.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let wait = self.shared.news.wait_timeout_while(heard, VERDICT_TIME, |heard| !heard.verdict);
        drop(wait);
        self.shared.verdict.get().cloned().unwrap_or_else(|| {
            self.shared.conclude(fallback.clone());
            Arc::new(fallback)
        })
    }

    /// Gives every rank the blobs of all, by rank. Blocks until all have called it.
    ///
    /// # Errors
    ///
    /// The verdict, if one comes; `None` if `limit` passes.
    pub(crate) fn exchange(
        &mut self,
        blob: &[u8],
        limit: Duration,
    ) -> Result<Vec<Vec<u8>>, Option<Arc<Cause>>> {
        let round = self.round;
        self.round += 1;
        self.shared.say(&ToHub::Exchange { round, blob: blob.to_vec() });
        let until = Instant::now() + limit;
        let mut heard = self.shared.heard.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        loop {
            if heard.exchanged.as_ref().is_some_and(|(done, _)| *done == round)
                && let Some((_, blobs)) = heard.exchanged.take()
            {
                return Ok(blobs);
            }
            if heard.verdict {
                return Err(self.verdict());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(None);
            }
            let wait = self.shared.news.wait_timeout(heard, left);
            heard = wait.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }
}

impl AbortHandle {
    pub(crate) fn none() -> Self {
        AbortHandle(None)
    }

    /// Ends every operation of the communicator, on all its ranks, with
    /// [`Cause::Aborted`]. Returns at once; may be called from any thread, and again.
    pub fn abort(&self) {
        let Some(shared) = &self.0 else { return };
        shared.say(&ToHub::Trouble { record: shared.record.read(), trouble: Trouble::Abort });
    }
}

impl Shared {
    /// Sends one message. A broken line is noticed by the listening thread.
    fn say(&self, message: &ToHub) {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        _ = (&self.line).write_all(&encode(message));
    }

    fn listen(&self, mut inbox: Inbox) {
        let mut buffer = [0; 16 << 10];
        loop {
            loop {
                match inbox.next() {
                    Ok(Some(message)) => self.hear(message),
                    Ok(None) => break,
                    Err(_) => return self.lost(),
                }
            }
            match (&self.line).read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return self.lost(),
                Ok(len) => inbox.add(&buffer[..len]),
            }
        }
    }

    fn hear(&self, message: FromHub) {
        match message {
            FromHub::Query => self.say(&ToHub::Record(self.record.read())),
            FromHub::Verdict(cause) => self.conclude(cause),
            FromHub::Exchanged { round, blobs } => {
                let mut heard = self.heard.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                heard.exchanged = Some((round, blobs));
                self.news.notify_all();
            }
            FromHub::Waiting { .. } | FromHub::Refused(_) | FromHub::Welcome { .. } => {}
        }
    }

    fn lost(&self) {
        if !self.closing.load(Ordering::Acquire) {
            let address =
                self.line.peer_addr().map_or("an address now unknown".into(), |a| a.to_string());
            self.conclude(Cause::HubLost { address });
        }
    }

    /// The first cause stands.
    fn conclude(&self, cause: Cause) {
        _ = self.verdict.set(Arc::new(cause));
        self.broken.store(true, Ordering::Release);
        let mut heard = self.heard.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        heard.verdict = true;
        self.news.notify_all();
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        self.shared.say(&ToHub::Leave);
        _ = self.shared.line.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the monitor's thread panicked");
        }
    }
}
