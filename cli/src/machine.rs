//! This machine as its kernel describes it: processors, NUMA nodes, network interfaces.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use serde::Serialize;

/// What the commands know of this machine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) name: String,
    /// The processors that this process may run on.
    pub(crate) cores: usize,
    pub(crate) numa_nodes: Vec<NumaNode>,
    pub(crate) interfaces: Vec<Interface>,
}

/// Processors that are equally near to a part of the memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct NumaNode {
    pub(crate) number: u32,
    /// As the kernel writes them: `0-3,8`.
    pub(crate) processors: String,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) is_up: bool,
    pub(crate) is_loopback: bool,
    pub(crate) mtu: Option<u32>,
    /// What the card says its link can carry, in 10^6 bits per second.
    pub(crate) mbit_per_s: Option<u32>,
    pub(crate) numa_node: Option<u32>,
}

impl Machine {
    /// Asks the kernel. What it does not tell is left out.
    pub(crate) fn read() -> Machine {
        let sys = Path::new("/sys");
        let addresses = if_addrs::get_if_addrs().unwrap_or_default();
        let addresses = addresses.into_iter().map(|found| (found.name.clone(), found.ip()));
        Machine {
            name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            numa_nodes: numa_nodes(sys),
            interfaces: interfaces(sys, &addresses.collect::<Vec<_>>()),
        }
    }
}

/// The NUMA nodes below a `/sys`, by number.
fn numa_nodes(sys: &Path) -> Vec<NumaNode> {
    let mut nodes: Vec<NumaNode> = entries(&sys.join("devices/system/node"))
        .into_iter()
        .filter_map(|name| {
            let number = name.strip_prefix("node")?.parse().ok()?;
            let processors = text(&sys.join("devices/system/node").join(&name).join("cpulist"))?;
            Some(NumaNode { number, processors })
        })
        .collect();
    nodes.sort_by_key(|node| node.number);
    nodes
}

/// The interfaces below a `/sys`, by name, with the addresses that they are said to have.
fn interfaces(sys: &Path, addresses: &[(String, IpAddr)]) -> Vec<Interface> {
    const LOOPBACK: u32 = 8;
    const UP: u32 = 1;
    let root = sys.join("class/net");
    let mut names = entries(&root);
    names.sort();
    let interface = |name: String| {
        let folder = root.join(&name);
        let read = |file: &str| text(&folder.join(file));
        let flags = read("flags")
            .and_then(|flags| u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok());
        let flags = flags?;
        let of_this = addresses.iter().filter(|(other, _)| *other == name);
        Some(Interface {
            addresses: of_this.map(|(_, ip)| *ip).collect(),
            is_up: flags & UP != 0,
            is_loopback: flags & LOOPBACK != 0,
            mtu: read("mtu").and_then(|mtu| mtu.parse().ok()),
            // -1 where the driver does not know.
            mbit_per_s: read("speed").and_then(|speed| speed.parse().ok()),
            numa_node: read("device/numa_node").and_then(|node| node.parse().ok()),
            name,
        })
    };
    names.into_iter().filter_map(interface).collect()
}

fn entries(folder: &Path) -> Vec<String> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn text(file: &Path) -> Option<String> {
    fs::read_to_string(file).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    #[test]
    fn numa_nodes_come_by_number() {
        let sys = tempfile::tempdir().unwrap();
        write(sys.path(), "devices/system/node/node10/cpulist", "8-15\n");
        write(sys.path(), "devices/system/node/node2/cpulist", "0-7\n");
        write(sys.path(), "devices/system/node/possible", "2,10\n");
        let nodes = numa_nodes(sys.path());
        assert_eq!(nodes.iter().map(|node| node.number).collect::<Vec<_>>(), [2, 10]);
        assert_eq!(nodes[0].processors, "0-7");
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_left_out() {
        let sys = tempfile::tempdir().unwrap();
        write(sys.path(), "class/net/eth0/flags", "0x1003\n");
        write(sys.path(), "class/net/eth0/mtu", "9000\n");
        write(sys.path(), "class/net/eth0/speed", "25000\n");
        write(sys.path(), "class/net/eth0/device/numa_node", "1\n");
        write(sys.path(), "class/net/dummy0/flags", "0x1002\n");
        write(sys.path(), "class/net/dummy0/speed", "-1\n");
        let ip: IpAddr = "10.0.0.7".parse().unwrap();
        let found = interfaces(sys.path(), &[("eth0".into(), ip)]);
        assert_eq!(found[0].name, "dummy0");
        assert_eq!((found[0].is_up, found[0].mbit_per_s, found[0].mtu), (false, None, None));
        let eth = &found[1];
        assert_eq!((eth.is_up, eth.mbit_per_s, eth.mtu), (true, Some(25_000), Some(9000)));
        assert_eq!((eth.numa_node, &eth.addresses[..]), (Some(1), &[ip][..]));
    }

    #[test]
    fn a_machine_without_any_of_it_has_nothing() {
        let sys = tempfile::tempdir().unwrap();
        assert_eq!((numa_nodes(sys.path()), interfaces(sys.path(), &[])), (vec![], vec![]));
    }
}
