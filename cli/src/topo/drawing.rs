//! The fabric as a drawing: hosts as boxes in the frames of their supernodes, with the ranks of each
//! NUMA node, and a line to the network for each port.

use std::fmt::Write;

use tutti_topo::fabric::{Fabric, Link};

use super::{ranks_of, runs};
use crate::machine::Machine;

const WIDTH: usize = 220;
const GAP: usize = 24;
const LINE: usize = 18;
const PER_ROW: usize = 4;

/// The drawing in SVG.
pub(super) fn drawing(machine: Option<&Machine>, fabric: &Fabric) -> String {
    let mut svg = Svg::default();
    let mut y = GAP;
    for (index, supernode) in fabric.supernodes().iter().enumerate() {
        let hosts: Vec<usize> = (0..fabric.hosts().len())
            .filter(|&host| fabric.hosts()[host].supernode == index)
            .collect();
        if hosts.is_empty() {
            continue;
        }
        let top = y;
        y += LINE + GAP / 2;
        for row in hosts.chunks(PER_ROW) {
            let cards: Vec<Card> =
                row.iter().map(|&host| Card::new(machine, fabric, host)).collect();
            let tallest = cards.iter().map(Card::height).max().unwrap_or(0);
            for (place, card) in cards.iter().enumerate() {
                let x = 2 * GAP + place * (WIDTH + GAP);
                card.draw(&mut svg, x, y);
                if fabric.hosts().len() > 1 {
                    let foot = y + card.height();
                    svg.line(x + WIDTH / 2, foot, x + WIDTH / 2, y + tallest + GAP);
                    svg.text(
                        x + WIDTH / 2 + 6,
                        y + tallest + GAP - 6,
                        "small",
                        &carries(&card.port),
                    );
                }
            }
            y += tallest + GAP;
            if fabric.hosts().len() > 1 {
                svg.bar(2 * GAP, y, row.len() * (WIDTH + GAP) - GAP);
            }
            y += GAP;
        }
        let across = hosts.len().min(PER_ROW) * (WIDTH + GAP) + GAP;
        svg.frame(GAP, top, across, y - top);
        let mut title = format!("supernode {}", supernode.name);
        if fabric.supernodes().len() > 1 {
            _ = write!(title, ": {} to others", carries(&supernode.exit));
        }
        svg.text(2 * GAP, top + LINE, "head", &title);
        svg.cover(across + 2 * GAP, y + GAP);
        y += GAP;
    }
    svg.end()
}

/// The box of a host: its name and what stands in it.
struct Card {
    name: String,
    lines: Vec<String>,
    port: Link,
}

impl Card {
    fn new(machine: Option<&Machine>, fabric: &Fabric, index: usize) -> Card {
        let host = &fabric.hosts()[index];
        let mut lines = vec![format!("{} cores; inside {}", host.cores, carries(&host.inside))];
        for (node, ranks) in ranks_of(fabric, index) {
            lines.push(format!("NUMA {node}: ranks {}", runs(&ranks)));
        }
        for nic in machine.iter().flat_map(|machine| &machine.interfaces).filter(|nic| nic.is_up) {
            let speed = nic.mbit_per_s.map_or(String::new(), |speed| format!(" {speed} Mbit/s"));
            lines.push(format!("{}{speed}", nic.name));
        }
        Card { name: host.name.clone(), lines, port: host.port }
    }

    fn height(&self) -> usize {
        LINE * (self.lines.len() + 1) + GAP / 2
    }

    fn draw(&self, svg: &mut Svg, x: usize, y: usize) {
        svg.host(x, y, WIDTH, self.height());
        svg.text(x + 10, y + LINE, "head", &self.name);
        for (index, line) in self.lines.iter().enumerate() {
            svg.text(x + 10, y + LINE * (index + 2), "small", line);
        }
    }
}

fn carries(link: &Link) -> String {
    let rails = if link.rails > 1 { format!("{} x ", link.rails) } else { String::new() };
    format!("{rails}{} GB/s ({})", link.gb_per_s.value, link.provenance())
}

#[derive(Default)]
struct Svg {
    shapes: String,
    width: usize,
    height: usize,
}

impl Svg {
    fn rectangle(&mut self, class: &str, [x, y, width, height]: [usize; 4]) {
        _ = writeln!(
            self.shapes,
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>"#
        );
    }

    fn host(&mut self, x: usize, y: usize, width: usize, height: usize) {
        self.rectangle("host", [x, y, width, height]);
    }

    fn frame(&mut self, x: usize, y: usize, width: usize, height: usize) {
        self.rectangle("frame", [x, y, width, height]);
    }

    /// The network that the ports of a row lead to.
    fn bar(&mut self, x: usize, y: usize, width: usize) {
        self.rectangle("network", [x, y, width, 6]);
    }

    fn line(&mut self, x: usize, y: usize, to_x: usize, to_y: usize) {
        _ = writeln!(self.shapes, r#"<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}"/>"#);
    }

    fn text(&mut self, x: usize, y: usize, class: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        _ = writeln!(self.shapes, r#"<text class="{class}" x="{x}" y="{y}">{text}</text>"#);
    }

    /// Makes the drawing at least so large.
    fn cover(&mut self, width: usize, height: usize) {
        self.width = self.width.max(width);
        self.height = self.height.max(height);
    }

    fn end(self) -> String {
        const STYLE: &str = "text{font-family:sans-serif;fill:#222}.head{font-size:14px;font-weight:bold}\
            .small{font-size:12px}.host{fill:#eef4fb;stroke:#4a7ab5}.frame{fill:none;stroke:#999}\
            .network{fill:#4a7ab5}line{stroke:#4a7ab5;stroke-width:2}";
        let Svg { shapes, width, height } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\">\n<style>{STYLE}</style>\n{shapes}</svg>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: &str = include_str!("../../../examples/fabrics/two-supernodes.toml");

    /// Every tag that is opened is closed, in order, and no text holds a bare `<` or `&`.
    fn assert_well_formed(svg: &str) {
        let mut open = Vec::new();
        for tag in svg.split('<').skip(1) {
            let (tag, text) = tag.split_once('>').expect("a tag ends");
            assert!(
                !text.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "").contains('&'),
                "{text}"
            );
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "{svg}"),
                None if tag.ends_with('/') => {}
                None => open.push(tag.split(' ').next().unwrap()),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn every_host_supernode_and_port_is_drawn() {
        let fabric = Fabric::from_toml(&PODS.replace("\"pod1-host0\"", "\"a <1> & co\"")).unwrap();
        let svg = drawing(None, &fabric);
        assert_well_formed(&svg);
        for host in fabric.hosts() {
            let name = host.name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            assert!(svg.contains(&format!(">{name}<")), "{name}: {svg}");
        }
        for supernode in fabric.supernodes() {
            assert!(svg.contains(&format!("supernode {}", supernode.name)), "{svg}");
        }
        assert_eq!(svg.matches("<line").count(), fabric.hosts().len());
    }

    #[test]
    fn one_host_has_no_line_to_a_network() {
        let svg = drawing(None, &crate::fabric::of_this_machine(4));
        assert_well_formed(&svg);
        assert!(!svg.contains("<line") && svg.contains("ranks 0-3"), "{svg}");
    }
}
