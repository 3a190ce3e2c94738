//! What the hierarchical algorithms send.

use super::cost::{Job, Phase};
use super::model::Send;
use super::phases::one_round;
use super::pipeline::Pipeline;
use crate::Rank;

impl Job<'_> {
    pub(super) fn all_reduce_by_groups(&self, groups: &[Vec<Rank>]) -> Vec<Phase<'static>> {
        let slices = groups.iter().map(Vec::len).max().unwrap_or(1);
        let inside =
            |block_of_receiver: bool| self.inside_groups(groups, slices, block_of_receiver);
        let phases = [Some(inside(false)), self.across_groups(groups, slices), Some(inside(true))];
        phases.into_iter().flatten().filter(|phase| phase.rounds > 0).collect()
    }

    /// One round of each group's ring after another: all blocks but the sender's own (scattering
    /// and folding) or all but the receiver's own (gathering).
    fn inside_groups(&self, groups: &[Vec<Rank>], slices: usize, gather: bool) -> Phase<'static> {
        let slice = self.bytes / slices as f64;
        let mut sends = Vec::new();
        let mut latency_s = 0.0_f64;
        for group in groups.iter().filter(|group| group.len() > 1) {
            let size = group.len();
            let mut lap_s = 0.0;
            for (member, &from) in group.iter().enumerate() {
                let next = (member + 1) % size;
                let (first, end) = owned(if gather { next } else { member }, size, slices);
                let bytes = slice * (slices - (end - first)) as f64;
                sends.push(Send { from, to: group[next], bytes });
                lap_s += self.model.latency_s(from, group[next]);
            }
            latency_s = latency_s.max(lap_s * (size - 1) as f64 / size as f64);
        }
        let folded = if gather { 0.0 } else { self.bytes * (slices - 1) as f64 / slices as f64 };
        let (sends, latency_s) = (Box::new(sends.into_iter()), Some(latency_s));
        Phase { sends, rounds: slices as u32 - 1, latency_s, folded }
    }

    /// A ring over the groups for each slice, through the ranks that own it.
    fn across_groups(&self, groups: &[Vec<Rank>], slices: usize) -> Option<Phase<'static>> {
        let count = groups.len() as f64;
        let part = (count - 1.0) / count;
        let bytes = 2.0 * part * self.bytes / slices as f64;
        let mut sends: Vec<Send> = Vec::new();
        let mut latency_s = 0.0_f64;
        for slice in 0..slices {
            let owner = |group: &Vec<Rank>| group[((slice + 1) * group.len() - 1) / slices];
            let owners: Vec<Rank> = groups.iter().map(owner).collect();
            let mut lap_s = 0.0;
            for (&from, &to) in owners.iter().zip(owners.iter().cycle().skip(1)) {
                sends.push(Send { from, to, bytes });
                lap_s += self.model.latency_s(from, to);
            }
            latency_s = latency_s.max(2.0 * part * lap_s);
        }
        let smallest = groups.iter().map(Vec::len).min().unwrap_or(1);
        (groups.len() > 1).then(|| Phase {
            sends: Box::new(sends.into_iter()),
            rounds: 2 * (groups.len() as u32 - 1),
            latency_s: Some(latency_s),
            folded: part * self.bytes / smallest as f64,
        })
    }

    /// Every block straight to one rank of each other group, then round in each group.
    pub(super) fn all_gather_by_groups(&self, groups: &[Vec<Rank>]) -> Vec<Phase<'static>> {
        let (across, inside) = (self.blocks_across(groups, false), self.bundles(groups, true));
        [across, inside].into_iter().filter(|phase| phase.rounds > 0).collect()
    }

    /// Folded round in each group, then every partial result straight to where it belongs.
    pub(super) fn reduce_scatter_by_groups(&self, groups: &[Vec<Rank>]) -> Vec<Phase<'static>> {
        let (inside, across) = (self.bundles(groups, false), self.blocks_across(groups, true));
        [inside, across].into_iter().filter(|phase| phase.rounds > 0).collect()
    }

    /// One block between each rank and one of each other group: to that one, or back from it.
    fn blocks_across(&self, groups: &[Vec<Rank>], back: bool) -> Phase<'static> {
        let block = self.block(groups);
        let mut sends = Vec::new();
        for (here, group) in groups.iter().enumerate() {
            for (_, other) in groups.iter().enumerate().filter(|&(there, _)| there != here) {
                for (member, &rank) in group.iter().enumerate() {
                    let partner = other[member % other.len()];
                    let (from, to) = if back { (partner, rank) } else { (rank, partner) };
                    sends.push(Send { from, to, bytes: block });
                }
            }
        }
        let folded = if back { block * (groups.len() - 1) as f64 } else { 0.0 };
        Phase { rounds: u32::from(groups.len() > 1), ..one_round(sends.into_iter(), folded) }
    }

    /// A ring in each group over what its members have, or take in, of all ranks' blocks.
    fn bundles(&self, groups: &[Vec<Rank>], gather: bool) -> Phase<'static> {
        let (block, all) = (self.block(groups), ranks(groups));
        let mut sends = Vec::new();
        let (mut latency_s, mut folded, mut rounds) = (0.0_f64, 0.0_f64, 0);
        for group in groups.iter().filter(|group| group.len() > 1) {
            let size = group.len();
            let bundle = |member: usize| {
                let others = groups.iter().filter(|other| other[0] != group[0]);
                let taken = others.map(|other| (other.len() + size - 1 - member) / size);
                1 + taken.sum::<usize>()
            };
            let mut lap_s = 0.0;
            for (member, &from) in group.iter().enumerate() {
                let next = (member + 1) % size;
                let kept = bundle(if gather { next } else { member });
                let bytes = block * (all - kept) as f64;
                sends.push(Send { from, to: group[next], bytes });
                lap_s += self.model.latency_s(from, group[next]);
                folded = folded.max(if gather { 0.0 } else { bytes });
            }
            latency_s = latency_s.max(lap_s * (size - 1) as f64 / size as f64);
            rounds = rounds.max(size as u32 - 1);
        }
        Phase { sends: Box::new(sends.into_iter()), rounds, latency_s: Some(latency_s), folded }
    }

    /// A chain over one rank of each group, and from it one through the group.
    pub(super) fn chains_by_groups(&self, groups: &[Vec<Rank>], root: Rank) -> Pipeline {
        let from_root = from_root(groups, root);
        let mut chains: Vec<Vec<Rank>> = Vec::new();
        for nth in 0..from_root.len() {
            let leaders = from_root[..=nth].iter().map(|group| group[0]);
            chains.push(leaders.chain(from_root[nth][1..].iter().copied()).collect());
        }
        let over_leaders = from_root.windows(2).map(|pair| (pair[0][0], pair[1][0]));
        let inside = from_root.iter().flat_map(|group| group.windows(2).map(|w| (w[0], w[1])));
        let send = |(from, to)| Send { from, to, bytes: self.bytes };
        let sends = over_leaders.chain(inside).map(send).collect();
        self.tree_of_chains(&chains, sends)
    }

    /// From the root to one rank of each group all blocks of the group, then to each its own.
    pub(super) fn scatter_by_groups(
        &self,
        groups: &[Vec<Rank>],
        root: Rank,
    ) -> Vec<Phase<'static>> {
        let (block, from_root) = (self.block(groups), from_root(groups, root));
        let across = from_root[1..].iter().map(|group| Send {
            from: root,
            to: group[0],
            bytes: block * group.len() as f64,
        });
        let inside = from_root.iter().flat_map(|group| {
            group[1..].iter().map(|&to| Send { from: group[0], to, bytes: block })
        });
        let phases = [across.collect::<Vec<Send>>(), inside.collect()];
        let phases = phases.into_iter().filter(|sends| !sends.is_empty());
        phases.map(|sends| one_round(sends.into_iter(), 0.0)).collect()
    }

    /// Straight inside the groups; brought together, across, and handed out between them.
    pub(super) fn all_to_all_by_groups(&self, groups: &[Vec<Rank>]) -> Vec<Phase<'static>> {
        let block = self.block(groups);
        let speaker = |group: usize, other: usize| groups[group][other % groups[group].len()];
        let mut phases: [Vec<Send>; 4] = Default::default();
        for (here, group) in groups.iter().enumerate() {
            for &from in group {
                let others = group.iter().filter(|&&to| to != from);
                phases[0].extend(others.map(|&to| Send { from, to, bytes: block }));
            }
            for (there, other) in groups.iter().enumerate().filter(|&(there, _)| there != here) {
                let (ours, theirs) = (speaker(here, there), speaker(there, here));
                let all = block * (group.len() * other.len()) as f64;
                let bytes = block * other.len() as f64;
                let rest = group.iter().filter(|&&rank| rank != ours);
                for &rank in rest {
                    phases[1].push(Send { from: rank, to: ours, bytes });
                    phases[3].push(Send { from: ours, to: rank, bytes });
                }
                phases[2].push(Send { from: ours, to: theirs, bytes: all });
            }
        }
        let phases = phases.into_iter().filter(|sends| !sends.is_empty());
        phases.map(|sends| one_round(sends.into_iter(), 0.0)).collect()
    }

    fn block(&self, groups: &[Vec<Rank>]) -> f64 {
        self.bytes / ranks(groups) as f64
    }
}

fn ranks(groups: &[Vec<Rank>]) -> usize {
    groups.iter().map(Vec::len).sum()
}

/// The groups from that of the root on, each from the rank on that stands for it.
fn from_root(groups: &[Vec<Rank>], root: Rank) -> Vec<Vec<Rank>> {
    let of_root = groups.iter().position(|group| group.contains(&root));
    let of_root = of_root.expect("the root is in a group");
    let mut groups = [&groups[of_root..], &groups[..of_root]].concat();
    let place = groups[0].iter().position(|&rank| rank == root).expect("it was found there");
    groups[0].rotate_left(place);
    groups
}

/// The first slice of a member of a group, and the one after its last.
fn owned(member: usize, size: usize, slices: usize) -> (usize, usize) {
    (member * slices / size, (member + 1) * slices / size)
}
