use std::collections::BTreeMap;

use super::cost::{Job, Phase};
use super::model::Send;
use crate::Rank;
use crate::schedule::{Algorithm, Collective, Shape};

impl Job<'_> {
    /// What an algorithm with steps sends, phase after phase: the same bytes
    /// between the same ranks as its schedule.
    pub(super) fn phases<'s>(&self, algorithm: Algorithm, shape: &'s Shape) -> Vec<Phase<'s>> {
        let order = &shape.order;
        match self.collective {
            Collective::AllReduce | Collective::Barrier => match algorithm {
                Algorithm::Flat => vec![self.flat_all_reduce(order)],
                Algorithm::Ring => {
                    let channels = shape.channels;
                    vec![self.ring(order, channels, true), self.ring(order, channels, false)]
                }
                Algorithm::RecursiveDoubling => self.recursive_doubling(order),
                Algorithm::HalvingDoubling => {
                    self.halving(order).chain(self.doubling(order)).collect()
                }
                Algorithm::DoubleBinaryTree => vec![self.trees(order).phase(shape.depth)],
                Algorithm::Hierarchical => self.all_reduce_by_groups(&shape.groups),
                _ => unreachable!("{algorithm:?} does no all-reduce in steps"),
            },
            Collective::AllGather => match algorithm {
                Algorithm::Flat => vec![self.everyone_to_everyone(order)],
                Algorithm::Ring => vec![self.ring(order, 1, false)],
                Algorithm::HalvingDoubling => self.doubling(order).collect(),
                Algorithm::Hierarchical => self.all_gather_by_groups(&shape.groups),
                _ => unreachable!("{algorithm:?} does no all-gather in steps"),
            },
            Collective::ReduceScatter => match algorithm {
                Algorithm::Flat => {
                    vec![Phase { folded: self.bytes, ..self.everyone_to_everyone(order) }]
                }
                Algorithm::Ring => vec![self.ring(order, 1, true)],
                Algorithm::HalvingDoubling => self.halving(order).collect(),
                Algorithm::Hierarchical => self.reduce_scatter_by_groups(&shape.groups),
                _ => unreachable!("{algorithm:?} does no reduce-scatter in steps"),
            },
            Collective::AllToAll | Collective::AllToAllV => match algorithm {
                Algorithm::Pairwise => vec![self.everyone_to_everyone(order)],
                Algorithm::Bruck => self.bruck(order).collect(),
                Algorithm::Hierarchical => self.all_to_all_by_groups(&shape.groups),
                _ => unreachable!("{algorithm:?} does no all-to-all in steps"),
            },
            Collective::Broadcast { root }
            | Collective::Reduce { root }
            | Collective::Gather { root }
            | Collective::Scatter { root } => {
                let root = order.iter().position(|&rank| rank == root);
                let root = root.expect("the root is one of the ranks");
                let order: Vec<Rank> = [&order[root..], &order[..root]].concat();
                self.rooted(algorithm, &order, shape)
            }
        }
    }

    /// Phases of a collective from the first rank of the order, or to it.
    fn rooted(&self, algorithm: Algorithm, order: &[Rank], shape: &Shape) -> Vec<Phase<'static>> {
        let phases = match (algorithm, self.collective) {
            (Algorithm::Flat, Collective::Broadcast { .. } | Collective::Reduce { .. }) => {
                vec![self.root_and_others(order, self.bytes)]
            }
            (Algorithm::Flat, _) => {
                vec![self.root_and_others(order, self.bytes / order.len() as f64)]
            }
            (Algorithm::Binomial, Collective::Broadcast { .. } | Collective::Reduce { .. }) => {
                self.binomial(order, |_| self.bytes)
            }
            (Algorithm::Binomial, _) => {
                let block = self.bytes / order.len() as f64;
                self.binomial(order, |below| block * below as f64)
            }
            (Algorithm::Chain, _) => vec![self.chain(order).phase(shape.depth)],
            (Algorithm::Hierarchical, Collective::Broadcast { .. } | Collective::Reduce { .. }) => {
                vec![self.chains_by_groups(&shape.groups, order[0]).phase(shape.depth)]
            }
            (Algorithm::Hierarchical, _) => self.scatter_by_groups(&shape.groups, order[0]),
            _ => unreachable!("{algorithm:?} has no root"),
        };
        match self.collective {
            Collective::Broadcast { .. } | Collective::Scatter { .. } => phases,
            _ => phases.into_iter().map(|phase| self.backwards(phase)).collect(),
        }
    }

    /// The phase with every send the other way; a reduce folds what it brings.
    fn backwards(&self, phase: Phase<'static>) -> Phase<'static> {
        let sends: Vec<Send> = phase
            .sends
            .map(|Send { from, to, bytes }| Send { from: to, to: from, bytes })
            .collect();
        let mut into = BTreeMap::<Rank, f64>::new();
        sends.iter().for_each(|send| *into.entry(send.to).or_default() += send.bytes);
        let folds = matches!(self.collective, Collective::Reduce { .. });
        let most = into.into_values().fold(0.0, f64::max);
        Phase {
            sends: Box::new(sends.into_iter()),
            folded: if folds { most } else { 0.0 },
            ..phase
        }
    }

    fn flat_all_reduce<'s>(&self, order: &'s [Rank]) -> Phase<'s> {
        let bytes = self.bytes;
        let sends = order.iter().flat_map(move |&from| {
            let others = order.iter().filter(move |&&to| to != from);
            others.map(move |&to| Send { from, to, bytes })
        });
        one_round(sends, bytes * (order.len() - 1) as f64)
    }

    /// One block of the data from each rank to each other.
    fn everyone_to_everyone<'s>(&self, order: &'s [Rank]) -> Phase<'s> {
        let block = Job { bytes: self.bytes / order.len() as f64, ..*self };
        Phase { folded: 0.0, ..block.flat_all_reduce(order) }
    }

    fn root_and_others(&self, order: &[Rank], bytes: f64) -> Phase<'static> {
        let (root, order) = (order[0], order.to_vec());
        one_round(order.into_iter().skip(1).map(move |to| Send { from: root, to, bytes }), 0.0)
    }

    /// In `size - 1` rounds each rank sends as many parts of the data to the next; every second
    /// channel goes the other way round.
    fn ring<'s>(&self, order: &'s [Rank], channels: u32, folds: bool) -> Phase<'s> {
        let size = order.len() as f64;
        let part = (size - 1.0) / size;
        let bytes = part * self.bytes / f64::from(channels);
        let edges = move || order.iter().zip(order.iter().cycle().skip(1));
        let sends = (0..channels).flat_map(move |channel| {
            edges().map(move |(&one, &next)| match channel % 2 {
                0 => Send { from: one, to: next, bytes },
                _ => Send { from: next, to: one, bytes },
            })
        });
        let lap_s: f64 = edges().map(|(&one, &next)| self.model.latency_s(one, next)).sum();
        Phase {
            sends: Box::new(sends),
            rounds: order.len() as u32 - 1,
            latency_s: Some(part * lap_s),
            folded: if folds { part * self.bytes } else { 0.0 },
        }
    }

    fn recursive_doubling(&self, order: &[Rank]) -> Vec<Phase<'static>> {
        let (bytes, levels) = (self.bytes, order.len().ilog2());
        let pairs = order.len() - (1 << levels);
        let mut players: Vec<Rank> = order[..2 * pairs].iter().step_by(2).copied().collect();
        players.extend(&order[2 * pairs..]);
        let mut phases = Vec::new();
        for level in 0..levels {
            let send = |(player, &from): (usize, &Rank)| Send {
                from,
                to: players[player ^ (1 << level)],
                bytes,
            };
            let sends: Vec<Send> = players.iter().enumerate().map(send).collect();
            phases.push(one_round(sends.into_iter(), bytes));
        }
        if pairs > 0 {
            let send = |pair: &[Rank]| Send { from: pair[1], to: pair[0], bytes };
            let before: Vec<Send> = order[..2 * pairs].chunks(2).map(send).collect();
            let after = before.clone().into_iter().map(|Send { from, to, bytes }| Send {
                from: to,
                to: from,
                bytes,
            });
            phases.insert(0, one_round(before.into_iter(), bytes));
            phases.push(one_round(after, 0.0));
        }
        phases
    }

    fn halving<'s>(&self, order: &'s [Rank]) -> impl Iterator<Item = Phase<'s>> + use<'s> {
        self.halvings(order).map(move |(distance, bytes)| {
            let pairs = order.iter().zip(order.iter().cycle().skip(distance));
            one_round(pairs.map(move |(&from, &to)| Send { from, to, bytes }), bytes)
        })
    }

    fn doubling<'s>(&self, order: &'s [Rank]) -> impl Iterator<Item = Phase<'s>> + use<'s> {
        self.halvings(order).map(move |(distance, bytes)| {
            let pairs = order.iter().zip(order.iter().cycle().skip(distance));
            one_round(pairs.map(move |(&to, &from)| Send { from, to, bytes }), 0.0)
        })
    }

    /// Distances that halve, with the bytes that move over each.
    fn halvings(&self, order: &[Rank]) -> impl Iterator<Item = (usize, f64)> + use<> {
        let (size, part) = (order.len(), self.bytes / order.len() as f64);
        let held = std::iter::successors(Some(size), |held| Some(held.div_ceil(2)));
        held.take_while(|&held| held > 1).map(move |held| {
            let distance = held.div_ceil(2);
            (distance, part * (held - distance) as f64)
        })
    }

    /// For each bit of the distance the blocks whose way has it, each sent by itself.
    fn bruck<'s>(&self, order: &'s [Rank]) -> impl Iterator<Item = Phase<'s>> + use<'s> {
        let (size, block) = (order.len(), self.bytes / order.len() as f64);
        let hops = std::iter::successors(Some(1), |hop| Some(2 * hop));
        hops.take_while(move |&hop| hop < size).map(move |hop| {
            let blocks = (1..size).filter(|way| way & hop != 0).count();
            let pairs = order.iter().zip(order.iter().cycle().skip(hop));
            let sends = pairs.flat_map(move |(&from, &to)| {
                std::iter::repeat_n(Send { from, to, bytes: block }, blocks)
            });
            one_round(sends, 0.0)
        })
    }

    /// Down a binomial tree; `bytes` tells what is sent to a rank with so many at and below it.
    fn binomial(&self, order: &[Rank], bytes: impl Fn(usize) -> f64) -> Vec<Phase<'static>> {
        let size = order.len();
        let levels = size.next_power_of_two().ilog2();
        let phase = |level: u32| {
            let distance = 1 << level;
            let senders = (0..size - distance).step_by(2 * distance);
            let send = |from: usize| {
                let to = from + distance;
                Send { from: order[from], to: order[to], bytes: bytes(distance.min(size - to)) }
            };
            one_round(senders.map(send).collect::<Vec<Send>>().into_iter(), 0.0)
        };
        (0..levels).rev().map(phase).collect()
    }
}

