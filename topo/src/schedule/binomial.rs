use super::Part;
use super::rounds::{Rounds, circular};

/// Binomial tree broadcast of one chunk: in each round every rank that has the data sends it to one
/// that has not, at distances that halve.
///
/// `ceil(log2(size))` messages of latency; the root sends the data as many times. The ranks below
/// a rank are those that follow it in the order.
pub(super) fn broadcast(me: u32, size: u32, root: u32) -> Rounds {
    let (tree, data) = (Tree::new(me, size, root), Part::data(0, 1));
    let mut rounds = Rounds::new(1);
    if let Some((level, parent)) = tree.parent() {
        rounds.recv(tree.levels - 1 - level, tree.at(parent), data);
    }
    for (level, child) in tree.children().rev() {
        rounds.send(tree.levels - 1 - level, tree.at(child), data);
    }
    rounds
}

/// Binomial tree reduce of one chunk: the broadcast backwards, folding.
pub(super) fn reduce(me: u32, size: u32, root: u32) -> Rounds {
    let (tree, data) = (Tree::new(me, size, root), Part::data(0, 1));
    let mut rounds = Rounds::new(1);
    for (level, child) in tree.children() {
        rounds.recv_reduce(level, tree.at(child), data);
    }
    if let Some((level, parent)) = tree.parent() {
        rounds.send(level, tree.at(parent), data);
    }
    rounds
}

/// Binomial tree gather: every rank sends on its block and those of all below it. `ceil(log2(size))`
/// messages of latency at the root instead of `size - 1`, for blocks that travel over several ranks.
pub(super) fn gather(me: u32, size: u32, root: u32) -> Rounds {
    let tree = Tree::new(me, size, root);
    let mut rounds = Rounds::new(size);
    for (level, child) in tree.children() {
        for (first, len) in tree.blocks_of(level, child) {
            let part = if tree.place == 0 { Part::data } else { Part::scratch };
            rounds.recv(level, tree.at(child), part(first, len));
        }
    }
    if let Some((level, parent)) = tree.parent() {
        for (first, len) in tree.blocks_of(level, tree.place) {
            let part = if first == me { Part::input } else { Part::scratch };
            rounds.send(level, tree.at(parent), part(first, len));
        }
    }
    rounds
}

/// Binomial tree scatter: the gather backwards.
pub(super) fn scatter(me: u32, size: u32, root: u32) -> Rounds {
    let tree = Tree::new(me, size, root);
    let mut rounds = Rounds::new(size);
    if let Some((level, parent)) = tree.parent() {
        for (first, len) in tree.blocks_of(level, tree.place) {
            let part = if first == me { Part::data } else { Part::scratch };
            rounds.recv(tree.levels - 1 - level, tree.at(parent), part(first, len));
        }
    }
    for (level, child) in tree.children().rev() {
        for (first, len) in tree.blocks_of(level, child) {
            let part = if tree.place == 0 { Part::input } else { Part::scratch };
            rounds.send(tree.levels - 1 - level, tree.at(child), part(first, len));
        }
    }
    rounds
}

/// The tree as the rank at one place sees it. Places count from the root; below a place at level
/// `l` are those that follow it, less than `1 << l` away.
struct Tree {
    size: u32,
    root: u32,
    levels: u32,
    place: u32,
}

impl Tree {
    fn new(me: u32, size: u32, root: u32) -> Tree {
        let levels = size.next_power_of_two().ilog2();
        Tree { size, root, levels, place: (me + size - root) % size }
    }

    /// The position of a place.
    fn at(&self, place: u32) -> u32 {
        (place + self.root) % self.size
    }

    /// The level and the place of the parent; the root has none.
    fn parent(&self) -> Option<(u32, u32)> {
        (self.place > 0).then(|| {
            let level = self.place.trailing_zeros();
            (level, self.place - (1 << level))
        })
    }

    /// The levels and places of the children, those with the fewest below them first.
    fn children(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> {
        let (place, size) = (self.place, self.size);
        let levels = if place == 0 { self.levels } else { place.trailing_zeros() };
        let child = move |level: u32| (level, place + (1 << level));
        (0..levels).map(child).filter(move |&(_, child)| child < size)
    }

    /// The blocks of `place` and all below it at that level, its own by itself.
    fn blocks_of(&self, level: u32, place: u32) -> impl Iterator<Item = (u32, u32)> {
        let below = (1 << level).min(self.size - place) - 1;
        std::iter::once((self.at(place), 1)).chain(circular(self.at(place + 1), below, self.size))
    }
}

#[cfg(test)]
mod tests {
    use crate::Rank;
    use crate::schedule::proof::{all_sizes, prove_rooted, stats};
    use crate::schedule::{Algorithm, Collective, Shape};

    #[test]
    fn binomial_broadcast_is_proved_for_all_sizes() {
        prove_rooted(Algorithm::Binomial, |root| Collective::Broadcast { root }, &[1]);
    }

    #[test]
    fn binomial_reduce_gather_and_scatter_are_proved_for_all_sizes() {
        let kinds: [fn(Rank) -> Collective; 3] = [
            |root| Collective::Reduce { root },
            |root| Collective::Gather { root },
            |root| Collective::Scatter { root },
        ];
        kinds.into_iter().for_each(|kind| prove_rooted(Algorithm::Binomial, kind, &[1]));
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
