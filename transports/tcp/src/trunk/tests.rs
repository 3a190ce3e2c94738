use std::net::Ipv4Addr;
use std::time::Duration;

use tutti_transport::handshake::Secret;
use tutti_transport::{Error, Peer, Transport};

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
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
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

/// A park that lasts this long was not woken.
const FOREVER: Duration = Duration::from_secs(3600);

/// Sends all of `bytes`.
fn send(channel: &mut Channel, to: Peer, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let taken = channel.send(to, bytes).unwrap();
        bytes = &bytes[taken..];
        if taken == 0 {
            channel.park(&[], FOREVER).unwrap();
        }
    }
}

/// Receives so many bytes, which the peer has numbered from 0.
fn receive(channel: &mut Channel, from: Peer, len: usize) {
    let mut got = 0;
    while got < len {
        let shown = channel.peek(from).unwrap();
        assert!(shown.iter().enumerate().all(|(i, byte)| *byte == (got + i) as u8));
        let more = shown.len();
        channel.consume(from, more);
        got += more;
        if more == 0 {
            channel.park(&[], FOREVER).unwrap();
        }
    }
    assert_eq!(got, len);
}

/// Both ends say a word on both channels.
fn meet(channels: [&mut [Channel]; 2]) {
    for channels in channels {
        let [low, high] = channels else { panic!("two ends") };
        std::thread::scope(|scope| {
            for (channel, peer) in [(low, Peer(1)), (high, Peer(0))] {
                scope.spawn(move || {
                    send(channel, peer, &[0]);
                    receive(channel, peer, 1);
                });
            }
        });
    }
}

#[test]
fn a_channel_that_nobody_reads_holds_up_no_other() {
    let trunks = trunks(2);
    let (mut stuck, mut free) = (channels(&trunks, 1), channels(&trunks, 2));
    meet([&mut stuck, &mut free]);
    let bytes = vec![0; 8 << 20];
    for (end, peer) in stuck.iter_mut().zip([Peer(1), Peer(0)]) {
        while end.send(peer, &bytes).unwrap() > 0 {}
    }
    let numbered: Vec<u8> = (0..4 << 20).map(|i| i as u8).collect();
    let [low, high] = &mut free[..] else { panic!("two ends") };
    std::thread::scope(|scope| {
        scope.spawn(|| send(low, Peer(1), &numbered));
        receive(high, Peer(0), numbered.len());
    });
}

#[test]
fn threads_that_park_wake_each_other_whoever_reads() {
    let trunks = trunks(2);
    let mut ids = 1..=6;
    std::thread::scope(|scope| {
        for id in &mut ids {
            for (me, mut channel) in (0..).zip(channels(&trunks, id)) {
                scope.spawn(move || {
                    let (peer, len) = (Peer(1 - me), [1, 3000, 100_000][id as usize % 3]);
                    let numbered: Vec<u8> = (0..len).map(|i| i as u8).collect();
                    for _ in 0..100 {
                        if me == 0 {
                            send(&mut channel, peer, &numbered);
                            receive(&mut channel, peer, len);
                        } else {
                            receive(&mut channel, peer, len);
                            send(&mut channel, peer, &numbered);
                        }
                    }
                    channel
                });
            }
        }
    });
}

#[test]
fn a_closed_channel_is_closed_alone() {
    let trunks = trunks(2);
    let (mut closing, mut open) = (channels(&trunks, 1), channels(&trunks, 2));
    meet([&mut closing, &mut open]);
    drop(closing.pop());
    let ended = loop {
        match closing[0].peek(Peer(1)) {
            Ok(_) => closing[0].park(&[], FOREVER).unwrap(),
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, Error::Closed { peer: Peer(1) }), "{ended}");
    assert!(closing[0].send(Peer(1), b"!").is_err());
    meet([&mut open, &mut channels(&trunks, 3)]);
}

#[test]
fn a_group_has_its_own_numbers() {
    let trunks = trunks(3);
    let members = vec![Peer(2), Peer(0)];
    let [mut two, mut zero] = [2, 0].map(|me: usize| trunks[me].channel(9, members.clone()));
    std::thread::scope(|scope| {
        scope.spawn(|| send(&mut two, Peer(1), &[0, 1, 2]));
        receive(&mut zero, Peer(0), 3);
    });
    let outside = zero.send(Peer(2), b"!").unwrap_err().to_string();
    assert!(outside.contains("there are 2 peers"), "{outside}");
}
