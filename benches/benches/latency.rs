//! Small collectives of two ranks, threads of one process, over shared memory: the time of one call
//! when both ranks call at once.
#![allow(missing_docs)]

use std::sync::mpsc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use tutti::{Communicator, Config, Error, Rank, Reduction, Rendezvous, TransportChoice};

type Call = dyn Fn(&Communicator, &mut [f32]) -> Result<(), Error> + Sync;

/// Both ranks of a communicator, and what brought them together.
fn pair() -> (Rendezvous, [Communicator; 2]) {
    let rendezvous = Rendezvous::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let id = rendezvous.id();
    let config = Config { transport: TransportChoice::Shm, ..Config::default() };
    let join = |rank| Communicator::connect(&id, Rank(rank), 2, config.clone()).expect("it starts");
    let ranks = std::thread::scope(|scope| {
        let other = scope.spawn(|| join(1));
        [join(0), other.join().expect("no panic")]
    });
    (rendezvous, ranks)
}

fn bench(c: &mut Criterion, name: &str, bytes: usize, call: &Call) {
    let (_rendezvous, [one, two]) = pair();
    let run = |comm: &Communicator, times: u64| {
        let mut data = vec![1.0; bytes / 4];
        let start = Instant::now();
        (0..times).for_each(|_| call(comm, &mut data).expect("it ends"));
        start.elapsed()
    };
    std::thread::scope(|scope| {
        let (orders, taken) = mpsc::channel::<u64>();
        scope.spawn(move || {
            for times in taken {
                run(&two, times);
            }
        });
        c.bench_function(name, |b| {
            b.iter_custom(|times| {
                orders.send(times).expect("the other rank listens");
                run(&one, times)
            });
        });
        drop(orders);
    });
}

fn latency(c: &mut Criterion) {
    bench(c, "latency barrier", 0, &|comm, _| comm.barrier());
    for (name, bytes) in [("8B", 8), ("512B", 512), ("4KiB", 4 << 10), ("16KiB", 16 << 10)] {
        let name = format!("latency all_reduce {name}");
        bench(c, &name, bytes, &|comm, data| comm.all_reduce(data, Reduction::Max));
    }
}

fn short() -> Criterion {
    let short = Criterion::default().sample_size(30).without_plots();
    short.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(1))
}

criterion_group! { name = benches; config = short(); targets = latency }
criterion_main!(benches);
