//! `tutti bench`: how long a collective takes, and whether its result is right.

mod args;
mod buffer;
mod case;
mod check;
mod data;
mod limits;
mod measure;
mod places;
mod report;
mod sizes;
mod timing;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result};
use tutti::{Communicator, Config};

pub(crate) use args::Args;
pub(crate) use limits::peer as limits_peer;

use crate::launcher::{Job, Output};
use crate::usage_error;
use args::What;
use buffer::Buffers;
use measure::measure;
use places::Places;
use report::{Header, Report};

/// Runs the benchmark: as one rank if a launcher has started this process, else as the launcher
/// of its own ranks on this machine.
pub(crate) fn bench(args: &Args) -> Result<ExitCode> {
    if let Err(problem) = args.check() {
        usage_error("bench", problem);
    }
    if args.what == What::Limits {
        let limits = limits::measure()?;
        return report::limits(&limits, args.json.as_deref()).map(|()| ExitCode::SUCCESS);
    }
    if launched() { join(args) } else { launch(args) }
}

/// Whether this process already is a rank of somebody's job.
fn launched() -> bool {
    // A setting that makes no sense is reported on joining.
    Config::from_env().map_or(true, |config| config.launch.is_launched())
}

/// Starts this program again, once per rank, with the same arguments.
fn launch(args: &Args) -> Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find the tutti program itself")?;
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    Job {
        program: program.as_os_str(),
        arguments: &arguments,
        ranks: args.ranks(),
        output: Output::FirstRank,
    }
    .run()
}

/// Takes part as one rank; rank 0 reports.
fn join(args: &Args) -> Result<ExitCode> {
    // Before the ranks meet, while the others still sleep.
    let wanted = args.limits && std::env::var_os("RANK").is_some_and(|rank| rank == "0");
    let limits = wanted.then(limits::measure).transpose()?;

    let comm = Communicator::from_env(args.config()?)?;
    if let Err(problem) = args.check_group(comm.size()) {
        usage_error("bench", problem);
    }

    let mut report = None;
    if comm.rank().0 == 0 {
        let header = Header::new(&comm, args);
        report = Some(Report::open(header, args, limits)?);
    }
    let all_right = rows(args, &comm, report.as_mut())?;
    if let Some(report) = report {
        report.finish()?;
    }
    Ok(if all_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Measures every size. Returns whether no check failed on any rank.
fn rows(args: &Args, comm: &Communicator, mut report: Option<&mut Report>) -> Result<bool> {
    let largest = Places::of(&args.case(args.max_bytes(), comm.size()), comm.rank().0);
    let size = args.case(0, comm.size()).data_type.size() as u64;
    let bytes_of = |elements: u64| elements.saturating_mul(size);
    let mut buffers = Buffers::new(bytes_of(largest.from_len), bytes_of(largest.into_len))?;
    let mut all_right = true;
    for bytes in args.sizes() {
        let case = args.case(bytes, comm.size());
        let row = measure(comm, &case, &mut buffers, args.repeats())?;
        all_right &= row.failures.is_empty();
        if let Some(report) = &mut report {
            report.row(&row)?;
        }
    }
    Ok(all_right)
}
