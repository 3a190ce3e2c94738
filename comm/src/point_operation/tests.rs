use tutti_transport::memory::{self, Memory};

use super::*;
use crate::DataType;

/// One rank on the in-memory transport.
struct Member {
    streams: Streams,
    group: Group,
    transport: Memory,
}

/// `n` ranks whose links hold `capacity` bytes.
fn members(n: u32, capacity: usize) -> Vec<Member> {
    let peers: Vec<Peer> = (0..n).map(Peer).collect();
    let member = |(transport, rank)| Member {
        streams: Streams::new(n),
        group: Group { me: Rank(rank), peers: peers.clone() },
        transport,
    };
    memory::group(n as usize, capacity).into_iter().zip(0..).map(member).collect()
}

/// One end of a message with its memory.
struct Own {
    transfer: Transfer,
    data: Vec<u8>,
}

fn message(end: End, tag: u32, len: usize) -> Message {
    Message { end, tag, data_type: DataType::U8, count: len as u64 }
}

fn own(end: End, fill: u8, len: usize) -> Own {
    Own { transfer: Transfer::new(message(end, 0, len)), data: vec![fill; len] }
}

fn to(rank: u32, fill: u8, len: usize) -> Own {
    own(End::To(Rank(rank)), fill, len)
}

fn from(rank: u32, len: usize) -> Own {
    own(End::From(Rank(rank)), 0, len)
}

fn poll(member: &mut Member, all: &mut [Own]) -> Result<bool, (usize, Fault)> {
    let moving = all.iter_mut().map(|Own { transfer, data }| {
        let bytes = if transfer.end().is_send() { Bytes::Out(data) } else { Bytes::In(data) };
        Moving { transfer, bytes }
    });
    let mut moving: Vec<_> = moving.collect();
    member.streams.progress(&mut moving, &member.group, &mut member.transport)
}

fn is_done(all: &[Own]) -> bool {
    all.iter().all(|own| own.transfer.is_done())
}

/// Polls all in turn until nothing moves.
fn settle(members: &mut [Member], all: &mut [Vec<Own>]) {
    loop {
        let polled = members.iter_mut().zip(all.iter_mut());
        let moved: Vec<bool> = polled.map(|(member, own)| poll(member, own).unwrap()).collect();
        if !moved.contains(&true) {
            return;
        }
    }
}

#[test]
fn messages_larger_than_a_link_cross_in_any_order() {
    let mut members = members(2, 64);
    let mut all = vec![
        vec![to(1, 7, 1000), from(1, 999), from(1, 0)],
        vec![to(0, 8, 999), to(0, 0, 0), from(0, 1000)],
    ];
    settle(&mut members, &mut all);
    assert!(all.iter().all(|own| is_done(own)));
    assert_eq!(all[0][1].data, [8; 999]);
    assert_eq!(all[1][2].data, [7; 1000]);
}

#[test]
fn messages_of_one_pair_keep_their_order() {
    let mut members = members(2, 4096);
    let sends = (1..=5).map(|n| to(1, n, 10 * usize::from(n))).collect();
    let receives = (1..=5).map(|n| from(0, 10 * n)).collect();
    let mut all = vec![sends, receives];
    settle(&mut members, &mut all);
    for (own, n) in all[1].iter().zip(1..) {
        assert_eq!(own.data, vec![n; 10 * usize::from(n)]);
    }
}

#[test]
fn a_message_to_oneself_is_copied() {
    let mut members = members(1, 4096);
    let mut all = vec![vec![from(0, 9), to(0, 3, 9), to(0, 4, 0), from(0, 0)]];
    settle(&mut members, &mut all);
    assert!(is_done(&all[0]));
    assert_eq!(all[0][0].data, [3; 9]);
}

fn any(len: usize) -> Own {
    own(End::FromAny, 0, len)
}

