use std::collections::BTreeMap;

use super::{Fabric, Place};
use crate::Rank;

impl Fabric {
    /// The fabric of a group of these ranks: rank `i` of the group is `ranks[i]` here. Hosts and
    /// supernodes without any of them are left out, and links stay as they are.
    ///
    /// # Panics
    ///
    /// If one of `ranks` is not below [`ranks`](Fabric::ranks).
    pub fn subset(&self, ranks: &[Rank]) -> Fabric {
        let mut hosts = Numbering::default();
        let place = |rank: &Rank| {
            let place = self.place(*rank);
            Place { host: hosts.number(place.host), ..place }
        };
        let places = ranks.iter().map(place).collect();

        let mut supernodes = Numbering::default();
        let host = |&old: &usize| {
            let mut host = self.hosts[old].clone();
            host.supernode = supernodes.number(host.supernode);
            host
        };
        let pair = |((one, other), link): (&(usize, usize), &_)| {
            let (one, other) = (hosts.find(*one)?, hosts.find(*other)?);
            Some(((one.min(other), one.max(other)), *link))
        };
        let pairs: BTreeMap<_, _> = self.pairs.iter().filter_map(pair).collect();
        let hosts = hosts.old.iter().map(host).collect();
        let supernodes = supernodes.old.iter().map(|&old| self.supernodes[old].clone()).collect();
        Fabric { supernodes, hosts, pairs, places }
    }
}

/// New numbers in the order in which the old ones come.
#[derive(Default)]
struct Numbering {
    old: Vec<usize>,
}

impl Numbering {
    fn find(&self, old: usize) -> Option<usize> {
        self.old.iter().position(|known| *known == old)
    }

    fn number(&mut self, old: usize) -> usize {
        self.find(old).unwrap_or_else(|| {
            self.old.push(old);
            self.old.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::{Inside, RankReport};

    /// Ranks 0 to 5 on hosts a, a, b, b, c, c.
    fn six() -> Fabric {
        let report = |rank: usize| RankReport {
            host: ["a", "b", "c"][rank / 2].to_owned(),
            numa_node: (rank % 2) as u32,
            cores: 4.0,
            inside: Inside::SharedMemory,
        };
        Fabric::discovered(&(0..6).map(report).collect::<Vec<_>>())
    }

    fn host_names(fabric: &Fabric) -> Vec<&str> {
        fabric.hosts().iter().map(|host| &*host.name).collect()
    }

    #[test]
    fn a_group_has_the_hosts_of_its_members_in_their_order() {
        let group = six().subset(&[Rank(5), Rank(1), Rank(4)]);
        assert_eq!(host_names(&group), ["c", "a"]);
        assert_eq!(group.ranks_per_host(), [2, 1]);
        assert_eq!(group.place(Rank(0)), Place { host: 0, numa_node: 1 });
        assert_eq!(group.supernodes(), six().supernodes());
    }

    #[test]
    fn links_between_two_hosts_stay_where_both_are_there() {
        let mut fabric = six();
        let link = fabric.hosts()[0].port;
        fabric.pairs = BTreeMap::from([((0, 1), link), ((1, 2), link)]);
        let group = fabric.subset(&[Rank(4), Rank(2)]);
        assert_eq!(group.pairs().map(|(hosts, _)| hosts).collect::<Vec<_>>(), [(0, 1)]);
    }

    #[test]
    fn all_ranks_in_their_order_are_the_fabric_itself() {
        let all: Vec<Rank> = (0..6).map(Rank).collect();
        assert_eq!(six().subset(&all), six());
    }
}
