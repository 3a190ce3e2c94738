//! Every collective over every transport on real communicators, against a plain loop.

use std::time::Duration;

use tutti::{Communicator, Config, DataType, Rank, Reduction, TransportChoice};
use tutti_tests::{ranks, reference};
use tutti_topo::plan::Overrides;
use tutti_topo::schedule::{Algorithm, Collective};

fn config(transport: TransportChoice) -> Config {
    Config { transport, deadline: Duration::from_secs(60), ..Config::default() }
}

/// Ranks that a `TUTTI_HOST_ID` spreads over hosts: shared memory inside, TCP across.
fn spread(rank: Rank, hosts: u32) -> Config {
    Config { host_id: Some(format!("host {}", rank.0 % hosts)), ..config(TransportChoice::Auto) }
}

fn force(config: Config, collective: Collective, algorithm: Algorithm) -> Config {
    let algo = format!("{}:{}", collective.name(), algorithm.name());
    Config { algo: Overrides::parse(&algo).expect("the table's own names"), ..config }
}

fn check(comm: &Communicator, count: u64, data_type: DataType, reduction: Reduction) {
    let (rank, ranks) = (comm.rank().0, comm.size());
    let mut data = reference::input(rank, count, ranks, data_type, reduction);
    comm.all_reduce_bytes(&mut data, data_type, reduction).unwrap();
    let want = reference::output(count, ranks, data_type, reduction);
    let verdict = reference::compare(&data, &want, data_type);
    assert_eq!(verdict, Ok(()), "rank {rank} of {ranks}, {count} {data_type} by {reduction}");
}

const COUNTS: [u64; 8] = [0, 1, 2, 3, 17, 1000, 4099, 100_003];

fn all_types_and_reductions(comm: &Communicator) {
    for data_type in DataType::ALL {
        for reduction in Reduction::ALL {
            for count in COUNTS {
                check(comm, count, data_type, reduction);
            }
        }
    }
}

#[test]
fn all_reduce_is_right_over_shared_memory_for_every_type_and_reduction() {
    for size in [1, 2, 3, 4, 5, 7] {
        ranks::run(size, |_| config(TransportChoice::Shm), |comm| all_types_and_reductions(&comm));
    }
}

#[test]
fn all_reduce_is_right_over_tcp_for_every_type_and_reduction() {
    for size in [1, 2, 3, 4, 5, 7] {
        ranks::run(size, |_| config(TransportChoice::Tcp), |comm| all_types_and_reductions(&comm));
    }
}

#[test]
fn all_reduce_is_right_over_both_at_once_for_every_type_and_reduction() {
    for (size, hosts) in [(2, 2), (3, 2), (5, 2), (7, 3)] {
        let kinds = ranks::run(
            size,
            |rank| spread(rank, hosts),
            |comm| {
                all_types_and_reductions(&comm);
                assert_eq!(comm.hosts(), hosts);
                comm.transport_name()
            },
        );
        assert!(size == 2 || kinds.contains(&"mixed"), "{kinds:?}");
    }
}

/// Each algorithm by name, forced, over all transports, with the plan asked which it was.
fn forced(collective: Collective, algorithm: Algorithm) {
    let body = |comm: Communicator| {
        for count in COUNTS {
            let bytes = count * 4;
            let board_is_too_small = algorithm == Algorithm::Fused && bytes > 16 << 10;
            let plan = comm.plan(collective, bytes);
            if board_is_too_small {
                assert!(plan.is_err());
                continue;
            }
            assert_eq!(plan.unwrap().algorithm, algorithm);
            match collective {
                Collective::AllReduce => check(&comm, count, DataType::F32, Reduction::Sum),
                Collective::Barrier => comm.barrier().unwrap(),
                Collective::Broadcast { root } => {
                    let mut data =
                        reference::input(comm.rank().0, count, 4, DataType::F32, Reduction::Sum);
                    comm.broadcast_bytes(&mut data, DataType::F32, root).unwrap();
                    let want = reference::input(root.0, count, 4, DataType::F32, Reduction::Sum);
                    assert_eq!(reference::compare(&data, &want, DataType::F32), Ok(()));
                }
            }
        }
    };
    for size in [2, 3, 4, 6] {
        if size <= root(collective) {
            continue;
        }
        let config = |transport| force(config(transport), collective, algorithm);
        ranks::run(size, |_| config(TransportChoice::Shm), body);
        if algorithm != Algorithm::Fused {
            ranks::run(size, |_| config(TransportChoice::Tcp), body);
            ranks::run(size, |rank| force(spread(rank, 2), collective, algorithm), body);
        }
    }
}

fn root(collective: Collective) -> u32 {
    if let Collective::Broadcast { root } = collective { root.0 } else { 0 }
}

