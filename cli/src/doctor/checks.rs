//! What the readings mean. Each check sees nothing but them.

use super::readings::Readings;
use super::{Finding, Severity};

type Check = fn(&Readings) -> Vec<Finding>;

/// All checks, in the order of a start: settings, limits, memory, network, cores.
const CHECKS: [Check; 12] = [
    settings,
    files,
    memlock,
    dev_shm,
    memory,
    loopback,
    network,
    interface_filter,
    ports,
    own_name,
    master,
    cores,
];

pub(super) fn all(readings: &Readings) -> Vec<Finding> {
    CHECKS.iter().flat_map(|check| check(readings)).collect()
}

fn finding(
    check: &str,
    severity: Severity,
    found: String,
    why: &str,
    remedy: String,
) -> Vec<Finding> {
    vec![Finding { check: check.into(), severity, found, why: why.into(), remedy }]
}

fn settings(readings: &Readings) -> Vec<Finding> {
    let broken = readings.broken.iter().flat_map(|problem| {
        let why = "a job with this setting does not start";
        finding(
            "settings",
            Severity::Error,
            problem.clone(),
            why,
            "set what is possible, or unset it".into(),
        )
    });
    let warnings = readings.warnings.iter().flat_map(|warning| {
        let why = "what was meant does not happen";
        let remedy = "correct the variable, or unset it".into();
        finding("settings", Severity::Warning, warning.clone(), why, remedy)
    });
    broken.chain(warnings).collect()
}

/// Beside a socket for each other rank a process has its standard streams, epoll, timer, listener,
/// the control line and the files of its program.
fn files(readings: &Readings) -> Vec<Finding> {
    const OWN: u64 = 64;
    let Some((now, most)) = readings.files else { return Vec::new() };
    let needed = u64::from(readings.ranks) + OWN;
    if now >= needed {
        return Vec::new();
    }
    let severity = if now < OWN + 8 { Severity::Error } else { Severity::Warning };
    let remedy = match most >= needed {
        true => format!("raise the soft limit: ulimit -n {needed}"),
        false => format!(
            "raise the hard limit, now {most}: in /etc/security/limits.conf, the service's LimitNOFILE, \
             or the container's --ulimit nofile={needed}"
        ),
    };
    let found = format!("{now} open files are allowed, {} ranks may need {needed}", readings.ranks);
    finding(
        "files",
        severity,
        found,
        "connections are refused with \"too many open files\"",
        remedy,
    )
}

fn memlock(readings: &Readings) -> Vec<Finding> {
    const ENOUGH: u64 = 64 << 20;
    match readings.memlock {
        Some(limit) if limit < ENOUGH => finding(
            "memlock",
            Severity::Note,
            format!("{} of memory may be locked", size(limit)),
            "RDMA needs to lock its buffers; shared memory and TCP do not",
            "for RoCE: ulimit -l unlimited, or the container's --ulimit memlock=-1".into(),
        ),
        _ => Vec::new(),
    }
}

fn dev_shm(readings: &Readings) -> Vec<Finding> {
    const USUAL: u64 = 256 << 20;
    let (found, remedy) = match readings.dev_shm {
        None => ("there is no /dev/shm".into(), "mount -t tmpfs tmpfs /dev/shm"),
        Some(bytes) if bytes < USUAL => (
            format!("/dev/shm has {}", size(bytes)),
            "mount -o remount,size=1G /dev/shm, or the container's --shm-size=1g",
        ),
        Some(_) => return Vec::new(),
    };
    let why = "Tutti does not use it (its segments are memfds), but PyTorch's data loaders and other \
               libraries of the same job do, and die there with SIGBUS";
    finding("dev_shm", Severity::Warning, found, why, remedy.into())
}

