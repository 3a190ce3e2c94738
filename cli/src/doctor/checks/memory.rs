//! Memory that ranks share, and memory at all.

use tutti::Config;

use super::bytes;
use crate::doctor::finding::Finding;
use crate::doctor::readings::{Readings, Space};

/// What Docker gives a container, and too little for data loaders.
const SMALL_DEV_SHM: u64 = 64 << 20;

/// The bytes of the memory that so many ranks of a host share, if each exchanges data with each.
pub(in crate::doctor) fn segment_bytes(ranks: u32, config: &Config) -> u64 {
    let (ranks, ring, board) =
        (u64::from(ranks), config.shm_ring_bytes as u64, config.shm_board_bytes as u64);
    let rings = ranks.saturating_mul(ranks.saturating_sub(1)).saturating_mul(ring);
    rings.saturating_add(ranks.saturating_mul(board))
}

/// Whether ranks can share memory: Tutti's is a memfd, so no file system has to do with it.
pub(super) fn shared_memory(readings: &Readings) -> Option<Finding> {
    if let Err(error) = &readings.memfd {
        return Some(Finding::error(
            format!("memfd_create fails: {error}"),
            "ranks of this host cannot share memory and use TCP, which is several times slower",
            "allow memfd_create in the seccomp profile; or live with TUTTI_TRANSPORT=tcp",
        ));
    }
    let (limit, needed) = (readings.file_size.soft?, segment(readings)?);
    (limit < needed).then(|| {
        Finding::error(
            format!("a process may write files of {} at most", bytes(limit)),
            format!(
                "the limit holds for shared memory too: {} ranks need {}, and a process that exceeds it \
                 is killed (SIGXFSZ)",
                readings.ranks,
                bytes(needed)
            ),
            "ulimit -f unlimited; or less with TUTTI_SHM_RING=65536; or TUTTI_TRANSPORT=tcp",
        )
    })
}

/// Whether there is room for the rings of all ranks. The kernel commits each as it is first used.
pub(super) fn memory(readings: &Readings) -> Option<Finding> {
    let needed = segment(readings)?;
    let memory = readings.memory;
    let limit = memory.cgroup_limit.map(|limit| (limit, "the memory limit of the cgroup is"));
    let available = memory.available.map(|bytes| (bytes, "the machine's available memory is"));
    let (least, what) = limit.into_iter().chain(available).min_by_key(|(bytes, _)| *bytes)?;
    (least / 2 < needed).then(|| {
        Finding::warning(
            format!("{what} {}", bytes(least)),
            format!(
                "{} ranks that all exchange data with each other share {}, beside what the program needs",
                readings.ranks,
                bytes(needed)
            ),
            "raise the limit (docker run --memory); or smaller rings with TUTTI_SHM_RING=65536; or fewer \
             ranks",
        )
    })
}

/// A small or missing /dev/shm: no matter to Tutti, but to what runs beside it.
pub(super) fn dev_shm(readings: &Readings) -> Option<Finding> {
    let found = match readings.dev_shm {
        None => "there is no /dev/shm".to_owned(),
        Some(Space { size, .. }) if size <= SMALL_DEV_SHM => {
            format!("/dev/shm has {} in all", bytes(size))
        }
        Some(Space { free, .. }) if free < SMALL_DEV_SHM => {
            format!("/dev/shm has {} left", bytes(free))
        }
        Some(_) => return None,
    };
    Some(Finding::warning(
        found,
        "Tutti itself does not use it, but PyTorch's data loaders, MPI and NCCL do, and fail or are killed \
         (SIGBUS) when it is full",
        "mount -o remount,size=1G /dev/shm; for a container docker run --shm-size=1g, in Kubernetes an \
         emptyDir with medium: Memory at /dev/shm",
    ))
}

/// Whether memory can be locked, which RDMA needs.
pub(super) fn locked_memory(readings: &Readings) -> Option<Finding> {
    let limit = readings.locked_memory.soft?;
    Some(Finding::note(
        format!("a process may lock {}", bytes(limit)),
        "shared memory and TCP lock none; RDMA locks every buffer that it sends from",
        "for RDMA: ulimit -l unlimited, LimitMEMLOCK=infinity of a service, docker run --ulimit memlock=-1",
    ))
}

fn segment(readings: &Readings) -> Option<u64> {
    readings.config.as_ref().ok().map(|config| segment_bytes(readings.ranks, config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;
    use crate::doctor::readings::{Limit, Memory};

    #[test]
    fn a_dev_shm_that_is_small_full_or_missing_is_a_warning() {
        let found = |dev_shm| super::dev_shm(&Readings { dev_shm, ..Readings::healthy() });
        let small = found(Some(Space { size: 64 << 10, free: 64 << 10 })).unwrap();
        assert_eq!(small.severity, Severity::Warning);
        assert!(small.found.contains("64 KiB") && small.remedy.contains("remount"), "{small:?}");
        let full = found(Some(Space { size: 1 << 30, free: 4096 })).unwrap();
        assert!(full.found.contains("4 KiB left"), "{full:?}");
        assert!(found(None).unwrap().found.contains("no /dev/shm"));
    }

    #[test]
    fn a_limit_of_file_sizes_counts_for_shared_memory() {
        let limit = |soft| Limit { soft: Some(soft), hard: None };
        let found =
            |soft| shared_memory(&Readings { file_size: limit(soft), ..Readings::healthy() });
        let low = found(100 << 10).unwrap();
        assert_eq!(low.severity, Severity::Error);
        assert!(low.found.contains("100 KiB") && low.remedy.contains("ulimit -f"), "{low:?}");
        assert_eq!(found(1 << 30), None);
    }

    #[test]
    fn without_memfd_no_memory_is_shared() {
        let memfd = Err("Operation not permitted".to_owned());
        let found = shared_memory(&Readings { memfd, ..Readings::healthy() }).unwrap();
        assert!(found.found.contains("not permitted"), "{found:?}");
    }

    #[test]
    fn a_memory_limit_is_compared_with_the_rings_of_all_ranks() {
        let memory_of = |ranks, cgroup_limit| {
            let memory = Memory { cgroup_limit, ..Readings::healthy().memory };
            super::memory(&Readings { ranks, memory, ..Readings::healthy() })
        };
        assert_eq!(memory_of(64, None), None);
        let found = memory_of(64, Some(1 << 30)).unwrap();
        assert!(found.found.contains("cgroup is 1 GiB"), "{found:?}");
        let found = memory_of(256, None).unwrap();
        assert!(found.found.contains("available memory is 4 GiB"), "{found:?}");
    }

    #[test]
    fn a_limit_of_locked_memory_is_a_note() {
        let locked_memory = Limit { soft: Some(8 << 20), hard: Some(8 << 20) };
        let found = super::locked_memory(&Readings { locked_memory, ..Readings::healthy() });
        assert_eq!(found.unwrap().severity, Severity::Note);
    }
}
