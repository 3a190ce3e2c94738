use super::Make;
use super::drive::{Member, Round, drive};
use crate::{Board, Peer};

/// Round after round, every member reads the message and tag of every member, its own included.
pub fn board_shows_every_message_of_the_round(make: Make<'_>) {
    for n in [1, 2, 3, 5] {
        let mut members = make(n);
        for round in 0..20 {
            post_all(&mut members, |me| (round * 100 + me as u64, vec![me as u8 + 1; 24]));
            read_all(&mut members, |from| (round * 100 + from as u64, vec![from as u8 + 1; 24]));
        }
    }
}

/// Messages of no byte, and of as many as the limit allows, are shown as they are.
pub fn board_takes_messages_of_any_length(make: Make<'_>) {
    let mut members = make(3);
    let limit = board(&mut members[0]).limit();
    for len in [0, 1, limit / 2, limit - 1, limit, 0, limit] {
        let message = |from: usize| (7, (0..len).map(|i| (i * 7 + from) as u8).collect());
        post_all(&mut members, message);
        read_all(&mut members, message);
    }
}

/// A member that is ahead waits for those who may still read its message of two rounds before;
/// they still can.
pub fn board_holds_a_post_back_until_its_slot_is_free(make: Make<'_>) {
    let mut members = make(2);
    post_all(&mut members, |me| (1, vec![me as u8; 8]));
    assert!(board(&mut members[0]).post(2, b"second").expect("post"));
    assert_eq!(board(&mut members[0]).read(Peer(1)), None, "a message of the round before");
    assert!(!board(&mut members[0]).post(3, b"third").expect("post"), "posted over a message");
    assert_eq!(board(&mut members[1]).read(Peer(0)), Some((1, &[0; 8][..])));

    post(&mut members, 1, 2, b"also second");
    assert_eq!(board(&mut members[1]).read(Peer(0)), Some((2, &b"second"[..])));
    post(&mut members, 0, 3, b"third");
    assert_eq!(board(&mut members[1]).read(Peer(0)), Some((2, &b"second"[..])));
}

fn post_all(members: &mut [Member], message: impl Fn(usize) -> (u64, Vec<u8>)) {
    for me in 0..members.len() {
        let (tag, bytes) = message(me);
        post(members, me, tag, &bytes);
    }
}

fn post(members: &mut [Member], me: usize, tag: u64, bytes: &[u8]) {
    let put = |members: &mut [Member]| board(&mut members[me]).post(tag, bytes).expect("post");
    drive(members, |members| Round::of(false, put(members)));
}

fn read_all(members: &mut [Member], message: impl Fn(usize) -> (u64, Vec<u8>)) {
    let n = members.len();
    for (to, from) in (0..n * n).map(|i| (i / n, i % n)) {
        drive(members, |members| {
            let shown = board(&mut members[to]).read(Peer(from as u32));
            let (tag, bytes) = message(from);
            if let Some(shown) = shown {
                assert_eq!(shown, (tag, &bytes[..]), "{from}'s message as {to} reads it");
            }
            Round::of(false, shown.is_some())
        });
    }
}

fn board(member: &mut Member) -> &mut dyn Board {
    member.board().expect("a board")
}
