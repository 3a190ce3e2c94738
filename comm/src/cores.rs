//! How many cores this process may really use.

use std::collections::BTreeSet;
use std::fs;

use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};

/// What a process may use of its host's processors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cores {
    /// The numbers of the processors that its affinity allows.
    pub(crate) affinity: Vec<u32>,
    /// The quota of its cgroup, in cores; may be a fraction.
    pub(crate) quota: Option<f64>,
}

/// What this process may use.
pub(crate) fn usable() -> Cores {
    let affinity = rustix::thread::sched_getaffinity(None).map_or_else(
        |_| (0..std::thread::available_parallelism().map_or(1, |n| n.get() as u32)).collect(),
        |set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect(),
    );
    Cores { affinity, quota: quota() }
}

/// The cores that the ranks of one host share: all that any of them may use, within the largest
/// of their quotas (ranks of one job usually share a cgroup).
pub(crate) fn shared<'a>(ranks: impl Iterator<Item = &'a Cores>) -> f64 {
    let (mut all, mut quota) = (BTreeSet::new(), None::<f64>);
    for cores in ranks {
        all.extend(cores.affinity.iter().copied());
        quota = match (quota, cores.quota) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
    }
    let all = all.len().max(1) as f64;
    quota.map_or(all, |quota| quota.min(all))
}

/// The processor quota of this process's cgroup (version 2, then 1), the least on the way to
/// the root, in cores.
fn quota() -> Option<f64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().filter_map(quota_of_line).min_by(f64::total_cmp)
}

/// One line of /proc/self/cgroup: `hierarchy:controllers:path`.
fn quota_of_line(line: &str) -> Option<f64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let root = match controllers {
        "" => "/sys/fs/cgroup".to_string(),
        some if some.split(',').any(|c| c == "cpu") => format!("/sys/fs/cgroup/{some}"),
        _ => return None,
    };
    let folders = path.trim_matches('/').split('/').scan(root.clone(), |folder, name| {
        *folder = format!("{folder}/{name}");
        Some(folder.clone())
    });
    std::iter::once(root)
        .chain(folders)
        .filter_map(|folder| quota_of_folder(&folder))
        .min_by(f64::total_cmp)
}

fn quota_of_folder(folder: &str) -> Option<f64> {
    if let Ok(max) = fs::read_to_string(format!("{folder}/cpu.max")) {
        return parse_cpu_max(&max);
    }
    let quota = fs::read_to_string(format!("{folder}/cpu.cfs_quota_us")).ok()?;
    let period = fs::read_to_string(format!("{folder}/cpu.cfs_period_us")).ok()?;
    parse_cpu_max(&format!("{} {}", quota.trim(), period.trim()))
}

/// `QUOTA PERIOD` in microseconds; `max` or a negative quota means none.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let mut numbers = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    let (quota, period) = (numbers.next()??, numbers.next()??);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_is_cores_and_none_means_none() {
        assert_eq!(parse_cpu_max("50000 100000\n"), Some(0.5));
        assert_eq!(parse_cpu_max("max 100000"), None);
        assert_eq!(parse_cpu_max("-1 100000"), None);
        assert_eq!(parse_cpu_max(""), None);
    }

    #[test]
    fn some_core_is_usable() {
        assert!(!usable().affinity.is_empty());
    }

    #[test]
    fn ranks_pinned_apart_have_a_core_each_and_a_quota_limits_all() {
        let pinned = |cpu, quota| Cores { affinity: vec![cpu], quota };
        assert_eq!(shared([pinned(0, None), pinned(3, None)].iter()), 2.0);
        assert_eq!(shared([pinned(0, Some(0.5)), pinned(3, Some(0.5))].iter()), 0.5);
        assert_eq!(shared([pinned(1, None), pinned(1, None)].iter()), 1.0);
    }
}
