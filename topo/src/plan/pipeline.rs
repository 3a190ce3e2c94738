use super::cost::{Job, Phase, SMALLEST_PIECE};
use super::model::Send;
use crate::Rank;

/// An algorithm that hands data on in pieces, each all the way, one piece after another.
pub(super) struct Pipeline {
    /// All moves of the data.
    sends: Vec<Send>,
    /// How many bytes the busiest rank folds.
    folded: f64,
    /// How many messages lie between the first rank and the last.
    hops: u32,
    /// Their latencies.
    way_s: f64,
    /// What the whole data takes on that way if it is a single piece, beside what it takes on the
    /// busiest link.
    fill_s: f64,
    /// What one more message of a rank costs.
    message_s: f64,
    /// The bytes that are cut into pieces.
    bytes: f64,
}

const MOST_PIECES: u32 = 64;

impl Pipeline {
    /// The number of pieces for which the time until the last rank is busy and the cost of more
    /// messages are in balance: `fill / k + k * message` is least for `k = sqrt(fill / message)`.
    pub(super) fn best_depth(&self) -> u32 {
        let pieces = (self.fill_s / self.message_s).sqrt().round();
        let most = ((self.bytes / SMALLEST_PIECE) as u32).clamp(1, MOST_PIECES);
        (pieces as u32).clamp(1, most)
    }

    pub(super) fn phase(self, depth: u32) -> Phase<'static> {
        let pieces = f64::from(depth);
        Phase {
            sends: Box::new(self.sends.into_iter()),
            rounds: self.hops + depth - 1,
            latency_s: Some(self.way_s + self.fill_s / pieces + (pieces - 1.0) * self.message_s),
            folded: self.folded,
        }
    }
}

impl Job<'_> {
    /// Every rank hands the data on to the next.
    pub(super) fn chain(&self, order: &[Rank]) -> Pipeline {
        let hops = order.iter().zip(&order[1..]);
        let sends: Vec<Send> =
            hops.map(|(&from, &to)| Send { from, to, bytes: self.bytes }).collect();
        let way = sends.iter().map(|send| self.hop(send.from, send.to));
        let way = way.fold(Way::default(), Way::then);
        let slowest = sends.iter().map(|send| self.model.s_per_byte(send.from, send.to));
        let slowest = slowest.fold(0.0, f64::max);
        Pipeline {
            folded: 0.0,
            hops: sends.len() as u32,
            way_s: way.latency_s,
            fill_s: self.bytes * (way.s_per_byte - slowest),
            message_s: self.message_s(&sends),
            bytes: self.bytes,
            sends,
        }
    }

    /// The data goes down several chains with common beginnings; `sends` are all its moves.
    pub(super) fn tree_of_chains(&self, chains: &[Vec<Rank>], sends: Vec<Send>) -> Pipeline {
        let mut longest = Way::default();
        for chain in chains {
            let hops = chain.windows(2).map(|hop| self.hop(hop[0], hop[1]));
            longest = longest.longest(hops.fold(Way::default(), Way::then));
        }
        let slowest = sends.iter().map(|send| self.model.s_per_byte(send.from, send.to));
        let slowest = slowest.fold(0.0, f64::max);
        Pipeline {
            folded: 0.0,
            hops: chains.iter().map(|chain| chain.len() as u32 - 1).max().unwrap_or(0),
            way_s: longest.latency_s,
            fill_s: self.bytes * (longest.s_per_byte - slowest).max(0.0),
            message_s: self.message_s(&sends),
            bytes: self.bytes,
            sends,
        }
    }

    /// Half of the data goes up one binary tree and down again, half another.
    ///
    /// A piece waits at each rank for that of the other child, so it takes the time of two on
    /// every hop.
    pub(super) fn trees(&self, order: &[Rank]) -> Pipeline {
        let (half, size) = (self.bytes / 2.0, order.len() as u32);
        let mut sends = Vec::new();
        let mut longest = Way::default();
        for shift in [0, 1] {
            let at = |label: u32| order[((label - 1 + shift) % size) as usize];
            for label in 1..=size {
                if let Some(parent) = parent(label, size) {
                    let (child, parent) = (at(label), at(parent));
                    sends.push(Send { from: child, to: parent, bytes: half });
                    sends.push(Send { from: parent, to: child, bytes: half });
                }
                let up = std::iter::successors(Some(label), |&label| parent(label, size));
                let hops = up.filter_map(|label| Some((label, parent(label, size)?)));
                let way = hops.map(|(label, parent)| self.hop(at(label), at(parent)));
                longest = longest.longest(way.fold(Way::default(), Way::then));
            }
        }
        Pipeline {
            folded: self.bytes,
            hops: 2 * size.ilog2(),
            way_s: 2.0 * longest.latency_s,
            fill_s: 2.0 * 2.0 * half * longest.s_per_byte,
            message_s: self.message_s(&sends),
            bytes: half,
            sends,
        }
    }

    fn hop(&self, from: Rank, to: Rank) -> Way {
        Way {
            latency_s: self.model.latency_s(from, to),
            s_per_byte: self.model.s_per_byte(from, to),
        }
    }

    fn message_s(&self, sends: &[Send]) -> f64 {
        let latencies = sends.iter().map(|send| self.model.latency_s(send.from, send.to));
        latencies.fold(0.0, f64::max) + self.model.switch_s
    }
}

/// What lies between two ranks with others between them.
#[derive(Clone, Copy, Default)]
struct Way {
    latency_s: f64,
    s_per_byte: f64,
}

impl Way {
    fn then(self, hop: Way) -> Way {
        Way {
            latency_s: self.latency_s + hop.latency_s,
            s_per_byte: self.s_per_byte + hop.s_per_byte,
        }
    }

    fn longest(self, other: Way) -> Way {
        Way {
            latency_s: self.latency_s.max(other.latency_s),
            s_per_byte: self.s_per_byte.max(other.s_per_byte),
        }
    }
}

/// The parent in a binary tree whose nodes are labelled 1, 2, ... `size` from left to right: the
/// nearest label with one more low bit zero, or the one above the cut-off right end.
fn parent(label: u32, size: u32) -> Option<u32> {
    let bit = 1 << label.trailing_zeros();
    let (below, above) = (label - bit, label + bit);
    let parent = if below & (bit << 1) == 0 && above <= size { above } else { below };
    (parent > 0).then_some(parent)
}
