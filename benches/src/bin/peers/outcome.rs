//! What a program prints.

use std::process::Output;

use serde::Deserialize;

use crate::program::PATIENCE_SECONDS;

/// What a program has printed.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) library: Option<String>,
    pub(crate) times: Vec<Time>,
    /// Why it has not printed everything.
    pub(crate) problem: Option<String>,
    /// Whether that is because it took too long.
    pub(crate) too_slow: bool,
}

/// One line of a program's output.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct Time {
    pub(crate) bytes: u64,
    pub(crate) median_us: f64,
    /// Of the fastest iteration.
    pub(crate) min_us: f64,
    /// How many elements were wrong.
    #[serde(default)]
    pub(crate) wrong: u64,
}

/// The lines of JSON among what a program prints; our launcher puts the rank in front of a line.
pub(crate) fn lines(stdout: &[u8]) -> Outcome {
    #[derive(Deserialize)]
    struct Library {
        library: String,
    }
    let mut outcome = Outcome::default();
    for line in String::from_utf8_lossy(stdout).lines().map(without_rank) {
        if let Ok(time) = serde_json::from_str(line) {
            outcome.times.push(time);
        } else if let Ok(Library { library }) = serde_json::from_str(line) {
            outcome.library = Some(library);
        }
    }
    outcome
}

/// What `tutti bench --json -` prints on rank 0.
pub(crate) fn document(stdout: &[u8]) -> Outcome {
    #[derive(Deserialize)]
    struct Document {
        tool: String,
        version: String,
        rows: Vec<Row>,
    }
    #[derive(Deserialize)]
    struct Row {
        bytes: u64,
        median_us: f64,
        min_us: f64,
        check: String,
    }
    let text = String::from_utf8_lossy(stdout);
    let text: Vec<&str> = text.lines().map(without_rank).collect();
    let Ok(document) = serde_json::from_str::<Document>(&text.join("\n")) else {
        return Outcome::default();
    };
    let time = |row: Row| Time {
        bytes: row.bytes,
        median_us: row.median_us,
        min_us: row.min_us,
        wrong: u64::from(row.check != "ok"),
    };
    Outcome {
        library: Some(format!("{} {}", document.tool, document.version)),
        times: document.rows.into_iter().map(time).collect(),
        ..Outcome::default()
    }
}

fn without_rank(line: &str) -> &str {
    line.strip_prefix("[0] ").unwrap_or(line)
}

/// Whether `timeout` has ended it.
pub(crate) fn is_too_slow(output: &Output) -> bool {
    output.status.code() == Some(124)
}

/// Why a program has not printed all times, if it has not.
pub(crate) fn problem(output: &Output, times: usize, expected: usize) -> Option<String> {
    if times == expected {
        return None;
    }
    if is_too_slow(output) {
        return Some(format!("ended after {PATIENCE_SECONDS} s, with {times} of {expected} sizes"));
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let said = stderr.lines().rev().find(|line| line.chars().any(char::is_alphabetic));
    let said = said.unwrap_or("it said nothing").trim();
    Some(format!("{}, with {times} of {expected} sizes: {said}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn times_are_read_from_between_other_lines() {
        let outcome = lines(
            b"No protocol specified\n{\"library\": \"Open MPI v5\"}\n\
              {\"bytes\": 8, \"median_us\": 0.5, \"min_us\": 0.4, \"wrong\": 2}\n[0] {\"bytes\": 16, \"median_us\": 1, \"min_us\": 0.4}\n",
        );
        assert_eq!(outcome.library.as_deref(), Some("Open MPI v5"));
        let times = [(8, 0.5, 2), (16, 1.0, 0)];
        let times =
            times.map(|(bytes, median_us, wrong)| Time { bytes, median_us, min_us: 0.4, wrong });
        assert_eq!(outcome.times, times);
    }

    #[test]
    fn a_failed_check_of_our_own_is_a_wrong_result() {
        let outcome = document(
            b"[0] {\"tool\": \"tutti\", \"version\": \"1\", \"rows\": [\n\
              [0] {\"bytes\": 8, \"median_us\": 0.3, \"min_us\": 0.2, \"check\": \"failed\"}]}\n",
        );
        assert_eq!(outcome.library.as_deref(), Some("tutti 1"));
        assert_eq!(outcome.times, [Time { bytes: 8, median_us: 0.3, min_us: 0.2, wrong: 1 }]);
        assert_eq!(document(b"[0] error"), Outcome::default());
    }

    #[test]
    fn a_program_that_breaks_off_is_quoted() {
        let command = "echo 'no slots' >&2; echo ---- >&2; exit 3";
        let output = Command::new("sh").args(["-c", command]).output().unwrap();
        let problem = problem(&output, 1, 2).unwrap();
        assert!(problem.contains("1 of 2 sizes: no slots"), "{problem}");
    }
}
