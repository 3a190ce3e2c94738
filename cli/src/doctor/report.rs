//! What was found, for people and as JSON.

use std::fmt::{self, Display, Formatter};

use serde_json::{Value, json};

use super::finding::{Examination, Finding, Outcome, Severity};
use crate::topo::ranges;

/// What was found by one process, or by all ranks of a job.
pub(super) struct Report {
    /// The rank of the first examination; those of others follow.
    pub(super) first: u32,
    pub(super) examinations: Vec<Examination>,
}

/// A report that prints as text.
pub(super) struct Text<'a> {
    pub(super) report: &'a Report,
    pub(super) coloured: bool,
}

impl Report {
    /// 0 if there is nothing worse than a note, 1 if there are warnings, 2 if there are errors.
    pub(super) fn exit_status(&self) -> u8 {
        let worst =
            self.examinations.iter().flat_map(Examination::findings).map(|f| f.severity).max();
        match worst {
            None | Some(Severity::Note) => 0,
            Some(Severity::Warning) => 1,
            Some(Severity::Error) => 2,
        }
    }

    pub(super) fn json(&self) -> Value {
        let checks = |outcome: &Outcome| {
            let severity = outcome.finding.as_ref().map_or("ok", |found| found.severity.name());
            let mut check = json!({ "check": outcome.check, "severity": severity });
            if let Some(Finding { found, why, remedy, .. }) = &outcome.finding {
                check["found"] = json!(found);
                check["why"] = json!(why);
                check["remedy"] = json!(remedy);
            }
            check
        };
        let rank = |(rank, examination): (u32, &Examination)| {
            json!({
                "rank": rank,
                "host": examination.host,
                "version": examination.version,
                "ranks_here": examination.ranks_here,
                "checks": examination.outcomes.iter().map(checks).collect::<Vec<_>>(),
            })
        };
        json!({
            "tool": "tutti",
            "version": env!("CARGO_PKG_VERSION"),
            "exit_status": self.exit_status(),
            "ranks": (self.first..).zip(&self.examinations).map(rank).collect::<Vec<_>>(),
        })
    }

    /// Every finding once, the worst first, with its check and the ranks that have it.
    fn findings(&self) -> Vec<(&str, &Finding, Vec<u32>)> {
        let mut all: Vec<(&str, &Finding, Vec<u32>)> = Vec::new();
        for (rank, examination) in (self.first..).zip(&self.examinations) {
            for Outcome { check, finding } in &examination.outcomes {
                let Some(finding) = finding else { continue };
                match all.iter_mut().find(|(c, f, _)| *c == check && *f == finding) {
                    Some((_, _, ranks)) => ranks.push(rank),
                    None => all.push((check, finding, vec![rank])),
                }
            }
        }
        all.sort_by_key(|(_, finding, _)| std::cmp::Reverse(finding.severity));
        all
    }

    /// The checks that found nothing on any rank.
    fn passed(&self) -> Vec<&str> {
        let is_well = |check: &&str| {
            let outcomes = self.examinations.iter().flat_map(|e| &e.outcomes);
            outcomes.filter(|outcome| outcome.check == **check).all(|o| o.finding.is_none())
        };
        let outcomes = self.examinations.first().map_or(&[][..], |first| &first.outcomes[..]);
        outcomes.iter().map(|outcome| &*outcome.check).filter(is_well).collect()
    }

