//! How the processes of a job ended, in one number and one line.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How all processes of a job ended.
pub(super) struct Outcome {
    /// In the order in which they ended.
    pub(super) ends: Vec<End>,
    /// The signal by which the job was interrupted from outside.
    pub(super) interrupted: Option<i32>,
}

/// How one process ended.
pub(super) struct End {
    pub(super) rank: u32,
    pub(super) status: io::Result<ExitStatus>,
    /// Whether the launcher had asked it to end.
    pub(super) asked: bool,
}

impl Outcome {
    /// 128 + n if signal n interrupted the job, else the highest exit status of the ranks that
    /// ended unasked.
    pub(super) fn exit_status(&self) -> u8 {
        match self.interrupted {
            Some(signal) => 128 + signal as u8,
            None => self.ends.iter().filter(|end| !end.asked).map(End::code).max().unwrap_or(1),
        }
    }

    /// The ranks that failed unasked, in the order in which they did.
    pub(super) fn failures(&self) -> impl Iterator<Item = &End> {
        self.ends.iter().filter(|end| !end.asked && end.failed())
    }

    /// What ended the job, unless every rank succeeded.
    pub(super) fn line(&self) -> Option<String> {
        if let Some(signal) = self.interrupted {
            return Some(format!("interrupted by {}; every rank has ended", signal_name(signal)));
        }
        let first = self.failures().next()?;
        let asked = self.ends.iter().filter(|end| end.asked).count();
        let rest = match asked {
            0 => String::new(),
            1 => "; one other rank was ended".into(),
            _ => format!("; {asked} other ranks were ended"),
        };
        Some(format!("{}{rest}", first.describe()))
    }
}

impl End {
    pub(super) fn failed(&self) -> bool {
        self.code() != 0
    }

    /// The exit status as a shell gives it.
    pub(super) fn code(&self) -> u8 {
        let Ok(status) = &self.status else { return 1 };
        match (status.code(), status.signal()) {
            (Some(code), _) => code as u8,
            (None, Some(signal)) => 128 + signal as u8,
            (None, None) => 1,
        }
    }

    fn describe(&self) -> String {
        let rank = self.rank;
        match &self.status {
            Err(error) => format!("rank {rank} was lost: {error}"),
            Ok(status) => match status.signal() {
                Some(signal) => format!("rank {rank} was killed by {}", signal_name(signal)),
                None => format!("rank {rank} ended with exit status {}", self.code()),
            },
        }
    }
}

fn signal_name(number: i32) -> String {
    match signal_hook::low_level::signal_name(number) {
        Some(name) => format!("signal {number} ({name})"),
        None => format!("signal {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(rank: u32, wait_status: i32, asked: bool) -> End {
        End { rank, status: Ok(ExitStatus::from_raw(wait_status)), asked }
    }

    fn exited(rank: u32, code: i32) -> End {
        end(rank, code << 8, false)
    }

    #[test]
    fn exit_status_is_the_highest_of_the_ranks_that_ended_unasked() {
        let ends = vec![exited(3, 7), exited(1, 9), end(0, 15, true), end(2, 9, true)];
        let outcome = Outcome { ends, interrupted: None };
        assert_eq!(outcome.exit_status(), 9);
        let line = outcome.line().unwrap();
        assert_eq!(line, "rank 3 ended with exit status 7; 2 other ranks were ended");
    }

    #[test]
    fn a_signal_counts_as_128_and_its_number() {
        let outcome = Outcome { ends: vec![exited(0, 1), end(1, 9, false)], interrupted: None };
        assert_eq!(outcome.exit_status(), 137);
        let killed = Outcome { ends: vec![end(1, 11, false)], interrupted: None };
        assert_eq!(killed.line().unwrap(), "rank 1 was killed by signal 11 (SIGSEGV)");
    }

    #[test]
    fn an_interruption_outweighs_what_the_ranks_say() {
        let outcome = Outcome { ends: vec![exited(0, 0), exited(1, 3)], interrupted: Some(2) };
        assert_eq!(outcome.exit_status(), 130);
        assert!(outcome.line().unwrap().contains("SIGINT"));
    }

    #[test]
    fn success_has_no_line() {
        let outcome = Outcome { ends: vec![exited(1, 0), exited(0, 0)], interrupted: None };
        assert_eq!(outcome.exit_status(), 0);
        assert_eq!(outcome.line(), None);
    }
}
