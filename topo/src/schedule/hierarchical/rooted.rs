use super::groups::Groups;
use crate::schedule::Part;
use crate::schedule::rounds::Rounds;

/// Hierarchical broadcast of `depth` chunks: a chain over one rank of each group, the root first, and
/// from each of these a chain through its group; every piece is handed on as it comes.
///
/// The data enters each group once. The latency is that of the chain over the groups and that of
/// the longest inside one.
///
/// Source: Karonis et al., "Exploiting hierarchy in parallel computer networks to optimize collective
/// operation performance", 2000, for one rank that stands for each group; chains instead of trees, as
/// all pieces are on their way at the same time.
pub(in crate::schedule) fn broadcast(me: u32, sizes: &[u32], root: u32, depth: u32) -> Rounds {
    let tree = Tree::new(me, sizes, root);
    let mut rounds = Rounds::new(depth);
    for piece in 0..depth {
        let part = Part::data(piece, 1);
        // Two rounds a hop, so that the receive of the next piece comes before the sends of this.
        let hop = 2 * (tree.hops + piece);
        if let Some(parent) = tree.parent {
            rounds.recv(hop - 2, parent, part);
        }
        for &child in &tree.children {
            rounds.send(hop + 1, child, part);
        }
    }
    rounds
}

/// Hierarchical reduce of `depth` chunks: the broadcast backwards, folding.
pub(in crate::schedule) fn reduce(me: u32, sizes: &[u32], root: u32, depth: u32) -> Rounds {
    let tree = Tree::new(me, sizes, root);
    let most = sizes.iter().sum::<u32>();
    let mut rounds = Rounds::new(depth);
    for piece in 0..depth {
        let part = Part::data(piece, 1);
        let hop = 2 * (most - tree.hops + piece);
        for &child in tree.children.iter().rev() {
            rounds.recv_reduce(hop - 2, child, part);
        }
        if let Some(parent) = tree.parent {
            rounds.send(hop + 1, parent, part);
        }
    }
    rounds
}

/// Hierarchical gather: each group brings its blocks to one rank, which sends them to the root
/// together; so the root takes one run of blocks from each other group.
///
/// Source: Kielmann et al., "MagPIe: MPI's collective communication operations for clustered wide
/// area systems", 1999.
pub(in crate::schedule) fn gather(me: u32, sizes: &[u32], root: u32) -> Rounds {
    let groups = Groups::new(sizes);
    let (group, _) = groups.find(me);
    let leader = leader(&groups, group, root);
    let mut rounds = Rounds::new(groups.ranks());
    if me != leader {
        rounds.send(0, leader, Part::input(me, 1));
        return rounds;
    }
    let part = if me == root { Part::data } else { Part::scratch };
    for from in groups.positions(group).filter(|&member| member != me) {
        rounds.recv(0, from, part(from, 1));
    }
    if me != root {
        rounds.send(1, root, Part::input(me, 1));
        runs_around(&groups, group, me).for_each(|(first, len)| {
            rounds.send(1, root, Part::scratch(first, len));
        });
        return rounds;
    }
    for other in groups.others(group) {
        let from = groups.position(other, 0);
        rounds.recv(1, from, Part::data(from, 1));
        runs_around(&groups, other, from).for_each(|(first, len)| {
            rounds.recv(1, from, Part::data(first, len));
        });
    }
    rounds
}

/// Hierarchical scatter: the gather backwards.
pub(in crate::schedule) fn scatter(me: u32, sizes: &[u32], root: u32) -> Rounds {
    let groups = Groups::new(sizes);
    let (group, _) = groups.find(me);
    let leader = leader(&groups, group, root);
    let mut rounds = Rounds::new(groups.ranks());
    if me != leader {
        rounds.recv(1, leader, Part::data(me, 1));
        return rounds;
    }
    if me == root {
        for other in groups.others(group) {
            let to = groups.position(other, 0);
            rounds.send(0, to, Part::input(to, 1));
            runs_around(&groups, other, to).for_each(|(first, len)| {
                rounds.send(0, to, Part::input(first, len));
            });
        }
    } else {
        rounds.recv(0, root, Part::data(me, 1));
        runs_around(&groups, group, me).for_each(|(first, len)| {
            rounds.recv(0, root, Part::scratch(first, len));
        });
    }
    let part = if me == root { Part::input } else { Part::scratch };
    for to in groups.positions(group).filter(|&member| member != me) {
        rounds.send(1, to, part(to, 1));
    }
    rounds
}

