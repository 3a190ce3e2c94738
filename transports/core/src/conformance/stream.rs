use super::Make;
use super::drive::{Flow, Round, drive, drive_flows, greet};
use crate::Peer;

/// Messages of no byte, of odd sizes, around page and buffer sizes, and of MiBs arrive as sent.
pub fn bytes_arrive_whole_and_in_order(make: Make<'_>) {
    let mut members = make(2);
    for len in [0, 1, 3, 64, 4095, 4096, 4097, 0, 65_537, 1 << 20, (3 << 20) + 1] {
        assert_eq!(members[0].send(Peer(1), &[]).expect("send"), 0);
        for (from, to) in [(0, 1), (1, 0)] {
            drive_flows(&mut members, &mut [Flow::new(from, to, len)]);
        }
        assert!(members[1].peek(Peer(0)).expect("peek").is_empty(), "bytes nobody sent");
    }
}

/// What `send_joined` takes of a head and of what is behind it arrives in that order.
pub fn a_head_arrives_before_what_is_behind_it(make: Make<'_>) {
    let mut members = make(2);
    for (head, len) in [(0, 1), (1, 1), (40, 40), (40, 1000), (40, 3_000_000), (5000, 9000)] {
        let mut flow = Flow::new(0, 1, len);
        drive(&mut members, |members| {
            let sent = flow.send_joined(&mut members[0], head);
            let came = flow.take_all(&mut members[1]);
            Round::of(sent || came, flow.is_done())
        });
    }
}

/// `peek` shows more and more, in one piece, up to 4 KiB at least, wherever the stream stands.
pub fn peek_grows_to_four_kibibytes(make: Make<'_>) {
    let mut members = make(2);
    for shift in [0, 1, 1000, 4095, 10_007, 65_536, 100_003, 262_143] {
        drive_flows(&mut members, &mut [Flow::new(0, 1, shift)]);
        let mut flow = Flow::new(0, 1, 4096);
        let mut shown = 0;
        drive(&mut members, |members| {
            let sent = flow.send(&mut members[0]);
            let arrived = members[1].peek(Peer(0)).expect("peek");
            assert!(arrived.len() >= shown, "{} bytes where {shown} were shown", arrived.len());
            let more = arrived.len() > shown;
            shown = arrived.len();
            flow.got = 0;
            flow.check(arrived);
            Round::of(sent || more, flow.is_done())
        });
        members[1].consume(Peer(0), 4096);
        assert!(members[1].peek(Peer(0)).expect("peek").is_empty(), "consumed bytes came back");
    }
}

/// After `consume` of a part, `peek` shows what follows it.
pub fn consume_drops_a_part(make: Make<'_>) {
    let mut members = make(2);
    let mut flow = Flow::new(0, 1, 300_000);
    let mut parts = [0, 1, 7, 100, 4000].into_iter().cycle();
    drive(&mut members, |members| {
        let sent = flow.send(&mut members[0]);
        let arrived = members[1].peek(Peer(0)).expect("peek");
        let part = arrived.len().min(parts.next().expect("endless"));
        flow.check(&arrived[..part]);
        members[1].consume(Peer(0), part);
        Round::of(sent || part > 0, flow.is_done())
    });
}

/// `recv`, into much room or little, goes on where `peek` and `consume` stopped, and back.
pub fn recv_mixes_with_peek(make: Make<'_>) {
    let mut members = make(2);
    let mut flow = Flow::new(0, 1, 5_000_000);
    let mut sizes = [1, 13, 5000, 0, 40_000, 600_000].into_iter().cycle();
    drive(&mut members, |members| {
        let sent = flow.send(&mut members[0]);
        let mut dst = vec![0; sizes.next().expect("endless")];
        let received = members[1].recv(Peer(0), &mut dst).expect("recv");
        flow.check(&dst[..received]);
        let arrived = members[1].peek(Peer(0)).expect("peek");
        let part = arrived.len().min(1001);
        flow.check(&arrived[..part]);
        members[1].consume(Peer(0), part);
        Round::of(sent || received + part > 0, flow.is_done())
    });
}

/// [`all_pairs_exchange`] among three members.
pub fn all_pairs_of_three_exchange(make: Make<'_>) {
    all_pairs_exchange(make, 3, 1_000_000);
}

/// [`all_pairs_exchange`] among five members.
pub fn all_pairs_of_five_exchange(make: Make<'_>) {
    all_pairs_exchange(make, 5, 300_000);
}

/// Both directions of all pairs of `n` members carry `len` bytes at the same time.
pub fn all_pairs_exchange(make: Make<'_>, n: usize, len: u64) {
    let pairs = (0..n * n).map(|i| (i / n, i % n)).filter(|(from, to)| from != to);
    let mut flows: Vec<_> = pairs.map(|(from, to)| Flow::new(from, to, len)).collect();
    drive_flows(&mut make(n), &mut flows);
}

/// Two members that send each other more than the link holds do not wait for each other.
pub fn exchange_of_large_messages_goes_through(make: Make<'_>) {
    all_pairs_exchange(make, 2, 16 << 20);
}

/// A link that nobody reads fills up, `send` then takes nothing, and goes on once it is read.
pub fn send_takes_nothing_when_full_and_goes_on(make: Make<'_>) {
    let mut members = make(2);
    greet(&mut members);
    let mut flow = Flow::endless(0, 1);
    flow.fill(&mut members);
    flow.len = flow.sent + 1_000_000;
    drive_flows(&mut members, &mut [flow]);
}

/// `kind` has a name for every peer.
pub fn kind_is_named(make: Make<'_>) {
    for peer in [1, 2] {
        assert!(!make(3)[0].kind(Peer(peer)).is_empty());
    }
}
