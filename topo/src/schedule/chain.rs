use super::Part;
use super::rounds::Rounds;

/// Chain broadcast of `depth` chunks: every rank hands each piece on to the next in the order.
///
/// A rank sends and receives the data once, the least there is, for a latency of `size - 1`
/// messages and one more for each further piece.
pub(super) fn broadcast(me: u32, size: u32, root: u32, depth: u32) -> Rounds {
    let mut rounds = Rounds::new(depth);
    let place = (me + size - root) % size;
    for piece in 0..depth {
        let part = Part::data(piece, 1);
        // A hop is two rounds, so that the receive of the next piece comes before the send of this.
        let hop = |place| 2 * (place + piece);
        if place > 0 {
            rounds.recv(hop(place - 1), (me + size - 1) % size, part);
        }
        if place + 1 < size {
            rounds.send(hop(place) + 1, (me + 1) % size, part);
        }
    }
    rounds
}

/// Chain reduce of `depth` chunks: the broadcast backwards, folding.
pub(super) fn reduce(me: u32, size: u32, root: u32, depth: u32) -> Rounds {
    let mut rounds = Rounds::new(depth);
    let place = (me + size - root) % size;
    for piece in 0..depth {
        let part = Part::data(piece, 1);
        let hop = |place| 2 * (size - 1 - place + piece);
        if place + 1 < size {
            rounds.recv_reduce(hop(place + 1), (me + 1) % size, part);
        }
        if place > 0 {
            rounds.send(hop(place) + 1, (me + size - 1) % size, part);
        }
    }
    rounds
}

#[cfg(test)]
mod tests {
    use crate::Rank;
    use crate::schedule::proof::{prove_rooted, stats};
    use crate::schedule::{Algorithm, Collective, Shape, Step};

    #[test]
    fn chain_broadcast_is_proved_for_all_sizes() {
        prove_rooted(Algorithm::Chain, |root| Collective::Broadcast { root }, &[1, 2, 4, 7]);
    }

    #[test]
    fn chain_reduce_is_proved_for_all_sizes() {
        prove_rooted(Algorithm::Chain, |root| Collective::Reduce { root }, &[1, 2, 4, 7]);
    }

    #[test]
    fn chain_broadcast_moves_the_data_once() {
        let shape = Shape { depth: 4, ..Shape::flat(6) };
        let stats = stats(Algorithm::Chain, Collective::Broadcast { root: Rank(2) }, &shape);
        assert_eq!((stats.chunks, stats.moves_per_rank, stats.rounds), (4, 4, 5));
    }

    #[test]
    fn a_receive_comes_before_the_send_of_the_piece_before() {
        let shape = Shape { depth: 3, ..Shape::flat(3) };
        let collective = Collective::Broadcast { root: Rank(0) };
        let schedule = Algorithm::Chain.schedule(collective, Rank(1), &shape).unwrap();
        let kinds: String = schedule.steps.iter().map(kind).collect();
        assert_eq!(kinds, "rrsrss");
    }

    fn kind(step: &Step) -> char {
        if matches!(step, Step::Send { .. }) { 's' } else { 'r' }
    }
}
