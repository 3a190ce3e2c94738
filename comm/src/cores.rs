//! How many cores this process may really use.

use std::collections::BTreeSet;
use std::fs;

use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};

use crate::cgroup;

/// What a process may use of its host's processors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cores {
    /// The numbers of the processors that its affinity allows.
    pub affinity: Vec<u32>,
    /// The quota of its cgroup, in cores; may be a fraction.
    pub quota: Option<f64>,
}

impl Cores {
    /// How many cores that is, above 0; a fraction where the quota is one.
    pub fn count(&self) -> f64 {
        let all = self.affinity.len().max(1) as f64;
        self.quota.map_or(all, |quota| quota.min(all))
    }
}

/// What this process may use: by its affinity, and by the quota of its cgroup.
pub fn usable() -> Cores {
    let affinity = rustix::thread::sched_getaffinity(None).map_or_else(
        |_| (0..std::thread::available_parallelism().map_or(1, |n| n.get() as u32)).collect(),
        |set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect(),
    );
    Cores { affinity, quota: quota() }
}

/// The cores that the ranks of one host share: all that any of them may use, within the largest
/// of their quotas (ranks of one job usually share a cgroup).
pub fn shared<'a>(ranks: impl Iterator<Item = &'a Cores>) -> Cores {
    let (mut all, mut quota) = (BTreeSet::new(), None::<f64>);
    for cores in ranks {
        all.extend(cores.affinity.iter().copied());
        quota = match (quota, cores.quota) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
    }
    Cores { affinity: all.into_iter().collect(), quota }
}

/// The processor quota of this process's cgroup (version 2, then 1), the least on the way to
/// the root, in cores.
fn quota() -> Option<f64> {
    cgroup::folders("cpu")
        .iter()
        .filter_map(|folder| quota_of_folder(folder))
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
        assert_eq!(shared([pinned(0, None), pinned(3, None)].iter()).count(), 2.0);
        assert_eq!(shared([pinned(0, Some(0.5)), pinned(3, Some(0.5))].iter()).count(), 0.5);
        assert_eq!(shared([pinned(1, None), pinned(1, None)].iter()).count(), 1.0);
    }
}
