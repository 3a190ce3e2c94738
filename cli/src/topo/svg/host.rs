//! The box of a host: NUMA nodes with ranks, network interfaces, and the link inside.

use super::bandwidth;
use super::canvas::{Canvas, Xy, xy};
use crate::topo::machine::Machine;
use crate::topo::system::{Nic, State};
use crate::topo::table::{microseconds, speed};
use crate::topo::view::{Node, View, cores_in_words, ranges};

const WIDTH: f64 = 250.0;
const INSET: f64 = 10.0;
/// The room inside.
const INNER: f64 = WIDTH - 2.0 * INSET;
/// Name, cores, and the link inside.
const HEAD: f64 = 56.0;
const NODE: f64 = 46.0;
const NIC: f64 = 20.0;
/// Ranks of a node that have a box each.
const RANKS_SHOWN: usize = 8;
/// Interfaces of a host that are drawn.
const NICS_SHOWN: usize = 4;

/// The size in which every host of the view fits.
pub(super) fn size(view: &View) -> Xy {
    let heights = (0..view.machines.len()).map(|host| {
        let nics = view.machines[host].as_ref().map_or(0, |machine| lines(machine).len());
        HEAD + NODE * view.nodes_of(host).len() as f64 + NIC * nics as f64
    });
    xy(WIDTH, heights.fold(HEAD, f64::max) + INSET)
}

/// Draws the host into a box at `at`.
pub(super) fn draw(canvas: &mut Canvas, view: &View, number: usize, at: Xy, size: Xy) {
    let (host, machine) = (&view.fabric.hosts()[number], view.machines[number].as_ref());
    let left = at.x + INSET;
    canvas.rect("host", at, size);
    canvas.text("name", xy(left, at.y + 17.0), INNER, &host.name);
    let cores = cores_in_words(host.cores, machine.map(|machine| &machine.cores));
    canvas.text("cores", xy(left, at.y + 31.0), INNER, &cores);
    let latency = microseconds(host.inside.latency_ns.value);
    let inside = format!("inside {}, {latency}", bandwidth(&host.inside));
    canvas.text("figure", xy(left, at.y + 46.0), INNER, &inside);
    let mut top = at.y + HEAD;
    for node in view.nodes_of(number) {
        draw_node(canvas, &node, xy(left, top));
        top += NODE;
    }
    for (class, line) in machine.map_or(Vec::new(), lines) {
        canvas.rect(class, xy(left, top), xy(INNER, NIC - 4.0));
        canvas.text("address", xy(left + 4.0, top + 12.0), INNER - 8.0, &line);
        top += NIC;
    }
}

fn draw_node(canvas: &mut Canvas, node: &Node, at: Xy) {
    canvas.rect("node", at, xy(INNER, NODE - 6.0));
    let cores = match node.cores.as_deref() {
        None => String::new(),
        Some([]) => ": no core".into(),
        Some(cores) => format!(": cores {}", ranges(cores)),
    };
    let title = format!("NUMA {}{cores}", node.id);
    canvas.text("title", xy(at.x + 4.0, at.y + 12.0), INNER - 8.0, &title);
    let boxes: Vec<String> = match node.ranks.len() {
        0 => return,
        many if many > RANKS_SHOWN => vec![format!("ranks {}", ranges(&node.ranks))],
        _ => node.ranks.iter().map(u32::to_string).collect(),
    };
    let width = match boxes.len() {
        1 if node.ranks.len() > 1 => INNER - 8.0,
        _ => (INNER - 8.0) / RANKS_SHOWN as f64,
    };
    for (index, label) in boxes.iter().enumerate() {
        let corner = xy(at.x + 4.0 + index as f64 * width, at.y + 18.0);
        canvas.rect("rank", corner, xy(width - 3.0, 17.0));
        canvas.text("number", xy(corner.x + (width - 3.0) / 2.0, corner.y + 12.0), width, label);
    }
}

/// A line for each interface to a network, with the class of its box; a last one counts those that
/// are too many.
fn lines(machine: &Machine) -> Vec<(&'static str, String)> {
    let is_loopback = |nic: &Nic| nic.name == "lo";
    let nics: Vec<&Nic> = machine.nics.iter().filter(|nic| !is_loopback(nic)).collect();
    let mut lines: Vec<_> = nics.iter().take(NICS_SHOWN).map(|nic| line(nic)).collect();
    if nics.len() > NICS_SHOWN {
        lines.push(("down", format!("and {} more", nics.len() - NICS_SHOWN)));
    }
    lines
}

fn line(nic: &Nic) -> (&'static str, String) {
    let carries = matches!(nic.state, State::Up | State::Unknown);
    let address = nic.addresses.first().map(|ip| ip.to_string()).unwrap_or_default();
    let speed = nic.mbit_per_s.map_or_else(|| nic.state.name().to_owned(), |_| speed(nic));
    (if carries { "nic" } else { "down" }, format!("{} {speed} {address}", nic.name))
}
