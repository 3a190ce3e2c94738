//! What can go wrong, said with operation, rank, peer, host and what to do next.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tutti_topo::Rank;
use tutti_topo::plan::PlanError;

/// A failed call: what it was, on which rank, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}{kind}", Context(operation, rank))]
pub struct Error {
    /// The operation, as in `#17 all_reduce of 1024 fp32 by sum`; none while starting up.
    pub operation: Option<String>,
    /// The rank on which it failed; none where this process has no rank yet.
    pub rank: Option<Rank>,
    /// Why; its text is part of this error's.
    pub kind: ErrorKind,
}

struct Context<'a>(&'a Option<String>, &'a Option<Rank>);

impl fmt::Display for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Some(operation), Some(rank)) => write!(f, "{operation}, on rank {rank}: "),
            (Some(operation), None) => write!(f, "{operation}: "),
            (None, Some(rank)) => write!(f, "rank {rank}: "),
            (None, None) => Ok(()),
        }
    }
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument makes no sense; nothing was started and the communicator is as before.
    #[error("{0}")]
    Argument(String),
    /// A setting, from [`Config`](crate::Config) or a `TUTTI_*` variable, makes no sense.
    #[error("{name}={value}: {problem}")]
    Setting {
        /// The variable or field.
        name: String,
        /// What it was set to.
        value: String,
        /// What is wrong with it, and what is possible.
        problem: String,
    },
    /// No plan can be made, for example because a forced algorithm does not fit.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The communicator could not be set up.
    #[error("cannot start: {0}")]
    Start(String),
    /// The system refused something.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// Not all ranks came to a monitored barrier in time. The communicator is as before.
    #[error("{}", missing(.members, .after))]
    Missing {
        /// The ranks that had not come, lowest first.
        members: Vec<Member>,
        /// How long the first rank to give up had waited.
        after: Duration,
    },
    /// The communicator has failed; all its ranks are told the same cause. It cannot be used any
    /// more: drop it, and make a new one from ranks that still live.
    #[error("{0}")]
    Failed(Arc<Cause>),
}

fn missing(members: &[Member], after: &Duration) -> String {
    let members: Vec<_> = members.iter().map(Member::to_string).collect();
    format!(
        "not all ranks had called it after {after:?}; look at what these do: {}",
        members.join(", ")
    )
}

/// What ended a communicator. One is chosen by the hub and told to every rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Cause {
    /// The process of a rank ended without closing the communicator.
    Died {
        /// The rank that is gone.
        member: Member,
    },
    /// A rank closed the communicator while others still needed it.
    Left {
        /// The rank that closed it.
        member: Member,
    },
    /// Two ranks called different operations at the same place in the order of calls.
    Mismatch {
        /// The rank that differs from the most.
        odd: Member,
        /// What it called.
        odd_call: String,
        /// A rank that stands for the rest.
        other: Member,
        /// What that one called.
        other_call: String,
    },
    /// Nothing moved on a rank for the whole deadline.
    Deadline {
        /// The rank whose patience ended.
        member: Member,
        /// What it was in.
        operation: String,
        /// The deadline.
        after: Duration,
        /// The rank it waited for, if it was one.
        waits_for: Option<Member>,
        /// What every rank was doing, a line each; then who waits for whom, if ranks wait for each
        /// other in sends and receives.
        others: Vec<String>,
    },
    /// A rank called abort.
    Aborted {
        /// The rank that called it.
        member: Member,
    },
    /// The transport of a rank failed.
    Transport {
        /// The rank whose transport failed.
        member: Member,
        /// What it said.
        what: String,
    },
    /// The line to the hub is gone: its process has ended.
    HubLost {
        /// The hub's address.
        address: String,
    },
}

