//! `tutti plan`: which algorithm a collective would use, and why, without running it.

use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use tutti::{Config, Rank};
use tutti_topo::fabric::Fabric;
use tutti_topo::plan::{Candidate, Plan, Request, plan as choose};
use tutti_topo::schedule::Collective;

use crate::{fabric, size, usage_error};

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
    let ranks = args.ranks.map(NonZeroU32::get);
    let fabric = match &args.fabric {
        None => fabric::of_this_machine(ranks.unwrap_or(0)),
        Some(path) => fabric::of_file(path, ranks)?,
    };
    if args.root >= fabric.ranks() {
        let (root, ranks) = (args.root, fabric.ranks());
        usage_error("plan", format!("--root {root} is outside a group of {ranks} ranks"));
    }
    let config = Config::from_env()?;
    let shared_board = Some(config.shm_board_bytes as u64);
    let request = Request { collective, bytes: args.bytes.unwrap_or(0), shared_board };
    let plan = choose(&request, &fabric, &config.algo)?;
    if args.json {
        println!("{:#}", document(&request, &fabric, &plan));
    } else {
        println!("{plan}");
    }
    Ok(ExitCode::SUCCESS)
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
