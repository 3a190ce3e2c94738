use std::fmt::{self, Write};

use toml::Value;

use crate::fabric::{Boundary, Fabric, Link};

impl Fabric {
    /// The fabric as a file of the format `fabric/1`.
    ///
    /// [`Fabric::from_toml`] makes the same fabric of it, but for what the format does not hold:
    /// ranks become numbered host by host and spread evenly over the NUMA nodes of their host.
    pub fn to_toml(&self) -> String {
        let mut file = String::new();
        self.write(&mut file).expect("a string takes everything that is written to it");
        file
    }

    fn write(&self, file: &mut String) -> fmt::Result {
        writeln!(file, "schema = \"fabric/1\"\n")?;
        writeln!(file, "[units]\nbandwidth = \"GB/s\"\nlatency = \"ns\"")?;
        for supernode in &self.supernodes {
            writeln!(file, "\n[[supernode]]\nname = {}", quoted(&supernode.name))?;
        }
        self.write_hosts(file)?;
        let inside = self.hosts.iter().map(|host| (&*host.name, &host.inside));
        write_kind(file, Boundary::InsideHost, inside)?;
        let ports = self.hosts.iter().map(|host| (&*host.name, &host.port));
        write_kind(file, Boundary::Hosts, ports)?;
        let exits = self.supernodes.iter().map(|supernode| (&*supernode.name, &supernode.exit));
        write_kind(file, Boundary::Supernodes, exits)?;
        for (&(one, other), link) in &self.pairs {
            let [from, to] = [one, other].map(|host| quoted(&self.hosts[host].name));
            writeln!(file, "\n[[link]]\nfrom = {from}\nto = {to}")?;
            write_link(file, link)?;
        }
        Ok(())
    }

    fn write_hosts(&self, file: &mut String) -> fmt::Result {
        for (host, ranks) in self.hosts.iter().zip(self.ranks_per_host()) {
            writeln!(file, "\n[[host]]\nname = {}", quoted(&host.name))?;
            writeln!(file, "supernode = {}", quoted(&self.supernodes[host.supernode].name))?;
            writeln!(file, "numa = {}\ncores = {:?}", host.numa_nodes, host.cores)?;
            writeln!(file, "ranks = {ranks}\nfold = {:?}", host.fold_gb_per_s.value)?;
            writeln!(file, "provenance = \"{}\"", host.fold_gb_per_s.provenance)?;
        }
        Ok(())
    }
}

/// The link of the first, for all, and those that differ from it.
fn write_kind<'a>(
    file: &mut String,
    kind: Boundary,
    links: impl Iterator<Item = (&'a str, &'a Link)>,
) -> fmt::Result {
    let mut common = None;
    for (name, link) in links {
        if common.is_none() {
            writeln!(file, "\n[[link]]\nbetween = \"{}\"", kind.name())?;
            write_link(file, common.insert(link))?;
        } else if common != Some(link) {
            writeln!(file, "\n[[link]]\nbetween = \"{}\"\nof = {}", kind.name(), quoted(name))?;
            write_link(file, link)?;
        }
    }
    Ok(())
}

fn write_link(file: &mut String, link: &Link) -> fmt::Result {
    writeln!(file, "bw = {:?}\nlat = {:?}", link.gb_per_s.value, link.latency_ns.value)?;
    writeln!(file, "rails = {}\nprovenance = \"{}\"", link.rails, link.provenance())
}

fn quoted(name: &str) -> Value {
    Value::from(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fabric::{Figure, Host, Place, Provenance, Supernode};

    fn figure(value: impl Strategy<Value = f64>) -> impl Strategy<Value = Figure> {
        value.prop_map(|value| Figure { value, provenance: Provenance::Measured })
    }

    fn link() -> impl Strategy<Value = Link> {
        let spec = |value| Figure { value, provenance: Provenance::Spec };
        (1e-9..1e20, 0.0..1e9, 1_u32..9).prop_map(move |(bw, lat, rails)| Link {
            gb_per_s: spec(bw),
            latency_ns: spec(lat),
            rails,
        })
    }

    /// Hosts with 1 to 3 ranks each on one NUMA node each, as the format numbers them.
    fn fabric() -> impl Strategy<Value = Fabric> {
        let host = (1_usize..4, 0.1..500.0, figure(0.5..99.0), link(), link(), ".{0,3}");
        let hosts = prop::collection::vec(host, 1..5);
        (hosts, prop::collection::vec(link(), 1..4), prop::option::of(link())).prop_map(
            |(drawn, exits, pair)| {
                let (mut hosts, mut places) = (Vec::new(), Vec::new());
                for (index, (ranks, cores, fold_gb_per_s, inside, port, name)) in
                    drawn.into_iter().enumerate()
                {
                    let places_here =
                        (0..ranks).map(|rank| Place { host: index, numa_node: rank as u32 });
                    places.extend(places_here);
                    hosts.push(Host {
                        name: format!("{name}{index}"),
                        supernode: index % exits.len(),
                        numa_nodes: ranks as u32,
                        cores,
                        fold_gb_per_s,
                        inside,
                        port,
                    });
                }
                let supernode = |(index, exit)| Supernode { name: format!("s{index}"), exit };
                let supernodes = exits.into_iter().enumerate().map(supernode).collect();
                let pair = pair.filter(|_| hosts.len() > 1).map(|link| ((0, 1), link));
                Fabric { supernodes, hosts, pairs: pair.into_iter().collect(), places }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_reads_as_the_same_fabric(fabric in fabric()) {
            let file = fabric.to_toml();
            prop_assert_eq!(Fabric::from_toml(&file).map_err(|error| error.to_string()), Ok(fabric));
        }
    }
}