macro_rules! by_name {
    ($($name:ident: $collective:expr, $algorithm:ident;)*) => {$(
        #[test]
        fn $name() {
            forced($collective, Algorithm::$algorithm);
        }
    )*};
}

by_name! {
    all_reduce_by_fused_is_right: Collective::AllReduce, Fused;
    all_reduce_by_flat_is_right: Collective::AllReduce, Flat;
    all_reduce_by_ring_is_right: Collective::AllReduce, Ring;
    all_reduce_by_recursive_doubling_is_right: Collective::AllReduce, RecursiveDoubling;
    all_reduce_by_halving_doubling_is_right: Collective::AllReduce, HalvingDoubling;
    all_reduce_by_double_binary_tree_is_right: Collective::AllReduce, DoubleBinaryTree;
    all_reduce_by_hierarchical_is_right: Collective::AllReduce, Hierarchical;
    broadcast_by_fused_is_right: Collective::Broadcast { root: Rank(1) }, Fused;
    broadcast_by_flat_is_right: Collective::Broadcast { root: Rank(0) }, Flat;
    broadcast_by_binomial_is_right: Collective::Broadcast { root: Rank(1) }, Binomial;
    broadcast_by_chain_is_right: Collective::Broadcast { root: Rank(2) }, Chain;
}

#[test]
fn every_algorithm_of_the_table_is_forced_by_a_test_above() {
    let source = include_str!("collectives.rs");
    for collective in [Collective::AllReduce, Collective::Broadcast { root: Rank(0) }] {
        for algorithm in Algorithm::all_for(collective) {
            let named = format!("{}_by_{}_is_right", collective.name(), algorithm.name());
            assert!(source.contains(&named), "no test for {named}");
        }
    }
}

#[test]
fn sixteen_ranks_agree_on_every_bit_over_every_transport() {
    for transport in [TransportChoice::Shm, TransportChoice::Tcp] {
        let bits = ranks::run(
            16,
            |_| config(transport),
            |comm| {
                // Sums that depend on the order of folding.
                let mut data: Vec<f32> =
                    (0..50_000).map(|i| 1.0 / (i * 16 + comm.rank().0 + 1) as f32).collect();
                comm.all_reduce(&mut data, Reduction::Sum).unwrap();
                data.iter().map(|value| value.to_bits()).collect::<Vec<_>>()
            },
        );
        assert!(bits.iter().all(|other| *other == bits[0]));
    }
}

#[test]
fn a_repeated_run_gives_the_same_bits() {
    let run = || {
        ranks::run(
            5,
            |_| config(TransportChoice::Auto),
            |comm| {
                let mut data: Vec<f32> =
                    (0..70_000).map(|i| 1.0 / (i * 5 + comm.rank().0 + 1) as f32).collect();
                comm.all_reduce(&mut data, Reduction::Sum).unwrap();
                data.iter().map(|value| value.to_bits()).collect::<Vec<_>>()
            },
        )
    };
    let first = run();
    assert!((0..5).all(|_| run() == first));
}

#[test]
fn nan_on_any_rank_reaches_all_ranks_with_the_same_bits() {
    for reduction in
        [Reduction::Sum, Reduction::Prod, Reduction::Min, Reduction::Max, Reduction::Avg]
    {
        for holder in 0..3 {
            let bits = ranks::run(
                3,
                |_| config(TransportChoice::Auto),
                |comm| {
                    let mut data: Vec<f32> = vec![1.0; 70];
                    if comm.rank().0 == holder {
                        (0..70)
                            .step_by(7)
                            .for_each(|i| data[i] = f32::from_bits(0x7fc0_1234 + i as u32));
                    }
                    comm.all_reduce(&mut data, reduction).unwrap();
                    data.iter().map(|value| value.to_bits()).collect::<Vec<_>>()
                },
            );
            assert!(bits.iter().all(|other| *other == bits[0]));
            assert!((0..70).all(|i| f32::from_bits(bits[0][i]).is_nan() == i.is_multiple_of(7)));
        }
    }
}

#[test]
fn integer_sums_wrap() {
    ranks::run(
        3,
        |_| config(TransportChoice::Auto),
        |comm| {
            let mut data = vec![100_i8; 40];
            comm.all_reduce(&mut data, Reduction::Sum).unwrap();
            assert_eq!(data, vec![44; 40]);
        },
    );
}

#[test]
fn out_of_place_leaves_the_input_and_refuses_unequal_lengths() {
    ranks::run(
        2,
        |_| config(TransportChoice::Auto),
        |comm| {
            let from = vec![3_i32; 10];
            let mut into = vec![0; 10];
            let error = comm.all_reduce_into(&from, &mut into[..9], Reduction::Sum).unwrap_err();
            assert!(error.to_string().contains("10 elements into 9"), "{error}");
            comm.all_reduce_into(&from, &mut into, Reduction::Sum).unwrap();
            assert_eq!((from, into), (vec![3; 10], vec![6; 10]));
        },
    );
}

