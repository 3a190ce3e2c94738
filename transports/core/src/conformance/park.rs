use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Make;
use super::drive::{Flow, MOMENT, Member, Round, drive, greet};
use crate::Peer;

/// A limit that is reached only where a wake was missed.
const LONG: Duration = Duration::from_secs(60);

/// `park` with nothing to wait for comes back, for no limit and for a short one.
pub fn park_ends_at_its_limit(make: Make<'_>) {
    for n in [1, 2] {
        let mut members = make(n);
        for limit in [Duration::ZERO, Duration::from_nanos(1), MOMENT] {
            members[0].park(&[], limit).expect("park");
        }
    }
}

/// While nothing comes, parking is sleep: few returns in much time.
pub fn park_sleeps_when_nothing_comes(make: Make<'_>) {
    let mut members = make(2);
    greet(&mut members);
    sleeps(&mut members[0], &[]);
}

/// Bytes that the caller leaves where they are do not keep it awake; others still wake it.
pub fn park_sleeps_beside_a_full_buffer(make: Make<'_>) {
    let mut members = make(3);
    greet(&mut members);
    Flow::endless(1, 0).fill(&mut members);
    sleeps(&mut members[0], &[]);

    assert_eq!(members[2].send(Peer(0), b"!").expect("send"), 1);
    while members[0].peek(Peer(2)).expect("peek").is_empty() {
        park_in_time(&mut members[0], &[]);
    }
}

/// A readable descriptor in `also` ends a `park`, one that is not readable does not.
pub fn park_ends_when_a_descriptor_is_readable(make: Make<'_>) {
    let mut members = make(2);
    greet(&mut members);
    let (quiet, _open) = std::io::pipe().expect("pipe");
    let (reader, mut writer) = std::io::pipe().expect("pipe");
    let also = [quiet.as_fd(), reader.as_fd()];
    sleeps(&mut members[0], &also);

    thread::scope(|scope| {
        scope.spawn(|| writer.write_all(b"!").expect("write"));
        while !readable(reader.as_fd(), Duration::ZERO) {
            park_in_time(&mut members[0], &also);
        }
    });
    park_in_time(&mut members[0], &also);
}

/// Two threads that answer each other and park between always wake each other.
pub fn park_misses_no_arrival(make: Make<'_>) {
    let mut members = make(2);
    let (mut one, mut zero) = (members.pop().expect("two"), members.pop().expect("two"));
    let flow = || Flow::new(0, 1, 3000 * 500);
    let (mut there, mut back) = (flow(), Flow::new(1, 0, 3000 * 500));
    let (mut echo, mut heard) = (Flow::new(1, 0, 3000 * 500), flow());
    thread::scope(|scope| {
        scope.spawn(move || {
            for end in (1..=500).map(|n| n * 3000) {
                heard.sent = end;
                receive(&mut one, &mut heard, end);
                send(&mut one, &mut echo, end);
            }
        });
        for end in (1..=500).map(|n| n * 3000) {
            send(&mut zero, &mut there, end);
            back.sent = end;
            receive(&mut zero, &mut back, end);
        }
    });
}

/// A sender that parks when nothing is taken wakes whenever its receiver has made room.
pub fn park_misses_no_room(make: Make<'_>) {
    const LEN: u64 = 32 << 20;
    let mut members = make(2);
    let (mut one, mut zero) = (members.pop().expect("two"), members.pop().expect("two"));
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut heard = Flow::new(0, 1, LEN);
            heard.sent = LEN;
            receive(&mut one, &mut heard, LEN);
        });
        send(&mut zero, &mut Flow::new(0, 1, LEN), LEN);
        // Until the other has all of it, and is gone.
        while zero.peek(Peer(1)).is_ok() {
            park_in_time(&mut zero, &[]);
        }
    });
}

/// `news`, where there is one, becomes readable when bytes arrive, and `park` makes it quiet.
pub fn news_comes_with_an_arrival(make: Make<'_>) {
    let mut members = make(2);
    greet(&mut members);
    if members[0].news().is_none() {
        return;
    }
    drive(&mut members, |members| {
        members[0].park(&[], Duration::ZERO).expect("park");
        members[0].peek(Peer(1)).expect("peek");
        let news = members[0].news().expect("news, as before");
        Round::of(false, !readable(news, Duration::ZERO))
    });
    assert_eq!(members[1].send(Peer(0), b"!").expect("send"), 1);
    assert!(readable(members[0].news().expect("news, as before"), LONG), "bytes without news");
    drive(&mut members[..1], |members| {
        members[0].park(&[], Duration::ZERO).expect("park");
        Round::of(false, members[0].peek(Peer(1)).expect("peek") == b"!")
    });
}

fn send(member: &mut Member, flow: &mut Flow, end: u64) {
    flow.len = end;
    while flow.sent < end {
        if !flow.send(member) {
            park_in_time(member, &[]);
        }
    }
}

fn receive(member: &mut Member, flow: &mut Flow, end: u64) {
    while flow.got < end {
        if !flow.take_all(member) {
            park_in_time(member, &[]);
        }
    }
}

fn park_in_time(member: &mut Member, also: &[BorrowedFd<'_>]) {
    let start = Instant::now();
    member.park(also, LONG).expect("park");
    assert!(start.elapsed() < LONG, "a wake was missed");
}

/// Parks for a fifth of a second, and checks that a loop of parks would not keep a core busy.
fn sleeps(member: &mut Member, also: &[BorrowedFd<'_>]) {
    let start = Instant::now();
    let mut parks = 0;
    while start.elapsed() < Duration::from_millis(200) {
        member.park(also, Duration::from_millis(20)).expect("park");
        parks += 1;
    }
    assert!(parks <= 60, "{parks} returns in ten limits");
}

fn readable(fd: BorrowedFd<'_>, limit: Duration) -> bool {
    let limit = Timespec::try_from(limit).expect("short");
    poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&limit)).expect("poll") > 0
}
