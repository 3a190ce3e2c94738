//! Algorithms that know groups of ranks that are closer to each other: the ranks of a host, mostly.
//! What crosses between groups crosses once, and is spread or folded inside.
//!
//! The positions of a group follow those of the group before.

mod blocks;
mod groups;
mod pairs;
mod rooted;

use super::Part;
use super::ring::Ring;
use super::rounds::Rounds;
use groups::Groups;

pub(super) use blocks::{all_gather, reduce_scatter};
pub(super) use pairs::all_to_all;
pub(super) use rooted::{broadcast, gather, reduce, scatter};

/// Hierarchical all-reduce: a ring reduce-scatter inside each group, a ring all-reduce across the
/// groups for every slice among the ranks that own it, a ring all-gather inside each group.
///
/// `sizes` are the ranks of each group. The data has as many slices as the largest group has ranks, each of as many chunks as there are
/// groups. The `i`-th of `m` ranks of a group owns the `i`-th of `m` nearly equal runs of slices.
/// So between groups a rank of the largest group sends `2 * (groups - 1) / groups` of its one slice
/// and a rank of a smaller group the same of several, round by round side by side.
///
/// Source: the two-level form of Cho et al., "BlueConnect: decomposing all-reduce for deep learning
/// on heterogeneous network hierarchy", 2019.
pub(super) fn all_reduce(me: u32, sizes: &[u32]) -> Rounds {
    let groups = Groups::new(sizes);
    let layout = Slices::new(sizes);
    let (group, member) = groups.find(me);
    let mut rounds = Rounds::new(layout.slices * layout.groups());
    let (across, back) = (layout.slices, layout.slices + 2 * layout.groups());

    let inside = Ring {
        me: member,
        size: sizes[group as usize],
        at: |member| groups.position(group, member),
        block: |member| [layout.slices_of(group, member)],
    };
    inside.reduce_scatter(&mut rounds, 0);
    for slice in (0..layout.slices).filter(|&slice| layout.owner(group, slice) == member) {
        let between = Ring {
            me: group,
            size: layout.groups(),
            at: |group| groups.position(group, layout.owner(group, slice)),
            block: |group| [Part::data(slice * layout.groups() + group, 1)],
        };
        between.reduce_scatter(&mut rounds, across);
        between.all_gather(&mut rounds, across + layout.groups());
    }
    inside.all_gather(&mut rounds, back);
    rounds
}

/// Who owns which slices.
struct Slices<'a> {
    sizes: &'a [u32],
    slices: u32,
}

impl<'a> Slices<'a> {
    fn new(sizes: &'a [u32]) -> Slices<'a> {
        Slices { sizes, slices: sizes.iter().copied().max().expect("a group") }
    }

    fn groups(&self) -> u32 {
        self.sizes.len() as u32
    }

    /// The chunks of all slices that the member owns; at least one slice, as no group has more
    /// members than there are slices.
    fn slices_of(&self, group: u32, member: u32) -> Part {
        let (first, end) = (self.first_slice(group, member), self.first_slice(group, member + 1));
        Part::data(first * self.groups(), (end - first) * self.groups())
    }

    fn first_slice(&self, group: u32, member: u32) -> u32 {
        let size = u64::from(self.sizes[group as usize]);
        (u64::from(member) * u64::from(self.slices) / size) as u32
    }

    /// The last member of the group whose slices begin at or before `slice`.
    fn owner(&self, group: u32, slice: u32) -> u32 {
        let size = u64::from(self.sizes[group as usize]);
        (((u64::from(slice) + 1) * size - 1) / u64::from(self.slices)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::Slices;
    use crate::schedule::proof::{all_sizes, groups_of, prove_shape, stats};
    use crate::schedule::{Algorithm, Collective, Shape};

    fn prove(sizes: &[u32], channels: u32) {
        let shape = Shape { channels, ..groups_of(sizes) };
        prove_shape(Algorithm::Hierarchical, Collective::AllReduce, &shape);
    }

    #[test]
    fn hierarchical_all_reduce_is_proved_for_all_sizes() {
        for size in all_sizes() {
            let hosts_of_8 = (0..size).step_by(8).map(|first| (size - first).min(8));
            prove(&hosts_of_8.collect::<Vec<_>>(), 1 + size % 2);
            prove(&[size], 1);
            prove(&vec![1; size as usize], 1);
        }
    }

    #[test]
    fn hierarchical_all_reduce_is_proved_for_up_to_three_groups_of_any_sizes() {
        for a in 1..=8 {
            prove(&[a], 2);
            for b in 1..=8 {
                prove(&[a, b], 1 + (a + b) % 2);
                (1..=8).for_each(|c| prove(&[a, b, c], 1 + (a + b + c) % 2));
            }
        }
    }

    #[test]
    fn hierarchical_all_reduce_is_proved_for_five_groups_of_mixed_sizes() {
        for a in 1..=8 {
            for b in a..=8 {
                for c in b..=8 {
                    prove(&[b, a, c, a], 1 + (a + c) % 2);
                    prove(&[b, c, a, b, c], 1 + (a + b) % 2);
                }
            }
        }
    }

    #[test]
    fn every_slice_lies_with_its_owner() {
        for slices in 1..=20 {
            for size in 1..=slices {
                let sizes = [size, slices];
                let layout = Slices::new(&sizes);
                for slice in 0..slices {
                    let part = layout.slices_of(0, layout.owner(0, slice));
                    assert!((part.first..part.first + part.len).contains(&(2 * slice)));
                }
            }
        }
    }

    #[test]
    fn equal_groups_move_the_least_bytes_an_all_reduce_can_move() {
        let shape = groups_of(&[8; 5]);
        let stats = stats(Algorithm::Hierarchical, Collective::AllReduce, &shape);
        assert_eq!(stats.chunks, 40);
        assert_eq!(stats.moves_per_rank, 2 * 39);
        assert_eq!(stats.rounds, 2 * (8 - 1) + 2 * (5 - 1));
    }
}
