//! The fabric as a table for people.

use std::fmt::Write;

use tutti_topo::fabric::{Fabric, Figure};

use super::links::links;
use super::{ranks_of, runs};
use crate::machine::{Interface, Machine};

pub(super) fn table(machine: Option<&Machine>, fabric: &Fabric) -> String {
    let mut text = String::new();
    if let Some(machine) = machine {
        about_machine(machine, &mut text);
        text.push('\n');
    }
    let mut rows = vec![["host", "supernode", "cores", "NUMA node", "ranks"].map(String::from)];
    for (index, host) in fabric.hosts().iter().enumerate() {
        for (node, ranks) in ranks_of(fabric, index) {
            let supernode = &fabric.supernodes()[host.supernode].name;
            let cores = host.cores.to_string();
            rows.push([
                host.name.clone(),
                supernode.clone(),
                cores,
                node.to_string(),
                runs(&ranks),
            ]);
        }
    }
    text += &aligned(&rows);
    text.push('\n');
    let mut rows = vec![["link", "bandwidth", "latency", "rails"].map(String::from)];
    for link in links(fabric) {
        let bandwidth =
            with_source(format!("{} GB/s", link.link.gb_per_s.value), link.link.gb_per_s);
        let latency = link.link.latency_ns;
        let latency = with_source(format!("{} µs", latency.value / 1e3), latency);
        rows.push([link.between, bandwidth, latency, link.link.rails.to_string()]);
    }
    match rows.len() {
        1 => text += "no links: a rank alone has nobody to talk to\n",
        _ => text += &aligned(&rows),
    }
    text
}

fn about_machine(machine: &Machine, text: &mut String) {
    let Machine { name, cores, numa_nodes, interfaces } = machine;
    _ = writeln!(text, "{name}: {cores} usable cores");
    for node in numa_nodes {
        _ = writeln!(text, "  NUMA node {}: processors {}", node.number, node.processors);
    }
    text.push('\n');
    let mut rows =
        vec![["interface", "state", "speed", "MTU", "NUMA node", "addresses"].map(String::from)];
    rows.extend(interfaces.iter().map(interface));
    *text += &aligned(&rows);
}

fn interface(found: &Interface) -> [String; 6] {
    let or_dash = |number: Option<u32>| number.map_or("-".into(), |number| number.to_string());
    let speed = found.mbit_per_s.map_or("-".into(), |speed| match speed {
        1000.. => format!("{} Gbit/s", f64::from(speed) / 1e3),
        _ => format!("{speed} Mbit/s"),
    });
    let addresses: Vec<String> = found.addresses.iter().map(ToString::to_string).collect();
    [
        found.name.clone(),
        if found.is_up { "up" } else { "down" }.into(),
        speed,
        or_dash(found.mtu),
        or_dash(found.numa_node),
        if addresses.is_empty() { "-".into() } else { addresses.join(" ") },
    ]
}

fn with_source(value: String, figure: Figure) -> String {
    format!("{value} ({})", figure.provenance)
}

/// Columns as wide as their widest cell; the first row is the head.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["a", "bb", "c"], ["dddd", "e", "f"]].map(|row| row.map(String::from));
        assert_eq!(aligned(&rows), "a     bb  c\ndddd  e   f\n");
    }

    #[test]
    fn a_figure_says_where_it_is_from() {
        let text = table(None, &crate::fabric::of_this_machine(2));
        assert!(text.contains("8 GB/s (assumed)"), "{text}");
        assert!(text.contains("0.4 µs (assumed)"), "{text}");
        assert!(!text.contains("out of"), "one host leads nowhere: {text}");
    }

    #[test]
    fn a_rank_alone_has_no_links() {
        assert!(table(None, &crate::fabric::of_this_machine(1)).contains("no links"));
    }
}
