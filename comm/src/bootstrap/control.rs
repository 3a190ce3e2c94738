//! A process's line to the hub, shared by all its communicators of one job: one sleeping thread
//! that hands what the hub says to the communicator it is about.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use super::monitor::State;
use super::wire::{FromHub, GroupId, Inbox, ToHub, encode};
use crate::error::Cause;
use crate::service;

/// The line with its thread. Dropping it, with the last communicator that uses it, ends both.
pub(super) struct Control {
    wire: Arc<Wire>,
    thread: Option<JoinHandle<()>>,
    /// Closed when the thread has ended.
    ended: Mutex<mpsc::Receiver<()>>,
}

/// How long the last good-bye waits until the hub has taken it and passed it on.
const GOOD_BYE_TIME: Duration = Duration::from_secs(1);

/// What the thread, the communicators and abort handles share.
pub(super) struct Wire {
    line: TcpStream,
    /// Held while a frame is written, so that frames do not mix.
    writing: Mutex<()>,
    closing: AtomicBool,
    /// The hub has said that it may end.
    hub_may_end: AtomicBool,
    groups: Mutex<Groups>,
}

#[derive(Default)]
struct Groups {
    by_id: HashMap<GroupId, Arc<State>>,
    /// Why the line is gone, if it is.
    lost: Option<Cause>,
}

impl Control {
    /// Takes over a line on which the hub's welcome has been read; `inbox` holds what came after, all
    /// of it about the first communicator, whose id and state are given.
    pub(super) fn start(
        line: TcpStream,
        inbox: Inbox,
        (id, first): (GroupId, Arc<State>),
    ) -> io::Result<Control> {
        line.set_read_timeout(None)?;
        let wire = Arc::new(Wire {
            line,
            writing: Mutex::new(()),
            closing: AtomicBool::new(false),
            hub_may_end: AtomicBool::new(false),
            groups: Mutex::default(),
        });
        wire.enter(id, first);
        let listener = Arc::clone(&wire);
        let (alive, ended) = mpsc::channel();
        let thread = service::spawn("tutti-monitor", move || {
            listener.listen(inbox);
            drop(alive);
        })?;
        Ok(Control { wire, thread: Some(thread), ended: Mutex::new(ended) })
    }

    pub(super) fn wire(&self) -> &Arc<Wire> {
        &self.wire
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.wire.closing.store(true, Ordering::Release);
        // The hub may be in this process: it ends the line when it has told the others.
        _ = self.wire.line.shutdown(Shutdown::Write);
        let ended = self.ended.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        _ = ended.recv_timeout(GOOD_BYE_TIME);
        _ = self.wire.line.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the monitor's thread panicked");
        }
    }
}

impl Wire {
    /// Sends one message about a communicator. A broken line is noticed by the listening thread.
    pub(super) fn say(&self, group: GroupId, message: &ToHub) {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        _ = (&self.line).write_all(&encode(group, message));
    }

    /// From now on `state` hears what the hub says about `group`.
    pub(super) fn enter(&self, group: GroupId, state: Arc<State>) {
        let mut groups = self.groups();
        if let Some(cause) = &groups.lost {
            state.conclude(cause.clone());
        }
        groups.by_id.insert(group, state);
    }

    pub(super) fn leave(&self, group: GroupId) {
        self.say(group, &ToHub::Leave);
        self.groups().by_id.remove(&group);
    }

    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn listen(&self, mut inbox: Inbox) {
        let mut buffer = [0; 16 << 10];
        loop {
            loop {
                match inbox.next() {
                    Ok(Some((group, message))) => self.hear(group, message),
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

    /// What comes for a communicator that this process has closed is of no use any more.
    fn hear(&self, group: GroupId, message: FromHub) {
        if let FromHub::Closing = message {
            return self.hub_may_end.store(true, Ordering::Release);
        }
        let Some(state) = self.groups().by_id.get(&group).cloned() else { return };
        match message {
            FromHub::Query => self.say(group, &ToHub::Record(state.record.read())),
            FromHub::Verdict(cause) => state.conclude(cause),
            FromHub::Exchanged { round, blobs } => state.exchanged(round, blobs),
            FromHub::Barrier { round, missing, after } => {
                state.barrier_over(round, missing, after);
            }
            FromHub::Waiting { .. }
            | FromHub::Refused(_)
            | FromHub::Welcome { .. }
            | FromHub::Closing => {}
        }
    }

    fn lost(&self) {
        if self.closing.load(Ordering::Acquire) {
            return;
        }
        let address =
            self.line.peer_addr().map_or("an address now unknown".into(), |a| a.to_string());
        let cause = Cause::HubLost { address };
        let mut groups = self.groups();
        let tell = match self.hub_may_end.load(Ordering::Acquire) {
            true => State::go_on_alone,
            false => State::conclude,
        };
        groups.by_id.values().for_each(|state| tell(state, cause.clone()));
        groups.lost = Some(cause);
    }
}
