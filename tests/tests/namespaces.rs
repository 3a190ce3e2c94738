//! Ranks on several hosts, which are network namespaces. They need root and iproute2:
//! `cargo test -p tutti-tests --test namespaces -- --ignored`.

use tutti_tests::namespaces::{Hosts, Ranks};

/// The program whose processes are ranks.
const RANK: &str = env!("CARGO_BIN_EXE_rank");

#[test]
#[ignore = "needs root and iproute2"]
fn ranks_on_three_hosts_reduce_with_every_algorithm() {
    let hosts = Hosts::new("reduce", 3);
    for algo in ["", "all_reduce:hierarchical", "all_reduce:ring", "all_reduce:halving_doubling"] {
        let mut ranks = Ranks::start(&hosts, RANK, &[0, 1, 0, 2, 0, 1], &["once"], |_| {
            vec![("TUTTI_ALGO", algo.into())]
        });
        for rank in 0..6 {
            assert_eq!(ranks.next_line(rank), "ok", "rank {rank}, {algo}");
        }
    }
}

#[test]
#[ignore = "needs root and iproute2"]
fn a_rank_killed_on_another_host_is_named_by_all() {
    let hosts = Hosts::new("kill", 2);
    let mut ranks =
        Ranks::start(&hosts, RANK, &[0, 1, 1, 0], &["reduce-forever", "16"], |_| vec![]);
    let ready: Vec<String> = (0..4).map(|rank| ranks.next_line(rank)).collect();
    ranks.kill(2);
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
    let set = |_| vec![("TUTTI_DEADLINE", "2".into())];
    let mut ranks = Ranks::start(&hosts, RANK, &[0, 0, 1, 2], &["reduce-forever", "16"], set);
    for rank in 0..4 {
        ranks.next_line(rank);
    }
    hosts.cut(2);
    for rank in 0..3 {
        let said = ranks.rest(rank);
        assert!(said.contains("nothing moved for 2s"), "rank {rank}: {said}");
        let silent = said.lines().find(|line| line.contains("does not answer")).expect(&said);
        assert!(silent.trim_start().starts_with("rank 3 "), "{said}");
    }
    // The one that is cut off gives up by itself.
    assert!(ranks.next_line(3).contains("nothing moved for 2s"));
}
