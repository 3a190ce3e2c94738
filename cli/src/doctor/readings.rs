//! All that the checks look at, read once.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, io, thread};

use rustix::process::{Resource, Rlimit, getrlimit};
use tutti::machine::{self, Cores, Interface};
use tutti::{Config, PortRange};

/// How long a name may take to be resolved, before it counts as one that cannot be.
const TO_RESOLVE: Duration = Duration::from_secs(5);
/// How long this machine may take to reach itself.
const TO_CONNECT: Duration = Duration::from_secs(2);

/// The state of this process and its machine.
#[derive(Clone, Debug)]
pub(super) struct Readings {
    /// The ranks that are to run on this machine.
    pub(super) ranks: u32,
    /// Whether this process is one of them, and the others may be about the same.
    pub(super) launched: bool,
    pub(super) cores: Cores,
    /// The settings, or what is wrong with them.
    pub(super) config: Result<Config, String>,
    pub(super) open_files: Limit,
    pub(super) locked_memory: Limit,
    pub(super) file_size: Limit,
    /// None if it is not there.
    pub(super) dev_shm: Option<Space>,
    /// Whether memory can be made that processes share.
    pub(super) memfd: Result<(), String>,
    pub(super) memory: Memory,
    /// Every address of an interface that is up.
    pub(super) interfaces: Result<Vec<Interface>, String>,
    /// Whether this machine reaches itself at 127.0.0.1.
    pub(super) loopback: Result<(), String>,
    pub(super) host_name: String,
    /// What the host's own name leads to.
    pub(super) own_addresses: Result<Vec<IpAddr>, String>,
    pub(super) master: Option<Master>,
    /// `MASTER_PORT`, as it stands.
    pub(super) master_port: Option<String>,
    /// Why rank 0 could not listen on `MASTER_PORT`, if that is to be this process.
    pub(super) master_port_refused: Option<String>,
    /// Of `TUTTI_PORT_RANGE`: how many ports there are, and how many are free.
    pub(super) port_range: Option<(usize, usize)>,
    /// The first and the last port that the system gives out.
    pub(super) ephemeral_ports: Option<(u16, u16)>,
}

/// A resource limit; none where there is no limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) soft: Option<u64>,
    pub(super) hard: Option<u64>,
}

/// A file system, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    pub(super) size: u64,
    pub(super) free: u64,
}

/// Bytes of memory; none where the system does not say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// What the machine can still give.
    pub(super) available: Option<u64>,
    /// The least limit of the cgroups that this process is in.
    pub(super) cgroup_limit: Option<u64>,
}

/// `MASTER_ADDR`, and what it leads to.
#[derive(Clone, Debug)]
pub(super) struct Master {
    pub(super) host: String,
    pub(super) addresses: Result<Vec<IpAddr>, String>,
}

impl Readings {
    /// Reads everything, for so many ranks on this machine; without a number, for as many as the
    /// launcher started here, or one per core. Blocks while names are resolved.
    pub(super) fn here(ranks: Option<u32>, config: Result<Config, String>) -> Readings {
        let cores = machine::cores();
        let host_name = machine::host_name();
        let master = master(&config);
        let interfaces = machine::interfaces().map_err(|error| error.to_string());
        let known = config.as_ref().ok();
        let launch = known.map(|config| &config.launch);
        let master_port = launch.and_then(|launch| launch.get("MASTER_PORT")).map(str::to_owned);
        Readings {
            ranks: ranks.or_else(local_ranks).unwrap_or(cores.count().max(1.0) as u32),
            launched: launch.is_some_and(|launch| launch.is_launched()),
            open_files: Limit::of(Resource::Nofile),
            locked_memory: Limit::of(Resource::Memlock),
            file_size: Limit::of(Resource::Fsize),
            dev_shm: dev_shm(),
            memfd: memfd(),
            memory: Memory { available: available(), cgroup_limit: cgroup_limit() },
            loopback: loopback().map_err(|error| error.to_string()),
            own_addresses: resolve(&host_name),
            master_port_refused: known
                .and_then(|config| refused(config, &interfaces, master.as_ref())),
            port_range: known.and_then(|config| config.port_range.as_ref()).map(free_ports),
            ephemeral_ports: ephemeral_ports(),
            host_name,
            cores,
            config,
            interfaces,
            master,
            master_port,
        }
    }

    /// Whether it is an address of this machine.
    pub(super) fn is_own(&self, ip: IpAddr) -> bool {
        is_own(&self.interfaces, ip)
    }
}

impl Limit {
    fn of(resource: Resource) -> Limit {
        let Rlimit { current, maximum } = getrlimit(resource);
        Limit { soft: current, hard: maximum }
    }
}

