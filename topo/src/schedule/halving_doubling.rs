use super::Part;
use super::rounds::{Rounds, circular};

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
    halve(me, size, &mut rounds, 0);
    double(me, size, &mut rounds, levels(size));
    rounds
}

/// The first half of the all-reduce: each rank ends with the fold of the chunk of its own number.
pub(super) fn reduce_scatter(me: u32, size: u32) -> Rounds {
    let mut rounds = Rounds::new(size);
    halve(me, size, &mut rounds, 0);
    rounds
}

/// The second half of the all-reduce: each rank spreads the chunk of its own number.
pub(super) fn all_gather(me: u32, size: u32) -> Rounds {
    let mut rounds = Rounds::new(size);
    double(me, size, &mut rounds, 0);
    rounds
}

fn halve(me: u32, size: u32, rounds: &mut Rounds, start: u32) {
    for (level, distance, moved) in levels_down(size) {
        let (after, before) = ((me + distance) % size, (me + size - distance) % size);
        for (first, len) in circular(after, moved, size) {
            rounds.send(start + level, after, Part::data(first, len));
        }
        for (first, len) in circular(me, moved, size) {
            rounds.recv_reduce(start + level, before, Part::data(first, len));
        }
    }
}

fn double(me: u32, size: u32, rounds: &mut Rounds, start: u32) {
    let last = start + levels(size) - u32::from(size > 1);
    for (level, distance, moved) in levels_down(size) {
        let (after, before) = ((me + distance) % size, (me + size - distance) % size);
        for (first, len) in circular(after, moved, size) {
            rounds.recv(last - level, after, Part::data(first, len));
        }
        for (first, len) in circular(me, moved, size) {
            rounds.send(last - level, before, Part::data(first, len));
        }
    }
}

fn levels(size: u32) -> u32 {
    size.next_power_of_two().ilog2()
}

/// The levels of the halving: each with its distance and how many chunks move over it. Before a
/// level the chunks `me..me + held` still count on a rank, after it `distance` of them.
fn levels_down(size: u32) -> impl Iterator<Item = (u32, u32, u32)> {
    let mut held = size;
    (0..levels(size)).map(move |level| {
        let distance = held.div_ceil(2);
        let moved = held - distance;
        held = distance;
        (level, distance, moved)
    })
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
    fn halving_and_doubling_by_themselves_are_proved_for_all_sizes() {
        for collective in [Collective::ReduceScatter, Collective::AllGather] {
            for size in all_sizes() {
                prove(ALGORITHM, collective, size, &[1]);
                let stats = stats(ALGORITHM, collective, &Shape::flat(size));
                assert_eq!(stats.moves_per_rank, u64::from(size - 1));
            }
        }
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