/// The rank that stands for a group: the root for its own, else the first.
fn leader(groups: &Groups, group: u32, root: u32) -> u32 {
    if groups.find(root).0 == group { root } else { groups.position(group, 0) }
}

/// The runs of a group's blocks before and after that of `position`.
fn runs_around(groups: &Groups, group: u32, position: u32) -> impl Iterator<Item = (u32, u32)> {
    let all = groups.positions(group);
    let runs = [(all.start, position - all.start), (position + 1, all.end - position - 1)];
    runs.into_iter().filter(|&(_, len)| len > 0)
}

/// The tree of chains as one rank sees it.
struct Tree {
    /// How far from the root.
    hops: u32,
    parent: Option<u32>,
    /// The rank that stands for the next group, if this one stands for its own; the next of the group.
    children: Vec<u32>,
}

impl Tree {
    fn new(me: u32, sizes: &[u32], root: u32) -> Tree {
        let groups = Groups::new(sizes);
        let (root_group, root_member) = groups.find(root);
        let (group, member) = groups.find(me);
        let (count, size) = (groups.count(), groups.size(group));
        let nth = (group + count - root_group) % count;
        let leads_at = |nth| leader(&groups, (root_group + nth) % count, root);
        // The chain of a group starts where its leader is.
        let first = if nth == 0 { root_member } else { 0 };
        let place = (member + size - first) % size;
        let at = |place| groups.position(group, (place + first) % size);
        let parent = match (nth, place) {
            (0, 0) => None,
            (_, 0) => Some(leads_at(nth - 1)),
            _ => Some(at(place - 1)),
        };
        let next_leader = (place == 0 && nth + 1 < count).then(|| leads_at(nth + 1));
        let next_member = (place + 1 < size).then(|| at(place + 1));
        let children = next_leader.into_iter().chain(next_member).collect();
        Tree { hops: nth + place, parent, children }
    }
}

#[cfg(test)]
mod tests {
    use crate::Rank;
    use crate::schedule::proof::{groups_of, partitions, prove_shape, schedules};
    use crate::schedule::{Algorithm, Collective, Shape, Step};

    const KINDS: [fn(Rank) -> Collective; 4] = [
        |root| Collective::Broadcast { root },
        |root| Collective::Reduce { root },
        |root| Collective::Gather { root },
        |root| Collective::Scatter { root },
    ];

    #[test]
    fn hierarchical_rooted_collectives_are_proved_for_groups_of_any_sizes() {
        for sizes in partitions() {
            let size: u32 = sizes.iter().sum();
            for root in [0, size / 2, size - 1].map(Rank) {
                for depth in [1, 3] {
                    let shape = Shape { depth, channels: depth.min(2), ..groups_of(&sizes) };
                    for kind in KINDS {
                        prove_shape(Algorithm::Hierarchical, kind(root), &shape);
                    }
                }
            }
        }
    }

    #[test]
    fn a_group_that_is_not_the_roots_has_one_rank_that_talks_to_others() {
        let shape = groups_of(&[4, 3, 1, 5]);
        for kind in KINDS {
            let schedules = schedules(Algorithm::Hierarchical, kind(Rank(0)), &shape);
            for group in &shape.groups {
                let leaves = |step: &&Step| step.peer().is_some_and(|peer| !group.contains(&peer));
                let talks = group
                    .iter()
                    .filter(|rank| schedules[rank.index()].steps.iter().any(|step| leaves(&step)));
                assert_eq!(talks.count(), 1, "{:?}", kind(Rank(0)));
            }
        }
    }
    #[test]
    fn the_data_or_the_blocks_of_a_group_cross_its_boundary_once() {
        let shape = groups_of(&[4, 3, 1, 5]);
        let other_groups = 3;
        let root = shape.groups[0][1];
        for kind in KINDS {
            let collective = kind(root);
            let schedules = schedules(Algorithm::Hierarchical, collective, &shape);
            let group_of = |rank| shape.groups.iter().position(|group| group.contains(&rank));
            let mut across = 0;
            for rank in (0..shape.size()).map(Rank) {
                for step in &schedules[rank.index()].steps {
                    if let Step::Send { to, part } = *step
                        && group_of(rank) != group_of(to)
                    {
                        across += part.len;
                    }
                }
            }
            let blocks_of_others = 3 + 1 + 5;
            let least = if collective.has_blocks() { blocks_of_others } else { other_groups };
            assert_eq!(across, least, "{collective:?}");
        }
    }
}
