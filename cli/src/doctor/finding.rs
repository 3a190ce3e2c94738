//! What a check finds.

use serde::{Deserialize, Serialize};

use super::readings::Readings;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Severity {
    /// Good to know; nothing is wrong.
    Note,
    /// It may go wrong, or be slow.
    Warning,
    /// It cannot work.
    Error,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// What is so.
    pub(super) found: String,
    /// What comes of it.
    pub(super) why: String,
    /// What to type or change.
    pub(super) remedy: String,
}

/// What became of one check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) check: String,
    /// None if all is well.
    pub(super) finding: Option<Finding>,
}

/// All checks of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Examination {
    pub(super) version: String,
    pub(super) host: String,
    /// The ranks that are to run on the host.
    pub(super) ranks_here: u32,
    pub(super) outcomes: Vec<Outcome>,
}

impl Severity {
    pub(super) fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl Finding {
    pub(super) fn note(
        found: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        let (found, why, remedy) = (found.into(), why.into(), remedy.into());
        Finding { severity: Severity::Note, found, why, remedy }
    }

    pub(super) fn warning(
        found: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::note(found, why, remedy) }
    }

    pub(super) fn error(
        found: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding { severity: Severity::Error, ..Finding::note(found, why, remedy) }
    }
}

impl Examination {
    pub(super) fn new(readings: &Readings, outcomes: Vec<Outcome>) -> Examination {
        let (host, ranks_here) = (readings.host_name.clone(), readings.ranks);
        Examination { version: env!("CARGO_PKG_VERSION").into(), host, ranks_here, outcomes }
    }

    pub(super) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.outcomes.iter().filter_map(|outcome| outcome.finding.as_ref())
    }
}
