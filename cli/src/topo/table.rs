//! A view as text for people.

use std::fmt::{self, Display, Formatter};

use tutti_topo::fabric::{Boundary, Link, Provenance};

use super::machine::Machine;
use super::system::Nic;
use super::view::{Source, View, cores_in_words, ranges};

/// A view that prints as a table.
pub(super) struct Table<'a> {
    pub(super) view: &'a View,
    pub(super) coloured: bool,
}

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let hosts = self.view.fabric.hosts().len();
        (0..hosts).try_for_each(|host| self.host(f, host))?;
        self.links(f)?;
        write!(f, "\n{}", self.note())
    }
}

impl Table<'_> {
    fn host(&self, f: &mut Formatter, number: usize) -> fmt::Result {
        let (view, host) = (self.view, &self.view.fabric.hosts()[number]);
        let machine = view.machines[number].as_ref();
        let cores = cores_in_words(host.cores, machine.map(|machine| &machine.cores));
        let supernode = match view.fabric.supernodes() {
            [_] => String::new(),
            several => format!(" in supernode {}", several[host.supernode].name),
        };
        let name = self.bold(&format!("host {}", host.name));
        writeln!(f, "{name}{supernode}: {cores}, {}", in_words("rank", &view.ranks_of(number)))?;
        for node in view.nodes_of(number) {
            write!(f, "  NUMA node {}", node.id)?;
            if let Some(cores) = &node.cores {
                write!(f, ": {}", in_words("core", cores))?;
            }
            if let Some(bytes) = node.memory_bytes {
                write!(f, ", {:.1} GiB", bytes as f64 / f64::from(1 << 30))?;
            }
            let separator = if node.cores.is_some() { ", " } else { ": " };
            writeln!(f, "{separator}{}", in_words("rank", &node.ranks))?;
        }
        machine.map_or(Ok(()), |machine| self.nics(f, machine))?;
        writeln!(f)
    }

    fn nics(&self, f: &mut Formatter, machine: &Machine) -> fmt::Result {
        let heading = format!(
            "  {:<15} {:<10} {:>12} {:>6}  NUMA  addresses",
            "NIC", "state", "speed", "MTU"
        );
        writeln!(f, "{}", self.bold(&heading))?;
        machine.nics.iter().try_for_each(|nic| {
            let addresses =
                nic.addresses.iter().map(|ip| ip.to_string()).collect::<Vec<_>>().join(", ");
            let Nic { name, state, .. } = nic;
            let (speed, mtu) = (speed(nic), or_dash(nic.mtu));
            let node = or_dash(nic.numa_node);
            let line = format!(
                "  {name:<15} {:<10} {speed:>12} {mtu:>6}  {node:>4}  {addresses}",
                state.name()
            );
            writeln!(f, "{}", line.trim_end())
        })
    }

    fn links(&self, f: &mut Formatter) -> fmt::Result {
        let links = links(self.view);
        let width = links.iter().map(|(what, _)| what.chars().count()).max().unwrap_or(0);
        let heading =
            format!("{:<width$} {:>9} {:>6} {:>11}  figures", "link", "GB/s", "rails", "latency");
        writeln!(f, "{}", self.bold(&heading))?;
        for (what, link) in links {
            let (bandwidth, latency) = (link.gb_per_s.value, microseconds(link.latency_ns.value));
            let (rails, provenance) = (link.rails, link.provenance());
            writeln!(f, "{what:<width$} {bandwidth:>9.2} {rails:>6} {latency:>11}  {provenance}")?;
        }
        Ok(())
    }

    /// What the figures are worth, and where the ranks are from.
    fn note(&self) -> String {
        let ranks = match &self.view.source {
            Source::Machine => {
                "The ranks are spread evenly over the NUMA nodes. `tutti run` pins none of them: where each\n\
                 runs, the system decides."
            }
            Source::Ranks => "The ranks are where they were as they joined.",
            Source::File(path) => &format!("The ranks are where {path} puts them."),
        };
        let assumed =
            links(self.view).iter().any(|(_, link)| link.provenance() == Provenance::Assumed);
        let figures = "\nAssumed figures are typical ones that nobody measured here.";
        format!("{ranks}{}", if assumed { figures } else { "" })
    }

    fn bold(&self, text: &str) -> String {
        if self.coloured { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Every link with what it links, equal ones of a kind together.
fn links(view: &View) -> Vec<(String, Link)> {
    let fabric = &view.fabric;
    let inside = alike(fabric.hosts().iter().map(|host| (&*host.name, host.inside)));
    let mut all = named(Boundary::InsideHost, "host", inside);
    let ports = alike(fabric.hosts().iter().map(|host| (&*host.name, host.port)));
    all.extend(named(Boundary::Hosts, "host", ports));
    if let several @ [_, _, ..] = fabric.supernodes() {
        let exits = alike(several.iter().map(|supernode| (&*supernode.name, supernode.exit)));
        all.extend(named(Boundary::Supernodes, "supernode", exits));
    }
    let name = |host: usize| &fabric.hosts()[host].name;
    let pairs = fabric.pairs();
    all.extend(pairs.map(|((a, b), link)| (format!("{} with {}", name(a), name(b)), *link)));
    all
}

/// Links that are equal, each with the names that have it.
fn alike<'a>(links: impl Iterator<Item = (&'a str, Link)>) -> Vec<(Vec<&'a str>, Link)> {
    let mut groups: Vec<(Vec<&str>, Link)> = Vec::new();
    for (name, link) in links {
        match groups.iter_mut().find(|(_, known)| *known == link) {
            Some((names, _)) => names.push(name),
            None => groups.push((vec![name], link)),
        }
    }
    groups
}

