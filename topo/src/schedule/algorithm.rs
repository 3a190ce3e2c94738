use super::rounds::Rounds;
use super::{
    Algorithm, Collective, Schedule, Shape, binomial, bruck, chain, double_binary_tree, flat,
    halving_doubling, hierarchical, pairwise, recursive_doubling, ring,
};
use crate::Rank;

impl Algorithm {
    /// The steps of `rank` in `collective`, or `None` if this algorithm does not do that
    /// collective in steps (those that are [fused](Algorithm::is_fused) never have any).
    ///
    /// A barrier is an all-reduce; it is run on a single element. Where chunks are blocks
    /// ([`Collective::has_blocks`]) there is one channel, whatever the shape says. In a group of one
    /// there are no steps. All ranks of a group get a schedule, with equal `chunks`, or none of them does.
    ///
    /// # Panics
    ///
    /// If the shape does not hold together ([`Shape::check`]), or `rank` or the root is outside the
    /// group.
    pub fn schedule(self, collective: Collective, rank: Rank, shape: &Shape) -> Option<Schedule> {
        shape.check();
        let reversed = shape.reversed();
        let channels = if collective.has_blocks() { 1 } else { shape.channels };
        let channels = (0..channels)
            .map(|channel| if channel % 2 == 0 { shape } else { &reversed })
            .map(|shape| self.channel(collective, rank, shape))
            .collect::<Option<Vec<Rounds>>>()?;
        Some(Rounds::side_by_side(channels))
    }

    /// The steps of one channel; the order of the shape is the order in which it visits ranks.
    fn channel(self, collective: Collective, rank: Rank, shape: &Shape) -> Option<Rounds> {
        let order = match self {
            Algorithm::Hierarchical => &shape.groups.concat(),
            _ => &shape.order,
        };
        let (me, size) = (position(order, rank), shape.size());
        let root = collective.root().map_or(0, |root| position(order, root));
        let (depth, sizes) = (shape.depth, &shape.group_sizes());
        let rounds = match collective {
            Collective::AllReduce | Collective::Barrier => match self {
                Algorithm::Flat => flat::all_reduce(me, size),
                Algorithm::Ring => ring::all_reduce(me, size),
                Algorithm::RecursiveDoubling => recursive_doubling::all_reduce(me, size),
                Algorithm::HalvingDoubling => halving_doubling::all_reduce(me, size),
                Algorithm::DoubleBinaryTree => double_binary_tree::all_reduce(me, size, depth),
                Algorithm::Hierarchical => hierarchical::all_reduce(me, sizes),
                _ => return None,
            },
            Collective::Broadcast { .. } => match self {
                Algorithm::Flat => flat::broadcast(me, size, root),
                Algorithm::Binomial => binomial::broadcast(me, size, root),
                Algorithm::Chain => chain::broadcast(me, size, root, depth),
                Algorithm::Hierarchical => hierarchical::broadcast(me, sizes, root, depth),
                _ => return None,
            },
            Collective::Reduce { .. } => match self {
                Algorithm::Flat => flat::reduce(me, size, root),
                Algorithm::Binomial => binomial::reduce(me, size, root),
                Algorithm::Chain => chain::reduce(me, size, root, depth),
                Algorithm::Hierarchical => hierarchical::reduce(me, sizes, root, depth),
                _ => return None,
            },
            Collective::AllGather => match self {
                Algorithm::Flat => flat::all_gather(me, size),
                Algorithm::Ring => ring::all_gather(me, size),
                Algorithm::HalvingDoubling => halving_doubling::all_gather(me, size),
                Algorithm::Hierarchical => hierarchical::all_gather(me, sizes),
                _ => return None,
            },
            Collective::ReduceScatter => match self {
                Algorithm::Flat => flat::reduce_scatter(me, size),
                Algorithm::Ring => ring::reduce_scatter(me, size),
                Algorithm::HalvingDoubling => halving_doubling::reduce_scatter(me, size),
                Algorithm::Hierarchical => hierarchical::reduce_scatter(me, sizes),
                _ => return None,
            },
            Collective::Gather { .. } => match self {
                Algorithm::Flat => flat::gather(me, size, root),
                Algorithm::Binomial => binomial::gather(me, size, root),
                Algorithm::Hierarchical => hierarchical::gather(me, sizes, root),
                _ => return None,
            },
            Collective::Scatter { .. } => match self {
                Algorithm::Flat => flat::scatter(me, size, root),
                Algorithm::Binomial => binomial::scatter(me, size, root),
                Algorithm::Hierarchical => hierarchical::scatter(me, sizes, root),
                _ => return None,
            },
            Collective::AllToAll => match self {
                Algorithm::Pairwise => pairwise::all_to_all(me, size),
                Algorithm::Bruck => bruck::all_to_all(me, size),
                Algorithm::Hierarchical => hierarchical::all_to_all(me, sizes),
                _ => return None,
            },
            Collective::AllToAllV => match self {
                Algorithm::Pairwise => pairwise::all_to_all(me, size),
                _ => return None,
            },
        };
        let rounds = match collective {
            Collective::AllToAll | Collective::AllToAllV => rounds.renumber(|pair| {
                let [from, to] = [pair / size, pair % size].map(|place| order[place as usize].0);
                from * size + to
            }),
            _ if collective.has_blocks() => rounds.renumber(|block| order[block as usize].0),
            _ => rounds,
        };
        Some(rounds.relabel(order))
    }

