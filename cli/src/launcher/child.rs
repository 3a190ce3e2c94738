//! One process of a job.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::Job;
use super::output::Outputs;
use super::supervisor::Event;

/// One rank's process, and its process group: whatever the process starts in turn.
pub(super) struct Member {
    child: Child,
    group: Pid,
    /// Until it is reaped, the number of the group cannot be anybody else's.
    reaped: bool,
}

/// Where a process stands in its job.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// The unique id by which the ranks meet.
    pub(super) id: &'a str,
    pub(super) rank: u32,
    pub(super) size: u32,
}

impl Member {
    /// Starts the process. [`Event::Ended`] comes when it has ended.
    pub(super) fn start(
        job: &Job,
        place: Place,
        outputs: &mut Outputs,
        events: mpsc::Sender<Event>,
    ) -> io::Result<Self> {
        let mut command = Command::new(job.program);
        command.args(job.arguments).stdin(Stdio::null()).process_group(0);
        command.env("TUTTI_ID", place.id);
        command.env("RANK", place.rank.to_string()).env("WORLD_SIZE", place.size.to_string());
        command.env("LOCAL_RANK", place.rank.to_string());
        command.env("LOCAL_WORLD_SIZE", place.size.to_string());
        outputs.prepare(&mut command, place.rank);
        die_with_this_thread(&mut command);

        let mut child = command.spawn()?;
        outputs.attach(&mut child, place.rank);
        let group = Pid::from_child(&child);
        thread::spawn(move || {
            // The process stays a zombie for the supervisor to reap.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let wait = || rustix::process::waitid(WaitId::Pid(group), options);
            // It cannot fail for a child that nobody else waits for, and what fails to be waited
            // for is best reaped at once; nobody listens once the job is over.
            let _ = rustix::io::retry_on_intr(wait);
            let _ = events.send(Event::Ended(place.rank));
        });
        Ok(Member { child, group, reaped: false })
    }

    /// Sends a signal to the process and all it started. Nothing happens if it was reaped.
    pub(super) fn signal(&self, signal: Signal) {
        if !self.reaped {
            // It fails only if all processes of the group are gone.
            let _ = rustix::process::kill_process_group(self.group, signal);
        }
    }

    /// Kills what the process left running and takes its exit status. Blocks until it ends.
    pub(super) fn reap(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        let status = self.child.wait();
        self.reaped = true;
        status
    }

    /// Kills the process with all it started.
    pub(super) fn end_now(&mut self) {
        self.signal(Signal::KILL);
        // There is nothing else to do with a process that cannot be waited for.
        let _ = self.reap();
    }
}

/// Has the system kill the process when the calling thread ends, however it ends.
fn die_with_this_thread(command: &mut Command) {
    let launcher = rustix::process::getpid();
    let at_start = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The launcher may have ended before the line above took effect.
        if rustix::process::getppid() == Some(launcher) {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()))
        }
    };
    // SAFETY: between fork and exec the closure makes two system calls that are
    // async-signal-safe; it allocates nothing, takes no lock and reads only its own copy of a
    // number.
    unsafe { command.pre_exec(at_start) };
}