fn named(boundary: Boundary, of: &str, groups: Vec<(Vec<&str>, Link)>) -> Vec<(String, Link)> {
    let kind = match boundary {
        Boundary::InsideHost => "inside a host",
        Boundary::Hosts => "port of a host",
        Boundary::Supernodes => "exit of a supernode",
    };
    let one = groups.len() == 1;
    let name = |(names, link): (Vec<&str>, Link)| match (one, &names[..]) {
        (true, _) => (kind.to_owned(), link),
        (false, [name]) => (format!("{kind}: {name}"), link),
        (false, [first, .., last]) => {
            (format!("{kind}: {} {of}s, {first} to {last}", names.len()), link)
        }
        (false, []) => unreachable!("a group has a name"),
    };
    groups.into_iter().map(name).collect()
}

/// Numbered things in words, as in `ranks 0-3`.
fn in_words(noun: &str, numbers: &[u32]) -> String {
    match numbers {
        [] => format!("no {noun}s"),
        [number] => format!("{noun} {number}"),
        _ => format!("{noun}s {}", ranges(numbers)),
    }
}

pub(super) fn speed(nic: &Nic) -> String {
    match nic.mbit_per_s {
        Some(mbit) if mbit >= 1000 => format!("{} Gbit/s", mbit as f64 / 1e3),
        Some(mbit) => format!("{mbit} Mbit/s"),
        None => "-".into(),
    }
}

pub(super) fn microseconds(nanoseconds: f64) -> String {
    format!("{:.2} µs", nanoseconds / 1e3)
}

fn or_dash(value: Option<u32>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use tutti::TransportChoice;

    use super::*;
    use crate::topo::sample;

    fn text(view: &View, coloured: bool) -> String {
        Table { view, coloured }.to_string()
    }

    #[test]
    fn a_machine_has_nodes_interfaces_ranks_and_links() {
        let view = View::of_machine(Machine::sample("a"), 3, TransportChoice::Auto);
        let table = text(&view, false);
        for line in [
            "host a: 4 cores, ranks 0-2",
            "  NUMA node 0: cores 0-1, 1.0 GiB, ranks 0-1",
            "  NUMA node 1: cores 2-3, 1.0 GiB, rank 2",
            "  eth0            up            25 Gbit/s   9000     1  10.0.0.7",
            "inside a host       8.00      1     0.40 µs  assumed",
        ] {
            assert!(table.lines().any(|found| found == line), "{line:?} is not in\n{table}");
        }
        assert!(!table.contains('\x1b'));
        assert!(text(&view, true).contains("\x1b[1mhost a\x1b[0m"));
    }

    #[test]
    fn links_that_differ_are_named_by_those_that_have_them() {
        let table = text(&sample::pods(), false);
        for part in [
            "port of a host: 2 hosts, a to c",
            "port of a host: b",
            "exit of a supernode",
            "a with b",
        ] {
            assert!(table.contains(part), "{part:?} is not in\n{table}");
        }
        assert!(table.contains("host a in supernode left: 8 cores, ranks 0-3"), "{table}");
        assert!(table.contains("NUMA node 1: ranks 2-3"), "{table}");
    }
}
