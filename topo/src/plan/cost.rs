use super::model::{Model, Send};
use crate::Rank;
use crate::schedule::{Algorithm, Collective, Shape};

/// A collective on so many bytes of each rank, to be priced for one algorithm after another.
///
/// Prices follow the usual closed forms (latency per round, bytes over the capacity of the busiest
/// link, bytes folded), with one change: a rank hands bytes on as they come, so the rounds of rings
/// and chains do not wait for each other. The latencies along the way add up, and the bytes take
/// as long as on the slowest link of the way.
///
/// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
/// MPICH", 2005.
pub(super) struct Job<'a> {
    pub(super) model: &'a Model<'a>,
    pub(super) collective: Collective,
    pub(super) bytes: f64,
    /// The longest message of the board, if there is one.
    pub(super) board: f64,
}

/// A shape, and the time that it is predicted to take.
pub(super) struct Draft {
    pub(super) shape: Shape,
    pub(super) seconds: f64,
}

/// Moves that all ranks make at the same time, in one round or in several of the same kind.
pub(super) struct Phase<'a> {
    /// What is sent in all rounds together.
    pub(super) sends: Box<dyn Iterator<Item = Send> + 'a>,
    pub(super) rounds: u32,
    /// What the rounds take beside their bytes, if that is not the latency of the slowest send for
    /// each of them.
    pub(super) latency_s: Option<f64>,
    /// How many bytes the busiest rank folds.
    pub(super) folded: f64,
}

/// The smallest piece that is worth a message of its own. Pipelining does not need small pieces,
/// since bytes are handed on as they come.
pub(super) const SMALLEST_PIECE: f64 = 65_536.0;

const MOST_CHANNELS: u32 = 8;

impl Job<'_> {
    /// The best shape of an algorithm that visits the ranks in that order.
    pub(super) fn draft(
        &self,
        algorithm: Algorithm,
        order: &[Rank],
        groups: &[Vec<Rank>],
    ) -> Draft {
        let groups = match algorithm {
            Algorithm::Hierarchical => groups.to_vec(),
            _ => vec![order.to_vec()],
        };
        let mut shape = Shape { order: order.to_vec(), groups, depth: 1, channels: 1 };
        match algorithm {
            Algorithm::Ring if !self.collective.has_blocks() => {
                shape.channels = self.channels(order);
            }
            Algorithm::Chain => shape.depth = self.chain(order).best_depth(),
            Algorithm::Hierarchical
                if matches!(
                    self.collective,
                    Collective::Broadcast { .. } | Collective::Reduce { .. }
                ) =>
            {
                shape.depth = self.chains_by_groups(&shape.groups, order[0]).best_depth();
            }
            Algorithm::DoubleBinaryTree => shape.depth = self.trees(order).best_depth(),
            _ if algorithm.is_fused() => shape.depth = self.fused_depth(algorithm, order.len()),
            _ => {}
        }
        Draft { seconds: self.seconds(algorithm, &shape), shape }
    }

    /// The time from the moment when all ranks enter until the last one leaves.
    pub(super) fn seconds(&self, algorithm: Algorithm, shape: &Shape) -> f64 {
        match algorithm {
            _ if shape.order.len() == 1 => 0.0,
            _ if algorithm.is_fused() => self.fused(algorithm, &shape.order, shape.depth),
            _ => self.phases(algorithm, shape).into_iter().map(|phase| self.phase(phase)).sum(),
        }
    }

    fn phase(&self, phase: Phase) -> f64 {
        let load = self.model.load(phase.sends);
        let rounds = f64::from(phase.rounds);
        phase.latency_s.unwrap_or(rounds * load.latency_s)
            + rounds * (load.posting_s + self.model.switch_s)
            + load.transfer_s
            + phase.folded * self.model.fold_s_per_byte
    }

    /// As many as the ring's narrowest place has rails, as long as there is enough for each.
    fn channels(&self, order: &[Rank]) -> u32 {
        let worthwhile = self.bytes / (order.len() as f64 * SMALLEST_PIECE);
        let rails = self.model.fewest_rails(order).min(MOST_CHANNELS);
        rails.min(worthwhile as u32).max(1)
    }
}