    /// The name in settings, reports and tables.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Fused => "fused",
            Algorithm::FusedShares => "fused_shares",
            Algorithm::Flat => "flat",
            Algorithm::Ring => "ring",
            Algorithm::RecursiveDoubling => "recursive_doubling",
            Algorithm::HalvingDoubling => "halving_doubling",
            Algorithm::DoubleBinaryTree => "double_binary_tree",
            Algorithm::Hierarchical => "hierarchical",
            Algorithm::Binomial => "binomial",
            Algorithm::Chain => "chain",
            Algorithm::Pairwise => "pairwise",
            Algorithm::Bruck => "bruck",
        }
    }

    /// The algorithm of that exact [`name`](Algorithm::name).
    pub fn from_name(name: &str) -> Option<Algorithm> {
        Collective::KINDS
            .into_iter()
            .flat_map(Algorithm::all_for)
            .find(|algorithm| algorithm.name() == name)
            .copied()
    }

    /// Whether it goes over the transport's board, without steps.
    pub fn is_fused(self) -> bool {
        matches!(self, Algorithm::Fused | Algorithm::FusedShares)
    }

    /// All algorithms that can do the collective, those included that have no steps.
    pub fn all_for(collective: Collective) -> &'static [Algorithm] {
        match collective {
            Collective::AllReduce => &[
                Algorithm::Fused,
                Algorithm::FusedShares,
                Algorithm::Flat,
                Algorithm::Ring,
                Algorithm::RecursiveDoubling,
                Algorithm::HalvingDoubling,
                Algorithm::DoubleBinaryTree,
                Algorithm::Hierarchical,
            ],
            Collective::Barrier => &[
                Algorithm::Fused,
                Algorithm::Flat,
                Algorithm::Ring,
                Algorithm::RecursiveDoubling,
                Algorithm::HalvingDoubling,
                Algorithm::DoubleBinaryTree,
                Algorithm::Hierarchical,
            ],
            Collective::Broadcast { .. } => &[
                Algorithm::Fused,
                Algorithm::Flat,
                Algorithm::Binomial,
                Algorithm::Chain,
                Algorithm::Hierarchical,
            ],
            Collective::Reduce { .. } => &[
                Algorithm::Fused,
                Algorithm::Flat,
                Algorithm::Binomial,
                Algorithm::Chain,
                Algorithm::Hierarchical,
            ],
            Collective::AllGather | Collective::ReduceScatter => &[
                Algorithm::Fused,
                Algorithm::Flat,
                Algorithm::Ring,
                Algorithm::HalvingDoubling,
                Algorithm::Hierarchical,
            ],
            Collective::Gather { .. } | Collective::Scatter { .. } => {
                &[Algorithm::Fused, Algorithm::Flat, Algorithm::Binomial, Algorithm::Hierarchical]
            }
            Collective::AllToAll => {
                &[Algorithm::Fused, Algorithm::Pairwise, Algorithm::Bruck, Algorithm::Hierarchical]
            }
            Collective::AllToAllV => &[Algorithm::Pairwise],
        }
    }
}

fn position(order: &[Rank], rank: Rank) -> u32 {
    let position = order.iter().position(|&other| other == rank);
    position.unwrap_or_else(|| panic!("rank {rank} is outside a group of {}", order.len())) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::proof::prove_shape;

    #[test]
    fn every_algorithm_is_found_by_its_name() {
        for collective in Collective::KINDS {
            for &algorithm in Algorithm::all_for(collective) {
                assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
            }
        }
        assert_eq!(Algorithm::from_name("Ring"), None);
    }

    #[test]
    fn algorithms_have_steps_for_just_the_collectives_they_are_listed_for() {
        let shape = Shape::flat(3);
        let everything = Collective::KINDS.into_iter().flat_map(Algorithm::all_for);
        for &algorithm in everything {
            for collective in Collective::KINDS {
                let has_steps = algorithm.schedule(collective, Rank(1), &shape).is_some();
                let listed = Algorithm::all_for(collective).contains(&algorithm);
                assert_eq!(has_steps, listed && !algorithm.is_fused(), "{algorithm:?}");
            }
        }
    }

    #[test]
    fn a_group_of_one_has_no_steps() {
        let shape = Shape { depth: 3, channels: 2, ..Shape::flat(1) };
        for collective in Collective::KINDS {
            for &algorithm in Algorithm::all_for(collective) {
                if let Some(schedule) = algorithm.schedule(collective, Rank(0), &shape) {
                    assert!(schedule.chunks >= 1 && schedule.steps.is_empty(), "{algorithm:?}");
                }
            }
        }
    }

    #[test]
    fn a_barrier_is_an_all_reduce() {
        let shape = Shape { channels: 2, ..Shape::flat(6) };
        for &algorithm in Algorithm::all_for(Collective::Barrier) {
            for rank in (0..6).map(Rank) {
                assert_eq!(
                    algorithm.schedule(Collective::Barrier, rank, &shape),
                    algorithm.schedule(Collective::AllReduce, rank, &shape),
                );
            }
            if !algorithm.is_fused() {
                prove_shape(algorithm, Collective::Barrier, &shape);
            }
        }
    }

    #[test]
    fn channels_cut_the_data_further() {
        let shape = Shape { channels: 3, ..Shape::flat(5) };
        let schedule = Algorithm::Ring.schedule(Collective::AllReduce, Rank(0), &shape).unwrap();
        assert_eq!(schedule.chunks, 15);
        assert_eq!(schedule.steps.len(), 3 * 16);
    }

    #[test]
    #[should_panic(expected = "rank 3 is outside a group of 3")]
    fn a_root_outside_the_group_is_refused() {
        let collective = Collective::Broadcast { root: Rank(3) };
        Algorithm::Chain.schedule(collective, Rank(0), &Shape::flat(3));
    }
}
