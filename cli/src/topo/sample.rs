//! Views for tests.

use tutti_topo::fabric::Fabric;

use super::machine::Machine;
use super::view::View;

/// Hosts a, b and c in two supernodes; b has a port of its own, and a link with a.
pub(super) fn pods() -> View {
    file(
        r#"
        [[supernode]]
        name = "left"
        [[supernode]]
        name = "right"
        [[host]]
        name = "a"
        supernode = "left"
        cores = 8
        numa = 2
        ranks = 4
        [[host]]
        name = "b"
        supernode = "right"
        cores = 8
        ranks = 2
        [[host]]
        name = "c"
        supernode = "right"
        cores = 8
        ranks = 2
        [[link]]
        between = "hosts"
        of = "b"
        bw = 2.5
        lat = 9000
        provenance = "measured"
        [[link]]
        from = "a"
        to = "b"
        bw = 50
        lat = 900
        provenance = "spec"
        "#,
    )
}

/// So many hosts of eight ranks on two nodes, dealt to so many supernodes.
pub(super) fn hosts(hosts: usize, supernodes: usize) -> View {
    let supernode = |number| format!("[[supernode]]\nname = \"pod{number}\"\n");
    let host = |number| {
        let supernode = number % supernodes;
        format!(
            "[[host]]\nname = \"node{number:02}\"\nsupernode = \"pod{supernode}\"\nnuma = 2\ncores = 64\nranks = 8\n"
        )
    };
    let supernodes_text = (0..supernodes).map(supernode).collect::<String>();
    file(&format!("{supernodes_text}{}", (0..hosts).map(host).collect::<String>()))
}

fn file(body: &str) -> View {
    let head = "schema = \"fabric/1\"\nunits = { bandwidth = \"GB/s\", latency = \"ns\" }\n";
    let fabric = Fabric::from_toml(&format!("{head}{body}")).unwrap();
    View::of_file("pods.toml", fabric, &Machine::sample("elsewhere"))
}
