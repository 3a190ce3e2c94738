use super::Part;
use super::rounds::Rounds;

/// Halving-doubling all-reduce over `size` chunks: a reduce-scatter over distances that halve,
/// then an all-gather over distances that double.
///
/// A rank sends and receives `2 * (size - 1)` chunks, the least an all-reduce can move, in
/// `2 * ceil(log2(size))` rounds, the fewest, for every group size: it needs no power of two,
/// because a rank sends to the one `distance` after it and receives from the one `distance` before
/// it, where Rabenseifner's algorithm has the two be one partner. The chunks of a round are
/// neighbours in a circle, so they leave as one message, or as two where they pass the last chunk.
///
/// Source: Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", 2024.
pub(super) fn all_reduce(me: u32, size: u32) -> Rounds {
    let mut rounds = Rounds::new(size);
    let levels = size.next_power_of_two().ilog2();
    let mut held = size; // chunks me.. me + held are the ones that still count here
    for level in 0..levels {
        let distance = held.div_ceil(2);
        let (after, before) = ((me + distance) % size, (me + size - distance) % size);
        let (gather, moved) = (2 * levels - 1 - level, held - distance);
        for part in circular(after, moved, size) {
            rounds.send(level, after, part);
            rounds.recv(gather, after, part);
        }
        for part in circular(me, moved, size) {
            rounds.recv_reduce(level, before, part);
            rounds.send(gather, before, part);
        }
        held = distance;
    }
    rounds
}

/// The `len` chunks from `first` on in a circle of `size` chunks.
fn circular(first: u32, len: u32, size: u32) -> impl Iterator<Item = Part> {
    let straight = len.min(size - first);
    let parts = [Part::data(first, straight), Part::data(0, len - straight)];
    parts.into_iter().filter(|part| part.len > 0)
}

#[cfg(test)]
mod tests {
    use crate::schedule::proof::{all_sizes, prove, stats};
    use crate::schedule::{Algorithm, Collective, Shape};

    const ALGORITHM: Algorithm = Algorithm::HalvingDoubling;

    #[test]
    fn halving_doubling_all_reduce_is_proved_for_all_sizes() {
        all_sizes().for_each(|size| prove(ALGORITHM, Collective::AllReduce, size, &[1]));
    }

    #[test]
    fn halving_doubling_moves_the_least_bytes_in_the_fewest_rounds() {
        for size in all_sizes() {
            let stats = stats(ALGORITHM, Collective::AllReduce, &Shape::flat(size));
            assert_eq!(stats.chunks, size);
            assert_eq!(stats.moves_per_rank, 2 * u64::from(size - 1));
            assert_eq!(stats.moves, u64::from(size) * stats.moves_per_rank);
            let fewest = 2 * size.next_power_of_two().ilog2();
            assert!(stats.rounds == fewest || stats.rounds < fewest && !size.is_power_of_two());
        }
    }
}
