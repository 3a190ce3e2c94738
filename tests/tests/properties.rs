//! Random groups, types, reductions, sizes, algorithms and buffers over the in-memory transport,
//! whose streams hold down to 32 bytes (a fingerprint); against a plain loop. proptest prints the case to repeat.

use proptest::prelude::*;
use tutti::{Communicator, Config, DataType, Rank, Reduction, Request};
use tutti_tests::deal::{Deal, Sizes};
use tutti_tests::reference;
use tutti_topo::fabric::{Fabric, Inside, RankReport};
use tutti_topo::plan::Overrides;
use tutti_topo::schedule::{Algorithm, Collective};
use tutti_transport::memory;

#[derive(Clone, Debug)]
struct Case {
    host_of: Vec<u32>,
    data_type: DataType,
    reduction: Reduction,
    count: u64,
    algorithm: Algorithm,
    capacity: usize,
    offset: usize,
}

fn types_and_reductions() -> impl Strategy<Value = (DataType, Reduction)> {
    prop::sample::select(reference::types_and_reductions().collect::<Vec<_>>())
}

fn case() -> impl Strategy<Value = Case> {
    let algorithms = Algorithm::all_for(Collective::AllReduce);
    let algorithms = algorithms.iter().copied().filter(|a| !a.is_fused()).collect::<Vec<_>>();
    (
        prop::collection::vec(0_u32..4, 1..=9),
        types_and_reductions(),
        prop_oneof![Just(0), Just(1), 2_u64..20, 20_u64..3000],
        prop::sample::select(algorithms),
        prop_oneof![32_usize..200, Just(4096), Just(1 << 20)],
        0_usize..16,
    )
        .prop_map(|(host_of, (data_type, reduction), count, algorithm, capacity, offset)| {
            Case { host_of, data_type, reduction, count, algorithm, capacity, offset }
        })
}

#[derive(Clone, Debug)]
struct DealCase {
    deal: Deal,
    algorithm: Algorithm,
    capacity: usize,
}

fn deal() -> impl Strategy<Value = DealCase> {
    let ranks_and_root = (1_u32..=9).prop_flat_map(|ranks| (Just(ranks), 0..ranks));
    let sizes = prop::collection::vec(prop::collection::vec(0_u64..60, 9), 9);
    let capacity = prop_oneof![32_usize..200, Just(4096)];
    let kind = prop::sample::select(Collective::KINDS.to_vec());
    let form =
        (kind, types_and_reductions(), any::<bool>(), any::<bool>(), any::<prop::sample::Index>());
    (ranks_and_root, sizes, capacity, form).prop_map(|((ranks, root), sizes, capacity, form)| {
        let (kind, (data_type, reduction), in_place, listed, algorithm) = form;
        let collective = kind.with_root(Rank(root));
        let row = |row: &Vec<u64>| row[..ranks as usize].to_vec();
        let sizes = match collective {
            Collective::AllToAllV => {
                let mut pairs: Vec<Vec<u64>> = sizes[..ranks as usize].iter().map(row).collect();
                if in_place {
                    (0..pairs.len()).for_each(|i| (0..i).for_each(|j| pairs[i][j] = pairs[j][i]));
                }
                Sizes::Pairs(pairs)
            }
            Collective::AllToAll => Sizes::Even(sizes[0][0]),
            _ if collective.has_blocks() && listed => Sizes::Listed(row(&sizes[0])),
            _ => Sizes::Even(sizes[0][0]),
        };
        let algorithms = Algorithm::all_for(collective).iter().copied();
        let algorithms: Vec<_> = algorithms.filter(|a| !a.is_fused()).collect();
        let algorithm = *algorithm.get(&algorithms);
        let deal = Deal { collective, ranks, data_type, reduction, sizes, in_place };
        DealCase { deal, algorithm, capacity }
    })
}

fn fabric(host_of: &[u32]) -> Fabric {
    let report = |host: &u32| RankReport {
        host: format!("host {host}"),
        numa_node: 0,
        cores: 8.0,
        inside: Inside::SharedMemory,
    };
    Fabric::discovered(&host_of.iter().map(report).collect::<Vec<_>>())
}