fn memory(readings: &Readings) -> Vec<Finding> {
    let left = [readings.memory_left, readings.cgroup_left].into_iter().flatten().min();
    match left {
        Some(left) if left < readings.shared_memory => finding(
            "memory",
            Severity::Warning,
            format!(
                "{} are left, {} ranks that all talk to each other share {}",
                size(left),
                readings.ranks,
                size(readings.shared_memory)
            ),
            "an operation fails with \"no memory\" when a pair of ranks first needs its rings",
            "raise the memory limit of the container or job, run fewer ranks here, or lower \
             TUTTI_SHM_RING"
                .into(),
        ),
        _ => Vec::new(),
    }
}

fn loopback(readings: &Readings) -> Vec<Finding> {
    let works = |found: &crate::machine::Interface| {
        found.is_loopback && found.is_up && found.addresses.iter().any(|ip| ip.is_ipv4())
    };
    match readings.machine.interfaces.iter().any(works) {
        true => Vec::new(),
        false => finding(
            "loopback",
            Severity::Error,
            "the loopback interface is missing or down".into(),
            "ranks of one machine find each other at 127.0.0.1",
            "ip link set lo up".into(),
        ),
    }
}

fn network(readings: &Readings) -> Vec<Finding> {
    let leads = |found: &crate::machine::Interface| {
        !found.is_loopback && found.is_up && !found.addresses.is_empty()
    };
    match readings.machine.interfaces.iter().any(leads) {
        true => Vec::new(),
        false => finding(
            "network",
            Severity::Note,
            "no interface but the loopback has an address".into(),
            "ranks on other hosts cannot be reached; on this machine alone nothing is missing",
            "for several hosts: give an interface an address, or the container --network=host"
                .into(),
        ),
    }
}

fn interface_filter(readings: &Readings) -> Vec<Finding> {
    let Some(filter) = &readings.filter else { return Vec::new() };
    let up = readings
        .machine
        .interfaces
        .iter()
        .filter(|found| found.is_up && !found.addresses.is_empty());
    let names: Vec<&str> = up.map(|found| found.name.as_str()).collect();
    match names.iter().any(|name| filter.allows(name)) {
        true => Vec::new(),
        false => finding(
            "interfaces",
            Severity::Error,
            format!("TUTTI_SOCKET_IFNAME={filter} allows none of {}", names.join(", ")),
            "no rank of this machine can start",
            "name an interface that is there and up".into(),
        ),
    }
}

/// A rank listens at one port, and at another if it uses groups over TCP; rank 0 also for all to meet.
fn ports(readings: &Readings) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some((port, false)) = readings.master_port {
        found.extend(finding(
            "master_port",
            Severity::Error,
            format!("MASTER_PORT {port} is taken on this machine"),
            "rank 0 cannot open the rendezvous there",
            format!("end what listens there (ss -ltnp 'sport = :{port}'), or choose another port"),
        ));
    }
    let Some(range) = &readings.range else { return found };
    let needed = readings.ranks as usize + 1;
    let all = range.iter().count();
    if readings.range_free < needed {
        found.extend(finding(
            "port_range",
            Severity::Error,
            format!(
                "{} of {all} ports of TUTTI_PORT_RANGE={range} are free, {} ranks need {needed}",
                readings.range_free, readings.ranks
            ),
            "ranks that find no port do not start",
            "widen the range, here and in the firewall".into(),
        ));
    }
    found
}

fn own_name(readings: &Readings) -> Vec<Finding> {
    let name = &readings.machine.name;
    let here = || readings.machine.interfaces.iter().flat_map(|found| &found.addresses);
    let why = "where MASTER_ADDR is this name, ranks on other hosts are sent to the wrong place";
    match &readings.own_name {
        Err(error) => finding(
            "host_name",
            Severity::Warning,
            format!("the machine's own name, {name}, does not resolve: {error}"),
            why,
            format!("give {name} its address in /etc/hosts or DNS, or set the right name"),
        ),
        Ok(found) if found.iter().all(|ip| ip.is_loopback()) => finding(
            "host_name",
            Severity::Note,
            format!("the machine's own name, {name}, resolves to a loopback address only"),
            why,
            "for several hosts: let MASTER_ADDR be an address of a network, not this name".into(),
        ),
        Ok(found) if !found.iter().any(|ip| ip.is_loopback() || here().any(|own| own == ip)) => {
            finding(
                "host_name",
                Severity::Error,
                format!("the machine's own name, {name}, resolves to {found:?}, which is not here"),
                why,
                format!("correct {name} in /etc/hosts or DNS, or set the right name"),
            )
        }
        Ok(_) => Vec::new(),
    }
}

