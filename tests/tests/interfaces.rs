//! Hosts with more interfaces than one: which of them the ranks use. The hosts are network
//! namespaces, so this needs root and iproute2:
//! `cargo test -p tutti-tests --test interfaces -- --ignored`.

use std::process::{Child, Stdio};

use tutti_tests::namespaces::Hosts;

/// Two hosts; each also has `aaa0`, which is up, comes first in the alphabet, and leads nowhere.
fn hosts(test: &str) -> Hosts {
    let hosts = Hosts::new(test, 2);
    for host in 0..2 {
        let address = format!("10.88.{host}.1/24");
        let commands: [&[&str]; 4] = [
            &["link", "add", "aaa0", "type", "veth", "peer", "name", "zzz0"],
            &["address", "add", &address, "dev", "aaa0"],
            &["link", "set", "aaa0", "up"],
            &["link", "set", "zzz0", "up"],
        ];
        for command in commands {
            let output = hosts.command(host, "ip").args(command).output().unwrap();
            assert!(output.status.success(), "{command:?}: {output:?}");
        }
    }
    hosts
}

/// What a rank on each host says and logs, started with these variables.
fn outcome(hosts: &Hosts, set: &[(&str, &str)]) -> Vec<(String, String)> {
    let start = |host: usize| -> Child {
        let mut command = hosts.command(host, env!("CARGO_BIN_EXE_rank"));
        command.arg("once").env("RANK", host.to_string()).env("WORLD_SIZE", "2");
        command.env("MASTER_ADDR", "10.77.0.1").env("MASTER_PORT", "29556");
        command.env("TUTTI_JOB_SECRET", "of this test").env("RUST_LOG", "info");
        command.envs(set.iter().copied());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..2).map(start).collect();
    let ended = children.into_iter().map(|child| child.wait_with_output().unwrap());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    ended.map(|output| (text(output.stdout), text(output.stderr))).collect()
}

#[test]
#[ignore = "needs root and iproute2"]
fn an_interface_that_leads_nowhere_is_never_used_unless_it_is_named() {
    let hosts = hosts("deadend");
    for set in
        [&[][..], &[("TUTTI_SOCKET_IFNAME", "aaa,eth")], &[("TUTTI_SOCKET_IFNAME", "^docker")]]
    {
        for (said, logged) in outcome(&hosts, set) {
            assert_eq!(said, "ok\n", "{set:?}: {logged}");
        }
    }
}

#[test]
#[ignore = "needs root and iproute2"]
fn an_interface_that_is_named_and_leads_nowhere_is_an_error_with_both_addresses() {
    let hosts = hosts("named");
    let set = [("TUTTI_SOCKET_IFNAME", "=aaa0"), ("TUTTI_START_DEADLINE", "2")];
    let outcomes = outcome(&hosts, &set);
    let (said, logged) = &outcomes[1];
    assert!(said.contains("10.88.0.1") || logged.contains("10.88.0.1"), "{outcomes:?}");
    assert!(outcomes.iter().all(|(said, _)| said != "ok\n"), "{outcomes:?}");
}

#[test]
#[ignore = "needs root and iproute2"]
fn hosts_with_link_local_addresses_alone_find_each_other() {
    let hosts = Hosts::new("linklocal", 2);
    for host in 0..2 {
        let commands: [&[&str]; 2] = [
            &["address", "flush", "dev", "eth0"],
            &["address", "add", &format!("fe80::77:{host}/64"), "dev", "eth0", "nodad"],
        ];
        for command in commands {
            let output = hosts.command(host, "ip").args(command).output().unwrap();
            assert!(output.status.success(), "{command:?}: {output:?}");
        }
    }
    for (said, logged) in outcome(&hosts, &[("MASTER_ADDR", "fe80::77:0%eth0")]) {
        assert_eq!(said, "ok\n", "{logged}");
    }
}

/// Starts so many ranks of a job on the first host, which meet at that port of its loopback.
fn job(hosts: &Hosts, ranks: u32, port: u16) -> Vec<Child> {
    let start = |rank: u32| {
        let mut command = hosts.command(0, env!("CARGO_BIN_EXE_rank"));
        command.arg("once").env("RANK", rank.to_string()).env("WORLD_SIZE", ranks.to_string());
        command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
        command.env("TUTTI_TRANSPORT", "tcp").stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    (0..ranks).map(start).collect()
}

fn all_are_well(ranks: Vec<Child>) {
    for rank in ranks {
        let output = rank.wait_with_output().unwrap();
        assert_eq!(output.stdout, b"ok\n", "{output:?}");
    }
}

/// Sets a kernel setting of the first host.
fn set(hosts: &Hosts, name: &str, value: &str) {
    let file = format!("/proc/sys/net/{name}");
    let script = format!("echo '{value}' > {file}");
    let status = hosts.command(0, "sh").args(["-c", &script]).status().unwrap();
    assert!(status.success(), "{script}");
}

#[test]
#[ignore = "needs root and iproute2"]
fn a_crowd_that_comes_at_once_gets_through_a_short_backlog() {
    let hosts = Hosts::new("crowd", 1);
    set(&hosts, "core/somaxconn", "16");
    all_are_well(job(&hosts, 96, 29560));
}

#[test]
#[ignore = "needs root and iproute2"]
fn many_jobs_at_once_find_ports_in_a_small_range() {
    let hosts = Hosts::new("ports", 1);
    set(&hosts, "ipv4/ip_local_port_range", "40000 40199");
    let jobs: Vec<_> = (0..20).map(|index| job(&hosts, 3, 29600 + index)).collect();
    jobs.into_iter().for_each(all_are_well);
}

#[test]
#[ignore = "needs root and iproute2"]
fn a_machine_without_a_network_works_and_without_a_loopback_says_so_at_once() {
    let hosts = Hosts::new("alone", 1);
    let down = |interface: &str| {
        let command = ["link", "set", interface, "down"];
        assert!(hosts.command(0, "ip").args(command).status().unwrap().success());
    };
    down("eth0");
    all_are_well(job(&hosts, 4, 29570));
    down("lo");
    for rank in job(&hosts, 2, 29571) {
        let output = rank.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("loopback") || said.contains("29571"), "{output:?}");
        assert_ne!(output.stdout, b"ok\n");
    }
}