/// Each rank on a thread, as in life; its buffer lies between guards at any alignment.
fn run(case: &Case, collective: Collective, start: impl Fn(u32) -> Vec<u8> + Sync) -> Vec<Vec<u8>> {
    let size = case.host_of.len() as u32;
    let algo = match collective {
        Collective::AllReduce => format!("all_reduce:{}", case.algorithm.name()),
        _ => String::new(),
    };
    let config = Config { algo: Overrides::parse(&algo).unwrap(), ..Config::default() };
    std::thread::scope(|scope| {
        let ends = memory::group(size as usize, case.capacity).into_iter().zip(0..);
        let rank = |(end, rank)| {
            let (config, start, fabric) = (config.clone(), &start, fabric(&case.host_of));
            scope.spawn(move || {
                let comm = Communicator::over(Box::new(end), Rank(rank), size, fabric, config);
                let data = start(rank);
                let mut memory = vec![0x5a; case.offset + data.len() + 9];
                let inside = case.offset..case.offset + data.len();
                memory[inside.clone()].copy_from_slice(&data);
                let request = Request::new(collective, case.data_type).by(case.reduction);
                comm.run(&request, None, &mut memory[inside.clone()]).unwrap();
                let result = memory.splice(inside, []).collect::<Vec<u8>>();
                assert!(
                    memory.iter().all(|byte| *byte == 0x5a),
                    "bytes outside the buffer were touched"
                );
                result
            })
        };
        let threads: Vec<_> = ends.map(rank).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn all_reduce_equals_a_plain_loop(case in case()) {
        let ranks = case.host_of.len() as u32;
        let Case { count, data_type, reduction, .. } = case;
        let results = run(&case, Collective::AllReduce, |rank| {
            reference::input(rank, count, ranks, data_type, reduction)
        });
        let want = reference::output(count, ranks, data_type, reduction);
        for result in &results {
            prop_assert_eq!(reference::compare(result, &want, data_type), Ok(()));
        }
    }

    #[test]
    fn any_bits_come_out_alike_on_all_ranks(case in case(), seed in any::<u64>()) {
        // Infinities, NaNs of any payload, denormals, wrapping integers: whatever the bits are.
        let len = case.count as usize * case.data_type.size();
        let results = run(&case, Collective::AllReduce, |rank| {
            let mut state = seed ^ u64::from(rank).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let byte = |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            };
            (0..len).map(byte).collect()
        });
        prop_assert!(results.iter().all(|result| *result == results[0]));
    }

    #[test]
    fn every_collective_equals_a_plain_loop(case in deal()) {
        let DealCase { deal, capacity, algorithm } = case;
        let algo = format!("{}:{}", deal.collective.name(), algorithm.name());
        let config = Config { algo: Overrides::parse(&algo).unwrap(), ..Config::default() };
        let verdicts: Vec<Result<(), String>> = std::thread::scope(|scope| {
            let ends = memory::group(deal.ranks as usize, capacity).into_iter().zip(0..);
            let rank = |(end, rank)| {
                let (config, deal) = (config.clone(), &deal);
                let hosts: Vec<u32> = (0..deal.ranks).map(|rank| rank % 3).collect();
                scope.spawn(move || {
                    let fabric = fabric(&hosts);
                    let comm =
                        Communicator::over(Box::new(end), Rank(rank), deal.ranks, fabric, config);
                    deal.check(&comm)
                })
            };
            let threads: Vec<_> = ends.map(rank).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for verdict in verdicts {
            prop_assert_eq!(verdict, Ok(()));
        }
    }

    #[test]
    fn broadcast_equals_the_root(case in case(), root in any::<prop::sample::Index>()) {
        let ranks = case.host_of.len() as u32;
        let root = root.index(ranks as usize) as u32;
        let input = |rank| reference::input(rank, case.count, ranks, case.data_type, Reduction::Sum);
        let results = run(&case, Collective::Broadcast { root: Rank(root) }, input);
        prop_assert!(results.iter().all(|result| *result == input(root)));
    }
}
