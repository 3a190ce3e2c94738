use super::Part;
use super::rounds::Rounds;

/// Bruck all-to-all: in the round of each bit every rank sends on, over the distance of that bit,
/// the blocks whose way still has it.
///
/// `ceil(log2(size))` rounds, the fewest, for about half of all blocks sent in each; so it is for
/// small blocks.
///
/// Source: Bruck et al., "Efficient algorithms for all-to-all communications in multiport
/// message-passing systems", 1997; without its rotations, since blocks keep their numbers.
pub(super) fn all_to_all(me: u32, size: u32) -> Rounds {
    let mut rounds = Rounds::new(size * size);
    for level in 0..size.next_power_of_two().ilog2() {
        let hop = 1 << level;
        let (to, from) = ((me + hop) % size, (me + size - hop) % size);
        for way in (1..size).filter(|way| way & hop != 0) {
            let gone = way & (hop - 1);
            // The block that has gone so far and is now at `place`.
            let block = |place: u32| {
                let source = (place + size - gone) % size;
                source * size + (source + way) % size
            };
            let part = if gone == 0 { Part::input } else { Part::scratch };
            rounds.send(level, to, part(block(me), 1));
            let part = if way >> (level + 1) == 0 { Part::data } else { Part::scratch };
            rounds.recv(level, from, part(block(from), 1));
        }
    }
    rounds
}

#[cfg(test)]
mod tests {
    use crate::schedule::proof::{all_sizes, prove, stats};
    use crate::schedule::{Algorithm, Collective, Shape};

    #[test]
    fn bruck_all_to_all_is_proved_for_all_sizes() {
        all_sizes().for_each(|size| prove(Algorithm::Bruck, Collective::AllToAll, size, &[1]));
    }

    #[test]
    fn bruck_all_to_all_takes_a_round_per_bit_of_the_way() {
        for size in all_sizes() {
            let stats = stats(Algorithm::Bruck, Collective::AllToAll, &Shape::flat(size));
            assert_eq!(stats.rounds, (0..size).map(u32::count_ones).max().unwrap());
        }
    }
}