/// How many ranks the launcher has started on this machine, where it says so.
fn local_ranks() -> Option<u32> {
    let names = ["LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];
    let number = |name| std::env::var(name).ok()?.parse().ok().filter(|ranks| *ranks > 0);
    names.into_iter().find_map(number)
}

fn dev_shm() -> Option<Space> {
    let found = rustix::fs::statvfs("/dev/shm").ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Some(Space { size: bytes(found.f_blocks), free: bytes(found.f_bavail) })
}

fn memfd() -> Result<(), String> {
    let made = rustix::fs::memfd_create("tutti doctor", rustix::fs::MemfdFlags::CLOEXEC);
    made.map(drop).map_err(|error| error.to_string())
}

fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

fn cgroup_limit() -> Option<u64> {
    // Without a limit the file says `max`, or a number beyond all memory.
    let limit = |folder: String| {
        let read = |file| fs::read_to_string(format!("{folder}/{file}")).ok();
        let text = read("memory.max").or_else(|| read("memory.limit_in_bytes"))?;
        text.trim().parse::<u64>().ok().filter(|bytes| *bytes < 1 << 60)
    };
    machine::cgroup_folders("memory").into_iter().filter_map(limit).min()
}

/// The addresses of a name, each once.
fn resolve(name: &str) -> Result<Vec<IpAddr>, String> {
    let (sender, receiver) = mpsc::channel();
    let name = name.to_owned();
    thread::spawn(move || {
        let found = (name.as_str(), 0).to_socket_addrs();
        let found = found.map(|all| all.map(|address| address.ip()).collect::<BTreeSet<_>>());
        // Nobody listens if that took too long.
        let _ = sender.send(found);
    });
    match receiver.recv_timeout(TO_RESOLVE) {
        Ok(Ok(found)) => Ok(found.into_iter().collect()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {TO_RESOLVE:?}")),
    }
}

fn master(config: &Result<Config, String>) -> Option<Master> {
    let host = config.as_ref().ok()?.launch.get("MASTER_ADDR")?.to_owned();
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(&host);
    let addresses = resolve(bare);
    Some(Master { host, addresses })
}

/// Why rank 0 cannot listen on `MASTER_PORT`; nothing if it can, or if that is not for this process
/// to do: on other ranks and hosts, and under torchrun, whose own store is at that port.
fn refused(
    config: &Config,
    interfaces: &Result<Vec<Interface>, String>,
    master: Option<&Master>,
) -> Option<String> {
    let is_other_rank = config.launch.get("RANK").is_some_and(|rank| rank != "0");
    if is_other_rank || config.launch.get("TORCHELASTIC_RUN_ID").is_some() {
        return None;
    }
    let port = config.launch.get("MASTER_PORT")?.parse().ok()?;
    let addresses = master?.addresses.as_ref().ok()?;
    let own = addresses.iter().find(|ip| is_own(interfaces, **ip))?;
    listen(*own, port).err()
}

fn is_own(interfaces: &Result<Vec<Interface>, String>, ip: IpAddr) -> bool {
    let there = interfaces.as_ref().map_or(&[][..], Vec::as_slice);
    ip.is_loopback() || there.iter().any(|interface| interface.ip == ip)
}

fn free_ports(range: &PortRange) -> (usize, usize) {
    let ports: BTreeSet<u16> = range.iter().collect();
    let is_free = |port: &&u16| listen(Ipv4Addr::UNSPECIFIED.into(), **port).is_ok();
    (ports.len(), ports.iter().filter(is_free).count())
}

fn listen(ip: IpAddr, port: u16) -> Result<(), String> {
    TcpListener::bind((ip, port)).map(drop).map_err(|error| error.to_string())
}

/// Listens at 127.0.0.1 and connects to that. While the interface is down, only the second fails.
fn loopback() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    TcpStream::connect_timeout(&listener.local_addr()?, TO_CONNECT).map(drop)
}

fn ephemeral_ports() -> Option<(u16, u16)> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
impl Readings {
    /// Of a machine on which nothing is wrong, for two ranks.
    pub(super) fn healthy() -> Readings {
        let unlimited = Limit { soft: None, hard: None };
        let interface = |name: &str, ip: &str| Interface {
            name: name.into(),
            ip: ip.parse().unwrap(),
            index: 1,
        };
        Readings {
            ranks: 2,
            launched: false,
            cores: Cores { affinity: vec![0, 1], quota: None },
            config: Ok(Config::default()),
            open_files: Limit { soft: Some(1024), hard: Some(4096) },
            locked_memory: unlimited,
            file_size: unlimited,
            dev_shm: Some(Space { size: 1 << 30, free: 1 << 30 }),
            memfd: Ok(()),
            memory: Memory { available: Some(1 << 32), cgroup_limit: None },
            interfaces: Ok(vec![interface("lo", "127.0.0.1"), interface("eth0", "10.0.0.7")]),
            loopback: Ok(()),
            host_name: "node7".into(),
            own_addresses: Ok(vec!["10.0.0.7".parse().unwrap()]),
            master: None,
            master_port: None,
            master_port_refused: None,
            port_range: None,
            ephemeral_ports: Some((32768, 60999)),
        }
    }

    /// As [`healthy`](Readings::healthy), with these variables.
    pub(super) fn with_variables(variables: &[(&str, &str)]) -> Readings {
        let pair = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let config = Config::from_vars(variables.iter().map(pair)).map_err(|e| e.to_string());
        Readings { config, ..Readings::healthy() }
    }
}
