use std::collections::BTreeMap;

use super::{Fabric, Figure, Host, Link, Place, Supernode};

/// What a rank says of itself when the group meets.
#[derive(Clone, Debug, PartialEq)]
pub struct RankReport {
    /// A key that the ranks of one host have in common and those of no other host.
    pub host: String,
    /// The NUMA node it runs on.
    pub numa_node: u32,
    /// How many cores of its host the job may use; a fraction where a quota of processor time is.
    pub cores: f64,
    /// How it talks to other ranks of its host.
    pub inside: Inside,
}

/// How the ranks of one host talk to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Inside {
    /// Through memory that both have mapped.
    SharedMemory,
    /// Through loopback sockets.
    Tcp,
}

impl Fabric {
    /// The fabric of a group from the reports of its ranks, in the order of the ranks.
    ///
    /// No link has been measured then, so all figures are assumed ones. They are the round middle
    /// of what such links show on servers of the years 2018 to 2025, and only their ratios decide:
    ///
    /// - shared memory: 0.4 µs (a cache line passed on, found by polling) and 8 GB/s (a core
    ///   copies in, another copies out);
    /// - loopback TCP: 6 µs (two system calls, found by polling) and 4 GB/s;
    /// - TCP to other hosts: 25 µs (the same and a wake-up, two network cards and a switch) and 1.2 GB/s (a port
    ///   of 10 Gbit/s);
    /// - folding: 10 GB/s (one core reads two vectors and writes one).
    ///
    /// All hosts are in one supernode. If the reports of a host differ, its ranks talk by TCP, and
    /// it has the largest of the core counts; a count that is no positive number is taken as 1.
    pub fn discovered(reports: &[RankReport]) -> Fabric {
        let mut hosts: Vec<Host> = Vec::new();
        let mut by_key: BTreeMap<&str, usize> = BTreeMap::new();
        let mut places = Vec::with_capacity(reports.len());
        for report in reports {
            let host = *by_key.entry(&report.host).or_insert_with(|| {
                hosts.push(Host { cores: 0.0, ..assumed_host(&report.host, 0) });
                hosts.len() - 1
            });
            hosts[host].add(report);
            places.push(Place { host, numa_node: report.numa_node });
        }
        for host in hosts.iter_mut().filter(|host| host.cores == 0.0) {
            host.cores = 1.0;
        }
        let supernode = Supernode { name: LONE_SUPERNODE.to_owned(), exit: TCP_ACROSS.link() };
        Fabric { supernodes: vec![supernode], hosts, pairs: BTreeMap::new(), places }
    }
}

/// The name of the supernode where none is named.
pub(super) const LONE_SUPERNODE: &str = "all";

/// A host of which nothing but its name is known.
pub(super) fn assumed_host(name: &str, supernode: usize) -> Host {
    Host {
        name: name.to_owned(),
        supernode,
        numa_nodes: 1,
        cores: 1.0,
        fold_gb_per_s: Figure::assumed(10.0),
        inside: SHARED_MEMORY.link(),
        port: TCP_ACROSS.link(),
    }
}

pub(super) const SHARED_MEMORY: Assumed = Assumed { gb_per_s: 8.0, latency_ns: 400.0 };
pub(super) const TCP_ACROSS: Assumed = Assumed { gb_per_s: 1.2, latency_ns: 25_000.0 };
const TCP_LOOPBACK: Assumed = Assumed { gb_per_s: 4.0, latency_ns: 6_000.0 };

pub(super) struct Assumed {
    gb_per_s: f64,
    latency_ns: f64,
}

impl Assumed {
    pub(super) fn link(&self) -> Link {
        Link::assumed(self.gb_per_s, self.latency_ns)
    }
}

impl Host {
    fn add(&mut self, report: &RankReport) {
        self.numa_nodes = self.numa_nodes.max(report.numa_node.saturating_add(1));
        if report.cores.is_finite() {
            self.cores = self.cores.max(report.cores);
        }
        if report.inside == Inside::Tcp {
            self.inside = TCP_LOOPBACK.link();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rank;
    use crate::fabric::Provenance;

    fn report(host: &str, numa_node: u32, cores: f64, inside: Inside) -> RankReport {
        RankReport { host: host.to_owned(), numa_node, cores, inside }
    }

    #[test]
    fn hosts_are_numbered_as_their_first_ranks_come() {
        let shm = Inside::SharedMemory;
        let reports =
            [report("b", 0, 4.0, shm), report("a", 1, 8.0, shm), report("b", 1, 4.0, shm)];
        let fabric = Fabric::discovered(&reports);
        assert_eq!(fabric.ranks(), 3);
        assert_eq!(fabric.hosts().iter().map(|host| &*host.name).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(fabric.place(Rank(2)), Place { host: 0, numa_node: 1 });
        assert_eq!(fabric.ranks_per_host(), [2, 1]);
        assert_eq!(fabric.hosts()[1].numa_nodes, 2);
    }

    #[test]
    fn one_rank_without_shared_memory_puts_its_host_on_loopback() {
        let reports = [report("a", 0, 4.0, Inside::SharedMemory), report("a", 0, 4.0, Inside::Tcp)];
        assert_eq!(Fabric::discovered(&reports).hosts()[0].inside, TCP_LOOPBACK.link());
    }

    #[test]
    fn discovered_figures_are_assumed() {
        let fabric = Fabric::discovered(&[report("a", 0, 4.0, Inside::Tcp)]);
        let host = &fabric.hosts()[0];
        for provenance in [host.inside.provenance(), host.port.provenance()] {
            assert_eq!(provenance, Provenance::Assumed);
        }
    }

    #[test]
    fn a_quota_below_one_core_stays_and_a_nonsense_count_is_one_core() {
        for (reported, cores) in [(0.5, 0.5), (0.0, 1.0), (-3.0, 1.0), (f64::NAN, 1.0)] {
            let fabric = Fabric::discovered(&[report("a", 0, reported, Inside::Tcp)]);
            assert_eq!(fabric.hosts()[0].cores, cores, "reported {reported}");
        }
    }

    #[test]
    fn no_reports_make_a_fabric_without_ranks() {
        assert_eq!(Fabric::discovered(&[]).ranks(), 0);
    }
}
