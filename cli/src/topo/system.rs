//! What the system's files say of NUMA nodes and network interfaces.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NumaNode {
    pub(crate) id: u32,
    pub(crate) cores: Vec<u32>,
    pub(crate) memory_bytes: Option<u64>,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Nic {
    pub(crate) name: String,
    pub(crate) state: State,
    /// Of its link, in 10^6 bits per second; none where the driver does not say.
    pub(crate) mbit_per_s: Option<u64>,
    pub(crate) mtu: Option<u32>,
    pub(crate) numa_node: Option<u32>,
    pub(crate) addresses: Vec<IpAddr>,
}

/// Whether an interface carries anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Up,
    /// It is up, and nothing is plugged in.
    NoCarrier,
    Down,
    /// The system does not say.
    Unknown,
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Up => "up",
            State::NoCarrier => "no carrier",
            State::Down => "down",
            State::Unknown => "?",
        }
    }
}

/// The NUMA nodes with cores, of the system whose root directory this is; none where it has no NUMA.
pub(crate) fn numa_nodes(root: &Path) -> Vec<NumaNode> {
    let folder = root.join("sys/devices/system/node");
    let node = |name: String| {
        let id = name.strip_prefix("node")?.parse().ok()?;
        let cores = cpu_list(&text(&folder.join(&name).join("cpulist"))?);
        let meminfo = text(&folder.join(&name).join("meminfo"));
        let memory_bytes = meminfo.and_then(|text| memory_total(&text));
        (!cores.is_empty()).then_some(NumaNode { id, cores, memory_bytes })
    };
    let mut nodes: Vec<NumaNode> = names(&folder).into_iter().filter_map(node).collect();
    nodes.sort_by_key(|node| node.id);
    nodes
}

/// The network interfaces of the system whose root directory this is, without addresses.
///
/// Which there are tells `/proc`, which is always that of the own network namespace. `/sys` may be
/// that of another one; if it lists others, it says nothing of ours.
pub(crate) fn nics(root: &Path) -> Vec<Nic> {
    let folder = root.join("sys/class/net");
    let table = text(&root.join("proc/net/dev")).unwrap_or_default();
    let here: BTreeSet<String> = device_names(&table).collect();
    let is_ours =
        names(&folder).into_iter().filter(|name| folder.join(name).is_dir()).eq(here.clone());
    here.into_iter()
        .map(|name| {
            let folder = is_ours.then(|| folder.join(&name));
            let value = |file: &str| text(&folder.as_ref()?.join(file));
            let flags = value("flags").and_then(|text| parse_hex(&text));
            Nic {
                state: state(flags, value("operstate").as_deref()),
                mbit_per_s: value("speed").and_then(|text| text.parse().ok()).filter(|n| *n > 0),
                mtu: value("mtu").and_then(|text| text.parse().ok()),
                numa_node: value("device/numa_node").and_then(|text| text.parse().ok()),
                addresses: Vec::new(),
                name,
            }
        })
        .collect()
}

/// The names in `/proc/net/dev`: two lines of headings, then `name: counters`.
fn device_names(table: &str) -> impl Iterator<Item = String> {
    let lines = table.lines().skip(2);
    lines.filter_map(|line| line.rsplit_once(':').map(|(name, _)| name.trim().to_owned()))
}

fn state(flags: Option<u32>, operational: Option<&str>) -> State {
    const IFF_UP: u32 = 1;
    match (flags, operational) {
        (None, _) => State::Unknown,
        (Some(flags), _) if flags & IFF_UP == 0 => State::Down,
        // The loopback and some tunnels do not know, and carry.
        (_, None | Some("up" | "unknown")) => State::Up,
        _ => State::NoCarrier,
    }
}

/// A list as in `0-3,8`. What is no number is left out.
fn cpu_list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // No system has more processors; a nonsense list shall not fill the memory.
        (last < 1 << 16).then_some(first..=last)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// From `Node 0 MemTotal:  65536 kB`, in bytes.
fn memory_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.contains("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().rev().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

fn parse_hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The trimmed text of a file, if it can be read. The speed of an interface that is down cannot.
fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim_end().to_owned())
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root directory with these files.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const DEV: &str = "Inter-| Receive\n face |bytes\n    lo: 0 0\n  eth0: 7 7\n  ib0: 1 1\n";

    #[test]
    fn interfaces_have_state_speed_mtu_and_numa_node() {
        let root = root(&[
            ("proc/net/dev", DEV),
            ("sys/class/net/bonding_masters", ""),
            ("sys/class/net/lo/flags", "0x9\n"),
            ("sys/class/net/lo/operstate", "unknown\n"),
            ("sys/class/net/eth0/flags", "0x1003\n"),
            ("sys/class/net/eth0/operstate", "up\n"),
            ("sys/class/net/eth0/speed", "25000\n"),
            ("sys/class/net/eth0/mtu", "9000\n"),
            ("sys/class/net/eth0/device/numa_node", "1\n"),
            ("sys/class/net/ib0/flags", "0x1002\n"),
            ("sys/class/net/ib0/speed", "-1\n"),
            ("sys/class/net/ib0/device/numa_node", "-1\n"),
        ]);
        let [eth0, ib0, lo] = &nics(root.path())[..] else { panic!("three interfaces") };
        assert_eq!((eth0.state, eth0.mbit_per_s, eth0.mtu), (State::Up, Some(25000), Some(9000)));
        assert_eq!(eth0.numa_node, Some(1));
        assert_eq!((ib0.state, ib0.mbit_per_s, ib0.numa_node), (State::Down, None, None));
        assert_eq!((&*lo.name, lo.state), ("lo", State::Up));
    }

    #[test]
    fn the_sys_of_another_network_namespace_is_not_believed() {
        let root = root(&[
            ("proc/net/dev", "a\nb\n lo: 0\n"),
            ("sys/class/net/lo/flags", "0x9"),
            ("sys/class/net/eth0/flags", "0x1003"),
        ]);
        let [lo] = &nics(root.path())[..] else { panic!("the loopback") };
        assert_eq!((&*lo.name, lo.state), ("lo", State::Unknown));
    }

    #[test]
    fn an_interface_without_carrier_is_told_from_one_that_is_down() {
        assert_eq!(state(Some(0x1003), Some("down")), State::NoCarrier);
        assert_eq!(state(Some(0x1002), Some("down")), State::Down);
    }

    #[test]
    fn numa_nodes_have_cores_and_memory_and_those_without_cores_are_left_out() {
        let root = root(&[
            ("sys/devices/system/node/possible", "0-2"),
            ("sys/devices/system/node/node1/cpulist", "4-7\n"),
            ("sys/devices/system/node/node0/cpulist", "0-2,8\n"),
            ("sys/devices/system/node/node0/meminfo", "\nNode 0 MemTotal:   2048 kB\nNode 0 x: 1"),
            ("sys/devices/system/node/node2/cpulist", "\n"),
        ]);
        let [zero, one] = &numa_nodes(root.path())[..] else { panic!("two nodes") };
        assert_eq!((&zero.cores[..], zero.memory_bytes), (&[0, 1, 2, 8][..], Some(2 << 20)));
        assert_eq!((one.id, &one.cores[..], one.memory_bytes), (1, &[4, 5, 6, 7][..], None));
    }

    #[test]
    fn an_empty_system_has_nothing() {
        let root = root(&[]);
        assert!(nics(root.path()).is_empty() && numa_nodes(root.path()).is_empty());
    }

    #[test]
    fn nonsense_lists_are_left_out() {
        assert_eq!(cpu_list("x,3-1,2,0-4294967295,5-"), [2]);
    }
}
