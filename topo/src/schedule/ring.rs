use super::Part;
use super::rounds::Rounds;

/// Ring all-reduce over `size` chunks: a reduce-scatter, then an all-gather.
///
/// A rank sends `2 * (size - 1)` chunks to its next and receives as many from its previous: the
/// least bytes an all-reduce can move, for a latency of `2 * (size - 1)` messages.
///
/// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
/// workstations", 2009.
pub(super) fn all_reduce(me: u32, size: u32) -> Rounds {
    let mut rounds = Rounds::new(size);
    let ring = whole(me, size);
    ring.reduce_scatter(&mut rounds, 0);
    ring.all_gather(&mut rounds, size - 1);
    rounds
}

/// Ring reduce-scatter: a rank sends `size - 1` chunks to its next, the least there is.
pub(super) fn reduce_scatter(me: u32, size: u32) -> Rounds {
    let mut rounds = Rounds::new(size);
    whole(me, size).reduce_scatter(&mut rounds, 0);
    rounds
}

/// Ring all-gather: a rank sends `size - 1` chunks to its next, the least there is.
pub(super) fn all_gather(me: u32, size: u32) -> Rounds {
    let mut rounds = Rounds::new(size);
    whole(me, size).all_gather(&mut rounds, 0);
    rounds
}

/// All ranks in one ring, each block a chunk.
fn whole(me: u32, size: u32) -> Ring<impl Fn(u32) -> u32, impl Fn(u32) -> [Part; 1]> {
    Ring { me, size, at: |member| member, block: |block| [Part::data(block, 1)] }
}

/// A ring of `size` members as member `me` sees it, on data of `size` blocks.
pub(super) struct Ring<At, Block> {
    pub(super) me: u32,
    pub(super) size: u32,
    /// The position of a member.
    pub(super) at: At,
    /// The parts of a block.
    pub(super) block: Block,
}

impl<At: Fn(u32) -> u32, Parts: IntoIterator<Item = Part>, Block: Fn(u32) -> Parts>
    Ring<At, Block>
{
    /// `size - 1` rounds from round `start`, after which each member holds the fold of the block
    /// of its own number.
    pub(super) fn reduce_scatter(&self, rounds: &mut Rounds, start: u32) {
        for round in 0..self.size - 1 {
            for part in self.behind(round + 1) {
                rounds.send(start + round, self.next(), part);
            }
            for part in self.behind(round + 2) {
                rounds.recv_reduce(start + round, self.prev(), part);
            }
        }
    }

    /// `size - 1` rounds from round `start`, in which each member spreads the block of its own
    /// number.
    pub(super) fn all_gather(&self, rounds: &mut Rounds, start: u32) {
        for round in 0..self.size - 1 {
            for part in self.behind(round) {
                rounds.send(start + round, self.next(), part);
            }
            for part in self.behind(round + 1) {
                rounds.recv(start + round, self.prev(), part);
            }
        }
    }

    fn next(&self) -> u32 {
        (self.at)((self.me + 1) % self.size)
    }

    fn prev(&self) -> u32 {
        (self.at)((self.me + self.size - 1) % self.size)
    }

    /// The block of the member `distance` (at most `size`) before this one.
    fn behind(&self, distance: u32) -> Parts {
        (self.block)((self.me + self.size - distance) % self.size)
    }
}

#[cfg(test)]
mod tests {
    use crate::schedule::proof::{all_sizes, prove, stats};
    use crate::schedule::{Algorithm, Collective, Shape};

    #[test]
    fn ring_all_reduce_is_proved_for_all_sizes() {
        all_sizes().for_each(|size| prove(Algorithm::Ring, Collective::AllReduce, size, &[1]));
    }

    #[test]
    fn ring_reduce_scatter_and_all_gather_are_proved_for_all_sizes() {
        for collective in [Collective::ReduceScatter, Collective::AllGather] {
            for size in all_sizes() {
                prove(Algorithm::Ring, collective, size, &[1]);
                let stats = stats(Algorithm::Ring, collective, &Shape::flat(size));
                assert_eq!(stats.moves_per_rank, u64::from(size - 1));
            }
        }
    }

    #[test]
    fn ring_all_reduce_moves_the_least_bytes_an_all_reduce_can_move() {
        for size in all_sizes() {
            let stats = stats(Algorithm::Ring, Collective::AllReduce, &Shape::flat(size));
            assert_eq!(stats.chunks, size);
            assert_eq!(stats.moves_per_rank, 2 * u64::from(size - 1));
            assert_eq!(stats.moves, u64::from(size) * stats.moves_per_rank);
            assert_eq!(stats.rounds, 2 * (size - 1));
        }
    }
}
