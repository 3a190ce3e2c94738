//! `tutti doctor`: what on this machine, or on the hosts of a job, stands in the way.
//!
//! [`readings`] asks the system once; [`checks`] judge by what was read, and know no system.

mod checks;
mod readings;
mod self_test;

use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tutti::{Communicator, Config};

use crate::coloured;
use readings::Readings;

const EXAMPLES: &str = "\
Examples:
  tutti doctor                       this machine, for a rank on each core
  tutti doctor -p 64 --json          for 64 ranks on this machine, as JSON
  tutti run -p 4 -- tutti doctor     every rank looks, rank 0 prints; so too under srun or mpirun

Under a launcher all ranks join first; what they find is printed once, with the ranks that found it.
The exit status is 0 if nothing stands in the way (notes may be printed), 1 if there are warnings, 2 if
there are errors.";

/// Looks for what stands in the way of a job, and says what to do about it
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Ranks that are to run on this machine [default: one for each core]
    #[arg(short = 'p', long, value_name = "N")]
    ranks: Option<NonZeroU32>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    /// Good to know.
    Note,
    /// Something will be slow, or fail for some jobs.
    Warning,
    /// Jobs fail.
    Error,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Finding {
    /// The name of the check.
    check: String,
    severity: Severity,
    found: String,
    /// What it does to a job.
    why: String,
    /// What to do about it.
    remedy: String,
}

/// What one rank tells the others.
#[derive(Serialize, Deserialize)]
struct Report {
    version: String,
    host: String,
    findings: Vec<Finding>,
}

/// A finding, and the ranks that made it.
#[derive(Serialize)]
struct Shared {
    #[serde(flatten)]
    finding: Finding,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ranks: Vec<u32>,
}

pub(crate) fn doctor(args: &Args) -> Result<ExitCode> {
    let (config, broken) = match Config::from_env() {
        Ok(config) => (config, None),
        Err(error) => (Config::default(), Some(error.to_string())),
    };
    let launched = broken.is_none() && config.launch.is_launched();
    let readings = Readings::take(args.ranks.map(NonZeroU32::get), &config, broken);
    let mut findings = checks::all(&readings);
    let reports = if launched {
        match gather(config, &findings)? {
            Some(reports) => reports,
            None => return Ok(ExitCode::SUCCESS),
        }
    } else {
        findings.extend(self_test::findings());
        vec![report(findings)]
    };
    let shared = merge(&reports);
    if args.json {
        println!("{:#}", document(&reports, &shared));
    } else {
        print!("{}", text(&reports, &shared, coloured(&std::io::stdout())));
    }
    Ok(match shared.iter().map(|shared| shared.finding.severity).max() {
        Some(Severity::Error) => ExitCode::from(2),
        Some(Severity::Warning) => ExitCode::FAILURE,
        Some(Severity::Note) | None => ExitCode::SUCCESS,
    })
}

fn report(findings: Vec<Finding>) -> Report {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Report { version: env!("CARGO_PKG_VERSION").into(), host, findings }
}

/// Joins the job; the reports of all ranks, by rank, on rank 0 alone.
fn gather(config: Config, findings: &[Finding]) -> Result<Option<Vec<Report>>> {
    let comm = Communicator::from_env(config)?;
    let own = serde_json::to_vec(&report(findings.to_vec()))?;
    let all = comm.exchange(&own)?;
    if comm.rank().0 > 0 {
        return Ok(None);
    }
    let read = |blob: &Vec<u8>| serde_json::from_slice(blob).context("a rank's report is garbled");
    all.iter().map(read).collect::<Result<Vec<Report>>>().map(Some)
}

