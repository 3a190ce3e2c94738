use super::groups::Groups;
use crate::schedule::Part;
use crate::schedule::rounds::Rounds;

/// Hierarchical all-to-all: inside a group blocks go straight; those for another group are brought
/// together at one of its ranks, cross in one message for each rank that they come from (in several
/// where the numbers of the other group's ranks do not follow one another), and are handed out there.
///
/// Any two groups exchange over one pair of ranks, so a group of `n` ranks is a party to as many
/// conversations as there are other groups, instead of `n` times their ranks. A block that crosses is
/// sent up to three times, so it is for small blocks and many ranks.
///
/// Source: the leader-based form of Kandalla et al., "Designing topology-aware collective
/// communication algorithms for large scale InfiniBand clusters", 2010, with a leader for each pair.
pub(in crate::schedule) fn all_to_all(me: u32, sizes: &[u32]) -> Rounds {
    let groups = Groups::new(sizes);
    let exchange = Exchange { me, group: groups.find(me).0, size: groups.ranks(), groups: &groups };
    let mut rounds = Rounds::new(exchange.size * exchange.size);
    exchange.inside(&mut rounds);
    for other in groups.others(exchange.group) {
        exchange.bring_together(&mut rounds, other);
    }
    for other in groups.others(exchange.group) {
        exchange.cross(&mut rounds, other);
    }
    for other in groups.others(exchange.group) {
        exchange.hand_out(&mut rounds, other);
    }
    rounds
}

struct Exchange<'a> {
    me: u32,
    group: u32,
    size: u32,
    groups: &'a Groups<'a>,
}

impl Exchange<'_> {
    /// The chunk that `from` has for `to`.
    fn pair(&self, from: u32, to: u32) -> u32 {
        from * self.size + to
    }

    /// The rank of `group` that talks to `other`.
    fn speaker(&self, group: u32, other: u32) -> u32 {
        self.groups.position(group, other % self.groups.size(group))
    }

    fn neighbours(&self) -> impl Iterator<Item = u32> + use<> {
        let me = self.me;
        self.groups.positions(self.group).filter(move |&position| position != me)
    }

    fn inside(&self, rounds: &mut Rounds) {
        for other in self.neighbours() {
            rounds.send(0, other, Part::input(self.pair(self.me, other), 1));
            rounds.recv(0, other, Part::data(self.pair(other, self.me), 1));
        }
    }

    /// Brings the blocks for `other` to the rank that talks to it.
    fn bring_together(&self, rounds: &mut Rounds, other: u32) {
        let (speaker, to) = (self.speaker(self.group, other), self.groups.positions(other));
        let len = to.len() as u32;
        if speaker != self.me {
            rounds.send(1, speaker, Part::input(self.pair(self.me, to.start), len));
            return;
        }
        for from in self.neighbours() {
            rounds.recv(1, from, Part::scratch(self.pair(from, to.start), len));
        }
    }

    /// Exchanges all blocks between this group and `other`, on the ranks that do that.
    fn cross(&self, rounds: &mut Rounds, other: u32) {
        let (here, there) = (self.speaker(self.group, other), self.speaker(other, self.group));
        if here != self.me {
            return;
        }
        let (ours, theirs) = (self.groups.positions(self.group), self.groups.positions(other));
        for from in ours.clone() {
            let part = if from == self.me { Part::input } else { Part::scratch };
            rounds.send(2, there, part(self.pair(from, theirs.start), theirs.len() as u32));
        }
        for from in theirs {
            rounds.recv(2, there, Part::scratch(self.pair(from, ours.start), ours.len() as u32));
        }
    }

    /// Hands out the blocks that came from `other`.
    fn hand_out(&self, rounds: &mut Rounds, other: u32) {
        let speaker = self.speaker(self.group, other);
        for from in self.groups.positions(other) {
            if speaker != self.me {
                rounds.recv(3, speaker, Part::data(self.pair(from, self.me), 1));
                continue;
            }
            for to in self.neighbours() {
                rounds.send(3, to, Part::scratch(self.pair(from, to), 1));
            }
            let own = self.pair(from, self.me);
            rounds.copy(3, Part::scratch(own, 1), Part::data(own, 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::Rank;
    use crate::schedule::proof::{groups_of, partitions, prove_shape, schedules};
    use crate::schedule::{Algorithm, Collective, Shape, Step};

    #[test]
    fn hierarchical_all_to_all_is_proved_for_groups_of_any_sizes() {
        for sizes in partitions() {
            prove_shape(Algorithm::Hierarchical, Collective::AllToAll, &groups_of(&sizes));
        }
    }

    #[test]
    fn two_groups_talk_over_one_pair_of_ranks_and_move_the_least() {
        let sizes = [4, 3, 2];
        let (mut pairs, mut messages, mut across) = (BTreeSet::new(), [0; 3], 0);
        let shape = in_order(&sizes);
        let schedules = schedules(Algorithm::Hierarchical, Collective::AllToAll, &shape);
        for (group, messages) in shape.groups.iter().zip(&mut messages) {
            for &rank in group {
                for step in &schedules[rank.index()].steps {
                    if let Step::Send { to, part } = *step
                        && !group.contains(&to)
                    {
                        pairs.insert((rank, to));
                        *messages += 1;
                        across += part.len;
                    }
                }
            }
        }
        assert_eq!((pairs.len(), across), (3 * 2, 2 * (4 * 3 + 4 * 2 + 3 * 2)));
        assert_eq!(messages, sizes.map(|size| size * 2), "one for each rank and other group");
    }

    /// Groups of neighbours: no run of blocks is broken up.
    fn in_order(sizes: &[u32]) -> Shape {
        let mut ranks = (0..sizes.iter().sum()).map(Rank);
        let groups = sizes.iter().map(|&size| ranks.by_ref().take(size as usize).collect());
        Shape { groups: groups.collect(), ..Shape::flat(sizes.iter().sum()) }
    }
}