    /// Hosts and versions, each with its ranks if there are several.
    fn heading(&self) -> String {
        let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
        for (rank, Examination { version, host, ranks_here, .. }) in
            (self.first..).zip(&self.examinations)
        {
            let plural = if *ranks_here == 1 { "" } else { "s" };
            let group =
                format!("tutti {version} on host {host}, for {ranks_here} rank{plural} there");
            match groups.iter_mut().find(|(known, _)| *known == group) {
                Some((_, ranks)) => ranks.push(rank),
                None => groups.push((group, vec![rank])),
            }
        }
        let alone = self.examinations.len() == 1;
        let line = |(group, ranks): (String, Vec<u32>)| match alone {
            true => group,
            false => format!("{group}: {}", of_ranks(&ranks)),
        };
        groups.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.report.heading())?;
        let (findings, all) = (self.report.findings(), self.report.examinations.len());
        for (check, finding, ranks) in &findings {
            let Finding { severity, found, why, remedy } = finding;
            let whose = match ranks.len() == all {
                true => String::new(),
                false => format!(" ({})", of_ranks(ranks)),
            };
            let mark = self.mark(*severity);
            writeln!(f, "\n{mark}: {check}: {found}{whose}\n  why: {why}\n  do:  {remedy}")?;
        }
        let passed = self.report.passed().join(", ");
        writeln!(f, "\nnothing found by: {}", if passed.is_empty() { "-" } else { &passed })?;
        let count = |severity: Severity| {
            let count =
                findings.iter().filter(|(_, finding, _)| finding.severity == severity).count();
            format!("{count} {}{}", severity.name(), if count == 1 { "" } else { "s" })
        };
        let counts = [Severity::Error, Severity::Warning, Severity::Note].map(count);
        write!(f, "{}", counts.join(", "))
    }
}

impl Text<'_> {
    fn mark(&self, severity: Severity) -> String {
        let colour = match severity {
            Severity::Note => "36",
            Severity::Warning => "33",
            Severity::Error => "31",
        };
        match self.coloured {
            true => format!("\x1b[1;{colour}m{}\x1b[0m", severity.name()),
            false => severity.name().into(),
        }
    }
}

fn of_ranks(ranks: &[u32]) -> String {
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, ranges(ranks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examination(host: &str, version: &str, finding: Option<Finding>) -> Examination {
        let outcomes = vec![
            Outcome { check: "cores".into(), finding: None },
            Outcome { check: "loopback".into(), finding },
        ];
        let (version, host) = (version.into(), host.into());
        Examination { version, host, ranks_here: 2, outcomes }
    }

    fn report(examinations: Vec<Examination>) -> Report {
        Report { first: 0, examinations }
    }

    #[test]
    fn the_worst_finding_of_any_rank_is_the_exit_status() {
        let status =
            |finding| report(vec![examination("a", "1", None), examination("a", "1", finding)]);
        assert_eq!(status(None).exit_status(), 0);
        assert_eq!(status(Some(Finding::note("n", "", ""))).exit_status(), 0);
        assert_eq!(status(Some(Finding::warning("w", "", ""))).exit_status(), 1);
        assert_eq!(status(Some(Finding::error("e", "", ""))).exit_status(), 2);
    }

    #[test]
    fn what_several_ranks_find_is_said_once_with_their_numbers() {
        let down = || Some(Finding::error("it is down", "it matters", "up with it"));
        let all = vec![
            examination("a", "1", None),
            examination("b", "1", down()),
            examination("b", "1", down()),
        ];
        let text = Text { report: &report(all), coloured: false }.to_string();
        let finding =
            "error: loopback: it is down (ranks 1-2)\n  why: it matters\n  do:  up with it\n";
        assert!(text.contains(finding), "{text}");
        assert!(text.contains("nothing found by: cores\n1 error, 0 warnings, 0 notes"), "{text}");
        assert!(
            text.starts_with("tutti 1 on host a, for 2 ranks there: rank 0\ntutti 1 on host b, ")
        );
    }

    #[test]
    fn colours_are_for_terminals() {
        let all = vec![examination("a", "1", Some(Finding::note("n", "", "")))];
        let report = report(all);
        assert!(
            Text { report: &report, coloured: true }.to_string().contains("\x1b[1;36mnote\x1b[0m")
        );
        assert!(!Text { report: &report, coloured: false }.to_string().contains('\x1b'));
    }
}
