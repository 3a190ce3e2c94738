use crate::Rank;
use crate::fabric::Fabric;

/// All ranks by supernode, then host, then NUMA node, then number, in a circle that is cut open
/// before `first`, so that `first` comes first in each of these.
///
/// Whatever the numbering of the ranks, a ring over them leaves each supernode, each host and
/// each NUMA node once at most, the least there is.
pub(super) fn visiting_order(fabric: &Fabric, first: Rank) -> Vec<Rank> {
    let key = |rank: Rank| {
        let place = fabric.place(rank);
        let supernode = fabric.hosts()[place.host].supernode;
        (supernode, place.host, place.numa_node, rank)
    };
    let start = key(first);
    let mut order: Vec<Rank> = (0..fabric.ranks()).map(Rank).collect();
    order.sort_by_key(|&rank| {
        let (supernode, host, numa_node, rank) = key(rank);
        let others_last = [
            supernode != start.0,
            host != start.1,
            (host, numa_node) != (start.1, start.2),
            rank != first,
        ];
        let [supernodes, hosts, numa_nodes, ranks] = others_last;
        (supernodes, supernode, hosts, host, numa_nodes, numa_node, ranks, rank)
    });
    order
}

/// The ranks by host, or by supernode if no host has two, in the order given.
pub(super) fn groups(fabric: &Fabric, order: &[Rank]) -> Vec<Vec<Rank>> {
    let host = |rank: Rank| fabric.place(rank).host;
    let supernode = |rank: Rank| fabric.hosts()[host(rank)].supernode;
    let by_host = runs(order, host);
    if by_host.len() < order.len() {
        return by_host;
    }
    let by_supernode = runs(order, supernode);
    if by_supernode.len() > 1 { by_supernode } else { by_host }
}

fn runs(order: &[Rank], key: impl Fn(Rank) -> usize) -> Vec<Vec<Rank>> {
    order.chunk_by(|&one, &next| key(one) == key(next)).map(<[Rank]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fabric::{Inside, RankReport};

    /// How many neighbours in the ring have different keys.
    fn crossings(order: &[Rank], key: impl Fn(Rank) -> usize) -> usize {
        let next = order.iter().cycle().skip(1);
        order.iter().zip(next).filter(|&(&one, &next)| key(one) != key(next)).count()
    }

    fn permutations(ranks: &[Rank]) -> Vec<Vec<Rank>> {
        let Some((&first, rest)) = ranks.split_first() else { return vec![Vec::new()] };
        let insert = |rest: Vec<Rank>| {
            (0..=rest.len()).map(move |at| [&rest[..at], &[first], &rest[at..]].concat())
        };
        permutations(rest).into_iter().flat_map(insert).collect()
    }

    #[test]
    fn interleaved_ranks_leave_each_host_once() {
        for hosts in 2..=6_u32 {
            for ranks in hosts..=20 {
                let reports: Vec<RankReport> = (0..ranks)
                    .map(|rank| RankReport {
                        host: (rank % hosts).to_string(),
                        numa_node: rank % 2,
                        cores: 8.0,
                        inside: Inside::SharedMemory,
                    })
                    .collect();
                let fabric = Fabric::discovered(&reports);
                for first in [0, ranks / 2, ranks - 1] {
                    let order = visiting_order(&fabric, Rank(first));
                    assert_eq!(order[0], Rank(first));
                    let host = |rank: Rank| fabric.place(rank).host;
                    assert_eq!(crossings(&order, host), hosts as usize);
                }
            }
        }
    }

    #[test]
    fn no_ring_crosses_fewer_hosts_or_supernodes() {
        // Rank by rank the host; host by host the supernode.
        let cases: [(&[usize], &[usize]); 5] = [
            (&[0, 1, 0, 1, 2, 0], &[0, 1, 0]),
            (&[0, 1, 2, 3, 0, 1], &[0, 1, 0, 1]),
            (&[0, 0, 0, 0], &[0]),
            (&[0, 1, 2, 3, 4], &[1, 0, 1, 2, 0]),
            (&[2, 1, 0, 2, 1, 0], &[0, 0, 1]),
        ];
        for (hosts, supernodes) in cases {
            let fabric = Fabric::sample(hosts, supernodes, 8.0);
            let order = visiting_order(&fabric, Rank(1));
            let host = |rank: Rank| fabric.place(rank).host;
            let supernode = |rank: Rank| fabric.hosts()[host(rank)].supernode;
            let all = permutations(&order);
            let least = |key: &dyn Fn(Rank) -> usize| {
                all.iter().map(|order| crossings(order, key)).min().unwrap()
            };
            assert_eq!(crossings(&order, host), least(&host), "{hosts:?} {supernodes:?}");
            assert_eq!(crossings(&order, supernode), least(&supernode), "{hosts:?} {supernodes:?}");
        }
    }

    #[test]
    fn hosts_of_single_ranks_are_grouped_by_supernode() {
        let fabric = Fabric::sample(&[0, 1, 2, 3], &[0, 1, 0, 1], 8.0);
        let order = visiting_order(&fabric, Rank(0));
        let expected = [vec![Rank(0), Rank(2)], vec![Rank(1), Rank(3)]];
        assert_eq!(groups(&fabric, &order), expected);
    }

    proptest! {
        #[test]
        fn the_order_is_a_permutation_and_the_groups_are_its_parts(
            hosts in prop::collection::vec(0_usize..5, 1..40),
            supernodes in prop::collection::vec(0_usize..3, 5),
            first in any::<prop::sample::Index>(),
        ) {
            let fabric = Fabric::sample(&hosts, &supernodes, 8.0);
            let first = Rank(first.index(hosts.len()) as u32);
            let order = visiting_order(&fabric, first);
            prop_assert_eq!(order[0], first);
            prop_assert_eq!(groups(&fabric, &order).concat(), order.clone());
            let mut sorted = order;
            sorted.sort();
            prop_assert_eq!(sorted, (0..fabric.ranks()).map(Rank).collect::<Vec<_>>());
        }
    }
}
