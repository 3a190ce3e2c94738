//! What the tests of all algorithms share: they build the schedules of every rank of a shape and
//! have them checked.

use super::{Algorithm, Collective, Schedule, Semantics, Shape, Stats, check};
use crate::Rank;

/// The sizes over which every algorithm is proved.
pub(super) fn all_sizes() -> impl Iterator<Item = u32> {
    (1..=64).chain([67, 97, 127])
}

/// Proves the algorithm in natural and in shuffled order, with one channel and two, at each depth.
pub(super) fn prove(algorithm: Algorithm, collective: Collective, size: u32, depths: &[u32]) {
    let natural = Shape::flat(size);
    let mut random = Random(size.into());
    let shuffled = Shape { order: random.shuffled(&natural.order), ..natural.clone() };
    for shape in [natural, shuffled] {
        for channels in [1, 2] {
            for &depth in depths {
                prove_shape(algorithm, collective, &Shape { depth, channels, ..shape.clone() });
            }
        }
    }
}

/// Proves the collective for every root in groups of up to 16, and for some in all sizes.
pub(super) fn prove_rooted(
    algorithm: Algorithm,
    collective: impl Fn(Rank) -> Collective,
    depths: &[u32],
) {
    for size in all_sizes() {
        let roots: Vec<u32> = match size {
            1..=16 => (0..size).collect(),
            _ => vec![0, size / 3, size - 1],
        };
        for root in roots.into_iter().map(Rank) {
            prove(algorithm, collective(root), size, depths);
        }
    }
}

/// Proves the algorithm for one shape, on transports that hold everything and that hold nothing.
pub(super) fn prove_shape(algorithm: Algorithm, collective: Collective, shape: &Shape) {
    let schedules = schedules(algorithm, collective, shape);
    for semantics in [Semantics::Eager, Semantics::Rendezvous] {
        if let Err(fault) = check(collective, &schedules, semantics) {
            panic!("{algorithm:?} {collective:?} {semantics:?} {shape:?}: {fault}");
        }
    }
}

/// The cost of the algorithm for one shape.
pub(super) fn stats(algorithm: Algorithm, collective: Collective, shape: &Shape) -> Stats {
    check(collective, &schedules(algorithm, collective, shape), Semantics::Rendezvous).unwrap()
}

/// The schedules of all ranks.
pub(super) fn schedules(
    algorithm: Algorithm,
    collective: Collective,
    shape: &Shape,
) -> Vec<Schedule> {
    let ranks = (0..shape.size()).map(Rank);
    ranks.map(|rank| algorithm.schedule(collective, rank, shape).unwrap()).collect()
}

/// A shape with groups of these sizes, its ranks dealt to them in a shuffled order.
pub(super) fn groups_of(sizes: &[u32]) -> Shape {
    let mut shape = Shape::flat(sizes.iter().sum());
    shape.order = Random(shape.size().into()).shuffled(&shape.order);
    let mut rest = shape.order.as_slice();
    shape.groups.clear();
    for &size in sizes {
        let (group, after) = rest.split_at(size as usize);
        shape.groups.push(group.to_vec());
        rest = after;
    }
    shape
}

/// Sizes of groups: one group, groups of one, two and three of any sizes, more of mixed sizes, and all
/// sizes up to 64 in two to eight groups.
pub(super) fn partitions() -> impl Iterator<Item = Vec<u32>> {
    let one = (1..=9).map(|size| vec![size]);
    let ones = (2..=9).map(|count| vec![1; count]);
    let two = (1..=7).flat_map(|a| (1..=7).map(move |b| vec![a, b]));
    let three =
        (1..=4).flat_map(|a| (1..=4).flat_map(move |b| (1..=4).map(move |c| vec![a, b, c])));
    let more =
        [vec![8; 8], vec![4, 2, 1, 3], vec![5, 1, 1, 7, 2], vec![2; 11], vec![13, 8, 21, 3, 1]];
    let all = (2..=64).flat_map(|size| (2..=8.min(size)).map(move |count| split(size, count)));
    one.chain(ones).chain(two).chain(three).chain(more).chain(all)
}

/// `size` ranks in `count` groups: of nearly equal sizes if `size` is even, else each larger than
/// the one before, as far as there are ranks.
fn split(size: u32, count: u32) -> Vec<u32> {
    let weight = |group: u32| if size.is_multiple_of(2) { group } else { group * (group + 1) / 2 };
    let spare = size - count;
    let end = |group| group + spare * weight(group) / weight(count);
    (0..count).map(|group| end(group + 1) - end(group)).collect()
}

/// A generator of random numbers that repeats from its seed.
///
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
pub(super) struct Random(pub(super) u64);

impl Random {
    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    fn shuffled(&mut self, ranks: &[Rank]) -> Vec<Rank> {
        let mut ranks = ranks.to_vec();
        for end in (2..=ranks.len()).rev() {
            let other = self.below(end);
            ranks.swap(end - 1, other);
        }
        ranks
    }
}
