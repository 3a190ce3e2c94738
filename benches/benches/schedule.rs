//! How long one rank takes to make its schedule.
#![allow(missing_docs)]

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use tutti_topo::Rank;
use tutti_topo::schedule::{Algorithm, Collective, Shape};

fn schedule(c: &mut Criterion) {
    for size in [8, 64, 1024] {
        let mut group = c.benchmark_group(format!("schedule of {size} ranks"));
        let shape = Shape { depth: 8, ..Shape::flat(size) };
        for algorithm in Algorithm::all_for(Collective::AllReduce) {
            if algorithm.schedule(Collective::AllReduce, Rank(0), &shape).is_some() {
                group.bench_function(algorithm.name(), |b| {
                    b.iter(|| algorithm.schedule(Collective::AllReduce, Rank(size / 2), &shape));
                });
            }
        }
        group.finish();
    }
}

fn short() -> Criterion {
    let short = Criterion::default().sample_size(20).without_plots();
    short.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_millis(500))
}

criterion_group! { name = benches; config = short(); targets = schedule }
criterion_main!(benches);
