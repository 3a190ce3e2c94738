use std::collections::BTreeSet;

use super::cost::{Draft, Job};
use super::model::Model;
use super::{Candidate, Exclusion, Plan, Request, words};
use crate::Rank;
use crate::fabric::{Fabric, Provenance};
use crate::schedule::{Algorithm, Collective, Shape};

/// All that the choice depends on.
pub(super) struct Planner<'a> {
    pub(super) request: &'a Request,
    pub(super) fabric: &'a Fabric,
    pub(super) forced: Option<Algorithm>,
    pub(super) order: Vec<Rank>,
    pub(super) groups: Vec<Vec<Rank>>,
    pub(super) model: Model<'a>,
}

impl Planner<'_> {
    /// The fastest algorithm, or the one that is wanted, which must not be out.
    pub(super) fn best(&self) -> Plan {
        let collective = self.request.collective;
        let mut drafts: Vec<(Algorithm, Result<Draft, Exclusion>)> = Algorithm::all_for(collective)
            .iter()
            .map(|&algorithm| match self.exclusion(algorithm) {
                Some(exclusion) => (algorithm, Err(exclusion)),
                None => (algorithm, Ok(self.draft(algorithm))),
            })
            .collect();
        let seconds = |draft: &Result<Draft, Exclusion>| match draft {
            Ok(draft) => draft.seconds,
            Err(_) => f64::INFINITY,
        };
        drafts.sort_by(|(_, one), (_, other)| {
            one.is_err().cmp(&other.is_err()).then(seconds(one).total_cmp(&seconds(other)))
        });
        let considered: Vec<Candidate> = drafts
            .iter()
            .map(|(algorithm, draft)| Candidate {
                algorithm: *algorithm,
                predicted: draft.as_ref().map(|draft| draft.seconds).map_err(Clone::clone),
            })
            .collect();
        let chosen = drafts.into_iter().find_map(|(algorithm, draft)| {
            let wanted = self.forced.is_none_or(|forced| forced == algorithm);
            draft.ok().filter(|_| wanted).map(|draft| (algorithm, draft))
        });
        let (algorithm, Draft { shape, seconds }) =
            chosen.expect("every collective has an algorithm that is never out");
        let why = self.why(algorithm, &shape, seconds, &considered);
        Plan { algorithm, shape, predicted: seconds, why, considered }
    }

    fn draft(&self, algorithm: Algorithm) -> Draft {
        let bytes = match self.request.collective {
            Collective::Barrier => 0.0,
            _ => self.request.bytes as f64,
        };
        let board = self.request.shared_board.unwrap_or(0) as f64;
        let job = Job { model: &self.model, collective: self.request.collective, bytes, board };
        job.draft(algorithm, &self.order, &self.groups)
    }

    /// One line: the choice, for what, how long, the runner-up, and how far to trust the figures.
    fn why(
        &self,
        algorithm: Algorithm,
        shape: &Shape,
        seconds: f64,
        considered: &[Candidate],
    ) -> String {
        let name = algorithm.name();
        let forced = if self.forced.is_some() { " (forced)" } else { "" };
        if self.fabric.ranks() == 1 {
            return format!("{name}{forced}: alone: nothing to move");
        }
        let cut = match (shape.depth, shape.channels) {
            (1, 1) => String::new(),
            (1, channels) => format!(" on {channels} channels"),
            (depth, _) => format!(" in {depth} pieces"),
        };
        let others = considered.iter().filter(|candidate| candidate.algorithm != algorithm);
        let other =
            others.filter_map(|candidate| Some((candidate, candidate.predicted.as_ref().ok()?)));
        let other = other.map(|(candidate, &other)| {
            let relation = if other < seconds { "faster would be" } else { "next best" };
            format!("; {relation} {} {}", candidate.algorithm.name(), words::time(other))
        });
        format!(
            "{name}{forced}{cut}: {}: {} predicted{}; {}",
            self.task(),
            words::time(seconds),
            other.into_iter().next().unwrap_or_default(),
            self.trust(),
        )
    }

    /// Such as "16 ranks on 2 hosts, 64.0 KiB".
    fn task(&self) -> String {
        let hosts = words::count(self.fabric.hosts().len(), "host");
        let ranks = words::count(self.fabric.ranks() as usize, "rank");
        let supernodes: BTreeSet<usize> =
            self.fabric.hosts().iter().map(|host| host.supernode).collect();
        let supernodes = match supernodes.len() {
            1 => String::new(),
            count => format!(" in {}", words::count(count, "supernode")),
        };
        let size = match self.request.collective {
            Collective::Barrier => "no data".to_owned(),
            _ => words::bytes(self.request.bytes),
        };
        format!("{ranks} on {hosts}{supernodes}, {size}")
    }

    fn trust(&self) -> &'static str {
        match self.model.provenance() {
            (Provenance::Assumed, Provenance::Assumed) => "link figures are assumed",
            (Provenance::Assumed, _) => "some link figures are assumed",
            (Provenance::Spec, Provenance::Spec) => "link figures are from data sheets",
            (Provenance::Spec, _) => "some link figures are from data sheets",
            (Provenance::Measured, _) => "link figures are measured",
        }
    }
}
