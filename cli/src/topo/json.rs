//! A view as JSON.

use serde_json::{Value, json};
use tutti_topo::fabric::{Figure, Host, Link};

use super::view::{Source, View};

/// The whole view.
pub(super) fn document(view: &View) -> Value {
    let fabric = &view.fabric;
    let supernodes = fabric.supernodes().iter();
    let supernodes = supernodes.map(|s| json!({ "name": s.name, "exit": link(&s.exit) }));
    let pairs = fabric.pairs().map(|((a, b), pair)| {
        let hosts = fabric.hosts();
        json!({ "from": hosts[a].name, "to": hosts[b].name, "link": link(pair) })
    });
    json!({
        "tool": "tutti",
        "version": env!("CARGO_PKG_VERSION"),
        "source": match view.source {
            Source::Machine => "machine",
            Source::Ranks => "ranks",
            Source::File(_) => "file",
        },
        "ranks": fabric.ranks(),
        "supernodes": supernodes.collect::<Vec<_>>(),
        "hosts": fabric.hosts().iter().enumerate().map(|(n, h)| host(view, n, h)).collect::<Vec<_>>(),
        "pairs": pairs.collect::<Vec<_>>(),
    })
}

fn host(view: &View, number: usize, host: &Host) -> Value {
    let machine = view.machines[number].as_ref();
    let nodes = view.nodes_of(number).into_iter().map(|node| {
        json!({
            "id": node.id,
            "cores": node.cores,
            "memory_bytes": node.memory_bytes,
            "ranks": node.ranks,
        })
    });
    json!({
        "name": host.name,
        "supernode": view.fabric.supernodes()[host.supernode].name,
        "cores": host.cores,
        "affinity": machine.map(|machine| &machine.cores.affinity),
        "quota": machine.and_then(|machine| machine.cores.quota),
        "numa_nodes": nodes.collect::<Vec<_>>(),
        "nics": machine.map(|machine| &machine.nics),
        "fold_gb_per_s": figure(&host.fold_gb_per_s),
        "inside": link(&host.inside),
        "port": link(&host.port),
    })
}

fn link(link: &Link) -> Value {
    json!({
        "gb_per_s": figure(&link.gb_per_s),
        "latency_ns": figure(&link.latency_ns),
        "rails": link.rails,
    })
}

fn figure(figure: &Figure) -> Value {
    json!({ "value": figure.value, "provenance": figure.provenance.name() })
}
