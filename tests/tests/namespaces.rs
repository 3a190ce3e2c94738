//! Ranks on several hosts, which are network namespaces. They need root and iproute2:
//! `cargo test -p tutti-tests --test namespaces -- --ignored`.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use tutti_tests::namespaces::Hosts;

/// Ranks as processes on hosts; killed when the test ends, however it ends.
struct Ranks {
    children: Vec<Child>,
    lines: Vec<Lines<BufReader<ChildStdout>>>,
}

impl Ranks {
    /// Rank `r` on host `on[r]`; they meet at host 0.
    fn start(hosts: &Hosts, on: &[usize], args: &[&str], set: &[(&str, &str)]) -> Ranks {
        let start = |(rank, host): (usize, &usize)| {
            let mut command = hosts.command(*host, env!("CARGO_BIN_EXE_rank"));
            command
                .args(args)
                .env("RANK", rank.to_string())
                .env("WORLD_SIZE", on.len().to_string());
            command.env("MASTER_ADDR", "10.77.0.1").env("MASTER_PORT", "29555");
            command.env("TUTTI_JOB_SECRET", "of this test").envs(set.iter().copied());
            command.stdout(Stdio::piped()).spawn().unwrap()
        };
        let mut children: Vec<_> = on.iter().enumerate().map(start).collect();
        let lines = |child: &mut Child| BufReader::new(child.stdout.take().unwrap()).lines();
        Ranks { lines: children.iter_mut().map(lines).collect(), children }
    }

    fn next_line(&mut self, rank: usize) -> String {
        self.lines[rank].next().expect("the rank says something").unwrap()
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

#[test]
#[ignore = "needs root and iproute2"]
fn ranks_on_three_hosts_reduce_with_every_algorithm() {
    let hosts = Hosts::new("reduce", 3);
    for algo in ["", "all_reduce:hierarchical", "all_reduce:ring", "all_reduce:halving_doubling"] {
        let mut ranks =
            Ranks::start(&hosts, &[0, 1, 0, 2, 0, 1], &["once"], &[("TUTTI_ALGO", algo)]);
        for rank in 0..6 {
            assert_eq!(ranks.next_line(rank), "ok", "rank {rank}, {algo}");
        }
    }
}

#[test]
#[ignore = "needs root and iproute2"]
fn a_rank_killed_on_another_host_is_named_by_all() {
    let hosts = Hosts::new("kill", 2);
    let mut ranks = Ranks::start(&hosts, &[0, 1, 1, 0], &["reduce-forever", "16"], &[]);
    let ready: Vec<String> = (0..4).map(|rank| ranks.next_line(rank)).collect();
    ranks.children[2].kill().unwrap();
    let pid = ready[2].strip_prefix("ready ").unwrap();
    for rank in [0, 1, 3] {
        let said = ranks.next_line(rank);
        let named = said.contains("the process of rank 2 (host")
            && said.contains(&format!("pid {pid}) has ended"));
        assert!(named, "rank {rank}: {said}");
    }
}

#[test]
#[ignore = "needs root and iproute2"]
fn a_host_that_is_cut_off_is_named_when_the_deadline_passes() {
    let hosts = Hosts::new("cut", 3);
    let set = [("TUTTI_DEADLINE", "2")];
    let mut ranks = Ranks::start(&hosts, &[0, 0, 1, 2], &["reduce-forever", "16"], &set);
    for rank in 0..4 {
        ranks.next_line(rank);
    }
    hosts.cut(2);
    for rank in 0..3 {
        let said: String =
            ranks.lines[rank].by_ref().map(Result::unwrap).collect::<Vec<_>>().join("\n");
        assert!(said.contains("nothing moved for 2s"), "rank {rank}: {said}");
        let silent = said.lines().find(|line| line.contains("does not answer")).expect(&said);
        assert!(silent.trim_start().starts_with("rank 3 "), "{said}");
    }
    // The one that is cut off gives up by itself.
    assert!(ranks.next_line(3).contains("nothing moved for 2s"));
}