pub(super) fn one_round<'s>(sends: impl Iterator<Item = Send> + 's, folded: f64) -> Phase<'s> {
    Phase { sends: Box::new(sends), rounds: 1, latency_s: None, folded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::Fabric;
    use crate::plan::model::Model;
    use crate::schedule::{Part, Step};

    /// Bytes from rank to rank.
    type Traffic = BTreeMap<(Rank, Rank), f64>;

    fn add(traffic: &mut Traffic, from: Rank, to: Rank, bytes: f64) {
        *traffic.entry((from, to)).or_default() += bytes;
    }

    fn scheduled(algorithm: Algorithm, job: &Job, shape: &Shape) -> Traffic {
        let mut traffic = Traffic::new();
        for &rank in &shape.order {
            let schedule = algorithm.schedule(job.collective, rank, shape).expect("steps");
            let chunk = match job.collective {
                Collective::AllToAll | Collective::AllToAllV => job.bytes / f64::from(shape.size()),
                _ => job.bytes / f64::from(schedule.chunks),
            };
            for step in schedule.steps {
                if let Step::Send { to, part: Part { len, .. } } = step {
                    add(&mut traffic, rank, to, chunk * f64::from(len));
                }
            }
        }
        traffic
    }

    fn priced(algorithm: Algorithm, job: &Job, shape: &Shape) -> Traffic {
        let mut traffic = Traffic::new();
        for send in job.phases(algorithm, shape).into_iter().flat_map(|phase| phase.sends) {
            add(&mut traffic, send.from, send.to, send.bytes);
        }
        traffic
    }

    fn assert_same(algorithm: Algorithm, job: &Job, shape: &Shape) {
        let (scheduled, priced) = (scheduled(algorithm, job, shape), priced(algorithm, job, shape));
        assert_eq!(
            scheduled.keys().collect::<Vec<_>>(),
            priced.keys().collect::<Vec<_>>(),
            "{algorithm:?} {shape:?}",
        );
        for (ends, bytes) in scheduled {
            let relative = (priced[&ends] - bytes).abs() / bytes;
            assert!(relative < 1e-9, "{algorithm:?} {shape:?} {ends:?}: {bytes} scheduled");
        }
    }

    /// Shapes of that many ranks in groups, visited backwards.
    fn shapes(size: u32) -> impl Iterator<Item = Shape> {
        let order: Vec<Rank> = (0..size).rev().map(Rank).collect();
        [(1, 1), (2, 3), (3, 4), (7, 1)].into_iter().map(move |(in_group, depth)| Shape {
            groups: order.chunks(in_group).map(<[Rank]>::to_vec).collect(),
            order: order.clone(),
            depth,
            channels: depth.min(2),
        })
    }

    #[test]
    fn each_price_is_for_the_bytes_that_the_schedule_sends() {
        for size in 2..=17 {
            let fabric = Fabric::sample(&vec![0; size as usize], &[0], 8.0);
            for kind in Collective::KINDS {
                let collective = kind.with_root(Rank(size / 2));
                let model = &Model::new(&fabric);
                let job = Job { model, collective, bytes: 1e6, board: 0.0 };
                for &algorithm in Algorithm::all_for(collective) {
                    if !algorithm.is_fused() {
                        for mut shape in shapes(size) {
                            if algorithm != Algorithm::Ring {
                                shape.channels = 1;
                            }
                            assert_same(algorithm, &job, &shape);
                        }
                    }
                }
            }
        }
    }
}
