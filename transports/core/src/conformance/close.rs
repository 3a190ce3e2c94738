use super::Make;
use super::drive::{Flow, Member, Round, drive, drive_flows, greet};
use crate::{Error, Peer};

/// All that a member took before it was dropped arrives; then `peek` says that it is gone.
pub fn close_keeps_what_was_taken(make: Make<'_>) {
    let mut members = make(2);
    greet(&mut members);
    let mut flow = Flow::endless(1, 0);
    flow.fill(&mut members);
    drop(members.pop());
    read_to_close(&mut members, flow);
}

/// As [`close_keeps_what_was_taken`], for a member that has bytes which it never looked at.
pub fn close_with_unread_bytes_keeps_what_was_taken(make: Make<'_>) {
    let mut members = make(2);
    greet(&mut members);
    assert_eq!(members[0].send(Peer(1), &[1; 3000]).expect("send"), 3000);
    let mut flow = Flow::endless(1, 0);
    flow.fill(&mut members);
    drop(members.pop());
    read_to_close(&mut members, flow);
}

/// `peek` and `recv` of a peer that is gone fail, and name it.
pub fn close_ends_a_peek(make: Make<'_>) {
    let mut members = make(2);
    greet(&mut members);
    drop(members.pop());
    drive(&mut members, |members| Round::of(false, ended(Peer(1), members[0].peek(Peer(1)))));
    assert!(ended(Peer(1), members[0].peek(Peer(1))), "closed once, open again");
    assert!(ended(Peer(1), members[0].recv(Peer(1), &mut [0; 8])), "closed to peek, open to recv");
}

/// `send` to a peer that is gone fails after a while, and names it.
pub fn close_ends_a_send(make: Make<'_>) {
    let mut members = make(2);
    greet(&mut members);
    drop(members.pop());
    drive(&mut members, |members| {
        Round::of(false, ended(Peer(1), members[0].send(Peer(1), &[0; 64])))
    });
}

/// The links among those who stay are as before.
pub fn close_leaves_the_others_alone(make: Make<'_>) {
    let mut members = make(3);
    greet(&mut members);
    drop(members.pop());
    drive_flows(&mut members, &mut [Flow::new(0, 1, 300_000), Flow::new(1, 0, 300_000)]);
    drive(&mut members, |members| Round::of(false, ended(Peer(2), members[0].peek(Peer(2)))));
    drive_flows(&mut members, &mut [Flow::new(0, 1, 300_000), Flow::new(1, 0, 300_000)]);
}

/// Reads the flow from peer 1, that is gone, to the end of what was taken.
fn read_to_close(members: &mut [Member], mut flow: Flow) {
    flow.len = flow.sent;
    drive(members, |members| {
        let moved = flow.take_all(&mut members[0]);
        Round::of(moved, flow.is_done())
    });
    drive(members, |members| Round::of(false, ended(Peer(1), members[0].peek(Peer(1)))));
}

/// Whether `gone` is known to be gone.
fn ended<T>(gone: Peer, outcome: Result<T, Error>) -> bool {
    match outcome {
        Ok(_) => false,
        Err(Error::Closed { peer }) => {
            assert_eq!(peer, gone, "another peer is named");
            true
        }
        Err(other) => panic!("closed peers are Error::Closed, not {other:?}"),
    }
}
