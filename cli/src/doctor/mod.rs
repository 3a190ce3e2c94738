//! `tutti doctor`: what on this machine, or on those of a job, would keep Tutti from working well.

mod checks;
mod finding;
mod readings;
mod report;
mod self_test;

use std::io::{self, Write};
use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result};
use tutti::{Communicator, Config};

use crate::coloured;
use finding::{Examination, Finding, Outcome};
use readings::Readings;
use report::{Report, Text};

const EXAMPLES: &str = "\
Examples:
  tutti doctor                       this machine, for a rank per core
  tutti doctor -p 64 --json          for 64 ranks
  tutti run -p 3 -- tutti doctor     every rank of a job (so with mpirun, srun, torchrun --no-python);
                                     rank 0 reports what all have found

Checks limits, memory, interfaces, ports, names, cores and variables, and has two ranks add up
numbers over shared memory and over TCP (in a job: all ranks, over what the job uses). Changes nothing.

The exit status is 0 if nothing is found or only notes, 1 if there are warnings, 2 if there are
errors. In a job rank 0 has the worst of all ranks, and the others 0; if the ranks cannot meet, each
reports for itself.";

/// Finds what keeps Tutti from working well here, and says what to do
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Ranks on this machine [default: as the launcher says, else one per core]
    #[arg(short = 'p', long, value_name = "N")]
    ranks: Option<NonZeroU32>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn doctor(args: &Args) -> Result<ExitCode> {
    let config = Config::from_env().map_err(|error| error.to_string());
    let readings = Readings::here(args.ranks.map(NonZeroU32::get), config);
    let mut outcomes = checks::examine(&readings);
    let report = match &readings.config {
        Ok(config) if readings.launched => of_job(Examination::new(&readings, outcomes), config)?,
        _ => {
            outcomes.extend(self_test::run(&readings));
            let examinations = vec![Examination::new(&readings, outcomes)];
            Some(Report { first: 0, examinations })
        }
    };
    report.map_or(Ok(ExitCode::SUCCESS), |report| print(args, &report))
}

fn print(args: &Args, report: &Report) -> Result<ExitCode> {
    let mut out = io::stdout();
    match args.json {
        true => writeln!(out, "{:#}", report.json())?,
        false => writeln!(out, "{}", Text { report, coloured: coloured(&out) })?,
    }
    Ok(ExitCode::from(report.exit_status()))
}

/// What all ranks have found, on rank 0; on the others nothing. If the ranks do not meet or cannot
/// work together, what this one has found.
fn of_job(mut own: Examination, config: &Config) -> Result<Option<Report>> {
    let outcome = |finding| Outcome { check: "ranks".into(), finding };
    let comm = match Communicator::from_env(config.clone()) {
        Ok(comm) => comm,
        Err(error) => {
            own.outcomes.push(outcome(Some(apart(&error.to_string()))));
            let first = config.launch.get("RANK").and_then(|rank| rank.parse().ok()).unwrap_or(0);
            return Ok(Some(Report { first, examinations: vec![own] }));
        }
    };
    let failure = self_test::sum(&comm).err().map(|error| apart(&error));
    own.outcomes.push(outcome(failure));
    let Ok(all) = comm.exchange(&serde_json::to_vec(&own)?) else {
        // The communicator has failed before, which `own` says.
        return Ok(Some(Report { first: comm.rank().0, examinations: vec![own] }));
    };
    if comm.rank().0 != 0 {
        return Ok(None);
    }
    let read = |blob: &Vec<u8>| serde_json::from_slice(blob);
    let all = all.iter().map(read).collect::<Result<_, _>>();
    let examinations = all.context("a rank reports in an unknown form")?;
    Ok(Some(Report { first: 0, examinations }))
}

fn apart(error: &str) -> Finding {
    Finding::error(
        format!("the ranks of this job do not work together: {error}"),
        "no collective succeeds until they do",
        "mend what else is found, on this rank and on those that are named",
    )
}
