//! What every transport must do, done by members that share a segment in one process.

#![cfg(not(loom))]

use std::thread;
use std::time::{Duration, Instant};

use tutti_shm::{Host, Options, Shm};
use tutti_transport::handshake::Secret;
use tutti_transport::{Peer, Transport, board_tests, conformance_tests};

conformance_tests!(group);
board_tests!(group);

fn group(n: usize) -> Vec<Box<dyn Transport>> {
    let peers: Vec<_> = (0..n as u32).map(Peer).collect();
    let secret = Secret::from_bytes([1; 32]);
    let deadline = Instant::now() + Duration::from_secs(60);
    let host = Host::create(&peers, Peer(0), &Options::default()).unwrap();
    let name = host.name().to_owned();
    thread::scope(|scope| {
        let join = |&me| {
            let (name, peers, secret) = (&name, &peers, &secret);
            scope.spawn(move || Shm::join(name, peers, me, Peer(0), secret, 1, deadline).unwrap())
        };
        let others: Vec<_> = peers[1..].iter().map(join).collect();
        let leader = host.serve(&secret, 1, deadline).unwrap();
        let others = others.into_iter().map(|thread| thread.join().unwrap());
        [leader].into_iter().chain(others).map(|member| Box::new(member) as _).collect()
    })
}
