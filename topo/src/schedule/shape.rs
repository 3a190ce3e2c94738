use super::Shape;
use crate::Rank;

impl Shape {
    /// A group of `size` equals: one list in the order of the ranks, depth and channels 1.
    pub fn flat(size: u32) -> Shape {
        let order: Vec<Rank> = (0..size).map(Rank).collect();
        Shape { groups: vec![order.clone()], order, depth: 1, channels: 1 }
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.order.len() as u32
    }

    /// Asserts that the shape holds together as its fields say.
    ///
    /// # Panics
    ///
    /// If `order` is empty or no permutation of `0..size`, if `groups` is no partition of it
    /// into lists that are not empty, or if `depth` or `channels` is 0.
    pub fn check(&self) {
        assert!(!self.order.is_empty(), "a shape without ranks");
        assert_once_each(&self.order, self.order.len(), "order");
        assert_once_each(&self.groups.concat(), self.order.len(), "groups");
        assert!(self.groups.iter().all(|group| !group.is_empty()), "a shape with an empty group");
        assert!(self.depth > 0, "a shape of depth 0");
        assert!(self.channels > 0, "a shape of 0 channels");
    }

    /// The same ranks visited the other way round.
    pub(super) fn reversed(&self) -> Shape {
        let mut shape = self.clone();
        shape.order.reverse();
        shape.groups.reverse();
        shape.groups.iter_mut().for_each(|group| group.reverse());
        shape
    }

    /// How many ranks each group has.
    pub(super) fn group_sizes(&self) -> Vec<u32> {
        self.groups.iter().map(|group| group.len() as u32).collect()
    }
}

fn assert_once_each(ranks: &[Rank], size: usize, what: &str) {
    let mut seen = vec![false; size];
    for rank in ranks {
        assert!(rank.index() < size, "{what} of a shape: rank {rank} in a group of {size}");
        let before = std::mem::replace(&mut seen[rank.index()], true);
        assert!(!before, "{what} of a shape: rank {rank} twice");
    }
    assert!(ranks.len() == size, "{what} of a shape: {} ranks of {size}", ranks.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_shape_holds_together() {
        Shape::flat(1).check();
        Shape::flat(7).check();
    }

    #[test]
    #[should_panic(expected = "without ranks")]
    fn a_shape_without_ranks_is_refused() {
        Shape::flat(0).check();
    }

    #[test]
    #[should_panic(expected = "order of a shape: rank 1 twice")]
    fn an_order_with_a_rank_twice_is_refused() {
        Shape { order: vec![Rank(1), Rank(1)], ..Shape::flat(2) }.check();
    }

    #[test]
    #[should_panic(expected = "order of a shape: rank 2 in a group of 2")]
    fn an_order_with_a_stranger_is_refused() {
        Shape { order: vec![Rank(0), Rank(2)], ..Shape::flat(2) }.check();
    }

    #[test]
    #[should_panic(expected = "groups of a shape: 1 ranks of 2")]
    fn groups_that_leave_a_rank_out_are_refused() {
        Shape { groups: vec![vec![Rank(1)]], ..Shape::flat(2) }.check();
    }

    #[test]
    #[should_panic(expected = "empty group")]
    fn an_empty_group_is_refused() {
        Shape { groups: vec![vec![Rank(1), Rank(0)], vec![]], ..Shape::flat(2) }.check();
    }

    #[test]
    #[should_panic(expected = "depth 0")]
    fn a_depth_of_zero_is_refused() {
        Shape { depth: 0, ..Shape::flat(2) }.check();
    }

    #[test]
    #[should_panic(expected = "0 channels")]
    fn no_channels_are_refused() {
        Shape { channels: 0, ..Shape::flat(2) }.check();
    }
}
