//! Hosts on one machine: network namespaces on a bridge. Needs root and iproute2.

use std::process::Command;

/// Namespaces with an interface `eth0` each, on a bridge that lives in a namespace of its own. All
/// is gone when this is dropped.
pub struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    /// `count` hosts with the addresses 10.77.0.1 onwards.
    ///
    /// # Panics
    ///
    /// If the system refuses: these tests need root and the `ip` command.
    pub fn new(test: &str, count: usize) -> Hosts {
        let name = |what: &str| format!("tutti-{test}-{}-{what}", std::process::id());
        let mut hosts = Hosts { names: vec![name("bridge")] };
        ip(&["netns", "add", &hosts.names[0]]);
        ip(&["-n", &hosts.names[0], "link", "add", "name", "switch", "type", "bridge"]);
        ip(&["-n", &hosts.names[0], "link", "set", "switch", "up"]);
        for index in 1..=count {
            hosts.names.push(name(&index.to_string()));
            let (bridge, host) = (&hosts.names[0], &hosts.names[index]);
            let port = format!("port{index}");
            ip(&["netns", "add", host]);
            ip(&["-n", host, "link", "set", "lo", "up"]);
            ip(&[
                "-n", host, "link", "add", "name", "eth0", "type", "veth", "peer", "name", &port,
                "netns", bridge,
            ]);
            ip(&["-n", bridge, "link", "set", &port, "master", "switch", "up"]);
            ip(&["-n", host, "address", "add", &format!("10.77.0.{index}/24"), "dev", "eth0"]);
            ip(&["-n", host, "link", "set", "eth0", "up"]);
        }
        hosts
    }

    /// A command that runs `program` on host `index`, from 0.
    pub fn command(&self, index: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[index + 1], program]);
        command
    }

    /// Takes the cable of host `index` out.
    pub fn cut(&self, index: usize) {
        ip(&["-n", &self.names[0], "link", "set", &format!("port{}", index + 1), "down"]);
    }
}

fn ip(args: &[&str]) {
    let output = Command::new("ip").args(args).output().expect("the ip command is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {}: {said}", args.join(" "));
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // May not exist, if `new` failed halfway.
            _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
    }
}
