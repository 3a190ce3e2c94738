use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::Shm;
use crate::doorbell::Sleep;
use crate::waker::Waker;

/// What a sleeper has noticed of a peer: it stays awake for each thing once.
#[derive(Default)]
pub(super) struct Noticed {
    closed: bool,
    round: u64,
}

impl Shm {
    /// Sleeps until a peer wakes this member, one of `also` is readable, or `limit` has passed;
    /// not at all if something has happened since it last slept or polled.
    pub(super) fn sleep(&mut self, also: &[BorrowedFd<'_>], limit: Duration) -> io::Result<()> {
        let sleep = if also.is_empty() { Sleep::Futex } else { Sleep::Datagram };
        let me = self.members.me();
        self.segment.member(me).bell.arm(sleep);
        let has_news = self.has_news();
        let bell = &self.segment.member(me).bell;
        let slept = match sleep {
            _ if has_news => Ok(()),
            Sleep::Futex => Waker::sleep(bell, limit),
            Sleep::Datagram => self.waker.sleep_with(also, limit),
        };
        bell.disarm();
        slept
    }

    /// Whether anything has happened that the caller was neither shown nor woken for. To be called
    /// with the bell armed: what comes later rings.
    fn has_news(&mut self) -> bool {
        let me = self.members.me();
        let mut news = false;
        for place in 0..self.peers().len() {
            news |= self.inbound[place].index.news(self.segment.indices(place, me));
            news |= self.outbound[place].index.news(self.segment.indices(me, place));
            let now = Noticed { closed: self.is_closed(place), round: self.last_posted(place) };
            let before = std::mem::replace(&mut self.noticed[place], now);
            let now = &self.noticed[place];
            news |= now.closed != before.closed || now.round != before.round;
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::Instant;

    use tutti_transport::{Board, Peer, Posted, Transport};

    use super::*;
    use crate::Options;
    use crate::testing::{group, pair};

    /// A park that lasts this long was not woken.
    const FOREVER: Duration = Duration::from_secs(300);

    /// Parks `a` in a thread, waits until it is about to sleep, calls `event`, and expects that
    /// it is woken; once by futex, once by datagram.
    fn wakes(prepare: impl Fn(&mut Shm, &mut Shm), event: impl Fn(&mut Shm) + Copy) {
        for also in [false, true] {
            let (mut a, b) = pair();
            let mut b = Some(b);
            prepare(&mut a, b.as_mut().unwrap());
            while a.has_news() {}
            let (silent, _other) = UnixStream::pair().unwrap();
            let sleeper = thread::spawn(move || {
                let also: &[_] = if also { &[silent.as_fd()] } else { &[] };
                let begin = Instant::now();
                a.park(also, FOREVER).unwrap();
                (begin.elapsed() < FOREVER, a)
            });
            let sleeps = |b: &Shm| b.segment.member(0).bell.sleeps();
            while !sleeps(b.as_ref().unwrap()) {
                thread::yield_now();
            }
            event(b.as_mut().unwrap());
            let (woken, a) = sleeper.join().unwrap();
            assert!(woken && !a.segment.member(0).bell.sleeps(), "also: {also}");
        }
    }

    fn nothing(_: &mut Shm, _: &mut Shm) {}

    #[test]
    fn a_send_wakes_its_receiver() {
        wakes(nothing, |b| assert_eq!(b.send(Peer(0), &[1]).unwrap(), 1));
    }

    #[test]
    fn a_post_wakes_the_others() {
        wakes(nothing, |b| assert!(b.post(0, &[&[1]]).unwrap() == Posted::Yes));
        wakes(
            |a, _| assert!(a.post(0, &[&[1]]).unwrap() == Posted::Yes),
            |b| assert!(b.post(0, &[&[1]]).unwrap() == Posted::Yes),
        );
    }

    #[test]
    fn a_consume_wakes_a_sender_without_room() {
        let fill = |a: &mut Shm, b: &mut Shm| {
            while a.send(Peer(1), &[1; 999]).unwrap() > 0 {}
            assert!(!b.peek(Peer(0)).unwrap().is_empty());
        };
        wakes(fill, |b| b.consume(Peer(0), 1));
    }

    #[test]
    fn a_consume_leaves_a_sender_with_room_asleep() {
        let (mut a, mut b) = pair();
        a.send(Peer(1), &[1; 999]).unwrap();
        b.peek(Peer(0)).unwrap();
        a.segment.member(0).bell.arm(Sleep::Futex);
        b.consume(Peer(0), 999);
        assert!(a.segment.member(0).bell.sleeps());
    }

    #[test]
    fn closing_wakes_the_others() {
        for also in [false, true] {
            let mut members = group(3, &Options::default());
            let closing = members.pop().unwrap();
            let (silent, _other) = UnixStream::pair().unwrap();
            let silent = &silent;
            thread::scope(|scope| {
                let sleepers: Vec<_> = members
                    .into_iter()
                    .map(|mut member| {
                        scope.spawn(move || {
                            let also: &[_] = if also { &[silent.as_fd()] } else { &[] };
                            let begin = Instant::now();
                            while member.peek(Peer(2)).is_ok() {
                                member.park(also, FOREVER).unwrap();
                            }
                            begin.elapsed() < FOREVER
                        })
                    })
                    .collect();
                while !(0..2).all(|place| closing.segment.member(place).bell.sleeps()) {
                    thread::yield_now();
                }
                drop(closing);
                assert!(sleepers.into_iter().all(|sleeper| sleeper.join().unwrap()));
            });
        }
    }

    #[test]
    fn a_readable_descriptor_ends_the_sleep() {
        let (mut a, _b) = pair();
        let (readable, other) = UnixStream::pair().unwrap();
        drop(other);
        let begin = Instant::now();
        a.park(&[readable.as_fd()], FOREVER).unwrap();
        assert!(begin.elapsed() < FOREVER);
    }

    #[test]
    fn news_nobody_asks_for_keeps_awake_only_once() {
        let (mut a, mut b) = pair();
        b.send(Peer(0), &[1]).unwrap();
        b.post(0, &[&[1]]).unwrap();
        assert!(a.has_news());
        assert!(!a.has_news());
        a.post(0, &[&[1]]).unwrap();
        drop(b);
        assert!(a.has_news());
        assert!(!a.has_news());
    }

    #[test]
    fn what_was_shown_is_no_news() {
        let (mut a, mut b) = pair();
        b.send(Peer(0), &[1]).unwrap();
        assert_eq!(a.peek(Peer(1)).unwrap(), [1]);
        assert!(!a.has_news());
    }
}
