//! Starts the processes of a job on this machine and sees to it that all of them end.

mod child;
mod outcome;
mod output;
mod supervisor;

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use tutti::Rendezvous;

use child::{Member, Place};
use output::Outputs;
use supervisor::Event;

/// One program, started as every rank of a job.
pub(crate) struct Job<'a> {
    /// A path, or a name that is looked up in `PATH`.
    pub(crate) program: &'a OsStr,
    pub(crate) arguments: &'a [OsString],
    pub(crate) ranks: u32,
    pub(crate) output: Output,
}

/// What becomes of what the ranks write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Whole lines of every rank, each behind the rank's number.
    Prefixed,
    /// Rank 0 writes to our own standard output and error. Of the others just the errors are
    /// kept, and shown at the end if rank 0 has not reported a failure itself.
    FirstRank,
}

impl Job<'_> {
    /// Runs the job to its end. Returns once every process has ended, with the exit status that
    /// stands for all of them.
    ///
    /// To be called on a thread that outlives the job: the ranks are killed when it ends.
    ///
    /// # Errors
    ///
    /// If the rendezvous or a process cannot be started; what was started is killed. A program
    /// that does not exist is not an error here but exit status 127.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let (sender, events) = mpsc::channel();
        forward_signals(sender.clone()).context("cannot watch for signals")?;
        let rendezvous = Rendezvous::bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let id = rendezvous.id().to_string();

        let mut outputs = Outputs::new(self.output);
        let mut members = Vec::new();
        for rank in 0..self.ranks {
            let place = Place { id: &id, rank, size: self.ranks };
            match Member::start(self, place, &mut outputs, sender.clone()) {
                Ok(member) => members.push(member),
                Err(error) => {
                    members.iter_mut().for_each(Member::end_now);
                    return self.not_started(error);
                }
            }
        }
        let outcome = supervisor::supervise(&mut members, &events);
        outputs.finish(&outcome);
        Ok(ExitCode::from(outcome.exit_status()))
    }

    fn not_started(&self, error: io::Error) -> Result<ExitCode> {
        let program = self.program.display();
        let code = match error.kind() {
            io::ErrorKind::NotFound => 127,
            io::ErrorKind::PermissionDenied => 126,
            _ => return Err(error).context(format!("cannot start {program}")),
        };
        eprintln!("error: cannot start {program}: {error}");
        Ok(ExitCode::from(code))
    }
}

/// Turns the signals that would end this process into events, from now on.
fn forward_signals(events: mpsc::Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
    thread::spawn(move || {
        for signal in signals.forever() {
            // Nobody listens once the job is over.
            let _ = events.send(Event::Signal(signal));
        }
    });
    Ok(())
}
