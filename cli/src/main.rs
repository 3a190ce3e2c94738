//! The `tutti` program: [`run`] starts the ranks of a job on this machine, [`mod@bench`] measures
//! collectives and checks their results, [`plan`] says which algorithm would be used and why,
//! [`mod@topo`] shows machines and links, [`doctor`] finds what keeps a machine from working well.

mod bench;
mod doctor;
mod launcher;
mod plan;
mod run;
mod size;
mod topo;

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

/// Collective communication over shared memory and TCP
#[derive(Parser)]
#[command(name = "tutti", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Bench(bench::Args),
    Plan(plan::Args),
    Topo(topo::Args),
    Doctor(doctor::Args),
    /// The second process of `bench limits`
    #[command(hide = true)]
    LimitsPeer,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    log_to_stderr();
    match dispatch(&cli.command) {
        Ok(code) => code,
        Err(error) if reader_is_gone(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", in_full(&error));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Run(args) => run::run(args),
        Command::Bench(args) => bench::bench(args),
        Command::Plan(args) => plan::plan(args),
        Command::Topo(args) => topo::topo(args),
        Command::Doctor(args) => doctor::doctor(args),
        Command::LimitsPeer => bench::limits_peer().map(|()| ExitCode::SUCCESS),
    }
}

/// Sends what the library logs to standard error; `TUTTI_LOG` selects, as in `tutti=debug`.
fn log_to_stderr() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("TUTTI_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    log.with_ansi(coloured(&io::stderr())).without_time().with_target(false).init();
}

/// Whether what goes to this stream may have colours.
fn coloured(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether who reads what this program prints wants no more of it, as `head` does.
fn reader_is_gone(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.downcast_ref::<io::Error>().is_some_and(broken)
}

/// The error with its causes. The library's errors name their cause in their own text.
fn in_full(error: &anyhow::Error) -> String {
    match error.downcast_ref::<tutti::Error>() {
        Some(error) => error.to_string(),
        None => format!("{error:#}"),
    }
}

/// Ends the program as clap does for a wrong argument of a command: the message, how to use the
/// command, exit status 2.
fn usage_error(command: &str, message: impl Display) -> ! {
    let mut cli = Cli::command();
    cli.build();
    let command = cli.find_subcommand_mut(command).expect("the caller names its own command");
    command.error(ErrorKind::ValueValidation, message).exit()
}
