//! What the system says, asked once.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, TcpListener, ToSocketAddrs};

use rustix::process::{Resource, getrlimit};
use tutti::{Config, InterfaceFilter, PortRange};

use crate::machine::Machine;

/// All that the checks judge by. A reading that the system did not give is `None`.
pub(super) struct Readings {
    pub(super) machine: Machine,
    /// Ranks that are to run here.
    pub(super) ranks: u32,
    /// Open files that a process may have now, and to which it may raise that itself.
    pub(super) files: Option<(u64, u64)>,
    /// Bytes that a process may lock in memory.
    pub(super) memlock: Option<u64>,
    /// Bytes of the file system at /dev/shm; `None` if there is none.
    pub(super) dev_shm: Option<u64>,
    /// Bytes that this process's cgroup may still use.
    pub(super) cgroup_left: Option<u64>,
    /// Bytes of memory that are free or can be made so.
    pub(super) memory_left: Option<u64>,
    /// Bytes of shared memory that the ranks of this machine commit if every pair talks.
    pub(super) shared_memory: u64,
    /// What the machine's own name resolves to, or why it does not.
    pub(super) own_name: Result<Vec<IpAddr>, String>,
    /// MASTER_ADDR with what it resolves to, or why it does not.
    pub(super) master: Option<(String, Result<Vec<IpAddr>, String>)>,
    /// Whether MASTER_PORT is free on this machine, where the master is this machine.
    pub(super) master_port: Option<(u16, bool)>,
    pub(super) filter: Option<InterfaceFilter>,
    pub(super) range: Option<PortRange>,
    /// How many ports of the range are free.
    pub(super) range_free: usize,
    /// What is wrong with a setting.
    pub(super) broken: Option<String>,
    /// Complaints about settings that are no errors.
    pub(super) warnings: Vec<String>,
}

impl Readings {
    pub(super) fn take(ranks: Option<u32>, config: &Config, broken: Option<String>) -> Readings {
        let machine = Machine::read();
        let ranks = ranks.or_else(launched_here).unwrap_or(machine.cores as u32);
        let files = getrlimit(Resource::Nofile);
        let unlimited = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        let shm = rustix::fs::statvfs("/dev/shm").ok();
        let master = std::env::var("MASTER_ADDR").ok();
        let range_free = config.port_range.iter().flat_map(|range| range.iter());
        let pairs = u64::from(ranks) * u64::from(ranks.saturating_sub(1));
        let boards = 2 * u64::from(ranks) * config.shm_board_bytes as u64;
        Readings {
            ranks,
            files: Some((unlimited(files.current), unlimited(files.maximum))),
            memlock: Some(unlimited(getrlimit(Resource::Memlock).current)),
            dev_shm: shm.map(|shm| shm.f_blocks * shm.f_frsize),
            cgroup_left: cgroup_left(),
            memory_left: memory_left(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
            shared_memory: pairs * config.shm_ring_bytes as u64 + boards,
            own_name: resolve(&machine.name),
            master: master.map(|master| (master.clone(), resolve(&master))),
            master_port: master_port(),
            filter: config.socket_ifname.clone(),
            range: config.port_range.clone(),
            range_free: range_free.filter(|&port| is_free(port)).count(),
            warnings: config.warnings.clone(),
            broken,
            machine,
        }
    }
}

/// How many ranks a launcher has started on this machine.
fn launched_here() -> Option<u32> {
    const NAMES: [&str; 3] = ["LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];
    NAMES.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

fn resolve(name: &str) -> Result<Vec<IpAddr>, String> {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let found = (bare, 0).to_socket_addrs().map_err(|error| error.to_string())?;
    Ok(found.map(|address| address.ip()).collect())
}

/// Only a rank beside the rendezvous can tell whether its port is free; rank 0 is.
fn master_port() -> Option<(u16, bool)> {
    let port = std::env::var("MASTER_PORT").ok()?.parse().ok()?;
    let first = std::env::var("RANK").is_ok_and(|rank| rank == "0");
    first.then(|| (port, is_free(port)))
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("0.0.0.0", port)).is_ok()
}

/// What the cgroup (version 2) of this process may still use: its limit without its use.
fn cgroup_left() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let folder = format!("/sys/fs/cgroup{path}");
    let number = |file: &str| {
        fs::read_to_string(format!("{folder}/{file}")).ok()?.trim().parse::<u64>().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

/// `MemAvailable` of /proc/meminfo in bytes.
fn memory_left(meminfo: &str) -> Option<u64> {
    let fields: BTreeMap<&str, &str> =
        meminfo.lines().filter_map(|line| line.split_once(':')).collect();
    let kib: u64 = fields.get("MemAvailable")?.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_in_bytes() {
        let text = "MemTotal:       24000000 kB\nMemAvailable:   1024 kB\n";
        assert_eq!(memory_left(text), Some(1 << 20));
        assert_eq!(memory_left("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_not_free() {
        let listener = TcpListener::bind(("0.0.0.0", 0)).unwrap();
        assert!(!is_free(listener.local_addr().unwrap().port()));
    }

    #[test]
    fn a_bracketed_address_resolves_to_itself() {
        assert_eq!(resolve("[::1]"), Ok(vec!["::1".parse().unwrap()]));
        assert!(resolve("no.such.host.invalid").is_err());
    }
}
