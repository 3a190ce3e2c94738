//! The choice of an algorithm: [`plan()`] prices all that can do a collective on a [`Fabric`],
//! takes the fastest and says why.
//!
//! The same request on the same fabric gives the same plan on every machine, and so each rank
//! plans for itself; [`Plan::digest`] lets ranks notice that they disagree.

mod cost;
mod fused;
mod groups;
mod model;
mod order;
mod overrides;
mod phases;
mod pipeline;
mod planner;
mod refusal;
mod words;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::Rank;
use crate::fabric::Fabric;
use crate::schedule::{Algorithm, Collective, Schedule, Shape};
use model::Model;
use planner::Planner;

pub use overrides::{OverrideError, Overrides};
pub use refusal::{Exclusion, PlanError};

/// What is to be done by all ranks of a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The collective.
    pub collective: Collective,
    /// The size of one rank's data: where it has blocks ([`Collective::has_blocks`]), of all of them
    /// together. A barrier has none, whatever stands here. The ranks of an all-to-all with uneven
    /// blocks know only their own: they agree on a number of their own choice.
    pub bytes: u64,
    /// The longest message that the transport's board takes, in bytes, if all ranks share one.
    pub shared_board: Option<u64>,
}

/// An algorithm for a request, and how it compares.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// How it visits the ranks and cuts the data.
    pub shape: Shape,
    /// The predicted time in seconds, from the entry of the last rank until all are done.
    pub predicted: f64,
    /// Why this algorithm, in one line.
    pub why: String,
    /// All algorithms for the collective, the fastest first and those that are out at the end.
    pub considered: Vec<Candidate>,
}

/// An algorithm that was looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Its predicted time in seconds, or why it is out.
    pub predicted: Result<f64, Exclusion>,
}

/// The fastest algorithm for the request, or the one that the overrides want.
///
/// # Errors
///
/// [`PlanError::Impossible`] if the algorithm that is wanted cannot do it, and errors for a fabric
/// without ranks and a root outside it.
pub fn plan(request: &Request, fabric: &Fabric, overrides: &Overrides) -> Result<Plan, PlanError> {
    let ranks = fabric.ranks();
    if ranks == 0 {
        return Err(PlanError::NoRanks);
    }
    let first = request.collective.root().unwrap_or(Rank(0));
    if first.0 >= ranks {
        return Err(PlanError::RootOutside { root: first, ranks });
    }
    let forced = overrides.algorithm(request.collective);
    let order = order::visiting_order(fabric, first);
    let planner = Planner {
        request,
        fabric,
        forced,
        groups: order::groups(fabric, &order),
        order,
        model: Model::new(fabric),
    };
    if let Some(wanted) = forced
        && let Some(why) = planner.exclusion(wanted)
    {
        return Err(planner.impossible(wanted, why));
    }
    Ok(planner.best())
}

impl Plan {
    /// The steps of a rank, or `None` for an algorithm without steps ([`Algorithm::is_fused`]).
    ///
    /// # Panics
    ///
    /// If `rank` is not one of those that the plan was made for.
    pub fn schedule(&self, collective: Collective, rank: Rank) -> Option<Schedule> {
        self.algorithm.schedule(collective, rank, &self.shape)
    }

    /// A number that differs (but for rare coincidence) between plans that do not work together:
    /// the FNV-1a hash of algorithm, depth, channels, order and groups.
    pub fn digest(&self) -> u32 {
        let Shape { order, groups, depth, channels } = &self.shape;
        let mut digest = Fnv::default();
        self.algorithm.name().bytes().for_each(|byte| digest.byte(byte));
        digest.number(*depth);
        digest.number(*channels);
        for list in std::iter::once(order).chain(groups) {
            digest.number(list.len() as u32);
            list.iter().for_each(|rank| digest.number(rank.0));
        }
        digest.0
    }
}

/// The reason, and below it a line for each algorithm.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.why)?;
        for Candidate { algorithm, predicted } in &self.considered {
            write!(f, "\n  {:<20}", algorithm.name())?;
            match predicted {
                Ok(seconds) => write!(f, "{}", words::time(*seconds))?,
                Err(exclusion) => write!(f, "out: {exclusion}")?,
            }
        }
        Ok(())
    }
}

/// The FNV-1a hash of 32 bits.
struct Fnv(u32);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0x811c_9dc5)
    }
}

impl Fnv {
    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }

    fn number(&mut self, number: u32) {
        number.to_le_bytes().into_iter().for_each(|byte| self.byte(byte));
    }
}
