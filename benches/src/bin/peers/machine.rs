//! Where the figures come from.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;

/// The machine, and what runs on it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    /// The numbers of the cores that this process may use.
    pub(crate) cores: Vec<u32>,
    pub(crate) kernel: String,
    pub(crate) date: String,
    /// The command that has made the figures.
    pub(crate) command: String,
    /// The commit that was measured, if this is a repository.
    pub(crate) commit: Option<String>,
    /// Processes that were ready to run before we started, the mean over a minute.
    pub(crate) load: String,
}

impl Machine {
    /// # Errors
    ///
    /// If the system does not tell which cores may be used.
    pub(crate) fn read() -> Result<Self> {
        let status = fs::read_to_string("/proc/self/status").context("cannot read /proc")?;
        let cores = field(&status, "Cpus_allowed_list").and_then(|list| parse_list(&list));
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let arguments = std::env::args().skip(1);
        Ok(Machine {
            processor: field(&processors, "model name").unwrap_or_else(|| "unknown".into()),
            cores: cores.context("/proc/self/status has no list of allowed cores")?,
            kernel: kernel.trim().into(),
            date: first_line("date", &["-u", "+%F"]).unwrap_or_default(),
            command: ["benches/peers/run".into()]
                .into_iter()
                .chain(arguments)
                .collect::<Vec<String>>()
                .join(" "),
            commit: first_line(
                "git",
                &["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "--short", "HEAD"],
            ),
            load: load.split(' ').next().unwrap_or_default().into(),
        })
    }
}

/// The value behind `name:`.
fn field(text: &str, name: &str) -> Option<String> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().into())
}

/// `0-3,8`, as the system writes sets of cores.
fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cores.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(cores)
}

/// What a program prints first, if it succeeds.
fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().filter(|_| output.status.success()).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_read_as_the_system_writes_them() {
        assert_eq!(parse_list("0-2,8"), Some(vec![0, 1, 2, 8]));
        assert_eq!(parse_list("5"), Some(vec![5]));
        assert_eq!(parse_list("all"), None);
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "Cpus_allowed:\tf\nCpus_allowed_list:\t0-3\n";
        assert_eq!(field(text, "Cpus_allowed_list").as_deref(), Some("0-3"));
        assert_eq!(field(text, "Cpus"), None);
    }
}
