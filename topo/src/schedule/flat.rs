use super::Part;
use super::rounds::Rounds;

/// Flat all-reduce: every rank sends its data to every other and folds what all sent, in the
/// order of their positions, so that all hold the same bits.
///
/// One message of latency, `size - 1` times the data each way. Ranks other than the first fold in
/// scratch memory, because the fold starts with the first rank's data and their own is being sent.
pub(super) fn all_reduce(me: u32, size: u32) -> Rounds {
    let (data, scratch) = (Part::data(0, 1), Part::scratch(0, 1));
    let mut rounds = Rounds::new(1);
    for distance in 1..size {
        rounds.send(0, (me + distance) % size, data);
    }
    if me == 0 {
        (1..size).for_each(|from| rounds.recv_reduce(1, from, data));
        return rounds;
    }
    rounds.recv(1, 0, scratch);
    for from in 1..size {
        match from == me {
            true => rounds.reduce(1, data, scratch),
            false => rounds.recv_reduce(1, from, scratch),
        }
    }
    rounds.copy(1, scratch, data);
    rounds
}

/// Flat broadcast: the root sends its data to every other rank.
pub(super) fn broadcast(me: u32, size: u32, root: u32) -> Rounds {
    let data = Part::data(0, 1);
    let mut rounds = Rounds::new(1);
    if me == root {
        (1..size).for_each(|distance| rounds.send(0, (root + distance) % size, data));
    } else {
        rounds.recv(0, root, data);
    }
    rounds
}

#[cfg(test)]
mod tests {
    use crate::schedule::proof::{all_sizes, prove, prove_broadcast, stats};
    use crate::schedule::{Algorithm, Collective, Shape};

    #[test]
    fn flat_all_reduce_is_proved_for_all_sizes() {
        all_sizes().for_each(|size| prove(Algorithm::Flat, Collective::AllReduce, size, &[1]));
    }

    #[test]
    fn flat_broadcast_is_proved_for_all_sizes() {
        prove_broadcast(Algorithm::Flat, &[1]);
    }

    #[test]
    fn flat_all_reduce_takes_one_round() {
        let stats = stats(Algorithm::Flat, Collective::AllReduce, &Shape::flat(9));
        assert_eq!((stats.rounds, stats.messages, stats.moves_per_rank), (1, 72, 8));
    }
}
