//! What is known of a cluster: which host each rank is on, and what the links between them carry.
//!
//! A [`Fabric`] comes from what the ranks report when they meet ([`Fabric::discovered`]) or from a
//! file ([`Fabric::from_toml`]). Every figure says where it is from ([`Provenance`]).

mod discovery;
mod figure;
mod format;
mod nearest;
#[cfg(test)]
mod sample;
mod subset;

use std::collections::BTreeMap;

use crate::Rank;

pub use discovery::{Inside, RankReport};
pub use figure::{Boundary, Figure, Link, Provenance};
pub use format::{FabricError, FabricErrorKind};
pub(crate) use nearest::nearest;

/// Hosts, the supernodes they form, the links of both, and the place of every rank.
///
/// Hosts and supernodes are numbered from 0 in the order in which they were named first.
#[derive(Clone, Debug, PartialEq)]
pub struct Fabric {
    supernodes: Vec<Supernode>,
    hosts: Vec<Host>,
    /// Links between two hosts that are unlike those of the ports; the lower host comes first.
    pairs: BTreeMap<(usize, usize), Link>,
    places: Vec<Place>,
}

/// Hosts whose links among each other are faster than those to other hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Supernode {
    /// Unique among supernodes.
    pub name: String,
    /// What leads from its hosts to other supernodes; they share it.
    pub exit: Link,
}

/// A machine, or a container with memory and cores of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Unique among hosts.
    pub name: String,
    /// The number of its supernode.
    pub supernode: usize,
    /// How many NUMA nodes it has, at least one.
    pub numa_nodes: u32,
    /// How many cores the job may use, above 0; a fraction where a quota of processor time is.
    pub cores: f64,
    /// How fast one core folds one vector into another, in 10^9 bytes of one vector per second.
    pub fold_gb_per_s: Figure,
    /// What one rank has toward the other ranks of its host, all together.
    pub inside: Link,
    /// What leads from its ranks to other hosts; they share it.
    pub port: Link,
}

/// Where a rank runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of its host.
    pub host: usize,
    /// The NUMA node in the host.
    pub numa_node: u32,
}

impl Fabric {
    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.places.len() as u32
    }

    /// The place of a rank.
    ///
    /// # Panics
    ///
    /// If `rank` is not below [`ranks`](Fabric::ranks).
    pub fn place(&self, rank: Rank) -> Place {
        self.places[rank.index()]
    }

    /// All hosts by their number.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// All supernodes by their number.
    pub fn supernodes(&self) -> &[Supernode] {
        &self.supernodes
    }

    /// The link that two hosts have beside their ports, if the file names one. It takes all
    /// traffic between the two, either way.
    pub fn pair(&self, one: usize, other: usize) -> Option<&Link> {
        self.pairs.get(&(one.min(other), one.max(other)))
    }

    /// All links of that kind, by the two hosts, the lower first.
    pub fn pairs(&self) -> impl Iterator<Item = ((usize, usize), &Link)> {
        self.pairs.iter().map(|(&hosts, link)| (hosts, link))
    }

    /// How many ranks each host has.
    pub fn ranks_per_host(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.hosts.len()];
        self.places.iter().for_each(|place| ranks[place.host] += 1);
        ranks
    }
}
