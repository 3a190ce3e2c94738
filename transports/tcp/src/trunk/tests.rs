use std::net::{IpAddr, Ipv4Addr};

use tutti_transport::handshake::Secret;
use tutti_transport::{Peer, Transport};

use super::{Channel, Trunk};
use crate::{Listener, Options};

tutti_transport::conformance_tests!(make);

fn make(n: usize) -> Vec<Box<dyn Transport>> {
    let trunks = trunks(n);
    channels(&trunks, 7).into_iter().map(|channel| Box::new(channel) as _).collect()
}

/// Trunks of so many processes that know each other.
fn trunks(n: usize) -> Vec<Trunk> {
    let trunk = |me| {
        let listener = Listener::bind(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let secret = Secret::from_bytes([1; 32]);
        Trunk::new(listener, Peer(me), n, secret, 11, Options::default()).unwrap()
    };
    let trunks: Vec<_> = (0..n as u32).map(trunk).collect();
    for trunk in &trunks {
        let addresses = (0..).zip(&trunks);
        addresses.for_each(|(peer, other)| trunk.know(Peer(peer), other.local_addr()));
    }
    trunks
}

/// The ends of a channel of all.
fn channels(trunks: &[Trunk], id: u64) -> Vec<Channel> {
    let all: Vec<_> = (0..trunks.len() as u32).map(Peer).collect();
    trunks.iter().map(|trunk| trunk.channel(id, all.clone())).collect()
}
