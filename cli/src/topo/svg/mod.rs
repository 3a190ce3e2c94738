//! A view as a drawing: hosts as boxes in frames of supernodes, under each row a switch.

mod canvas;
mod host;

use tutti_topo::fabric::Link;

use super::table::microseconds;
use super::view::View;
use canvas::{Canvas, Xy, xy};

/// Hosts side by side, before the next row.
const PER_ROW: usize = 4;
/// Between boxes, and between a box and its frame.
const GAP: f64 = 28.0;
/// Above a row, where the links of two hosts pass.
const ABOVE: f64 = 64.0;
/// From the boxes of a row down to its switch, which leaves room for the figures.
const DROP: f64 = 52.0;
/// At the left of all frames, for what leads from one supernode to another.
const TRUNK: f64 = 150.0;

/// The drawing as an SVG file.
pub(super) fn drawing(view: &View) -> String {
    let mut picture = Picture {
        view,
        canvas: Canvas::default(),
        host: host::size(view),
        corners: vec![xy(0.0, 0.0); view.fabric.hosts().len()],
    };
    let size = picture.supernodes();
    picture.pairs();
    picture.canvas.finish(size)
}

struct Picture<'a> {
    view: &'a View,
    canvas: Canvas,
    /// The size of every host's box.
    host: Xy,
    /// The upper left corner of each host's box, by its number.
    corners: Vec<Xy>,
}

impl Picture<'_> {
    /// Draws all supernodes, one below the other. Returns the size of the whole.
    fn supernodes(&mut self) -> Xy {
        let count = self.view.fabric.supernodes().len();
        let left = if count > 1 { TRUNK } else { GAP / 2.0 };
        let (mut top, mut width, mut exits) = (GAP / 2.0, 0.0_f64, Vec::new());
        for number in 0..count {
            let hosts = self.hosts_of(number);
            if hosts.is_empty() {
                continue;
            }
            let (size, exit) = self.supernode(number, &hosts, xy(left, top));
            (top, width) = (top + size.y + GAP, width.max(size.x));
            exits.push((number, exit));
        }
        if exits.len() > 1 {
            self.trunk(&exits);
        }
        xy(left + width + GAP / 2.0, top - GAP / 2.0)
    }

    fn hosts_of(&self, supernode: usize) -> Vec<usize> {
        let hosts = self.view.fabric.hosts();
        (0..hosts.len()).filter(|host| hosts[*host].supernode == supernode).collect()
    }

    /// Draws a supernode. Returns its size, and where its switch may be left.
    fn supernode(&mut self, number: usize, hosts: &[usize], at: Xy) -> (Xy, Xy) {
        let rows = hosts.chunks(PER_ROW);
        let columns = hosts.len().min(PER_ROW) as f64;
        let row_height = ABOVE + self.host.y + if self.is_linked() { DROP } else { 0.0 };
        let size =
            xy(2.0 * GAP + columns * (self.host.x + GAP), rows.len() as f64 * row_height + GAP);
        self.canvas.rect("supernode", at, size);
        let name = format!("supernode {}", self.view.fabric.supernodes()[number].name);
        self.canvas.text("name", xy(at.x + 10.0, at.y + 18.0), size.x - 20.0, &name);
        let spine = at.x + GAP;
        let (mut switches, bottom) = (Vec::new(), size.y);
        for (index, row) in rows.enumerate() {
            let top = at.y + index as f64 * row_height + ABOVE;
            switches.push(self.row(row, xy(at.x + 2.0 * GAP, top), spine));
        }
        let (first, last) = (switches[0], switches[switches.len() - 1]);
        if self.is_linked() && first != last {
            self.canvas.line("switch", xy(spine, first), xy(spine, last));
        }
        (xy(size.x, bottom), xy(spine, last))
    }

    /// Draws the hosts of a row, and the switch below if there is more than one host in all.
    /// Returns how far down that is.
    fn row(&mut self, hosts: &[usize], at: Xy, spine: f64) -> f64 {
        let switch = at.y + self.host.y + DROP;
        for (column, &number) in hosts.iter().enumerate() {
            let corner = xy(at.x + column as f64 * (self.host.x + GAP), at.y);
            self.corners[number] = corner;
            host::draw(&mut self.canvas, self.view, number, corner, self.host);
            if self.is_linked() {
                let port = xy(corner.x + self.host.x / 2.0, corner.y + self.host.y);
                self.canvas.line("link", port, xy(port.x, switch));
                self.figures(
                    xy(port.x + 6.0, port.y + 20.0),
                    &self.view.fabric.hosts()[number].port,
                );
            }
        }
        if self.is_linked() {
            let end = at.x + hosts.len() as f64 * (self.host.x + GAP) - GAP;
            self.canvas.line("switch", xy(spine, switch), xy(end, switch));
        }
        switch
    }

    /// Whether there is anything to link.
    fn is_linked(&self) -> bool {
        self.view.fabric.hosts().len() > 1
    }

    /// Draws what leads from the switches of supernodes to each other.
    fn trunk(&mut self, exits: &[(usize, Xy)]) {
        let trunk = GAP / 2.0;
        for (supernode, exit) in exits {
            self.canvas.line("link", xy(trunk, exit.y), *exit);
            let link = &self.view.fabric.supernodes()[*supernode].exit;
            self.figures(xy(trunk + 8.0, exit.y - 20.0), link);
        }
        let ends = exits.first().zip(exits.last());
        let (first, last) = ends.expect("a trunk has exits");
        self.canvas.line("switch", xy(trunk, first.1.y), xy(trunk, last.1.y));
    }

    /// Draws the links that two hosts have beside their ports.
    fn pairs(&mut self) {
        let view = self.view;
        for ((one, other), link) in view.fabric.pairs() {
            let from = xy(self.corners[one].x + self.host.x * 0.7, self.corners[one].y);
            let to = xy(self.corners[other].x + self.host.x * 0.3, self.corners[other].y);
            let middle = self.canvas.arc("pair", from, to, ABOVE * 0.5);
            self.figures(xy(middle.x - 30.0, middle.y - 4.0), link);
        }
    }

    /// Writes what a link carries and how late, in two lines.
    fn figures(&mut self, at: Xy, link: &Link) {
        self.canvas.text("figure", at, TRUNK, &bandwidth(link));
        let latency = microseconds(link.latency_ns.value);
        self.canvas.text("figure", xy(at.x, at.y + 13.0), TRUNK, &latency);
    }
}

fn bandwidth(link: &Link) -> String {
    let rails = if link.rails > 1 { format!("{} x ", link.rails) } else { String::new() };
    format!("{rails}{:.1} GB/s", link.gb_per_s.value)
}

#[cfg(test)]
mod tests;
