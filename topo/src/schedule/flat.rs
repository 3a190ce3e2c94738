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

/// Flat reduce: the root folds what all send, in the order of their positions.
pub(super) fn reduce(me: u32, size: u32, root: u32) -> Rounds {
    let data = Part::data(0, 1);
    let mut rounds = Rounds::new(1);
    if me == root {
        (1..size).for_each(|distance| rounds.recv_reduce(0, (root + distance) % size, data));
    } else {
        rounds.send(0, root, data);
    }
    rounds
}

/// Flat all-gather: every rank sends its block to every other.
pub(super) fn all_gather(me: u32, size: u32) -> Rounds {
    let mut rounds = Rounds::new(size);
    for (to, from) in others(me, size) {
        rounds.send(0, to, Part::data(me, 1));
        rounds.recv(0, from, Part::data(from, 1));
    }
    rounds
}

/// Flat reduce-scatter: every rank sends each other its block, and folds what it gets.
pub(super) fn reduce_scatter(me: u32, size: u32) -> Rounds {
    let mut rounds = Rounds::new(size);
    for (to, from) in others(me, size) {
        rounds.send(0, to, Part::data(to, 1));
        rounds.recv_reduce(0, from, Part::data(me, 1));
    }
    rounds
}

/// Flat gather: every rank sends its block to the root.
pub(super) fn gather(me: u32, size: u32, root: u32) -> Rounds {
    let mut rounds = Rounds::new(size);
    if me == root {
        others(me, size).for_each(|(_, from)| rounds.recv(0, from, Part::data(from, 1)));
    } else {
        rounds.send(0, root, Part::input(me, 1));
    }
    rounds
}

/// Flat scatter: the root sends each rank its block.
pub(super) fn scatter(me: u32, size: u32, root: u32) -> Rounds {
    let mut rounds = Rounds::new(size);
    if me == root {
        others(me, size).for_each(|(to, _)| rounds.send(0, to, Part::input(to, 1)));
    } else {
        rounds.recv(0, root, Part::data(me, 1));
    }
    rounds
}

/// The other ranks, by distance: the one that far behind and the one that far before.
fn others(me: u32, size: u32) -> impl Iterator<Item = (u32, u32)> {
    (1..size).map(move |distance| ((me + distance) % size, (me + size - distance) % size))
}

#[cfg(test)]
mod tests {
    use crate::Rank;
    use crate::schedule::proof::{all_sizes, prove, prove_rooted, stats};
    use crate::schedule::{Algorithm, Collective, Shape};

    #[test]
    fn flat_all_reduce_is_proved_for_all_sizes() {
        all_sizes().for_each(|size| prove(Algorithm::Flat, Collective::AllReduce, size, &[1]));
    }

    #[test]
    fn flat_broadcast_is_proved_for_all_sizes() {
        prove_rooted(Algorithm::Flat, |root| Collective::Broadcast { root }, &[1]);
    }

    #[test]
    fn flat_reduce_gather_and_scatter_are_proved_for_all_sizes() {
        let kinds: [fn(Rank) -> Collective; 3] = [
            |root| Collective::Reduce { root },
            |root| Collective::Gather { root },
            |root| Collective::Scatter { root },
        ];
        kinds.into_iter().for_each(|kind| prove_rooted(Algorithm::Flat, kind, &[1]));
    }

    #[test]
    fn flat_all_gather_and_reduce_scatter_are_proved_for_all_sizes() {
        for size in all_sizes() {
            prove(Algorithm::Flat, Collective::AllGather, size, &[1]);
            prove(Algorithm::Flat, Collective::ReduceScatter, size, &[1]);
        }
    }

    #[test]
    fn flat_all_reduce_takes_one_round() {
        let stats = stats(Algorithm::Flat, Collective::AllReduce, &Shape::flat(9));
        assert_eq!((stats.rounds, stats.messages, stats.moves_per_rank), (1, 72, 8));
    }
}
