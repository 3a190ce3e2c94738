//! `tutti topo`: what is known of this machine, or of the cluster that a file describes.

mod drawing;
mod links;
mod table;

use std::fs;
use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tutti::Rank;
use tutti_topo::fabric::Fabric;

use crate::fabric;
use crate::machine::Machine;
use links::links;

const EXAMPLES: &str = "\
Examples:
  tutti topo                                 this machine, with a rank for each core
  tutti topo -p 8 --toml > here.toml         a fabric file to start from, for tutti plan --fabric
  tutti topo --fabric pod.toml --svg pod.svg a drawing of the cluster that the file describes

Figures of links are assumed where nobody measured or specified them; each says where it is from.";

/// Shows hosts, NUMA nodes, cores, interfaces and links, as the planner knows them
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Ranks on this machine [default: one for each core], or in the fabric file
    #[arg(short = 'p', long, value_name = "N")]
    ranks: Option<NonZeroU32>,
    /// The cluster: a file of the format fabric/1, instead of this machine
    #[arg(long, value_name = "FILE")]
    fabric: Option<String>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
    /// Prints a file of the format fabric/1
    #[arg(long, conflicts_with = "json")]
    toml: bool,
    /// Writes a drawing to a file too
    #[arg(long, value_name = "FILE")]
    svg: Option<String>,
}

pub(crate) fn topo(args: &Args) -> Result<ExitCode> {
    let machine = args.fabric.is_none().then(Machine::read);
    let ranks = args.ranks.map(NonZeroU32::get);
    let fabric = match (&args.fabric, &machine) {
        (None, Some(machine)) => fabric::of_this_machine(ranks.unwrap_or(machine.cores as u32)),
        (Some(path), _) => fabric::of_file(path, ranks)?,
        (None, None) => unreachable!("without a file the machine was read"),
    };
    if args.json {
        println!("{:#}", document(machine.as_ref(), &fabric));
    } else if args.toml {
        print!("{}", fabric.to_toml());
    } else {
        print!("{}", table::table(machine.as_ref(), &fabric));
    }
    if let Some(path) = &args.svg {
        let drawing = drawing::drawing(machine.as_ref(), &fabric);
        fs::write(path, drawing).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The ranks of a host, by NUMA node.
fn ranks_of(fabric: &Fabric, host: usize) -> Vec<(u32, Vec<u32>)> {
    let nodes = fabric.hosts()[host].numa_nodes;
    let on = |node: u32| {
        let here = |rank: &u32| {
            let place = fabric.place(Rank(*rank));
            place.host == host && place.numa_node == node
        };
        (node, (0..fabric.ranks()).filter(here).collect())
    };
    (0..nodes)
        .map(on)
        .filter(|(node, ranks): &(u32, Vec<u32>)| *node == 0 || !ranks.is_empty())
        .collect()
}

/// Numbers as people write them: `0-3,7`.
fn runs(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let words = runs.iter().map(|&(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(",")
}

fn document(machine: Option<&Machine>, fabric: &Fabric) -> Value {
    let hosts = fabric.hosts().iter().enumerate().map(|(index, host)| {
        let ranks = ranks_of(fabric, index);
        let ranks: Vec<Value> = ranks
            .into_iter()
            .map(|(node, ranks)| json!({ "numa_node": node, "ranks": ranks }))
            .collect();
        json!({
            "name": host.name,
            "supernode": fabric.supernodes()[host.supernode].name,
            "cores": host.cores,
            "numa_nodes": host.numa_nodes,
            "placed": ranks,
        })
    });
    let links = links(fabric).into_iter().map(|link| {
        json!({
            "between": link.between,
            "bandwidth_gb_per_s": link.link.gb_per_s.value,
            "bandwidth_from": link.link.gb_per_s.provenance.name(),
            "latency_ns": link.link.latency_ns.value,
            "latency_from": link.link.latency_ns.provenance.name(),
            "rails": link.link.rails,
        })
    });
    json!({
        "tool": "tutti",
        "version": env!("CARGO_PKG_VERSION"),
        "machine": machine,
        "ranks": fabric.ranks(),
        "hosts": hosts.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_numbers_are_written_as_runs() {
        assert_eq!(runs(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(runs(&[]), "");
    }

    #[test]
    fn every_rank_has_its_place_in_the_document() {
        let document = document(None, &fabric::of_this_machine(3));
        assert_eq!(document["ranks"], 3);
        assert_eq!(document["hosts"][0]["placed"][0]["ranks"], json!([0, 1, 2]));
        assert_eq!(document["links"][0]["bandwidth_from"], "assumed");
    }
}
