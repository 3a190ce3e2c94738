use super::Part;
use super::rounds::Rounds;

/// Double binary tree all-reduce over `2 * depth` chunks: each of two trees folds half of the data
/// towards its root and spreads the result back, in `depth` pieces that follow one another.
///
/// The leaves of one tree are the inner nodes of the other, so that (but for the roots) every rank
/// sends and receives twice the data, for a latency of at most `2 * log2(size)` messages and one
/// beat of the pipeline for each further piece.
///
/// Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction
/// and scan", 2009.
pub(super) fn all_reduce(me: u32, size: u32, depth: u32) -> Rounds {
    let mut rounds = Rounds::new(2 * depth);
    for tree in [Tree { size, shift: 0 }, Tree { size, shift: 1 }] {
        for piece in 0..depth {
            let part = Part::data(tree.shift * depth + piece, 1);
            tree.one_piece(&mut rounds, me, piece, part);
        }
    }
    rounds
}

/// A binary tree whose nodes, read from left to right, carry the labels 1, 2, ... `size`. Odd
/// labels are the leaves, and the level of a label above them is its count of trailing zeros.
#[derive(Clone, Copy)]
struct Tree {
    size: u32,
    /// How many places the labels are moved against the positions. Moved by one, odd and even
    /// change places (if `size` is odd, one position is a leaf both times).
    shift: u32,
}

impl Tree {
    /// The moves of position `me` for the piece that comes `start` rounds after the first.
    ///
    /// A node at level `l` sends up in beat `l` and down in beat `2 * top - l`, after all that it
    /// waits for. A beat is two rounds, receives before sends, so that the receives of the next
    /// piece are under way while the sends of this one wait.
    fn one_piece(self, rounds: &mut Rounds, me: u32, start: u32, part: Part) {
        let label = self.label(me);
        let top = self.size.ilog2();
        let up = |from: u32| 2 * (start + from.trailing_zeros());
        let down = |from: u32| 2 * (start + 2 * top - from.trailing_zeros());
        for child in self.children(label) {
            rounds.recv_reduce(up(child), self.position(child), part);
            rounds.send(down(label) + 1, self.position(child), part);
        }
        if let Some(parent) = self.parent(label) {
            rounds.send(up(label) + 1, self.position(parent), part);
            rounds.recv(down(parent), self.position(parent), part);
        }
    }

    fn label(self, position: u32) -> u32 {
        (position + self.size - self.shift) % self.size + 1
    }

    fn position(self, label: u32) -> u32 {
        (label - 1 + self.shift) % self.size
    }

    /// The nearest label that has one more of its low bits zero, or, where that is beyond the last,
    /// the one that has `label` in its cut-off right half.
    fn parent(self, label: u32) -> Option<u32> {
        let bit = 1 << label.trailing_zeros();
        let (below, above) = (label - bit, label + bit);
        let parent = if below & (bit << 1) == 0 && above <= self.size { above } else { below };
        (parent > 0).then_some(parent)
    }

    /// The middle of the labels to the left below `label`, and of those to the right.
    fn children(self, label: u32) -> impl Iterator<Item = u32> {
        let halves = || (0..label.trailing_zeros()).rev().map(|level| 1 << level);
        let left = halves().next().map(|half| label - half);
        let right = halves().map(|half| label + half).find(|&child| child <= self.size);
        left.into_iter().chain(right)
    }
}

#[cfg(test)]
mod tests {
    use super::Tree;
    use crate::schedule::proof::{all_sizes, prove, stats};
    use crate::schedule::{Algorithm, Collective, Shape};

    const ALGORITHM: Algorithm = Algorithm::DoubleBinaryTree;

    #[test]
    fn double_binary_tree_all_reduce_is_proved_for_all_sizes() {
        all_sizes().for_each(|size| prove(ALGORITHM, Collective::AllReduce, size, &[1, 2, 4, 7]));
    }

    #[test]
    fn parents_and_children_name_each_other() {
        for size in all_sizes() {
            let tree = Tree { size, shift: 0 };
            let roots = (1..=size).filter(|&label| tree.parent(label).is_none()).count();
            assert_eq!(roots, 1, "size {size}");
            for label in 1..=size {
                for child in tree.children(label) {
                    assert_eq!(tree.parent(child), Some(label), "size {size}");
                }
                if let Some(parent) = tree.parent(label) {
                    assert!(tree.children(parent).any(|child| child == label), "size {size}");
                }
            }
        }
    }

    #[test]
    fn no_rank_is_an_inner_node_of_both_trees() {
        for size in all_sizes() {
            for position in 0..size {
                let inner = |shift| {
                    let tree = Tree { size, shift };
                    tree.children(tree.label(position)).next().is_some()
                };
                assert!(!(inner(0) && inner(1)), "position {position} of {size}");
            }
        }
    }

    #[test]
    fn a_rank_moves_at_most_twice_the_data_however_it_is_cut() {
        for size in all_sizes() {
            for depth in [1, 2, 7] {
                let shape = Shape { depth, ..Shape::flat(size) };
                let stats = stats(ALGORITHM, Collective::AllReduce, &shape);
                assert!(stats.moves_per_rank <= 2 * u64::from(stats.chunks), "size {size}");
                assert!(stats.rounds <= 2 * size.ilog2(), "size {size}");
            }
        }
    }
}
