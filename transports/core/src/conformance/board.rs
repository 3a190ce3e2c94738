use super::Make;
use super::drive::{self, Member, drive};
use crate::{Board, Peer, Posted, Round};

/// Round after round, every member reads the message and tag of every member, its own included.
pub fn board_shows_every_message_of_the_round(make: Make<'_>) {
    for n in [1, 2, 3, 5] {
        let mut members = make(n);
        for round in 0..20 {
            post_all(&mut members, |me| (round * 100, vec![me as u8 + 1; 24]));
            read_all(&mut members, |from| (round * 100, vec![from as u8 + 1; 24]));
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

/// A message in parts is shown as one.
pub fn board_joins_the_parts_of_a_message(make: Make<'_>) {
    let mut members = make(2);
    let parts: [&[u8]; 4] = [b"one", b"", &[7; 90], b"three"];
    assert_eq!(board(&mut members[0]).post(1, &parts).expect("post"), Posted::Yes);
    post(&mut members, 1, 1, b"");
    let whole = parts.concat();
    assert_eq!(board(&mut members[1]).read(Peer(0), Round::Current), Some((1, &whole[..])));
}

/// A member that is ahead waits for those who may still read what it would overwrite; they still
/// can, also after they have posted once more.
pub fn board_holds_a_post_back_until_its_slot_is_free(make: Make<'_>) {
    let mut members = make(2);
    post_all(&mut members, |me| (1, vec![me as u8; 8]));
    for (tag, message) in [(2, b"second"), (3, b"third.")] {
        assert_eq!(board(&mut members[0]).post(tag, &[message]).expect("post"), Posted::Yes);
        assert_eq!(board(&mut members[0]).read(Peer(1), Round::Current), None, "not posted yet");
    }
    let held_back = board(&mut members[0]).post(4, &[b"fourth"]).expect("post");
    assert_eq!(held_back, Posted::NotYet(Peer(1)), "posted over a message");
    let first = Some((1, &[0; 8][..]));
    assert_eq!(board(&mut members[1]).read(Peer(0), Round::Current), first);

    post(&mut members, 1, 2, b"also second");
    assert_eq!(board(&mut members[1]).read(Peer(0), Round::Last), first);
    post(&mut members, 0, 4, b"fourth");
    assert_eq!(board(&mut members[1]).read(Peer(0), Round::Current), Some((2, &b"second"[..])));
    assert_eq!(board(&mut members[1]).read(Peer(0), Round::Last), first);
}

/// Tags that nobody reads are compared two rounds later.
pub fn board_finds_a_tag_that_differs_without_a_read(make: Make<'_>) {
    let mut members = make(2);
    post(&mut members, 0, 1, b"");
    post(&mut members, 1, 9, b"");
    post(&mut members, 0, 2, b"");
    drive(&mut members, |members| {
        let posted = board(&mut members[0]).post(3, &[]).expect("post");
        assert_ne!(posted, Posted::Yes);
        drive::Round::of(false, posted == Posted::Differs(Peer(1)))
    });
}

fn post_all(members: &mut [Member], message: impl Fn(usize) -> (u64, Vec<u8>)) {
    for me in 0..members.len() {
        let (tag, bytes) = message(me);
        post(members, me, tag, &bytes);
    }
}

fn post(members: &mut [Member], me: usize, tag: u64, bytes: &[u8]) {
    let put = |members: &mut [Member]| board(&mut members[me]).post(tag, &[bytes]).expect("post");
    drive(members, |members| drive::Round::of(false, put(members) == Posted::Yes));
}

fn read_all(members: &mut [Member], message: impl Fn(usize) -> (u64, Vec<u8>)) {
    let n = members.len();
    for (to, from) in (0..n * n).map(|i| (i / n, i % n)) {
        drive(members, |members| {
            let shown = board(&mut members[to]).read(Peer(from as u32), Round::Current);
            let (tag, bytes) = message(from);
            if let Some(shown) = shown {
                assert_eq!(shown, (tag, &bytes[..]), "{from}'s message as {to} reads it");
            }
            drive::Round::of(false, shown.is_some())
        });
    }
}

fn board(member: &mut Member) -> &mut dyn Board {
    member.board().expect("a board")
}
