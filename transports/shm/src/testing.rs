//! Groups of members in one process.

use std::thread;
use std::time::{Duration, Instant};

use tutti_transport::Peer;
use tutti_transport::handshake::Secret;

use crate::{Host, Options, Shm};

pub(crate) const SESSION: u64 = 7;

pub(crate) fn secret() -> Secret {
    Secret::from_bytes([9; 32])
}

/// Longer than any test takes.
pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// `n` members, numbered from 0.
pub(crate) fn group(n: u32, options: &Options) -> Vec<Shm> {
    let peers: Vec<_> = (0..n).map(Peer).collect();
    let host = Host::create(&peers, Peer(0), options).unwrap();
    let name = host.name().to_owned();
    thread::scope(|scope| {
        let join = |&me| {
            let (name, peers) = (&name, &peers);
            scope.spawn(move || {
                Shm::join(name, peers, me, Peer(0), &secret(), SESSION, soon()).unwrap()
            })
        };
        let others: Vec<_> = peers[1..].iter().map(join).collect();
        let mut all = vec![host.serve(&secret(), SESSION, soon()).unwrap()];
        all.extend(others.into_iter().map(|thread| thread.join().unwrap()));
        all
    })
}

/// Two members.
pub(crate) fn pair() -> (Shm, Shm) {
    let mut both = group(2, &Options::default());
    let second = both.pop().unwrap();
    (both.pop().unwrap(), second)
}