/// Every finding once, the worst first, with who made it; versions that differ are one more.
fn merge(reports: &[Report]) -> Vec<Shared> {
    let mut all: Vec<Shared> = Vec::new();
    let found = reports
        .iter()
        .zip(0..)
        .flat_map(|(report, rank)| report.findings.iter().map(move |finding| (rank, finding)));
    for (rank, finding) in found {
        match all.iter_mut().find(|shared| shared.finding == *finding) {
            Some(shared) => shared.ranks.push(rank),
            None => all.push(Shared { finding: finding.clone(), ranks: vec![rank] }),
        }
    }
    let own = &reports[0].version;
    for (report, rank) in reports.iter().zip(0..).filter(|(report, _)| report.version != *own) {
        let finding = Finding {
            check: "versions".into(),
            severity: Severity::Error,
            found: format!(
                "{} on {} is version {}, rank 0 has {own}",
                "tutti", report.host, report.version
            ),
            why: "ranks of different versions do not understand each other".into(),
            remedy: format!("install one version on all hosts; {} is the odd one", report.host),
        };
        all.push(Shared { finding, ranks: vec![rank] });
    }
    all.sort_by_key(|shared| std::cmp::Reverse(shared.finding.severity));
    if reports.len() == 1 {
        all.iter_mut().for_each(|shared| shared.ranks.clear());
    }
    all
}

fn document(reports: &[Report], shared: &[Shared]) -> Value {
    let hosts: Vec<&String> = reports.iter().map(|report| &report.host).collect();
    json!({
        "tool": "tutti",
        "version": env!("CARGO_PKG_VERSION"),
        "ranks": reports.len(),
        "hosts": hosts,
        "findings": shared,
    })
}

fn text(reports: &[Report], shared: &[Shared], colours: bool) -> String {
    let mut text = String::new();
    for Shared { finding, ranks } in shared {
        let Finding { check, severity, found, why, remedy } = finding;
        let (word, colour) = match severity {
            Severity::Note => ("note", "36"),
            Severity::Warning => ("warning", "33"),
            Severity::Error => ("error", "31"),
        };
        let word = if colours { format!("\x1b[{colour}m{word}\x1b[0m") } else { word.into() };
        let on = match ranks.as_slice() {
            [] => String::new(),
            all if all.len() == reports.len() => " (all ranks)".into(),
            [one] => format!(" (rank {one} on {})", reports[*one as usize].host),
            several => format!(" (ranks {several:?})"),
        };
        text += &format!("{word}: {check}{on}: {found}\n  {why}\n  {remedy}\n");
    }
    let count = |severity| shared.iter().filter(|s| s.finding.severity == severity).count();
    text += &match (count(Severity::Error), count(Severity::Warning)) {
        (0, 0) => "nothing stands in the way\n".into(),
        (errors, warnings) => format!("{errors} errors, {warnings} warnings\n"),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(check: &str, severity: Severity) -> Finding {
        let word = || "x".to_owned();
        Finding { check: check.into(), severity, found: word(), why: word(), remedy: word() }
    }

    fn report_of(version: &str, host: &str, findings: &[Finding]) -> Report {
        Report { version: version.into(), host: host.into(), findings: findings.to_vec() }
    }

    #[test]
    fn what_several_ranks_found_is_told_once_the_worst_first() {
        let (note, error) = (finding("a", Severity::Note), finding("b", Severity::Error));
        let reports = [
            report_of("1", "h", std::slice::from_ref(&note)),
            report_of("1", "h", &[note.clone(), error.clone()]),
        ];
        let merged = merge(&reports);
        assert_eq!((&merged[0].finding, &merged[0].ranks[..]), (&error, &[1][..]));
        assert_eq!((&merged[1].finding, &merged[1].ranks[..]), (&note, &[0, 1][..]));
        let text = text(&reports, &merged, false);
        assert!(text.starts_with("error: b (rank 1 on h): x\n"), "{text}");
        assert!(text.contains("note: a (all ranks)") && !text.contains('\x1b'), "{text}");
        assert!(text.ends_with("1 errors, 0 warnings\n"), "{text}");
    }

    #[test]
    fn versions_that_differ_are_an_error_with_the_odd_rank() {
        let reports = [report_of("1", "a", &[]), report_of("2", "b", &[])];
        let merged = merge(&reports);
        assert_eq!((merged[0].finding.severity, &merged[0].ranks[..]), (Severity::Error, &[1][..]));
        assert!(merged[0].finding.found.contains("version 2"));
    }

    #[test]
    fn one_report_names_no_ranks() {
        let merged = merge(&[report_of("1", "a", &[finding("a", Severity::Note)])]);
        assert!(merged[0].ranks.is_empty());
    }
}
