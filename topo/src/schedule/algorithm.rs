use super::rounds::Rounds;
use super::{
    Algorithm, Collective, Schedule, Shape, binomial, chain, double_binary_tree, flat,
    halving_doubling, hierarchical, recursive_doubling, ring,
};
use crate::Rank;

impl Algorithm {
    /// The steps of `rank` in `collective`, or `None` if this algorithm does not do that
    /// collective in steps ([`Algorithm::Fused`] never has any).
    ///
    /// A barrier is an all-reduce; it is run on a single element. In a group of one there are no
    /// steps. All ranks of a group get a schedule, with equal `chunks`, or none of them does.
    ///
    /// # Panics
    ///
    /// If the shape does not hold together ([`Shape::check`]), or `rank` or the root of a
    /// broadcast is outside the group.
    pub fn schedule(self, collective: Collective, rank: Rank, shape: &Shape) -> Option<Schedule> {
        shape.check();
        let reversed = shape.reversed();
        let channels = (0..shape.channels)
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
        let rounds = match collective {
            Collective::AllReduce | Collective::Barrier => match self {
                Algorithm::Flat => flat::all_reduce(me, size),
                Algorithm::Ring => ring::all_reduce(me, size),
                Algorithm::RecursiveDoubling => recursive_doubling::all_reduce(me, size),
                Algorithm::HalvingDoubling => halving_doubling::all_reduce(me, size),
                Algorithm::DoubleBinaryTree => {
                    double_binary_tree::all_reduce(me, size, shape.depth)
                }
                Algorithm::Hierarchical => hierarchical::all_reduce(me, &shape.group_sizes()),
                Algorithm::Fused | Algorithm::Binomial | Algorithm::Chain => return None,
            },
            Collective::Broadcast { root } => {
                let root = position(order, root);
                match self {
                    Algorithm::Flat => flat::broadcast(me, size, root),
                    Algorithm::Binomial => binomial::broadcast(me, size, root),
                    Algorithm::Chain => chain::broadcast(me, size, root, shape.depth),
                    _ => return None,
                }
            }
        };
        Some(rounds.relabel(order))
    }

    /// The name in settings, reports and tables.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Fused => "fused",
            Algorithm::Flat => "flat",
            Algorithm::Ring => "ring",
            Algorithm::RecursiveDoubling => "recursive_doubling",
            Algorithm::HalvingDoubling => "halving_doubling",
            Algorithm::DoubleBinaryTree => "double_binary_tree",
            Algorithm::Hierarchical => "hierarchical",
            Algorithm::Binomial => "binomial",
            Algorithm::Chain => "chain",
        }
    }

    /// The algorithm of that exact [`name`](Algorithm::name).
    pub fn from_name(name: &str) -> Option<Algorithm> {
        Collective::EXAMPLES
            .into_iter()
            .flat_map(Algorithm::all_for)
            .find(|algorithm| algorithm.name() == name)
            .copied()
    }

    /// All algorithms that can do the collective. They include [`Algorithm::Fused`], which has no
    /// steps.
    pub fn all_for(collective: Collective) -> &'static [Algorithm] {
        match collective {
            Collective::AllReduce | Collective::Barrier => &[
                Algorithm::Fused,
                Algorithm::Flat,
                Algorithm::Ring,
                Algorithm::RecursiveDoubling,
                Algorithm::HalvingDoubling,
                Algorithm::DoubleBinaryTree,
                Algorithm::Hierarchical,
            ],
            Collective::Broadcast { .. } => {
                &[Algorithm::Fused, Algorithm::Flat, Algorithm::Binomial, Algorithm::Chain]
            }
        }
    }
}

impl Collective {
    /// One of each kind.
    const EXAMPLES: [Collective; 3] =
        [Collective::AllReduce, Collective::Broadcast { root: Rank(0) }, Collective::Barrier];

    /// The name in settings, reports and tables.
    pub fn name(self) -> &'static str {
        match self {
            Collective::AllReduce => "all_reduce",
            Collective::Broadcast { .. } => "broadcast",
            Collective::Barrier => "barrier",
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
        for collective in Collective::EXAMPLES {
            for &algorithm in Algorithm::all_for(collective) {
                assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
            }
        }
        assert_eq!(Algorithm::from_name("Ring"), None);
    }

    #[test]
    fn algorithms_have_steps_for_just_the_collectives_they_are_listed_for() {
        let shape = Shape::flat(3);
        let everything = Collective::EXAMPLES.into_iter().flat_map(Algorithm::all_for);
        for &algorithm in everything {
            for collective in Collective::EXAMPLES {
                let has_steps = algorithm.schedule(collective, Rank(1), &shape).is_some();
                let listed = Algorithm::all_for(collective).contains(&algorithm);
                assert_eq!(has_steps, listed && algorithm != Algorithm::Fused, "{algorithm:?}");
            }
        }
    }

    #[test]
    fn a_group_of_one_has_no_steps() {
        let shape = Shape { depth: 3, channels: 2, ..Shape::flat(1) };
        for collective in Collective::EXAMPLES {
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
            if algorithm != Algorithm::Fused {
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
