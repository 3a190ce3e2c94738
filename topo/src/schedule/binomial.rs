use super::Part;
use super::rounds::Rounds;

/// Binomial tree broadcast of one chunk: in each round every rank that has the data sends it to one
/// that has not, at distances that halve.
///
/// `ceil(log2(size))` messages of latency; the root sends the data as many times. The ranks below
/// a rank are those that follow it in the order.
pub(super) fn broadcast(me: u32, size: u32, root: u32) -> Rounds {
    let data = Part::data(0, 1);
    let mut rounds = Rounds::new(1);
    let levels = size.next_power_of_two().ilog2();
    let place = (me + size - root) % size;
    let at = |place| (place + root) % size;
    let below = if place == 0 { levels } else { place.trailing_zeros() };
    if place > 0 {
        rounds.recv(levels - 1 - below, at(place - (1 << below)), data);
    }
    for level in (0..below).rev().filter(|level| place + (1 << level) < size) {
        rounds.send(levels - 1 - level, at(place + (1 << level)), data);
    }
    rounds
}

#[cfg(test)]
mod tests {
    use crate::Rank;
    use crate::schedule::proof::{all_sizes, prove_broadcast, stats};
    use crate::schedule::{Algorithm, Collective, Shape};

    #[test]
    fn binomial_broadcast_is_proved_for_all_sizes() {
        prove_broadcast(Algorithm::Binomial, &[1]);
    }

    #[test]
    fn binomial_broadcast_takes_a_round_per_bit_of_the_place() {
        for size in all_sizes() {
            let collective = Collective::Broadcast { root: Rank(size / 2) };
            let stats = stats(Algorithm::Binomial, collective, &Shape::flat(size));
            assert_eq!(stats.rounds, (0..size).map(u32::count_ones).max().unwrap());
            assert_eq!(stats.messages, u64::from(size - 1));
        }
    }
}
