use std::collections::BTreeSet;

use roxmltree::{Document, Node};
use tutti::TransportChoice;

use super::drawing;
use crate::topo::machine::Machine;
use crate::topo::sample;
use crate::topo::view::View;

/// Left, top, right, bottom.
type Area = [f64; 4];

fn areas(document: &Document, class: &str) -> Vec<Area> {
    let is_wanted = |node: &Node| node.attribute("class") == Some(class);
    let number = |node: Node, name| node.attribute(name).unwrap().parse::<f64>().unwrap();
    let area = |node: Node| {
        let [x, y, w, h] = ["x", "y", "width", "height"].map(|name| number(node, name));
        [x, y, x + w, y + h]
    };
    document
        .descendants()
        .filter(|node| node.has_tag_name("rect"))
        .filter(is_wanted)
        .map(area)
        .collect()
}

fn texts<'a>(document: &'a Document) -> BTreeSet<&'a str> {
    document.descendants().filter_map(|node| node.text()).collect()
}

fn contains(outer: &Area, inner: &Area) -> bool {
    outer[0] <= inner[0] && outer[1] <= inner[1] && outer[2] >= inner[2] && outer[3] >= inner[3]
}

fn overlap(a: &Area, b: &Area) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

#[test]
fn one_to_sixteen_hosts_are_drawn_apart_and_in_the_frames_of_their_supernodes() {
    for hosts in 1..=16 {
        for supernodes in 1..=hosts.min(4) {
            let file = drawing(&sample::hosts(hosts, supernodes));
            let document = Document::parse(&file).unwrap();
            let (boxes, frames) = (areas(&document, "host"), areas(&document, "supernode"));
            assert_eq!((boxes.len(), frames.len()), (hosts, supernodes));
            for (index, area) in boxes.iter().enumerate() {
                assert!(boxes[..index].iter().all(|other| !overlap(area, other)), "{hosts} hosts");
                assert_eq!(frames.iter().filter(|frame| contains(frame, area)).count(), 1);
            }
            let paper = areas(&document, "paper")[0];
            assert!(frames.iter().all(|frame| contains(&paper, frame)));
            for rank in areas(&document, "rank") {
                assert_eq!(boxes.iter().filter(|host| contains(host, &rank)).count(), 1);
            }
        }
    }
}

#[test]
fn hosts_ranks_interfaces_and_bandwidths_are_named() {
    let file = drawing(&View::of_machine(Machine::sample("a<b"), 3, TransportChoice::Auto));
    let document = Document::parse(&file).unwrap();
    let texts = texts(&document);
    for text in ["a<b", "4 cores", "NUMA 1: cores 2-3", "0", "2", "eth0 25 Gbit/s 10.0.0.7"] {
        assert!(texts.contains(text), "{text:?} is not in {texts:?}");
    }
    assert!(texts.contains("inside 8.0 GB/s, 0.40 µs"), "{texts:?}");
}

#[test]
fn links_of_ports_exits_and_pairs_have_their_bandwidth() {
    let file = drawing(&sample::pods());
    let document = Document::parse(&file).unwrap();
    let texts = texts(&document);
    for text in ["supernode left", "1.2 GB/s", "2.5 GB/s", "50.0 GB/s"] {
        assert!(texts.contains(text), "{text:?} is not in {texts:?}");
    }
}

#[test]
fn many_ranks_of_a_node_share_a_box() {
    let file = drawing(&View::of_machine(Machine::sample("a"), 128, TransportChoice::Auto));
    let document = Document::parse(&file).unwrap();
    assert!(texts(&document).contains("ranks 64-127"));
}
