//! Fabrics for tests.

use super::{Fabric, Inside, RankReport, Supernode};

impl Fabric {
    /// A fabric of assumed figures from each rank's host and each host's supernode.
    pub(crate) fn sample(hosts: &[usize], supernodes: &[usize], cores: f64) -> Fabric {
        let report = |host: &usize| RankReport {
            host: host.to_string(),
            numa_node: 0,
            cores,
            inside: Inside::SharedMemory,
        };
        let mut fabric = Fabric::discovered(&hosts.iter().map(report).collect::<Vec<_>>());
        let exit = fabric.supernodes[0].exit;
        let count = supernodes.iter().max().map_or(1, |last| last + 1);
        fabric.supernodes = (0..count).map(|s| Supernode { name: format!("s{s}"), exit }).collect();
        for host in &mut fabric.hosts {
            host.supernode = supernodes[host.name.parse::<usize>().expect("a number")];
        }
        fabric
    }
}
