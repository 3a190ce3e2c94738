use super::Part;
use super::rounds::Rounds;

/// Recursive doubling all-reduce on one chunk: in each round pairs exchange everything they have,
/// and the distance between partners doubles.
///
/// `log2(size)` messages of latency, as many times the data each way. If `size` is no power of
/// two, the first positions stand in pairs: one folds its data into the other before the exchanges
/// and gets the result after them, two messages more.
///
/// Both of a pair fold the same two operands, each its own first. Folds commute bit for bit, so all
/// ranks hold the same bits.
///
/// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
/// MPICH", 2005.
pub(super) fn all_reduce(me: u32, size: u32) -> Rounds {
    let data = Part::data(0, 1);
    let mut rounds = Rounds::new(1);
    let levels = size.ilog2();
    let pairs = size - (1 << levels);
    let (before, after) = (0, levels + 1);
    if me < 2 * pairs && me % 2 == 1 {
        rounds.send(before, me - 1, data);
        rounds.recv(after, me - 1, data);
        return rounds;
    }
    if me < 2 * pairs {
        rounds.recv_reduce(before, me + 1, data);
    }
    let player = if me < 2 * pairs { me / 2 } else { me - pairs };
    for level in 0..levels {
        let partner = player ^ (1 << level);
        let partner = if partner < pairs { 2 * partner } else { partner + pairs };
        rounds.send(1 + level, partner, data);
        rounds.recv_reduce(1 + level, partner, data);
    }
    if me < 2 * pairs {
        rounds.send(after, me + 1, data);
    }
    rounds
}

#[cfg(test)]
mod tests {
    use crate::schedule::proof::{all_sizes, prove, stats};
    use crate::schedule::{Algorithm, Collective, Shape};

    const ALGORITHM: Algorithm = Algorithm::RecursiveDoubling;

    #[test]
    fn recursive_doubling_all_reduce_is_proved_for_all_sizes() {
        all_sizes().for_each(|size| prove(ALGORITHM, Collective::AllReduce, size, &[1]));
    }

    #[test]
    fn recursive_doubling_takes_log2_rounds_and_two_more_between_powers_of_two() {
        for (size, rounds) in [(1, 0), (2, 1), (7, 4), (8, 3), (13, 5), (64, 6)] {
            let stats = stats(ALGORITHM, Collective::AllReduce, &Shape::flat(size));
            assert_eq!(stats.rounds, rounds, "size {size}");
        }
    }
}
