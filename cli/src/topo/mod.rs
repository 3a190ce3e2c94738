//! `tutti topo`: the machines of a job and what links them, as discovered or as a file says.

mod json;
mod machine;
#[cfg(test)]
mod sample;
mod svg;
mod system;
mod table;
mod view;

use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use tutti::{Communicator, Config, machine as reports};

pub(crate) use machine::Machine;
pub(crate) use view::{View, ranges};

use crate::{coloured, plan, usage_error};
use table::Table;
use view::Sighting;

const EXAMPLES: &str = "\
Examples:
  tutti topo                                this machine, a rank per core
  tutti topo -p 8 --toml > pod.toml         a description to edit, for tutti plan --fabric pod.toml
  tutti topo --fabric pod.toml --svg p.svg  a drawing of the cluster that the file describes
  tutti run -p 4 tutti topo --json          where the ranks of a job really are (so with mpirun, srun)

Bandwidths are 10^9 bytes a second and direction. A figure is measured, spec (from a data sheet) or
assumed (typical of its kind; nobody looked). Of the cores those count that affinity and cgroup allow.";

/// Shows hosts, NUMA nodes, cores, network interfaces, links, and where ranks are
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Ranks on this machine [default: one per core]; a launcher's or file's number must agree
    #[arg(short = 'p', long, value_name = "N")]
    ranks: Option<NonZeroU32>,
    /// A cluster, in place of this machine: a file of the format fabric/1
    #[arg(long, value_name = "FILE")]
    fabric: Option<String>,
    /// Prints JSON
    #[arg(long, conflicts_with = "toml")]
    json: bool,
    /// Prints a file of the format fabric/1
    #[arg(long)]
    toml: bool,
    /// Also draws it into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(crate) fn topo(args: &Args) -> Result<ExitCode> {
    let Some(view) = view(args)? else { return Ok(ExitCode::SUCCESS) };
    if let Some(path) = &args.svg {
        std::fs::write(path, svg::drawing(&view))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = io::stdout();
    if args.json {
        writeln!(out, "{:#}", json::document(&view))?;
    } else if args.toml {
        write!(out, "{}", view.fabric.to_toml())?;
    } else {
        writeln!(out, "{}", Table { view: &view, coloured: coloured(&out) })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is to be shown; nothing on ranks other than 0, which tell rank 0 what they see.
fn view(args: &Args) -> Result<Option<View>> {
    let config = Config::from_env()?;
    let here = Machine::here().context("cannot list the network interfaces")?;
    if let Some(path) = &args.fabric {
        let fabric = plan::read_fabric(path, args.ranks)?;
        return Ok(Some(View::of_file(path, fabric, &here)));
    }
    if config.launch.is_launched() {
        return of_job(args, here, config);
    }
    let ranks = args.ranks.map_or(here.cores.count().max(1.0) as u32, NonZeroU32::get);
    Ok(Some(View::of_machine(here, ranks, config.transport)))
}

fn of_job(args: &Args, machine: Machine, config: Config) -> Result<Option<View>> {
    let (transport, host_id) = (config.transport, config.host_id.clone());
    let comm = Communicator::from_env(config)?;
    if let Some(ranks) = args.ranks.filter(|ranks| ranks.get() != comm.size()) {
        let size = comm.size();
        usage_error("topo", format!("-p {ranks} is given, and the launcher started {size}"));
    }
    let host_key = host_id.unwrap_or_else(reports::host_key);
    let own = Sighting { machine, host_key, numa_node: reports::numa_node() };
    let all = comm.exchange(&serde_json::to_vec(&own)?)?;
    if comm.rank().0 != 0 {
        return Ok(None);
    }
    let read = |blob: &Vec<u8>| serde_json::from_slice(blob);
    let all: Vec<Sighting> = all
        .iter()
        .map(read)
        .collect::<Result<_, _>>()
        .context("a rank reports in an unknown form")?;
    Ok(Some(View::of_ranks(&all, transport)))
}
