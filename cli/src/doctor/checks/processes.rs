//! What a machine must have for so many processes.

use crate::doctor::finding::Finding;
use crate::doctor::readings::Readings;

/// What a process has open before it knows any other rank.
const FILES_OF_A_PROCESS: u64 = 16;
/// Per rank: two pipes and a control line in a launcher, a connection in another rank.
const FILES_PER_RANK: u64 = 3;
/// What most systems allow, and programs expect.
const USUAL_FILES: u64 = 1024;

/// More ranks than cores.
pub(super) fn cores(readings: &Readings) -> Option<Finding> {
    let (ranks, cores) = (readings.ranks, readings.cores.count());
    if f64::from(ranks) <= cores {
        return None;
    }
    let (whose, remedy) = match readings.cores.quota.filter(|quota| *quota == cores) {
        Some(_) => ("the quota of the cgroup", "raise the quota (docker run --cpus)"),
        None => (
            "what there is and this process may use",
            "if the machine has more, allow them (taskset, docker run --cpuset-cpus)",
        ),
    };
    Some(Finding::warning(
        format!("{ranks} ranks have {cores} cores between them, by {whose}"),
        "ranks take turns on a core, so every step of a collective waits for a change of process",
        format!("start at most {} here; {remedy}", cores.max(1.0) as u32),
    ))
}

/// Too few open files for the ranks, or for a program.
pub(super) fn open_files(readings: &Readings) -> Option<Finding> {
    let limit = readings.open_files;
    let allowed = limit.soft?;
    let needed = FILES_OF_A_PROCESS + FILES_PER_RANK * u64::from(readings.ranks);
    let enough = needed.max(USUAL_FILES);
    if allowed >= enough {
        return None;
    }
    let remedy = match limit.hard {
        Some(hard) if hard < enough => format!(
            "raise the hard limit, which is {hard}: nofile in /etc/security/limits.conf, LimitNOFILE= \
             of a service, docker run --ulimit nofile={enough}"
        ),
        _ => format!("ulimit -n {enough}"),
    };
    let (ranks, found) = (readings.ranks, format!("a process may have {allowed} files open"));
    let need = format!("Tutti needs up to {needed} in one process for {ranks} ranks");
    Some(match allowed < needed {
        true => Finding::error(found, format!("{need}: pipes, sockets, shared memory"), remedy),
        false => Finding::warning(
            found,
            format!("{need}, and programs open files too; {USUAL_FILES} are usual"),
            remedy,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;
    use crate::doctor::readings::Limit;

    fn files(soft: u64, hard: Option<u64>, ranks: u32) -> Option<Finding> {
        let open_files = Limit { soft: Some(soft), hard };
        super::open_files(&Readings { open_files, ranks, ..Readings::healthy() })
    }

    #[test]
    fn sixty_four_files_are_few_and_an_error_where_ranks_need_more() {
        let few = files(64, None, 2).unwrap();
        assert_eq!((few.severity, &*few.remedy), (Severity::Warning, "ulimit -n 1024"));
        let none = files(64, None, 20).unwrap();
        assert_eq!(none.severity, Severity::Error);
        assert!(none.found.contains("64") && none.why.contains("76"), "{none:?}");
    }

    #[test]
    fn a_hard_limit_takes_more_than_ulimit() {
        let found = files(1024, Some(1024), 512).unwrap();
        assert!(found.remedy.contains("LimitNOFILE") && found.remedy.contains("1552"), "{found:?}");
        assert_eq!(files(1552, Some(1552), 512), None);
    }

    #[test]
    fn more_ranks_than_cores_is_a_warning_that_says_what_limits_them() {
        let mut readings = Readings { ranks: 3, ..Readings::healthy() };
        let found = cores(&readings).unwrap();
        assert!(found.found.contains("3 ranks have 2 cores") && found.remedy.contains("taskset"));
        readings.cores.quota = Some(0.5);
        readings.ranks = 1;
        let found = cores(&readings).unwrap();
        assert!(found.found.contains("quota") && found.remedy.contains("at most 1"), "{found:?}");
    }
}
