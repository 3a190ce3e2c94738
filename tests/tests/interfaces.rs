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
