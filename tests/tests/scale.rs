//! Many processes on one host.

use tutti_tests::processes::Processes;

/// The program whose processes are ranks.
const RANK: &str = env!("CARGO_BIN_EXE_rank");

const RANKS: u32 = 64;

/// What a rank has open before any traffic, whatever the size of the group: the three standard
/// streams, the line to the hub, the listener, and the means to wait for them.
const FIXED: usize = 16;

/// All ranks join, reduce, and leave; what each has open before and after, and its peers in the plan.
fn descriptors(transport: &str) -> Vec<[usize; 3]> {
    let set = |_| vec![("TUTTI_TRANSPORT", transport.to_string())];
    let mut ranks = Processes::start(RANK, RANKS, &["sockets"], set);
    let said = (0..RANKS as usize).map(|rank| {
        let lines: Vec<String> = ranks.lines(rank).map(Result::unwrap).collect();
        assert_eq!(lines.len(), 2, "rank {rank}: {lines:?}");
        let numbers: Vec<usize> = lines[0].split(' ').map(|n| n.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    });
    let said = said.collect();
    for rank in 0..RANKS as usize {
        assert_eq!(ranks.exit_code(rank), Some(0), "rank {rank}");
    }
    said
}

#[test]
fn ranks_of_a_large_group_open_sockets_only_to_the_peers_of_their_plan() {
    for (rank, [before, after, peers]) in descriptors("tcp").into_iter().enumerate() {
        assert!(before <= FIXED, "rank {rank} has {before} open before any traffic");
        assert!(after <= before + peers, "rank {rank}: {before}, then {after} for {peers} peers");
        assert!(peers <= 8, "rank {rank} has {peers} peers: few bytes go over few edges");
    }
}

#[test]
fn shared_memory_takes_no_socket_per_peer() {
    for (rank, [before, after, _]) in descriptors("shm").into_iter().enumerate() {
        assert!(before <= FIXED, "rank {rank} has {before} open before any traffic");
        assert_eq!(after, before, "rank {rank}");
    }
}
