//! Real communicators: ranks as threads of this process, over a real hub and real transports.

use std::net::{Ipv4Addr, SocketAddr};

use tutti::{Communicator, Config, Error, Rank, Rendezvous};

/// An address on the loopback with a port that the system chooses.
pub fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// The name by which errors call this host.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Runs `body` on `size` ranks, a thread each, and returns what each returned, by rank.
pub fn run<R: Send>(
    size: u32,
    config: impl Fn(Rank) -> Config + Sync,
    body: impl Fn(Communicator) -> R + Sync,
) -> Vec<R> {
    try_run(size, config, |comm| body(comm.expect("the communicator starts")))
}

/// As [`run`], also for ranks that do not come to a communicator.
pub fn try_run<R: Send>(
    size: u32,
    config: impl Fn(Rank) -> Config + Sync,
    body: impl Fn(Result<Communicator, Error>) -> R + Sync,
) -> Vec<R> {
    let rendezvous = Rendezvous::bind(loopback()).expect("the loopback has a free port");
    let id = rendezvous.id();
    std::thread::scope(|scope| {
        let start = |rank| {
            let (id, config, body) = (&id, &config, &body);
            scope.spawn(move || body(Communicator::connect(id, rank, size, config(rank))))
        };
        let threads: Vec<_> = (0..size).map(Rank).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank panicked")).collect()
    })
}
