//! The machine this process is on.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tutti::machine::{self, Cores};

use super::system::{self, Nic, NumaNode};

/// A machine as one of its processes sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) name: String,
    /// What the process may use.
    pub(crate) cores: Cores,
    /// By their number; one at least.
    pub(crate) numa_nodes: Vec<NumaNode>,
    pub(crate) nics: Vec<Nic>,
}

impl Machine {
    /// This one.
    ///
    /// # Errors
    ///
    /// What the system says if it does not list the network interfaces.
    pub(crate) fn here() -> io::Result<Machine> {
        let root = Path::new("/");
        let cores = machine::cores();
        let mut numa_nodes = system::numa_nodes(root);
        if numa_nodes.is_empty() {
            let cores = cores.affinity.clone();
            numa_nodes.push(NumaNode { id: 0, cores, memory_bytes: None });
        }
        let mut nics = system::nics(root);
        for found in machine::interfaces()? {
            if let Some(nic) = nics.iter_mut().find(|nic| nic.name == found.name) {
                nic.addresses.push(found.ip);
            }
        }
        Ok(Machine { name: machine::host_name(), cores, numa_nodes, nics })
    }

    /// The cores of a node that the process may use.
    pub(crate) fn usable_cores(&self, node: &NumaNode) -> Vec<u32> {
        let usable = |core: &&u32| self.cores.affinity.contains(core);
        node.cores.iter().filter(usable).copied().collect()
    }

    /// The nodes of so many ranks, if they are spread evenly over those with a usable core,
    /// neighbours together.
    pub(crate) fn spread(&self, ranks: u32) -> impl Iterator<Item = u32> {
        let usable = |node: &&NumaNode| !self.usable_cores(node).is_empty();
        let mut nodes: Vec<u32> =
            self.numa_nodes.iter().filter(usable).map(|node| node.id).collect();
        if nodes.is_empty() {
            nodes.push(0);
        }
        let node =
            move |rank| nodes[(u64::from(rank) * nodes.len() as u64 / u64::from(ranks)) as usize];
        (0..ranks).map(node)
    }
}

#[cfg(test)]
impl Machine {
    /// A machine of two nodes with two cores each, all usable.
    pub(crate) fn sample(name: &str) -> Machine {
        let node =
            |id| NumaNode { id, cores: vec![2 * id, 2 * id + 1], memory_bytes: Some(1 << 30) };
        let nic = Nic {
            name: "eth0".into(),
            state: system::State::Up,
            mbit_per_s: Some(25_000),
            mtu: Some(9000),
            numa_node: Some(1),
            addresses: vec!["10.0.0.7".parse().unwrap()],
        };
        let cores = Cores { affinity: vec![0, 1, 2, 3], quota: None };
        Machine { name: name.into(), cores, numa_nodes: vec![node(0), node(1)], nics: vec![nic] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_spread_over_the_nodes_whose_cores_may_be_used() {
        let mut machine = Machine::sample("a");
        assert_eq!(machine.spread(5).collect::<Vec<_>>(), [0, 0, 0, 1, 1]);
        assert_eq!(machine.spread(1).collect::<Vec<_>>(), [0]);
        machine.cores.affinity = vec![3];
        assert_eq!(machine.spread(3).collect::<Vec<_>>(), [1, 1, 1]);
        machine.cores.affinity = vec![77];
        assert_eq!(machine.spread(2).collect::<Vec<_>>(), [0, 0]);
    }

    #[test]
    fn this_machine_has_a_core_and_a_node() {
        let here = Machine::here().unwrap();
        assert!(!here.numa_nodes.is_empty() && here.cores.count() > 0.0, "{here:?}");
    }
}
