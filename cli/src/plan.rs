//! `tutti plan`: which algorithm a collective would use, and why, without running it.

use std::fs;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use tutti::{Config, Rank};
use tutti_topo::fabric::Fabric;
use tutti_topo::plan::{Candidate, Plan, Request, plan as choose};
use tutti_topo::schedule::Collective;

use crate::topo::{Machine, View};
use crate::{size, usage_error};

const EXAMPLES: &str = "\
Examples:
  tutti plan all_reduce --bytes 64K --ranks 4      four ranks on this machine
  tutti plan broadcast --bytes 1G --fabric pod.toml --root 3
  TUTTI_ALGO=all_reduce:ring tutti plan all_reduce --bytes 1M --ranks 8 --json";

/// Says which algorithm a collective would use, and why
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The collective
    #[arg(value_parser = PossibleValuesParser::new(Collective::KINDS.map(Collective::name)))]
    collective: String,
    /// Bytes of one rank's data, of all blocks together if it has blocks; K, M, G are powers of 1024
    #[arg(short, long, value_name = "SIZE", value_parser = size::parse)]
    bytes: Option<u64>,
    /// Ranks on this machine, or in the fabric file
    #[arg(short = 'p', long, value_name = "N", required_unless_present = "fabric")]
    ranks: Option<NonZeroU32>,
    /// The cluster: a file of the format fabric/1
    #[arg(long, value_name = "FILE")]
    fabric: Option<String>,
    /// Root of broadcast, reduce, gather and scatter
    #[arg(short, long, value_name = "RANK", default_value_t = 0)]
    root: u32,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn plan(args: &Args) -> Result<ExitCode> {
    let kind = Collective::KINDS.into_iter().find(|kind| kind.name() == args.collective);
    let collective = kind.expect("clap has looked").with_root(Rank(args.root));
    if args.bytes.is_none() && collective != Collective::Barrier {
        usage_error("plan", format!("--bytes is missing: {} moves data", args.collective));
    }
    let config = Config::from_env()?;
    let fabric = fabric(args, &config)?;
    if args.root >= fabric.ranks() {
        let (root, ranks) = (args.root, fabric.ranks());
        usage_error("plan", format!("--root {root} is outside a group of {ranks} ranks"));
    }
    let shared_board = Some(config.shm_message_bytes() as u64);
    let request = Request { collective, bytes: args.bytes.unwrap_or(0), shared_board };
    let plan = choose(&request, &fabric, &config.algo)?;
    let mut out = io::stdout();
    if args.json {
        writeln!(out, "{:#}", document(&request, &fabric, &plan))?;
    } else {
        writeln!(out, "{plan}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The fabric of the file, or as many ranks as are asked for on this machine.
fn fabric(args: &Args, config: &Config) -> Result<Fabric> {
    if let Some(path) = &args.fabric {
        return read_fabric(path, args.ranks);
    }
    let here = Machine::here().context("cannot list the network interfaces")?;
    let ranks = args.ranks.map_or(0, NonZeroU32::get);
    Ok(View::of_machine(here, ranks, config.transport).fabric)
}

/// The fabric of a file, which must have as many ranks as are asked for.
pub(crate) fn read_fabric(path: &str, ranks: Option<NonZeroU32>) -> Result<Fabric> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let fabric = Fabric::from_toml(&text).with_context(|| format!("in {path}"))?;
    let (asked, there) = (ranks.map_or(fabric.ranks(), NonZeroU32::get), fabric.ranks());
    ensure!(asked == there, "{path} has {there} ranks, not {asked}");
    Ok(fabric)
}

fn document(request: &Request, fabric: &Fabric, plan: &Plan) -> Value {
    let considered = |Candidate { algorithm, predicted }: &Candidate| match predicted {
        Ok(seconds) => json!({ "algorithm": algorithm.name(), "predicted_us": seconds * 1e6 }),
        Err(why) => json!({ "algorithm": algorithm.name(), "out": why.to_string() }),
    };
    json!({
        "tool": "tutti",
        "version": env!("CARGO_PKG_VERSION"),
        "collective": request.collective.name(),
        "bytes": request.bytes,
        "ranks": fabric.ranks(),
        "hosts": fabric.hosts().len(),
        "algorithm": plan.algorithm.name(),
        "depth": plan.shape.depth,
        "channels": plan.shape.channels,
        "predicted_us": plan.predicted * 1e6,
        "why": plan.why,
        "considered": plan.considered.iter().map(considered).collect::<Vec<Value>>(),
    })
}
