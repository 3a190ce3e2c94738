//! Folding against memcpy: bytes of result per second, per type and reduction, for buffers that
//! fit a core's second-level cache (256 KiB) and for some that fit no cache (64 MiB).
#![allow(missing_docs)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tutti::fold::{Kernel, Level};
use tutti::{DataType, Reduction};

fn fold(c: &mut Criterion) {
    for (size, len) in [("256KiB", 256 << 10), ("64MiB", 64 << 20)] {
        let mut group = c.benchmark_group(format!("fold {size}"));
        group.throughput(Throughput::Bytes(len as u64));
        let (mut into, from) = (vec![1_u8; len], vec![1_u8; len]);
        group.bench_function("memcpy", |b| b.iter(|| into.copy_from_slice(&from)));
        for data_type in DataType::ALL {
            for reduction in [Reduction::Sum, Reduction::Max] {
                let kernel = Kernel::new(data_type, reduction, 2, Level::detect());
                let name = format!("{data_type} {reduction}");
                group.bench_function(name, |b| b.iter(|| kernel.fold(&mut into, &from)));
            }
        }
        group.finish();
    }
}

criterion_group!(benches, fold);
criterion_main!(benches);
