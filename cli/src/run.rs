//! `tutti run`: any program as the ranks of a job on this machine.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::Result;

use crate::launcher::{Job, Output};

const EXAMPLES: &str = "\
Examples:
  tutti run -p 4 ./train --epochs 3        four ranks of ./train
  tutti run -p 2 -- python3 step.py -v     everything behind -- belongs to the program
  tutti run -p 8 tutti bench all_reduce    every rank's output, not just rank 0's

Every process gets TUTTI_ID, RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE. The first rank that
fails ends the others. The exit status is the highest of the ranks that ended by themselves
(128 + n for signal n), 127 if the program does not exist.";

/// Starts N processes of a program on this machine as the ranks of one job
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// How many ranks to start
    #[arg(short = 'p', long, value_name = "N")]
    ranks: NonZeroU32,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "PROGRAM")]
    program: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (program, arguments) = args.program.split_first().expect("clap requires one");
    Job { program, arguments, ranks: args.ranks.get(), output: Output::Prefixed }.run()
}
