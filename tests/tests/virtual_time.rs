//! The real executor over hundreds of ranks on a virtual clock.

use tutti::{Communicator, Config, Reduction};
use tutti_tests::virtual_time::{Cluster, Links};
use tutti_topo::fabric::{Fabric, Inside, RankReport};
use tutti_topo::plan::Overrides;
use tutti_topo::schedule::{Algorithm, Collective};

/// Hosts with an outgoing and an incoming port of 1 GB/s and 20 µs; 8 GB/s and 1 µs inside.
const LINKS: Links = Links { across: (1.0, 20_000), inside: (8.0, 1_000) };

fn cluster(host_of: &[u32], algo: &str, seed: u64, jitter: f64) -> Cluster {
    let report = |host: &u32| RankReport {
        host: format!("host {host}"),
        numa_node: 0,
        cores: 64.0,
        inside: Inside::SharedMemory,
    };
    let fabric = Fabric::discovered(&host_of.iter().map(report).collect::<Vec<_>>());
    let config = Config { algo: Overrides::parse(algo).unwrap(), ..Config::default() };
    Cluster::new(&fabric, host_of, LINKS, seed, jitter, &config)
}

/// Ranks `0..size`, `per_host` to a host in turn.
fn blocks(size: u32, per_host: u32) -> Vec<u32> {
    (0..size).map(|rank| rank / per_host).collect()
}

fn check(cluster: &Cluster, count: usize) -> u64 {
    let size = cluster.comms.len() as i64;
    let input = |comm: &Communicator| {
        (0..count as i64).map(|i| i * 1000 + i64::from(comm.rank().0)).collect()
    };
    let (results, nanoseconds) =
        cluster.run(|comm| comm.start_all_reduce(input(comm), Reduction::Sum));
    let want: Vec<i64> =
        (0..count as i64).map(|i| i * 1000 * size + size * (size - 1) / 2).collect();
    assert!(results.into_iter().all(|result| result.unwrap() == want));
    nanoseconds
}

#[test]
fn every_algorithm_is_right_for_hundreds_of_ranks() {
    for algorithm in Algorithm::all_for(Collective::AllReduce) {
        // Every message is an event at which all ranks are polled: fewer ranks where there are
        // many messages.
        let size = match algorithm {
            algorithm if algorithm.is_fused() => continue,
            Algorithm::Flat => 64,
            Algorithm::Ring => 128,
            _ => 256,
        };
        let algo = format!("all_reduce:{}", algorithm.name());
        check(&cluster(&blocks(size, 8), &algo, 1, 0.3), 1027);
    }
}

#[test]
fn the_planner_s_own_choice_is_right_for_odd_groups() {
    for (size, counts) in [(67, &[1, 700, 40_000][..]), (127, &[1, 700]), (301, &[1])] {
        let uneven: Vec<u32> = (0..size).map(|rank| rank * rank % 19).collect();
        for count in counts {
            check(&cluster(&uneven, "", 7, 0.5), *count);
        }
    }
}

#[test]
fn results_and_times_repeat_with_the_seed_and_delays_change_no_bit() {
    let run = |seed, jitter| {
        let cluster = cluster(&blocks(24, 5), "", seed, jitter);
        let input = |comm: &Communicator| {
            (1..5000).map(|i| 1.0 / (i * 24 + comm.rank().0) as f32).collect()
        };
        let (results, time) =
            cluster.run(|comm| comm.start_all_reduce(input(comm), Reduction::Sum));
        let bits = |data: Vec<f32>| data.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        (results.into_iter().map(|result| bits(result.unwrap())).collect::<Vec<_>>(), time)
    };
    let (first, time) = run(1, 0.9);
    assert_eq!((&first, time), (&run(1, 0.9).0, run(1, 0.9).1));
    let other = run(2, 0.9);
    assert_eq!(first, other.0);
    assert_ne!(time, other.1);
}

#[test]
fn ring_moves_the_least_bytes_there_are() {
    let cluster = cluster(&blocks(64, 64), "all_reduce:ring", 0, 0.0);
    let count = 64 * 1024;
    check(&cluster, count);
    let payload = 2 * 63 * count as u64 * 8;
    let fingerprints = 64 * 32;
    assert_eq!(cluster.world.sent_bytes(), payload + fingerprints);
}

#[test]
fn hierarchical_beats_a_ring_through_interleaved_hosts() {
    let host_of: Vec<u32> = (0..32).map(|rank| rank % 4).collect();
    let count = 1 << 18;
    let hierarchical = check(&cluster(&host_of, "all_reduce:hierarchical", 0, 0.0), count);
    let doubling = check(&cluster(&host_of, "all_reduce:recursive_doubling", 0, 0.0), count);
    assert!(hierarchical < doubling, "{hierarchical} ns against {doubling} ns");
    // Two port crossings of 3/4 of 2 MiB at 1 GB/s are the least there can be.
    let bound = 2 * 3 * (count as u64 * 8) / 4;
    assert!(hierarchical < bound * 13 / 10, "{hierarchical} ns, bound {bound} ns");
}

#[test]
fn five_hundred_and_twelve_ranks_reduce_and_gather() {
    let cluster = cluster(&blocks(512, 8), "", 3, 0.2);
    check(&cluster, 600);
    let block = |comm: &Communicator| vec![comm.rank().0 as i32, comm.rank().0 as i32 * 7];
    let (results, _) = cluster.run(|comm| comm.start_all_gather(block(comm)));
    let want: Vec<i32> = (0..512).flat_map(|rank| [rank, rank * 7]).collect();
    assert!(results.into_iter().all(|result| result.unwrap() == want));
}
