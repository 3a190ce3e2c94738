//! What the executor costs beside the bytes: the time of one step of eight bytes, and of one poll of an
//! operation that cannot move.
#![allow(missing_docs)]

mod mirror;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use mirror::Mirror;
use tutti::fold::{Kernel, Level};
use tutti::{Collective, Communicator, Config, DataType, Rank, Reduction, Request};
use tutti_topo::fabric::{Fabric, Inside, RankReport};
use tutti_topo::plan::Overrides;
use tutti_transport::{Peer, Transport};

const RANKS: u32 = 64;
/// The algorithms that run on a [`Mirror`], with their collectives.
const CASES: [(&str, Collective); 4] = [
    ("ring", Collective::AllReduce),
    ("halving_doubling", Collective::AllReduce),
    ("ring", Collective::AllGather),
    ("pairwise", Collective::AllToAll),
];

fn rank_zero(collective: Collective, algorithm: &str, room: usize) -> Communicator {
    let report = |_| RankReport {
        host: "host".into(),
        numa_node: 0,
        cores: RANKS.into(),
        inside: Inside::SharedMemory,
    };
    let fabric = Fabric::discovered(&(0..RANKS).map(report).collect::<Vec<_>>());
    let algo = Overrides::parse(&format!("{}:{algorithm}", collective.name()));
    let config = Config { algo: algo.expect("an algorithm"), ..Config::default() };
    Communicator::over(Box::new(Mirror::new(RANKS, room)), Rank(0), RANKS, fabric, config)
}

/// The time of so many steps, in whole operations on eight bytes for each rank.
fn run(comm: &Communicator, collective: Collective, steps: u64) -> Duration {
    let request = Request::new(collective, DataType::F64);
    let (from, mut into) = (vec![1_u8; 8 * RANKS as usize], vec![1; 8 * RANKS as usize]);
    let from = match collective {
        Collective::AllToAll => Some(&from[..]),
        _ => None,
    };
    let plan = comm.plan(collective, into.len() as u64).expect("a plan");
    let each = plan.schedule(collective, Rank(0)).expect("steps").steps.len() as u64;
    let operations = steps.div_ceil(each);
    let start = Instant::now();
    for _ in 0..operations {
        comm.run(&request, from, &mut into).expect("it ends");
    }
    start.elapsed().mul_f64(steps as f64 / (operations * each) as f64)
}

fn step(c: &mut Criterion) {
    let mut group = c.benchmark_group("executor step");
    for (algorithm, collective) in CASES {
        let comm = rank_zero(collective, algorithm, 1 << 16);
        let name = format!("{} {algorithm}", collective.name());
        group.bench_function(name, |b| b.iter_custom(|steps| run(&comm, collective, steps)));
    }
    group.finish();
}

/// What a step of a ring takes without an executor: half a send, half a receive that folds.
fn bytes(c: &mut Criterion) {
    let (mut mirror, next, prev) = (Mirror::new(RANKS, 1 << 16), Peer(1), Peer(RANKS - 1));
    let kernel = Kernel::new(DataType::F64, Reduction::Sum, RANKS, Level::detect());
    let pair = |mirror: &mut dyn Transport, data: &mut [u8]| {
        let sent = mirror.send(next, data).expect("it has room");
        let arrived = mirror.peek(prev).expect("it is open");
        kernel.fold(data, arrived);
        mirror.consume(prev, sent);
    };
    let mut data = [1; 8];
    c.bench_function("executor step/its bytes alone", |b| {
        b.iter_custom(|steps| {
            let start = Instant::now();
            (0..steps.div_ceil(2)).for_each(|_| pair(black_box(&mut mirror), &mut data));
            start.elapsed()
        });
    });
}

fn idle(c: &mut Criterion) {
    let mut group = c.benchmark_group("executor idle poll");
    for (algorithm, collective) in CASES {
        let comm = rank_zero(collective, algorithm, 0);
        let request = Request::new(collective, DataType::F64);
        let from = matches!(collective, Collective::AllToAll).then(|| vec![1.0; RANKS as usize]);
        let work = comm.start::<f64>(&request, from, vec![1.0; RANKS as usize]);
        let mut work = work.expect("it starts");
        let name = format!("{} {algorithm}", collective.name());
        group.bench_function(name, |b| b.iter(|| work.test()));
    }
    group.finish();
}

fn short() -> Criterion {
    let short = Criterion::default().sample_size(30).without_plots();
    short.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1))
}

criterion_group! { name = benches; config = short(); targets = bytes, step, idle }
criterion_main!(benches);