fn master(readings: &Readings) -> Vec<Finding> {
    match &readings.master {
        Some((name, Err(error))) => finding(
            "master_addr",
            Severity::Error,
            format!("MASTER_ADDR {name} does not resolve: {error}"),
            "no rank of this machine finds the others",
            "give its address, or its name in /etc/hosts or DNS".into(),
        ),
        _ => Vec::new(),
    }
}

fn cores(readings: &Readings) -> Vec<Finding> {
    let (ranks, cores) = (readings.ranks, readings.machine.cores);
    match ranks as usize > cores {
        true => finding(
            "cores",
            Severity::Warning,
            format!("{ranks} ranks share {cores} usable cores"),
            "ranks take turns, so that small operations take some µs more each",
            "run as many ranks as there are cores, or widen the affinity or the cgroup's quota"
                .into(),
        ),
        false => Vec::new(),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Interface, Machine};
    use tutti::{InterfaceFilter, PortRange};

    fn interface(name: &str, ip: &str) -> Interface {
        Interface {
            name: name.into(),
            addresses: vec![ip.parse().unwrap()],
            is_up: true,
            is_loopback: name == "lo",
            mtu: Some(1500),
            mbit_per_s: None,
            numa_node: None,
        }
    }

    /// A machine on which nothing stands in the way.
    fn sound() -> Readings {
        let interfaces = vec![interface("lo", "127.0.0.1"), interface("eth0", "10.0.0.7")];
        Readings {
            machine: Machine { name: "a".into(), cores: 8, numa_nodes: Vec::new(), interfaces },
            ranks: 8,
            files: Some((1024, 4096)),
            memlock: Some(u64::MAX),
            dev_shm: Some(8 << 30),
            cgroup_left: None,
            memory_left: Some(8 << 30),
            shared_memory: 32 << 20,
            own_name: Ok(vec!["10.0.0.7".parse().unwrap()]),
            master: None,
            master_port: None,
            filter: None,
            range: None,
            range_free: 0,
            broken: None,
            warnings: Vec::new(),
        }
    }

    /// The one finding of a machine that is sound but for this.
    fn after(change: impl FnOnce(&mut Readings)) -> Finding {
        let mut readings = sound();
        change(&mut readings);
        let mut found = all(&readings);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    fn name_and_severity(finding: &Finding) -> (&str, Severity) {
        (&finding.check, finding.severity)
    }

    #[test]
    fn a_sound_machine_has_no_findings() {
        assert_eq!(all(&sound()), []);
    }

    #[test]
    fn too_few_files_name_the_limit_that_must_be_raised() {
        let soft = after(|readings| readings.files = Some((64, 4096)));
        assert_eq!(name_and_severity(&soft), ("files", Severity::Error));
        assert_eq!(soft.remedy, "raise the soft limit: ulimit -n 72");
        let hard = after(|readings| {
            (readings.ranks, readings.machine.cores, readings.files) = (200, 200, Some((256, 256)))
        });
        assert_eq!(name_and_severity(&hard), ("files", Severity::Warning));
        assert!(hard.remedy.contains("LimitNOFILE"));
    }

    #[test]
    fn little_lockable_memory_is_a_note_for_rdma() {
        let found = after(|readings| readings.memlock = Some(64 << 10));
        assert_eq!(name_and_severity(&found), ("memlock", Severity::Note));
    }

    #[test]
    fn a_small_or_missing_dev_shm_is_a_warning_about_others() {
        for bytes in [None, Some(64 << 10)] {
            let found = after(|readings| readings.dev_shm = bytes);
            assert_eq!(name_and_severity(&found), ("dev_shm", Severity::Warning));
        }
        assert!(after(|readings| readings.dev_shm = Some(64 << 10)).found.contains("64 KiB"));
    }

    #[test]
    fn memory_that_does_not_hold_the_rings_is_a_warning() {
        let found = after(|readings| readings.cgroup_left = Some(1 << 20));
        assert_eq!(name_and_severity(&found), ("memory", Severity::Warning));
        assert!(found.found.contains("1 MiB are left"), "{found:?}");
    }

    #[test]
    fn a_loopback_that_is_down_is_an_error() {
        let found = after(|readings| readings.machine.interfaces[0].is_up = false);
        assert_eq!(name_and_severity(&found), ("loopback", Severity::Error));
        assert_eq!(found.remedy, "ip link set lo up");
    }

    #[test]
    fn a_machine_without_a_network_is_fine_by_itself() {
        let found = after(|readings| {
            readings.machine.interfaces.truncate(1);
            readings.own_name = Ok(vec!["10.0.0.7".parse().unwrap(), "127.0.0.1".parse().unwrap()]);
        });
        assert_eq!(name_and_severity(&found), ("network", Severity::Note));
    }

    #[test]
    fn a_filter_that_allows_nothing_names_what_there_is() {
        let filter = InterfaceFilter::parse("ib").unwrap();
        let found = after(|readings| readings.filter = Some(filter));
        assert_eq!(name_and_severity(&found), ("interfaces", Severity::Error));
        assert!(found.found.contains("lo, eth0"));
    }

    #[test]
    fn ports_that_are_too_few_or_taken_are_errors() {
        let found = after(|readings| {
            readings.range = Some(PortRange::parse("5000-5010").unwrap());
            readings.range_free = 8;
        });
        assert_eq!(name_and_severity(&found), ("port_range", Severity::Error));
        assert!(found.found.starts_with("8 of 11 ports"), "{found:?}");
        let found = after(|readings| readings.master_port = Some((29500, false)));
        assert_eq!(name_and_severity(&found), ("master_port", Severity::Error));
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_an_error_and_one_that_leads_nowhere_a_warning() {
        let elsewhere = after(|readings| readings.own_name = Ok(vec!["10.9.9.9".parse().unwrap()]));
        assert_eq!(name_and_severity(&elsewhere), ("host_name", Severity::Error));
        let nowhere = after(|readings| readings.own_name = Err("not known".into()));
        assert_eq!(name_and_severity(&nowhere), ("host_name", Severity::Warning));
        let loopback = after(|readings| readings.own_name = Ok(vec!["127.0.1.1".parse().unwrap()]));
        assert_eq!(name_and_severity(&loopback), ("host_name", Severity::Note));
    }

    #[test]
    fn a_master_that_does_not_resolve_is_an_error() {
        let found =
            after(|readings| readings.master = Some(("head".into(), Err("not known".into()))));
        assert_eq!(name_and_severity(&found), ("master_addr", Severity::Error));
    }

    #[test]
    fn more_ranks_than_cores_are_a_warning() {
        let found = after(|readings| readings.machine.cores = 2);
        assert_eq!(name_and_severity(&found), ("cores", Severity::Warning));
    }

    #[test]
    fn settings_that_make_no_sense_or_are_unknown_are_told() {
        let found = after(|readings| readings.broken = Some("TUTTI_DEADLINE=x".into()));
        assert_eq!(name_and_severity(&found), ("settings", Severity::Error));
        let found = after(|readings| readings.warnings = vec!["TUTTI_DEADLIN".into()]);
        assert_eq!(name_and_severity(&found), ("settings", Severity::Warning));
    }
}
