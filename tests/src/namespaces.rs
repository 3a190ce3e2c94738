//! Hosts on one machine: network namespaces on a bridge. Needs root and iproute2.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

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

    /// Makes every host's cable carry so many megabits per second each way, in packets of up to 9,000 bytes:
    /// headers and acknowledgements then take less than one percent.
    pub fn shape(&self, megabits: u32) {
        let rate = format!("{megabits}mbit");
        let shaped = |name: &str, device: &str| {
            // The queue holds what all senders have under way, so that nothing is dropped.
            let queue = ["root", "tbf", "rate", &rate, "burst", "128kb", "limit", "64mb"];
            run("tc", &[&["-n", name, "qdisc", "add", "dev", device], &queue[..]].concat());
            ip(&["-n", name, "link", "set", device, "mtu", "9000"]);
        };
        for index in 1..self.names.len() {
            shaped(&self.names[index], "eth0");
            shaped(&self.names[0], &format!("port{index}"));
        }
        ip(&["-n", &self.names[0], "link", "set", "switch", "mtu", "9000"]);
    }

    /// The bytes that host `index` has sent and received over its cable so far.
    pub fn bytes(&self, index: usize) -> [u64; 2] {
        ["tx_bytes", "rx_bytes"].map(|name| {
            let mut command = self.command(index, "cat");
            let output = command.arg(format!("/sys/class/net/eth0/statistics/{name}")).output();
            let text = String::from_utf8(output.expect("cat is there").stdout).expect("a number");
            text.trim().parse().expect("a number")
        })
    }

    /// Takes the cable of host `index` out.
    pub fn cut(&self, index: usize) {
        ip(&["-n", &self.names[0], "link", "set", &format!("port{}", index + 1), "down"]);
    }
}

fn ip(args: &[&str]) {
    run("ip", args);
}

fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().expect("iproute2 is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {said}", args.join(" "));
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // May not exist, if `new` failed halfway.
            _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
    }
}

/// Ranks as processes on hosts; killed when the test ends, however it ends.
pub struct Ranks {
    children: Vec<Child>,
    lines: Vec<Lines<BufReader<ChildStdout>>>,
}

impl Ranks {
    /// Starts `program` as rank `r` on host `on[r]`, for each `r`, with the variables that `set` gives by
    /// rank. They meet at host 0.
    pub fn start(
        hosts: &Hosts,
        program: &str,
        on: &[usize],
        args: &[&str],
        set: impl Fn(usize) -> Vec<(&'static str, String)>,
    ) -> Ranks {
        let start = |(rank, host): (usize, &usize)| {
            hosts
                .command(*host, program)
                .args(args)
                .env("RANK", rank.to_string())
                .env("WORLD_SIZE", on.len().to_string())
                .env("MASTER_ADDR", "10.77.0.1")
                .env("MASTER_PORT", "29555")
                .env("TUTTI_JOB_SECRET", "of this test")
                .envs(set(rank))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("the ip command is installed")
        };
        let mut children: Vec<_> = on.iter().enumerate().map(start).collect();
        let lines = |child: &mut Child| {
            BufReader::new(child.stdout.take().expect("taken only here")).lines()
        };
        Ranks { lines: children.iter_mut().map(lines).collect(), children }
    }

    /// What a rank prints next.
    pub fn next_line(&mut self, rank: usize) -> String {
        self.lines[rank].next().expect("the rank says something").expect("text")
    }

    /// All that a rank still prints.
    pub fn rest(&mut self, rank: usize) -> String {
        self.lines[rank].by_ref().map(|line| line.expect("text")).collect::<Vec<_>>().join("\n")
    }

    /// Kills a rank.
    pub fn kill(&mut self, rank: usize) {
        self.children[rank].kill().expect("an own child");
    }

    /// Gives every rank an empty line to read.
    pub fn tell_all(&mut self) {
        for child in &mut self.children {
            let input = child.stdin.as_mut().expect("it is piped");
            input.write_all(b"\n").expect("the rank reads");
        }
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for child in &mut self.children {
            _ = child.kill();
            _ = child.wait();
        }
    }
}
