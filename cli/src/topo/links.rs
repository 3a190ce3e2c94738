use tutti_topo::fabric::{Fabric, Link};

/// A link with what it leads to, in words.
pub(super) struct Named<'a> {
    pub(super) between: String,
    pub(super) link: &'a Link,
}

/// All links of a fabric that a rank may use; hosts whose links are alike are named together.
pub(super) fn links(fabric: &Fabric) -> Vec<Named<'_>> {
    let mut links: Vec<Named> = Vec::new();
    let ranks = fabric.ranks_per_host();
    let hosts = || fabric.hosts().iter().zip(&ranks);
    for (host, _) in hosts().filter(|(_, ranks)| **ranks > 1) {
        add(&mut links, "inside", &host.name, &host.inside);
    }
    if fabric.hosts().len() > 1 {
        hosts().for_each(|(host, _)| add(&mut links, "out of", &host.name, &host.port));
    }
    for ((one, other), link) in fabric.pairs() {
        let name = |host: usize| &fabric.hosts()[host].name;
        links.push(Named { between: format!("{} to {}", name(one), name(other)), link });
    }
    if fabric.supernodes().len() > 1 {
        for supernode in fabric.supernodes() {
            add(&mut links, "out of supernode", &supernode.name, &supernode.exit);
        }
    }
    links
}

fn add<'a>(links: &mut Vec<Named<'a>>, way: &str, name: &str, link: &'a Link) {
    let alike =
        |known: &&mut Named| known.link == link && known.between.starts_with(&format!("{way} "));
    match links.iter_mut().find(alike) {
        Some(known) => known.between = format!("{}, {name}", known.between),
        None => links.push(Named { between: format!("{way} {name}"), link }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RACK: &str = include_str!("../../../examples/fabrics/four-hosts.toml");

    #[test]
    fn links_that_are_alike_are_named_together() {
        let fabric = Fabric::from_toml(RACK).unwrap();
        let names: Vec<String> = links(&fabric).into_iter().map(|link| link.between).collect();
        let out = ["out of rack1-a, rack1-b, rack1-c", "out of rack1-d"];
        assert_eq!(names[1..], out);
    }
}