#[test]
fn a_receive_from_any_gives_each_rank_its_turn() {
    let mut members = members(3, 4096);
    let mut all = [
        (0..4).map(|_| any(1)).collect(),
        vec![to(0, 1, 1), to(0, 1, 1)],
        vec![to(0, 2, 1), to(0, 2, 1)],
    ];
    let (receiver, senders) = members.split_at_mut(1);
    settle(senders, &mut all[1..]);
    settle(receiver, &mut all[..1]);
    let came: Vec<u8> = all[0].iter().map(|own| own.data[0]).collect();
    assert_eq!(came, [1, 2, 1, 2]);
    let sources: Vec<_> = all[0].iter().map(|own| own.transfer.end()).collect();
    assert_eq!(sources, [1, 2, 1, 2].map(|rank| End::From(Rank(rank))));
}

#[test]
fn a_receive_from_any_leaves_to_earlier_receives_what_is_theirs() {
    let mut members = members(3, 4096);
    let mut all =
        [vec![from(1, 1), any(1), from(1, 1)], vec![to(0, 1, 1), to(0, 11, 1)], vec![to(0, 2, 1)]];
    let (receiver, senders) = members.split_at_mut(1);
    settle(&mut senders[1..], &mut all[2..]);
    settle(receiver, &mut all[..1]);
    assert_eq!(all[0][1].data, [2], "rank 1's first message is not for any");
    settle(senders, &mut all[1..]);
    settle(receiver, &mut all[..1]);
    assert_eq!((all[0][0].data[0], all[0][2].data[0]), (1, 11));
}

#[test]
fn a_receive_from_any_passes_over_collectives_and_closed_ranks() {
    let mut members = members(4, 4096);
    let call = crate::Call {
        collective: tutti_topo::schedule::Collective::Barrier,
        data_type: DataType::U8,
        reduction: crate::Reduction::Sum,
        count: 1,
        counts: 0,
    };
    let header = Fingerprint::new(&call, 0, 0);
    members[2].transport.send(Peer(0), header.as_bytes()).unwrap();
    let mut sent = vec![to(0, 3, 5)];
    poll(&mut members[3], &mut sent).unwrap();
    members.remove(1);
    let mut got = vec![any(5)];
    while poll(&mut members[0], &mut got).unwrap() {}
    assert_eq!(got[0].data, [3; 5]);
    assert_eq!(members[0].transport.peek(Peer(2)).unwrap(), header.as_bytes());
    members.truncate(1);
    members[0].transport.consume(Peer(2), Fingerprint::LEN);
    let (_, fault) = poll(&mut members[0], &mut [any(5)]).unwrap_err();
    assert!(matches!(fault, Fault::Transport { rank: Some(_), .. }), "nobody is left: {fault:?}");
}

#[test]
fn what_differs_is_a_mismatch_that_shows_both() {
    let differ = [
        message(End::From(Rank(0)), 1, 8),
        message(End::From(Rank(0)), 0, 7),
        Message { data_type: DataType::I8, ..message(End::From(Rank(0)), 0, 8) },
    ];
    for expected in differ {
        let mut members = members(2, 4096);
        poll(&mut members[0], &mut [to(1, 0, 8)]).unwrap();
        let mut own = [from(0, 8), Own { transfer: Transfer::new(expected), data: vec![0; 8] }];
        own[0].transfer.conclude();
        let (index, fault) = poll(&mut members[1], &mut own).unwrap_err();
        let Fault::Mismatch { rank: Rank(0), theirs: Some(theirs) } = fault else {
            panic!("{fault:?}")
        };
        assert_eq!(index, 1);
        assert_eq!(theirs.message(), Some(message(End::To(Rank(1)), 0, 8)));
        assert_eq!(own[1].transfer.print().message(), Some(expected));
    }
}

#[test]
fn messages_are_counted_per_pair() {
    let mut members = members(3, 4096);
    let mut all = vec![vec![to(1, 0, 1), to(2, 0, 1), to(2, 0, 1)], Vec::new(), Vec::new()];
    settle(&mut members, &mut all);
    let numbers: Vec<u64> = all[0].iter().map(|own| own.transfer.print().sequence()).collect();
    assert_eq!(numbers, [0, 0, 1]);
}
