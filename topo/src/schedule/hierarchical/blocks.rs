use super::groups::Groups;
use crate::schedule::Part;
use crate::schedule::ring::Ring;
use crate::schedule::rounds::Rounds;

/// Hierarchical all-gather: every rank sends its block straight to one rank of each other group, and
/// each group passes what it has and what arrived round in a ring.
///
/// Each block enters each group once, the least there is; the `i`-th rank of a group takes in the
/// blocks whose number in their own group is `i` modulo the size of this group, so all of them share
/// the work.
///
/// Source: the two-level form in Träff and Hunold, "Decomposing MPI collectives for exploiting
/// multi-lane communication", 2020.
pub(in crate::schedule) fn all_gather(me: u32, sizes: &[u32]) -> Rounds {
    let groups = Groups::new(sizes);
    let (group, member) = groups.find(me);
    let mut rounds = Rounds::new(groups.ranks());
    for other in groups.others(group) {
        let to = groups.position(other, member % groups.size(other));
        rounds.send(0, to, Part::data(me, 1));
    }
    for from in taken_in(&groups, group, member) {
        rounds.recv(0, from, Part::data(from, 1));
    }
    inside(&groups, group, member).all_gather(&mut rounds, 1);
    rounds
}

/// Hierarchical reduce-scatter: the all-gather backwards. Each group folds first, and sends one
/// partial result for each rank of the others.
pub(in crate::schedule) fn reduce_scatter(me: u32, sizes: &[u32]) -> Rounds {
    let groups = Groups::new(sizes);
    let (group, member) = groups.find(me);
    let mut rounds = Rounds::new(groups.ranks());
    inside(&groups, group, member).reduce_scatter(&mut rounds, 0);
    let across = groups.ranks();
    for to in taken_in(&groups, group, member) {
        rounds.send(across, to, Part::data(to, 1));
    }
    for other in groups.others(group) {
        let from = groups.position(other, member % groups.size(other));
        rounds.recv_reduce(across, from, Part::data(me, 1));
    }
    rounds
}

/// The ring of a group, in which a member's block is its own with those that it takes in.
fn inside(
    groups: &Groups,
    group: u32,
    member: u32,
) -> Ring<impl Fn(u32) -> u32, impl Fn(u32) -> Vec<Part>> {
    Ring {
        me: member,
        size: groups.size(group),
        at: move |member| groups.position(group, member),
        block: move |member| {
            let own = std::iter::once(groups.position(group, member));
            let all = own.chain(taken_in(groups, group, member));
            all.map(|position| Part::data(position, 1)).collect()
        },
    }
}

/// The positions in other groups whose blocks a member takes in for its group.
fn taken_in(groups: &Groups, group: u32, member: u32) -> impl Iterator<Item = u32> {
    let size = groups.size(group) as usize;
    let of_other = move |other| groups.positions(other).skip(member as usize).step_by(size);
    groups.others(group).flat_map(of_other)
}

#[cfg(test)]
mod tests {
    use crate::schedule::proof::{groups_of, partitions, prove_shape, schedules};
    use crate::schedule::{Algorithm, Collective, Step};

    #[test]
    fn hierarchical_all_gather_and_reduce_scatter_are_proved_for_groups_of_any_sizes() {
        for sizes in partitions() {
            for collective in [Collective::AllGather, Collective::ReduceScatter] {
                prove_shape(Algorithm::Hierarchical, collective, &groups_of(&sizes));
            }
        }
    }

    #[test]
    fn each_block_enters_and_leaves_each_other_group_once() {
        let shape = groups_of(&[4, 2, 1]);
        for collective in [Collective::AllGather, Collective::ReduceScatter] {
            let schedules = schedules(Algorithm::Hierarchical, collective, &shape);
            let mut across = 0;
            for group in &shape.groups {
                for rank in group {
                    for step in &schedules[rank.index()].steps {
                        if let Step::Send { to, part } = step
                            && !group.contains(to)
                        {
                            across += part.len;
                        }
                    }
                }
            }
            assert_eq!(across, 7 * 2, "{collective:?}");
        }
    }
}
