//! What exchanges over the board of one host take.

use super::cost::Job;
use crate::Rank;
use crate::schedule::{Algorithm, Collective};

/// The least bytes that a message needs for each of its parts.
pub(super) const LEAST_PART: u64 = 64;

/// Looking at one more flag takes this part of a message's latency: the cache lines of all ranks
/// are on their way at the same time.
const FLAG: f64 = 0.125;

/// Windows that pass one after the other keep all ranks busy, but are not worth it when smaller.
const SMALLEST_WINDOW: f64 = 32_768.0;
/// In so many windows the first and the last one, in which some ranks wait, take little of the time.
const WINDOWS: f64 = 4.0;

/// So many bytes are copied into a message, or out of one, while one byte passes a ring, which is
/// the figure of the link: that takes two copies, and rings are so small that every line is fetched from the
/// other core's cache, whereas messages rotate through more memory than such a cache holds.
const PER_RING_BYTE: f64 = 4.0;

/// Into how many parts a message is divided.
pub(super) fn parts(algorithm: Algorithm, collective: Collective, ranks: u32) -> u64 {
    match collective {
        _ if algorithm == Algorithm::FusedShares => ranks.into(),
        Collective::ReduceScatter | Collective::Scatter { .. } | Collective::AllToAll => {
            u64::from(ranks - 1).max(1)
        }
        _ => 1,
    }
}

/// What one rank does with bytes.
#[derive(Clone, Copy, Default)]
struct Work {
    /// Copies them, into a message or out of one.
    copied: f64,
    folded: f64,
}

impl Job<'_> {
    /// In how many windows the longest stream from one rank to another passes the board.
    pub(super) fn fused_depth(&self, algorithm: Algorithm, ranks: usize) -> u32 {
        let blocks = algorithm == Algorithm::FusedShares || self.collective.has_blocks();
        let stream = if blocks { self.bytes / ranks as f64 } else { self.bytes };
        let most = self.board / parts(algorithm, self.collective, ranks as u32) as f64;
        let least = (stream / most).ceil().max(1.0);
        let one_way = self.collective.root().is_some();
        let wanted = if self.model.switch_s == 0.0 && one_way {
            (stream / SMALLEST_WINDOW).floor().min(WINDOWS)
        } else {
            1.0
        };
        // Beyond this, nobody waits for the last round.
        least.max(wanted).min(f64::from(1 << 30)) as u32
    }

    /// The time of all rounds: of the busiest rank, or of all ranks on the cores they have.
    pub(super) fn fused(&self, algorithm: Algorithm, order: &[Rank], depth: u32) -> f64 {
        let model = self.model;
        let ranks = order.len() as f64;
        let (one, other) = (order[0], order[1 % order.len()]);
        let rounds = f64::from(depth) + f64::from(u8::from(algorithm == Algorithm::FusedShares));
        let latency_s = model.latency_s(one, other) * (1.0 + FLAG * (ranks - 2.0));
        let crowding = model.crowding[0];
        let copy_s = model.s_per_byte(one, other) / crowding / PER_RING_BYTE;
        let fold_s = model.fold_s_per_byte / crowding;
        let seconds = |work: Work| work.copied * copy_s + work.folded * fold_s;
        let (root, others) = self.fused_work(algorithm, ranks);
        let busiest = seconds(root).max(seconds(others));
        let mean = (seconds(root) + (ranks - 1.0) * seconds(others)) / ranks;
        let first = (seconds(root) + seconds(others) - busiest) / f64::from(depth);
        let waiting = if self.collective.root().is_some() { first } else { 0.0 };
        rounds * (latency_s + model.switch_s) + busiest.max(mean * crowding) + waiting
    }

    /// The work of the root, and of any other rank; they are the same where there is no root.
    fn fused_work(&self, algorithm: Algorithm, ranks: f64) -> (Work, Work) {
        let (all, block) = (self.bytes, self.bytes / ranks);
        let work = |copied, folded| Work { copied, folded };
        let same = |work| (work, work);
        match self.collective {
            Collective::Barrier | Collective::AllToAllV => same(Work::default()),
            _ if algorithm == Algorithm::FusedShares => same(work(2.0 * all, all - block)),
            Collective::AllReduce => same(work(all, all * (ranks - 1.0))),
            Collective::AllGather => same(work(all, 0.0)),
            Collective::ReduceScatter => same(work(all - block, all - block)),
            Collective::AllToAll => same(work(2.0 * (all - block), 0.0)),
            Collective::Broadcast { .. } => same(work(all, 0.0)),
            Collective::Reduce { .. } => (work(0.0, all * (ranks - 1.0)), work(all, 0.0)),
            Collective::Gather { .. } | Collective::Scatter { .. } => {
                (work(all - block, 0.0), work(block, 0.0))
            }
        }
    }
}