/// A rank with the process that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The rank, in the communicator that the error is about.
    pub rank: u32,
    /// Its rank among all that joined the rendezvous; another one in a communicator of some of
    /// them ([`Communicator::split`](crate::Communicator::split)).
    pub world_rank: u32,
    /// The name of its host.
    pub host: String,
    /// Its process id on that host.
    pub pid: u32,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Member { rank, world_rank, host, pid } = self;
        match rank == world_rank {
            true => write!(f, "rank {rank} (host {host}, pid {pid})"),
            false => write!(f, "rank {rank} (rank {world_rank} of all, host {host}, pid {pid})"),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Died { member } => write!(
                f,
                "the process of {member} has ended; look for its own last words or a kill (out of memory?) on that host"
            ),
            Cause::Left { member } => write!(
                f,
                "{member} has closed the communicator while others still wait for it; all ranks must make the same calls"
            ),
            Cause::Mismatch { odd, odd_call, other, other_call } => write!(
                f,
                "{odd} calls {odd_call}, where {other} calls {other_call}; all ranks must make the same calls in the same order, and a send and its receive agree in count, type and tag"
            ),
            Cause::Deadline { member, operation, after, waits_for, others } => {
                write!(f, "nothing moved for {after:?} on {member} in {operation}")?;
                if let Some(waits_for) = waits_for {
                    write!(f, ", which waits for {waits_for}")?;
                }
                others.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
            Cause::Aborted { member } => write!(f, "aborted by {member}"),
            Cause::Transport { member, what } => {
                write!(f, "the transport of {member} failed: {what}")
            }
            Cause::HubLost { address } => write!(
                f,
                "the line to the rendezvous at {address} is gone: the launcher, or rank 0's process, has ended"
            ),
        }
    }
}

impl Error {
    /// An error outside any operation.
    pub(crate) fn new(rank: Option<Rank>, kind: ErrorKind) -> Self {
        Error { operation: None, rank, kind }
    }

    pub(crate) fn start(rank: Option<Rank>, what: impl Into<String>) -> Self {
        Error::new(rank, ErrorKind::Start(what.into()))
    }

    pub(crate) fn system(what: impl Into<String>, error: impl Into<std::io::Error>) -> Self {
        Error::new(None, ErrorKind::System { what: what.into(), error: error.into() })
    }

    /// The rank that the error holds responsible, if it is one; the lowest of several that are missing.
    pub fn culprit(&self) -> Option<Rank> {
        let cause = match &self.kind {
            ErrorKind::Failed(cause) => cause,
            ErrorKind::Missing { members, .. } => return Some(Rank(members.first()?.rank)),
            _ => return None,
        };
        let member = match &**cause {
            Cause::Died { member } | Cause::Left { member } | Cause::Aborted { member } => member,
            Cause::Mismatch { odd, .. } => odd,
            Cause::Transport { member, .. } => member,
            Cause::Deadline { waits_for, .. } => waits_for.as_ref()?,
            Cause::HubLost { .. } => return None,
        };
        Some(Rank(member.rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_operation_rank_and_cause() {
        let member = Member { rank: 2, world_rank: 2, host: "a".into(), pid: 17 };
        let error = Error {
            operation: Some("#3 all_reduce of 8 fp32 by sum".into()),
            rank: Some(Rank(1)),
            kind: ErrorKind::Failed(Arc::new(Cause::Died { member })),
        };
        let text = error.to_string();
        assert!(text.starts_with("#3 all_reduce of 8 fp32 by sum, on rank 1: "), "{text}");
        assert!(text.contains("rank 2 (host a, pid 17) has ended"), "{text}");
        assert_eq!(error.culprit(), Some(Rank(2)));
        assert!(std::error::Error::source(&error).is_none(), "the text says all, once");
    }

    #[test]
    fn a_member_of_a_group_is_named_by_both_its_ranks() {
        let member = Member { rank: 0, world_rank: 5, host: "a".into(), pid: 17 };
        assert_eq!(member.to_string(), "rank 0 (rank 5 of all, host a, pid 17)");
    }
}
