//! The protocols under loom: every interleaving and every reordering that the memory model allows.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::doorbell::{Doorbell, Sleep};
use crate::flags::{self, Flag, HEADS};
use crate::ring::{Consumer, Indices, Producer};
use crate::sync::{AtomicU64, Ordering, fence};

#[test]
fn ring_never_lets_both_ends_touch_a_cell() {
    const CAPACITY: usize = 2;
    loom::model(|| {
        let shared = Arc::new((Indices::default(), cells::<CAPACITY>()));
        let other = shared.clone();
        let producer = thread::spawn(move || {
            let (indices, cells) = &*other;
            let mut tx = Producer::new(CAPACITY);
            let mut next = 1;
            for _ in 0..3 {
                let room = tx.room(indices, CAPACITY).unwrap();
                // Alternately one cell and all there is room for.
                let len = if next == 1 { 1 } else { room };
                for i in 0..len as u64 {
                    write(&cells[(tx.at() + i) as usize % CAPACITY], next);
                    next += 1;
                }
                tx.publish(indices, len);
            }
        });
        let (indices, cells) = &*shared;
        let mut rx = Consumer::new(CAPACITY);
        let mut expected = 1;
        for _ in 0..3 {
            let ready = rx.ready(indices).unwrap();
            for i in 0..ready as u64 {
                assert_eq!(read(&cells[(rx.at() + i) as usize % CAPACITY]), expected);
                expected += 1;
            }
            rx.release(indices, ready);
        }
        producer.join().unwrap();
    });
}

#[test]
fn board_shows_each_round_and_never_its_overwriting() {
    // As many as it takes to overwrite a message.
    const ROUNDS: u64 = HEADS + 1;
    // All orders with so many switches that no thread asked for; all there are take minutes.
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(4);
    bounded.check(|| {
        let board = Arc::new(Slots::default());
        let other = board.clone();
        let thread = thread::spawn(move || other.play(1, ROUNDS));
        board.play(0, ROUNDS);
        thread.join().unwrap();
    });
}

#[test]
fn no_member_sleeps_over_what_is_published() {
    loom::model(|| {
        let shared = Arc::new((AtomicU64::new(0), Doorbell::default()));
        let other = shared.clone();
        let publisher = thread::spawn(move || {
            let (news, bell) = &*other;
            (1..=2u64).map(|n| publish(bell, || news.store(n, Ordering::Release))).any(|rang| rang)
        });
        let (news, bell) = &*shared;
        // The first sleep may be cut short by the first publication; the second must not miss
        // what the first did not see.
        let mut seen = 0;
        let mut asleep = false;
        for _ in 0..2 {
            bell.arm(Sleep::Futex);
            let now = news.load(Ordering::Relaxed);
            asleep = now == seen;
            if asleep {
                break;
            }
            seen = now;
            bell.disarm();
        }
        let rang = publisher.join().unwrap();
        assert!(!asleep || seen == 2 || rang, "asleep for good over {seen} of 2");
    });
}

#[test]
fn no_sender_sleeps_over_freed_room() {
    loom::model(|| {
        let shared = Arc::new((Indices::default(), Doorbell::default()));
        let other = shared.clone();
        let consumer = thread::spawn(move || {
            let (indices, bell) = &*other;
            let mut rx = Consumer::new(2);
            let (mut rang, mut freed) = (false, 0);
            for _ in 0..2 {
                if rx.ready(indices).unwrap() > 0 {
                    rx.release(indices, 1);
                    freed += 1;
                    fence(Ordering::SeqCst);
                    rang |= bell.sleeps() && rx.was_full(indices, 1) && bell.ring().is_some();
                }
            }
            (rang, freed)
        });
        let (indices, bell) = &*shared;
        let mut tx = Producer::new(2);
        tx.publish(indices, 1);
        let room = tx.room(indices, 2).unwrap();
        tx.publish(indices, room);
        let starved = room < 2 && tx.room(indices, 1).unwrap() == 0;
        let mut asleep = false;
        if starved {
            bell.arm(Sleep::Futex);
            asleep = !tx.news(indices);
        }
        let (rang, _) = consumer.join().unwrap();
        let freed = tx.room(indices, 2).unwrap() > 0;
        assert!(!(asleep && freed) || rang, "asleep for good, with room");
    });
}

#[test]
fn what_was_published_before_closing_is_seen() {
    loom::model(|| {
        let shared = Arc::new((Indices::default(), Doorbell::default()));
        let other = shared.clone();
        let closer = thread::spawn(move || {
            let (indices, bell) = &*other;
            Producer::new(2).publish(indices, 1);
            bell.close();
        });
        let (indices, bell) = &*shared;
        let mut rx = Consumer::new(2);
        if bell.is_closed() {
            assert_eq!(rx.ready(indices), Ok(1));
        }
        closer.join().unwrap();
    });
}

/// Publishes as the transport does; whether the owner of `bell` is woken.
fn publish(bell: &Doorbell, store: impl FnOnce()) -> bool {
    store();
    fence(Ordering::SeqCst);
    bell.sleeps() && bell.ring().is_some()
}

/// A board of two members.
#[derive(Default)]
struct Slots {
    flags: [[Flag; HEADS as usize]; 2],
    messages: [[Cell; HEADS as usize]; 2],
}

impl Slots {
    /// Member 0 reads each round before it posts in the next, member 1 after it has posted.
    fn play(&self, me: usize, rounds: u64) {
        for round in 1..=rounds {
            if let Some(before) = flags::before(round) {
                self.wait(0, before);
                self.wait(1, before);
            }
            write(&self.messages[me][flags::head(round)], 10 * round + me as u64);
            self.flags[me][flags::head(round)].raise(round);
            let late = me as u64;
            if round > late {
                self.read(1 - me, round - late);
            }
        }
    }

    fn wait(&self, member: usize, round: u64) {
        while !self.flags[member][flags::head(round)].is_up(round) {
            thread::yield_now();
        }
    }

    fn read(&self, member: usize, round: u64) {
        self.wait(member, round);
        let message = read(&self.messages[member][flags::head(round)]);
        assert_eq!(message, 10 * round + member as u64);
    }
}

/// Memory of which loom reports a write that meets a read or another write.
struct Cell(UnsafeCell<u64>);

// SAFETY: loom fails the model on every access that is not ordered with the others.
unsafe impl Sync for Cell {}

impl Default for Cell {
    fn default() -> Cell {
        Cell(UnsafeCell::new(0))
    }
}

fn cells<const N: usize>() -> [Cell; N] {
    std::array::from_fn(|_| Cell::default())
}

fn read(cell: &Cell) -> u64 {
    // SAFETY: loom has checked that nobody writes.
    cell.0.with(|p| unsafe { *p })
}

fn write(cell: &Cell, value: u64) {
    // SAFETY: loom has checked that nobody reads or writes.
    cell.0.with_mut(|p| unsafe { *p = value });
}
