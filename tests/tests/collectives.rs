//! Every collective over every transport on real communicators, against a plain loop.

use std::time::Duration;

use tutti::{Bool, Communicator, Config, DataType, Rank, Reduction, Request, TransportChoice};
use tutti_tests::deal::every_deal;
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
    let request = Request::new(Collective::AllReduce, data_type).by(reduction);
    comm.run(&request, None, &mut data).unwrap();
    let want = reference::output(count, ranks, data_type, reduction);
    let verdict = reference::compare(&data, &want, data_type);
    assert_eq!(verdict, Ok(()), "rank {rank} of {ranks}, {count} {data_type} by {reduction}");
}

const COUNTS: [u64; 7] = [0, 1, 2, 3, 17, 1000, 4099];
/// Many chunks: by one reduction only, which moves as many bytes as the others.
const LARGE: u64 = 100_003;

fn all_types_and_reductions(comm: &Communicator) {
    for (data_type, reduction) in reference::types_and_reductions() {
        for count in COUNTS {
            check(comm, count, data_type, reduction);
        }
    }
    for data_type in DataType::ALL {
        check(comm, LARGE, data_type, Reduction::Sum);
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
            let blocks = if collective.has_blocks() { comm.size() } else { 1 };
            let bytes = count * 4 * u64::from(blocks);
            assert_eq!(comm.plan(collective, bytes).unwrap().algorithm, algorithm);
            let deals = every_deal(comm.size(), root(collective), count);
            for deal in deals.iter().filter(|deal| deal.collective == collective) {
                assert_eq!(deal.check(&comm), Ok(()));
            }
        }
    };
    for size in [2, 3, 4, 6] {
        if size <= root(collective) {
            continue;
        }
        let config = |transport| force(config(transport), collective, algorithm);
        ranks::run(size, |_| config(TransportChoice::Shm), body);
        if algorithm.is_fused() {
            // A board on which messages are so short that all but the least take many rounds.
            let small = Config { shm_board_bytes: 4096, ..config(TransportChoice::Shm) };
            ranks::run(size, |_| small.clone(), body);
        } else {
            ranks::run(size, |_| config(TransportChoice::Tcp), body);
            ranks::run(size, |rank| force(spread(rank, 2), collective, algorithm), body);
        }
    }
}

fn root(collective: Collective) -> u32 {
    collective.root().map_or(0, |root| root.0)
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
    all_reduce_by_fused_shares_is_right: Collective::AllReduce, FusedShares;
    reduce_by_fused_is_right: Collective::Reduce { root: Rank(1) }, Fused;
    all_gather_by_fused_is_right: Collective::AllGather, Fused;
    reduce_scatter_by_fused_is_right: Collective::ReduceScatter, Fused;
    gather_by_fused_is_right: Collective::Gather { root: Rank(1) }, Fused;
    scatter_by_fused_is_right: Collective::Scatter { root: Rank(1) }, Fused;
    all_to_all_by_fused_is_right: Collective::AllToAll, Fused;
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
    broadcast_by_hierarchical_is_right: Collective::Broadcast { root: Rank(1) }, Hierarchical;
    reduce_by_hierarchical_is_right: Collective::Reduce { root: Rank(1) }, Hierarchical;
    all_gather_by_hierarchical_is_right: Collective::AllGather, Hierarchical;
    reduce_scatter_by_hierarchical_is_right: Collective::ReduceScatter, Hierarchical;
    gather_by_hierarchical_is_right: Collective::Gather { root: Rank(1) }, Hierarchical;
    scatter_by_hierarchical_is_right: Collective::Scatter { root: Rank(1) }, Hierarchical;
    all_to_all_by_hierarchical_is_right: Collective::AllToAll, Hierarchical;
    reduce_by_flat_is_right: Collective::Reduce { root: Rank(1) }, Flat;
    reduce_by_binomial_is_right: Collective::Reduce { root: Rank(0) }, Binomial;
    reduce_by_chain_is_right: Collective::Reduce { root: Rank(2) }, Chain;
    all_gather_by_flat_is_right: Collective::AllGather, Flat;
    all_gather_by_ring_is_right: Collective::AllGather, Ring;
    all_gather_by_halving_doubling_is_right: Collective::AllGather, HalvingDoubling;
    reduce_scatter_by_flat_is_right: Collective::ReduceScatter, Flat;
    reduce_scatter_by_ring_is_right: Collective::ReduceScatter, Ring;
    reduce_scatter_by_halving_doubling_is_right: Collective::ReduceScatter, HalvingDoubling;
    gather_by_flat_is_right: Collective::Gather { root: Rank(2) }, Flat;
    gather_by_binomial_is_right: Collective::Gather { root: Rank(1) }, Binomial;
    scatter_by_flat_is_right: Collective::Scatter { root: Rank(0) }, Flat;
    scatter_by_binomial_is_right: Collective::Scatter { root: Rank(1) }, Binomial;
    all_to_all_by_pairwise_is_right: Collective::AllToAll, Pairwise;
    all_to_all_by_bruck_is_right: Collective::AllToAll, Bruck;
    all_to_all_v_by_pairwise_is_right: Collective::AllToAllV, Pairwise;
    barrier_by_fused_is_right: Collective::Barrier, Fused;
    barrier_by_flat_is_right: Collective::Barrier, Flat;
    barrier_by_ring_is_right: Collective::Barrier, Ring;
    barrier_by_recursive_doubling_is_right: Collective::Barrier, RecursiveDoubling;
    barrier_by_halving_doubling_is_right: Collective::Barrier, HalvingDoubling;
    barrier_by_double_binary_tree_is_right: Collective::Barrier, DoubleBinaryTree;
    barrier_by_hierarchical_is_right: Collective::Barrier, Hierarchical;
}

