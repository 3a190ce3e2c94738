use std::fmt;

use super::planner::Planner;
use super::{fused, words};
use crate::Rank;
use crate::schedule::Algorithm;

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// The fabric has no ranks.
    NoRanks,
    /// The root is a rank that is not there.
    RootOutside {
        /// The root.
        root: Rank,
        /// How many ranks there are.
        ranks: u32,
    },
    /// The algorithm that is wanted cannot do it.
    Impossible {
        /// The collective.
        collective: &'static str,
        /// The algorithm.
        algorithm: Algorithm,
        /// Why it cannot.
        why: Exclusion,
        /// Those that can.
        possible: Vec<Algorithm>,
    },
}

/// Why an algorithm is out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exclusion {
    /// It needs memory that all ranks share.
    NoBoard,
    /// It needs all ranks on one host.
    ManyHosts {
        /// How many hosts there are.
        hosts: usize,
    },
    /// A message on the board has no room for parts for all ranks.
    SmallBoard {
        /// The longest message, in bytes.
        limit: u64,
        /// How many ranks there are.
        ranks: u32,
    },
    /// There is one group only, or each rank is a group.
    NoGroups,
    /// It would have each rank talk to too many others.
    ManyRanks {
        /// How many ranks there are.
        ranks: u32,
        /// How many ranks it is looked at for.
        most: u32,
    },
    /// A single rank has nobody to meet on a board.
    Alone,
}

/// Flat exchanges among more ranks are never fast, and slow to price.
const MOST_RANKS_FLAT: u32 = 256;

impl Planner<'_> {
    /// Why an algorithm is out, if it is. One that is wanted stays in if it can work at all.
    pub(super) fn exclusion(&self, algorithm: Algorithm) -> Option<Exclusion> {
        let ranks = self.fabric.ranks();
        let wanted = self.forced == Some(algorithm);
        match algorithm {
            Algorithm::Fused | Algorithm::FusedShares => self.off_the_board(algorithm),
            Algorithm::Hierarchical => {
                let nested = (2..self.order.len()).contains(&self.groups.len());
                (!wanted && !nested).then_some(Exclusion::NoGroups)
            }
            Algorithm::Flat => (!wanted && ranks > MOST_RANKS_FLAT)
                .then_some(Exclusion::ManyRanks { ranks, most: MOST_RANKS_FLAT }),
            _ => None,
        }
    }

    fn off_the_board(&self, algorithm: Algorithm) -> Option<Exclusion> {
        let (ranks, hosts) = (self.fabric.ranks(), self.fabric.hosts().len());
        let parts = fused::parts(algorithm, self.request.collective, ranks);
        match self.request.shared_board {
            _ if ranks == 1 => Some(Exclusion::Alone),
            _ if hosts > 1 => Some(Exclusion::ManyHosts { hosts }),
            None => Some(Exclusion::NoBoard),
            Some(limit) if limit < parts * fused::LEAST_PART => {
                Some(Exclusion::SmallBoard { limit, ranks })
            }
            Some(_) => None,
        }
    }

    /// That the wanted algorithm is out.
    pub(super) fn impossible(&self, algorithm: Algorithm, why: Exclusion) -> PlanError {
        let collective = self.request.collective;
        let all = Algorithm::all_for(collective).iter().copied();
        let possible = all.filter(|&algorithm| self.exclusion(algorithm).is_none()).collect();
        PlanError::Impossible { collective: collective.name(), algorithm, why, possible }
    }
}

impl std::error::Error for PlanError {}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRanks => write!(f, "the fabric has no ranks"),
            Self::RootOutside { root, ranks } => {
                write!(f, "the root {root} is outside a group of {ranks}")
            }
            Self::Impossible { collective, algorithm, why, possible } => {
                let possible: Vec<&str> = possible.iter().map(|one| one.name()).collect();
                let (name, possible) = (algorithm.name(), possible.join(", "));
                write!(f, "{collective} cannot use {name}: {why} (possible: {possible})")
            }
        }
    }
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBoard => write!(f, "the ranks share no memory"),
            Self::ManyHosts { hosts } => write!(f, "the ranks are on {hosts} hosts"),
            Self::SmallBoard { limit, ranks } => {
                let limit = words::bytes(*limit);
                write!(f, "the board's limit of {limit} is too low for {ranks} ranks")
            }
            Self::NoGroups => write!(f, "no groups of ranks that are closer to each other"),
            Self::ManyRanks { ranks, most } => {
                write!(f, "{ranks} ranks, it is looked at for up to {most}")
            }
            Self::Alone => write!(f, "a single rank needs no board"),
        }
    }
}
