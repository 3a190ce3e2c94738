//! What is shown: a fabric, and what is known of its machines beyond that.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tutti::machine::{self, Cores};
use tutti::{Rank, TransportChoice};
use tutti_topo::fabric::{Fabric, Inside, RankReport};

use super::machine::Machine;

/// A fabric and the machines that its hosts are.
pub(crate) struct View {
    pub(crate) fabric: Fabric,
    /// By the number of the host; none of a host that no process of this job is on.
    pub(crate) machines: Vec<Option<Machine>>,
    pub(crate) source: Source,
}

/// Where a view is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// From this machine, for ranks that are not started.
    Machine,
    /// From the ranks of a job.
    Ranks,
    /// From a fabric file.
    File(String),
}

/// What a rank says of itself.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Sighting {
    pub(crate) machine: Machine,
    /// Equal for the ranks of one host.
    pub(crate) host_key: String,
    pub(crate) numa_node: u32,
}

/// A NUMA node of a host.
pub(crate) struct Node {
    pub(crate) id: u32,
    /// Those that the job may use, where they are known.
    pub(crate) cores: Option<Vec<u32>>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) ranks: Vec<u32>,
}

impl View {
    /// Of a machine and as many ranks as `tutti run` would start there. It pins none: on which node
    /// each runs the system decides, and an even spread is taken for it.
    pub(crate) fn of_machine(machine: Machine, ranks: u32, transport: TransportChoice) -> View {
        let sighting = |numa_node| Sighting {
            machine: machine.clone(),
            host_key: machine.name.clone(),
            numa_node,
        };
        let sightings: Vec<_> = machine.spread(ranks).map(sighting).collect();
        View { source: Source::Machine, ..View::of_ranks(&sightings, transport) }
    }

    /// Of the ranks of a job, by what each says.
    pub(crate) fn of_ranks(sightings: &[Sighting], transport: TransportChoice) -> View {
        let mut keys: Vec<&str> = Vec::new();
        let mut machines: Vec<Option<Machine>> = Vec::new();
        for Sighting { host_key, machine, .. } in sightings {
            if keys.contains(&&**host_key) {
                continue;
            }
            keys.push(host_key);
            let ranks = sightings.iter().filter(|other| other.host_key == *host_key);
            let cores = machine::shared_cores(ranks.map(|rank| &rank.machine.cores));
            let is_there = |name: &str| machines.iter().flatten().any(|m| m.name == name);
            let name = unique_name(&machine.name, is_there);
            machines.push(Some(Machine { name, cores, ..machine.clone() }));
        }
        let inside = match transport {
            TransportChoice::Tcp => Inside::Tcp,
            TransportChoice::Auto | TransportChoice::Shm => Inside::SharedMemory,
        };
        let report = |sighting: &Sighting| {
            let host = keys.iter().position(|key| *key == sighting.host_key);
            let machine =
                host.and_then(|host| machines[host].as_ref()).expect("it was pushed above");
            RankReport {
                host: machine.name.clone(),
                numa_node: sighting.numa_node,
                cores: machine.cores.count(),
                inside,
            }
        };
        let fabric = Fabric::discovered(&sightings.iter().map(report).collect::<Vec<_>>());
        View { fabric, machines, source: Source::Ranks }
    }

    /// Of a fabric file. A host with the name of this machine is taken for it.
    pub(crate) fn of_file(path: &str, fabric: Fabric, here: &Machine) -> View {
        let hosts = fabric.hosts().iter();
        let machines = hosts.map(|host| (host.name == here.name).then(|| here.clone())).collect();
        View { fabric, machines, source: Source::File(path.into()) }
    }

    /// The ranks on a host, in ascending order.
    pub(crate) fn ranks_of(&self, host: usize) -> Vec<u32> {
        let ranks = 0..self.fabric.ranks();
        ranks.filter(|rank| self.fabric.place(Rank(*rank)).host == host).collect()
    }

    /// The NUMA nodes of a host: those that its machine has, and those that ranks are said to be on.
    pub(crate) fn nodes_of(&self, host: usize) -> Vec<Node> {
        let ranks = self.ranks_of(host);
        let place = |rank: u32| self.fabric.place(Rank(rank)).numa_node;
        let machine = self.machines[host].as_ref();
        let mut ids: BTreeSet<u32> = ranks.iter().map(|rank| place(*rank)).collect();
        match machine {
            Some(machine) => ids.extend(machine.numa_nodes.iter().map(|node| node.id)),
            None => ids.extend(0..self.fabric.hosts()[host].numa_nodes),
        }
        let node = |id| {
            let known = machine.and_then(|m| m.numa_nodes.iter().find(|node| node.id == id));
            Node {
                id,
                cores: machine.zip(known).map(|(machine, node)| machine.usable_cores(node)),
                memory_bytes: known.and_then(|node| node.memory_bytes),
                ranks: ranks.iter().copied().filter(|rank| place(*rank) == id).collect(),
            }
        };
        ids.into_iter().map(node).collect()
    }
}

/// The name, with a number behind it if it is taken: of containers that have the same one.
fn unique_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !is_taken(name)).expect("the numbers do not end")
}

/// Numbers in short, as in `0-3, 8`.
pub(crate) fn ranges(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let part = |(first, last)| match first == last {
        true => format!("{first}"),
        false => format!("{first}-{last}"),
    };
    parts.into_iter().map(part).collect::<Vec<_>>().join(", ")
}

/// How many cores that may be, and why fewer than there are.
pub(crate) fn cores_in_words(cores: f64, known: Option<&Cores>) -> String {
    let count = match cores.fract() == 0.0 {
        true => format!("{cores}"),
        false => format!("{cores:.2}"),
    };
    let noun = if cores == 1.0 { "core" } else { "cores" };
    match known.and_then(|known| known.quota).filter(|quota| *quota == cores) {
        Some(_) => format!("{count} {noun} (cgroup quota)"),
        None => format!("{count} {noun}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sighting(name: &str, key: &str, core: u32, numa_node: u32) -> Sighting {
        let mut machine = Machine::sample(name);
        machine.cores.affinity = vec![core];
        Sighting { machine, host_key: key.into(), numa_node }
    }

    #[test]
    fn ranks_with_one_key_are_one_host_with_the_cores_of_all() {
        let seen = [sighting("a", "1", 0, 0), sighting("a", "2", 0, 1), sighting("a", "1", 3, 1)];
        let view = View::of_ranks(&seen, TransportChoice::Auto);
        let names: Vec<_> = view.fabric.hosts().iter().map(|host| &*host.name).collect();
        assert_eq!(names, ["a", "a (2)"]);
        assert_eq!(view.fabric.hosts()[0].cores, 2.0);
        assert_eq!((view.ranks_of(0), view.ranks_of(1)), (vec![0, 2], vec![1]));
        let nodes = view.nodes_of(0);
        assert_eq!((&nodes[1].ranks[..], nodes[1].cores.as_deref()), (&[2][..], Some(&[3][..])));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3, 8, 10-11");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn a_quota_is_named_where_it_decides() {
        let quota = |quota| Cores { affinity: vec![0, 1], quota };
        assert_eq!(cores_in_words(0.5, Some(&quota(Some(0.5)))), "0.50 cores (cgroup quota)");
        assert_eq!(cores_in_words(2.0, Some(&quota(None))), "2 cores");
        assert_eq!(cores_in_words(1.0, None), "1 core");
    }
}