#[test]
fn every_algorithm_of_the_table_is_forced_by_a_test_above() {
    let source = include_str!("collectives.rs");
    for collective in Collective::KINDS {
        for algorithm in Algorithm::all_for(collective) {
            let named = format!("{}_by_{}_is_right", collective.name(), algorithm.name());
            assert!(source.contains(&named), "no test for {named}");
        }
    }
}

fn every_form_of_every_collective(comm: &Communicator) {
    for root in [0, comm.size() - 1] {
        for block in [0, 1, 50, 5000] {
            for deal in every_deal(comm.size(), root, block) {
                assert_eq!(deal.check(comm), Ok(()));
            }
        }
    }
}

#[test]
fn every_collective_is_right_in_every_form_over_shared_memory() {
    for size in [1, 2, 3, 5, 8] {
        let config = |_| config(TransportChoice::Shm);
        ranks::run(size, config, |comm| every_form_of_every_collective(&comm));
    }
}

#[test]
fn every_collective_is_right_in_every_form_over_tcp() {
    for size in [2, 3, 5, 8] {
        let config = |_| config(TransportChoice::Tcp);
        ranks::run(size, config, |comm| every_form_of_every_collective(&comm));
    }
}

#[test]
fn every_collective_is_right_in_every_form_over_both_at_once() {
    for (size, hosts) in [(3, 2), (5, 2), (7, 3)] {
        let config = |rank| spread(rank, hosts);
        ranks::run(size, config, |comm| every_form_of_every_collective(&comm));
    }
}

#[test]
fn typed_calls_move_what_they_say() {
    ranks::run(
        3,
        |_| config(TransportChoice::Auto),
        |comm| {
            let (me, root) = (comm.rank().0 as i32, Rank(1));
            let is_root = comm.rank() == root;
            let mut blocks = [0; 3];
            comm.all_gather_into(&[me], &mut blocks).unwrap();
            assert_eq!(blocks, [0, 1, 2]);
            let mut own = [0];
            comm.reduce_scatter_into(&[me, 10 * me, 100], &mut own, Reduction::Sum).unwrap();
            assert_eq!(own, [[3], [30], [300]][me as usize]);
            let mut gathered = vec![0; if is_root { 6 } else { 0 }];
            comm.gather_v_into(&vec![me; 1 + me as usize], &mut gathered, &[1, 2, 3], root)
                .unwrap();
            assert!(!is_root || gathered == [0, 1, 1, 2, 2, 2]);
            let mut part = vec![0; 1 + me as usize];
            comm.scatter_v_into(&gathered, &mut part, &[1, 2, 3], root).unwrap();
            assert_eq!(part, vec![me; 1 + me as usize]);
            let mut swapped = [me, me + 10, me + 20];
            comm.all_to_all(&mut swapped).unwrap();
            assert_eq!(swapped, [10 * me, 10 * me + 1, 10 * me + 2]);
            let mut reduced = [0.0_f64; 2];
            comm.reduce_into(&[1.0, 2.0], &mut reduced, Reduction::Avg, root).unwrap();
            assert!(!is_root || reduced == [1.0, 2.0]);
        },
    );
}