#[test]
fn unaligned_memory_is_right() {
    ranks::run(
        3,
        |_| config(TransportChoice::Auto),
        |comm| {
            for offset in 1..8 {
                let input = reference::input(comm.rank().0, 5000, 3, DataType::F64, Reduction::Sum);
                let mut memory = vec![0xaa; offset];
                memory.extend(&input);
                comm.all_reduce_bytes(&mut memory[offset..], DataType::F64, Reduction::Sum)
                    .unwrap();
                let want = reference::output(5000, 3, DataType::F64, Reduction::Sum);
                assert_eq!(reference::compare(&memory[offset..], &want, DataType::F64), Ok(()));
                assert!(memory[..offset].iter().all(|byte| *byte == 0xaa));
            }
        },
    );
}

#[test]
fn works_run_in_order_and_give_their_buffers_back() {
    ranks::run(
        3,
        |_| config(TransportChoice::Auto),
        |comm| {
            let ones = comm.start_all_reduce(vec![1_i64; 100_000], Reduction::Sum).unwrap();
            let root = comm.start_broadcast(vec![comm.rank().0 as i32; 10], Rank(2)).unwrap();
            let dropped = comm.start_all_reduce(vec![1.0_f32; 50], Reduction::Sum).unwrap();
            let mut last = comm.start_all_reduce(vec![2_i64; 10], Reduction::Prod).unwrap();
            drop(dropped);
            while !last.test() {}
            assert_eq!(last.wait().unwrap(), vec![8; 10]);
            assert_eq!(root.wait().unwrap(), vec![2; 10]);
            assert_eq!(ones.wait().unwrap(), vec![3; 100_000]);
            comm.barrier().unwrap();
        },
    );
}

#[test]
fn a_work_that_is_not_done_can_be_waited_for_again() {
    let first = std::sync::Barrier::new(2);
    ranks::run(
        2,
        |_| config(TransportChoice::Auto),
        |comm| {
            if comm.rank() == Rank(0) {
                let mut work = comm.start_all_reduce(vec![1; 8], Reduction::Sum).unwrap();
                assert!(!work.wait_for(Duration::from_millis(1)));
                first.wait();
                assert!(work.wait_for(Duration::from_secs(60)));
                assert_eq!(work.wait().unwrap(), vec![2; 8]);
            } else {
                first.wait();
                comm.all_reduce(&mut [1; 8], Reduction::Sum).unwrap();
            }
        },
    );
}

#[test]
fn two_threads_may_call_on_one_communicator() {
    ranks::run(
        2,
        |_| config(TransportChoice::Auto),
        |comm| {
            let total = std::sync::atomic::AtomicI64::new(0);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        for _ in 0..500 {
                            let mut data = [1_i64];
                            comm.all_reduce(&mut data, Reduction::Sum).unwrap();
                            total.fetch_add(data[0], std::sync::atomic::Ordering::Relaxed);
                        }
                    });
                }
            });
            assert_eq!(total.into_inner(), 2000);
        },
    );
}

#[test]
fn bad_arguments_are_refused_and_the_communicator_goes_on() {
    ranks::run(
        2,
        |_| config(TransportChoice::Auto),
        |comm| {
            let error = comm.broadcast(&mut [1.0_f32], Rank(2)).unwrap_err().to_string();
            assert!(error.contains("root 2 is outside a group of 2"), "{error}");
            let error = comm
                .all_reduce_bytes(&mut [0; 7], DataType::F32, Reduction::Sum)
                .unwrap_err()
                .to_string();
            assert!(error.contains("7 bytes are no whole number of fp32"), "{error}");
            check(&comm, 10, DataType::F32, Reduction::Sum);
        },
    );
}

#[test]
fn a_rank_alone_needs_nobody() {
    let comm = Communicator::from_env(Config::default()).unwrap();
    let mut data = [5, 6];
    comm.all_reduce(&mut data, Reduction::Avg).unwrap();
    comm.broadcast(&mut data, Rank(0)).unwrap();
    comm.barrier().unwrap();
    assert_eq!((data, comm.size(), comm.transport_name()), ([5, 6], 1, "self"));
}

#[test]
fn one_rendezvous_serves_one_communicator_after_another() {
    let rendezvous = tutti::Rendezvous::bind(ranks::loopback()).unwrap();
    let id = rendezvous.id();
    std::thread::scope(|scope| {
        for rank in 0..3 {
            let id = &id;
            scope.spawn(move || {
                for _ in 0..5 {
                    let config = config(TransportChoice::Auto);
                    let comm = Communicator::connect(id, Rank(rank), 3, config).unwrap();
                    check(&comm, 1000, DataType::I32, Reduction::Sum);
                }
            });
        }
    });
}
