//! What this process is and where it runs, as it reports it to the others.

use std::fs;

/// The host's name, for people.
pub fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// What tells hosts apart where names do not: the network and the user. Ranks with equal keys then
/// prove that they share memory by sharing it.
pub fn key() -> String {
    format!("{} uid {}", network(), rustix::process::getuid().as_raw())
}

/// What tells network stacks apart, each with a loopback of its own: the boot and the namespace.
pub(crate) fn network() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_else(|_| name());
    let net = fs::read_link("/proc/self/ns/net")
        .map_or_else(|_| String::new(), |l| l.to_string_lossy().into_owned());
    format!("{} {net}", boot.trim())
}

/// The NUMA node of the processor this thread is on; 0 where the system does not say.
pub fn numa_node() -> u32 {
    let cpu = rustix::thread::sched_getcpu();
    let nodes = fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    nodes
        .filter(|node| node.path().join(format!("cpu{cpu}")).exists())
        .find_map(|node| node.file_name().to_string_lossy().strip_prefix("node")?.parse().ok())
        .unwrap_or(0)
}

/// The nearest process above this one that was started without the variable `name`: its number
/// and when it started. What a launcher sets for its processes, it is not started with itself, so
/// this is the launcher, also where shells stand between. `None` where `/proc` does not say.
pub(crate) fn ancestor_without(name: &str) -> Option<String> {
    let mut pid = std::process::id();
    loop {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in brackets may hold anything; numbers follow the last bracket.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let (parent, started) = (fields.get(1)?.parse().ok()?, fields.get(19)?);
        // What cannot be read belongs to another user, and so to no process of the job.
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let sets =
            |var: &[u8]| var.strip_prefix(name.as_bytes()).is_some_and(|v| v.starts_with(b"="));
        if !environ.split(|byte| *byte == 0).any(sets) {
            return Some(format!("{pid} started {started}"));
        }
        pid = parent;
    }
}