#[test]
fn started_calls_give_the_results_of_the_blocking_ones() {
    ranks::run(
        3,
        |_| config(TransportChoice::Auto),
        |comm| {
            let (me, root) = (comm.rank().0 as i64, Rank(2));
            let is_root = comm.rank() == root;
            let gather = comm.start_all_gather(vec![me; 2]).unwrap();
            let listed = comm.start_all_gather_v(vec![me; me as usize], &[0, 1, 2]).unwrap();
            let fold = comm.start_reduce_scatter(vec![1, 2, 3], Reduction::Prod).unwrap();
            let folds =
                comm.start_reduce_scatter_v(vec![me; 4], &[1, 0, 3], Reduction::Max).unwrap();
            let to_root = comm.start_gather(vec![me], root).unwrap();
            let to_root_v = comm.start_gather_v(vec![me; me as usize], &[0, 1, 2], root).unwrap();
            let from_root = if is_root { vec![7, 8, 9] } else { Vec::new() };
            let scatter = comm.start_scatter(from_root.clone(), 1, root).unwrap();
            let scatter_v = comm.start_scatter_v(from_root, &[0, 2, 1], root).unwrap();
            let swap = comm.start_all_to_all(vec![me; 3]).unwrap();
            let (to, of) = (vec![me as usize; 3], [0, 1, 2]);
            let swap_v = comm.start_all_to_all_v(vec![me; 3 * me as usize], &to, &of).unwrap();
            let reduce = comm.start_reduce(vec![me], Reduction::Sum, root).unwrap();
            comm.start_barrier().unwrap().wait().unwrap();
            assert_eq!(gather.wait().unwrap(), [0, 0, 1, 1, 2, 2]);
            assert_eq!(listed.wait().unwrap(), [1, 2, 2]);
            assert_eq!(fold.wait().unwrap(), [[1], [8], [27]][me as usize]);
            assert_eq!(folds.wait().unwrap(), [&[2][..], &[], &[2, 2, 2]][me as usize]);
            let at_root = |data: &[i64]| if is_root { data.to_vec() } else { Vec::new() };
            assert_eq!(to_root.wait().unwrap(), at_root(&[0, 1, 2]));
            assert_eq!(to_root_v.wait().unwrap(), at_root(&[1, 2, 2]));
            assert_eq!(scatter.wait().unwrap(), [[7], [8], [9]][me as usize]);
            assert_eq!(scatter_v.wait().unwrap(), [&[][..], &[7, 8], &[9]][me as usize]);
            assert_eq!(swap.wait().unwrap(), [0, 1, 2]);
            assert_eq!(swap_v.wait().unwrap(), [1, 2, 2]);
            let reduced = reduce.wait().unwrap();
            assert!(!is_root || reduced == [3]);
        },
    );
}

#[test]
fn counts_that_differ_between_two_ranks_of_an_all_to_all_are_named() {
    let errors = ranks::run(
        2,
        |_| config(TransportChoice::Auto),
        |comm| {
            let (me, mut into) = (comm.rank().index(), [0; 5]);
            let (to, of) = ([[1, 2], [3, 1]][me], [[1, 4], [1, 1]][me]);
            let from = vec![0; to[0] + to[1]];
            let into = &mut into[..of[0] + of[1]];
            comm.all_to_all_v_into(&from, &to, into, &of).unwrap_err().to_string()
        },
    );
    for error in errors {
        let named = |counts: [u32; 2]| {
            counts.iter().all(|count| error.contains(&format!("all_to_all_v of {count} int32")))
        };
        assert!(named([2, 1]) || named([3, 4]), "{error}");
    }
}

#[test]
fn a_result_that_no_memory_holds_is_refused() {
    let comm = Communicator::from_env(Config::default()).unwrap();
    let work = comm.start_all_to_all_v(vec![0_u8], &[1], &[isize::MAX as usize + 1]);
    let error = work.err().expect("an error");
    assert!(error.to_string().contains("no memory for a result"), "{error}");
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
            assert!(error.to_string().contains("result has 9 elements, expected 10"), "{error}");
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
                comm.run(
                    &Request::new(Collective::AllReduce, DataType::F64),
                    None,
                    &mut memory[offset..],
                )
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
                .run(&Request::new(Collective::AllReduce, DataType::F32), None, &mut [0; 7])
                .unwrap_err()
                .to_string();
            assert!(error.contains("7 bytes is no whole number of fp32"), "{error}");
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

#[test]
fn a_premultiplied_sum_multiplies_each_rank_by_its_own_scale() {
    // Fused, by steps over shared memory, and over TCP.
    for (transport, count) in
        [(TransportChoice::Shm, 5), (TransportChoice::Shm, 100_000), (TransportChoice::Tcp, 1000)]
    {
        let run = |comm: Communicator| {
            let scale = f64::from(comm.rank().0 + 1);
            let mut sum = vec![2.0; count];
            comm.all_reduce_premultiplied(&mut sum, scale).unwrap();
            assert_eq!(sum, vec![12.0; count]);
            let mut wrapped = vec![100_u8; count];
            comm.all_reduce_premultiplied(&mut wrapped, comm.rank().0 as u8 + 1).unwrap();
            assert_eq!(wrapped, vec![88; count]);
            let mut reduced = vec![2.0; count];
            comm.reduce_premultiplied(&mut reduced, scale, Rank(1)).unwrap();
            assert!(comm.rank() != Rank(1) || reduced == vec![12.0; count]);
            let mut blocks = vec![2.0; 3 * count];
            comm.reduce_scatter_premultiplied(&mut blocks, scale).unwrap();
            let own = comm.rank().0 as usize * count;
            assert_eq!(blocks[own..own + count], vec![12.0; count]);
            let bools = comm.all_reduce_premultiplied(&mut [Bool(1)], Bool(1)).unwrap_err();
            assert!(bools.to_string().contains("premul_sum does not apply to bool"), "{bools}");
        };
        ranks::run(3, |_| config(transport), run);
    }
}
