//! Waits for the processes of a job and ends those that are left over.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::child::Member;
use super::outcome::{End, Outcome};

/// How long the other ranks have to report the failure of one in their own words.
const TO_REPORT: Duration = Duration::from_secs(2);
/// How long a rank has between the signal that asks it to end and the one that ends it.
const TO_END: Duration = Duration::from_secs(2);

/// What the supervisor hears of.
pub(super) enum Event {
    /// The process of this rank has ended and can be reaped.
    Ended(u32),
    /// The launcher has received this signal.
    Signal(i32),
}

/// How far the ending of the job has come. What has a time passes into the next by then.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    /// Every rank runs or has succeeded.
    Running,
    /// A rank has failed; the others are left alone until then.
    Reporting(Instant),
    /// All were asked to end.
    Ending(Instant),
    /// All were killed.
    Killed,
}

/// Waits until every process has ended. The first failure ends the rest; so does a signal,
/// which is passed on, and a second one kills.
pub(super) fn supervise(members: &mut [Member], events: &Receiver<Event>) -> Outcome {
    let mut outcome = Outcome { ends: Vec::new(), interrupted: None };
    let mut stage = Stage::Running;
    while outcome.ends.len() < members.len() {
        match next(events, stage) {
            Some(Event::Ended(rank)) => {
                let asked = matches!(stage, Stage::Ending(_) | Stage::Killed);
                let status = members[rank as usize].reap();
                let end = End { rank, status, asked };
                if stage == Stage::Running && end.failed() {
                    stage = Stage::Reporting(Instant::now() + TO_REPORT);
                }
                outcome.ends.push(end);
            }
            Some(Event::Signal(number)) => {
                stage = interrupt(members, stage, number, outcome.interrupted.is_some());
                outcome.interrupted.get_or_insert(number);
            }
            None => stage = escalate(members, stage),
        }
    }
    outcome
}

/// The next event, or none if the stage's time is up first.
fn next(events: &Receiver<Event>, stage: Stage) -> Option<Event> {
    let (Stage::Reporting(until) | Stage::Ending(until)) = stage else {
        return Some(events.recv().expect("the thread that watches signals holds a sender"));
    };
    match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
        Ok(event) => Some(event),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => {
            unreachable!("the thread that watches signals holds a sender")
        }
    }
}

fn interrupt(members: &[Member], stage: Stage, number: i32, again: bool) -> Stage {
    if again || stage == Stage::Killed {
        return kill(members);
    }
    let signal = match number {
        SIGINT => Signal::INT,
        SIGHUP => Signal::HUP,
        SIGQUIT => Signal::QUIT,
        SIGTERM => Signal::TERM,
        other => unreachable!("signal {other} is not watched"),
    };
    members.iter().for_each(|member| member.signal(signal));
    Stage::Ending(Instant::now() + TO_END)
}

fn escalate(members: &[Member], stage: Stage) -> Stage {
    match stage {
        Stage::Reporting(_) => {
            members.iter().for_each(|member| member.signal(Signal::TERM));
            Stage::Ending(Instant::now() + TO_END)
        }
        Stage::Ending(_) | Stage::Running | Stage::Killed => kill(members),
    }
}

fn kill(members: &[Member]) -> Stage {
    members.iter().for_each(|member| member.signal(Signal::KILL));
    Stage::Killed
}
