//! The fabric that a command is about: of this machine, or of a file.

use std::fs;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use anyhow::{Context, Result, ensure};
use tutti_topo::fabric::{Fabric, Inside, RankReport};

/// So many ranks on this machine.
pub(crate) fn of_this_machine(ranks: u32) -> Fabric {
    let report = RankReport {
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        numa_node: 0,
        cores: available_parallelism().map_or(1, NonZeroUsize::get) as f64,
        inside: Inside::SharedMemory,
    };
    Fabric::discovered(&vec![report; ranks as usize])
}

/// What a file of the format fabric/1 describes, which must have so many ranks if a number is given.
pub(crate) fn of_file(path: &str, ranks: Option<u32>) -> Result<Fabric> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let fabric = Fabric::from_toml(&text).with_context(|| format!("in {path}"))?;
    let (asked, there) = (ranks.unwrap_or(fabric.ranks()), fabric.ranks());
    ensure!(asked == there, "{path} has {there} ranks, not {asked}");
    Ok(fabric)
}
