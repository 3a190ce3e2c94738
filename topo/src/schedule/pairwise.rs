use super::Part;
use super::rounds::Rounds;

/// Pairwise all-to-all: each block goes straight to where it belongs, those for the ranks that
/// follow closest first.
///
/// A rank sends and receives `size - 1` blocks, the least there is. At every distance each rank
/// sends to one and receives from one; the executor may have all distances under way at once.
pub(super) fn all_to_all(me: u32, size: u32) -> Rounds {
    let mut rounds = Rounds::new(size * size);
    for distance in 1..size {
        let (to, from) = ((me + distance) % size, (me + size - distance) % size);
        rounds.send(distance, to, Part::input(me * size + to, 1));
        rounds.recv(distance, from, Part::data(from * size + me, 1));
    }
    rounds
}

#[cfg(test)]
mod tests {
    use crate::schedule::proof::{all_sizes, prove, stats};
    use crate::schedule::{Algorithm, Collective, Shape};

    #[test]
    fn pairwise_all_to_all_is_proved_for_all_sizes() {
        for size in all_sizes() {
            prove(Algorithm::Pairwise, Collective::AllToAll, size, &[1]);
            prove(Algorithm::Pairwise, Collective::AllToAllV, size, &[1]);
        }
    }

    #[test]
    fn pairwise_all_to_all_moves_each_block_once() {
        let stats = stats(Algorithm::Pairwise, Collective::AllToAll, &Shape::flat(9));
        assert_eq!((stats.rounds, stats.messages, stats.moves_per_rank), (1, 72, 8));
    }
}
