//! Folding against memcpy: bytes of result per second, per type and reduction, for buffers that
//! fit a core's second-level cache (256 KiB), and per type for some that fit no cache (64 MiB).
#![allow(missing_docs)]

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tutti::fold::{Kernel, Level};
use tutti::{DataType, Reduction};

fn fold(c: &mut Criterion, size: &str, len: usize, reductions: &[Reduction]) {
    let mut group = c.benchmark_group(format!("fold {size}"));
    group.throughput(Throughput::Bytes(len as u64));
    let (mut into, from) = (vec![1_u8; len], vec![1_u8; len]);
    group.bench_function("memcpy", |b| b.iter(|| into.copy_from_slice(&from)));
    for data_type in DataType::ALL {
        for &reduction in reductions {
            if reduction.applies_to(data_type).is_err() {
                continue;
            }
            let kernel = Kernel::new(data_type, reduction, 2, Level::detect());
            let name = format!("{data_type} {reduction}");
            group.bench_function(name, |b| b.iter(|| kernel.fold(&mut into, &from)));
        }
    }
    group.finish();
}

fn in_cache(c: &mut Criterion) {
    // A premul_sum folds as a sum does.
    let all = Reduction::ALL.into_iter().filter(|&reduction| reduction != Reduction::PremulSum);
    fold(c, "256KiB", 256 << 10, &all.collect::<Vec<_>>());
}

fn in_memory(c: &mut Criterion) {
    fold(c, "64MiB", 64 << 20, &[Reduction::Sum]);
}

/// There are many: each is short.
fn short() -> Criterion {
    let short = Criterion::default().sample_size(10).without_plots();
    short.warm_up_time(Duration::from_millis(50)).measurement_time(Duration::from_millis(100))
}

criterion_group! { name = benches; config = short(); targets = in_cache, in_memory }
criterion_main!(benches);
