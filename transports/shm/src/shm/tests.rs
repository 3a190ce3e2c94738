use std::thread;

use rustix::param::page_size;

use super::*;
use crate::Options;
use crate::testing::{group, pair};

/// A ring of one page, so that everything wraps soon.
fn small() -> Options {
    Options { ring_bytes: page_size(), ..Options::default() }
}

/// Byte `i` of the stream that tests send.
fn pattern(i: usize) -> u8 {
    (i.wrapping_mul(0x9e37_79b9) >> 13) as u8
}

#[test]
fn a_stream_keeps_its_order_whatever_the_sizes_of_sends_and_reads() {
    const TOTAL: usize = 3_000_001;
    let mut both = group(2, &small());
    let (mut b, mut a) = (both.pop().unwrap(), both.pop().unwrap());
    let sender = thread::spawn(move || {
        let stream: Vec<_> = (0..TOTAL).map(pattern).collect();
        let mut sizes = (1..6000).step_by(77).cycle();
        let mut sent = 0;
        while sent < TOTAL {
            let end = TOTAL.min(sent + sizes.next().unwrap());
            match a.send(Peer(1), &stream[sent..end]).unwrap() {
                0 => a.park(&[], Duration::from_secs(1)).unwrap(),
                taken => sent += taken,
            }
        }
        a
    });
    let mut received = 0;
    for (step, most) in (1..6000).step_by(131).cycle().enumerate() {
        let mut buffer = vec![0; most];
        let got = if step % 2 == 0 {
            b.recv(Peer(0), &mut buffer).unwrap()
        } else {
            let arrived = b.peek(Peer(0)).unwrap();
            let len = arrived.len().min(most);
            buffer[..len].copy_from_slice(&arrived[..len]);
            b.consume(Peer(0), len);
            len
        };
        for (i, byte) in buffer[..got].iter().enumerate() {
            assert_eq!(*byte, pattern(received + i), "byte {}", received + i);
        }
        received += got;
        if received == TOTAL {
            break;
        }
        if got == 0 {
            b.park(&[], Duration::from_secs(1)).unwrap();
        }
    }
    sender.join().unwrap();
}

#[test]
fn a_full_ring_is_one_slice_wherever_it_starts() {
    let mut both = group(2, &small());
    let (mut b, mut a) = (both.pop().unwrap(), both.pop().unwrap());
    let page = page_size();
    let stream: Vec<_> = (0..3 * page).map(pattern).collect();
    let mut start = 0;
    assert_eq!(a.send(Peer(1), &stream).unwrap(), page);
    for step in [1, 63, 1000, page - 1, 17] {
        b.consume_after_peek(step);
        start += step;
        let sent = start + page - step;
        assert_eq!(a.send(Peer(1), &stream[sent..]).unwrap(), step.min(stream.len() - sent));
        assert_eq!(b.peek(Peer(0)).unwrap(), &stream[start..start + page]);
    }
}

#[test]
fn streams_of_all_pairs_and_to_oneself_stay_apart() {
    let mut all = group(4, &small());
    for (from, member) in all.iter_mut().enumerate() {
        for to in 0..4 {
            assert_eq!(member.send(Peer(to), &[from as u8, to as u8]).unwrap(), 2);
        }
    }
    for (to, member) in all.iter_mut().enumerate() {
        for from in 0..4 {
            assert_eq!(member.peek(Peer(from)).unwrap(), [from as u8, to as u8]);
        }
    }
}

#[test]
fn memory_that_cannot_be_committed_is_an_error_that_says_how_much() {
    let (mut a, mut b) = pair();
    a.segment.lose_write_access();
    let error = a.send(Peer(1), &[1; 100]).unwrap_err();
    let TransportError::Io { peer: Some(Peer(1)), what, .. } = error else {
        panic!("not the error of a full memory: {error}");
    };
    assert!(what.contains("262144 bytes") && what.contains("ring_bytes"), "{what}");
    assert_eq!(b.peek(Peer(0)).unwrap(), []);
}

#[test]
fn rings_take_memory_only_once_they_are_used() {
    let (mut a, _b) = pair();
    let blocks = |shm: &Shm| rustix::fs::fstat(shm.file()).unwrap().st_blocks as usize * 512;
    let ring = a.segment.layout().ring_bytes;
    let before = blocks(&a);
    assert!(before <= a.segment.layout().control().next_multiple_of(page_size()));
    a.send(Peer(1), &[1]).unwrap();
    assert_eq!(blocks(&a), before + ring);
}

#[test]
fn an_unknown_peer_is_an_error() {
    let (mut a, _b) = pair();
    assert!(matches!(a.send(Peer(2), &[1]), Err(TransportError::Io { peer: Some(Peer(2)), .. })));
    assert!(matches!(a.peek(Peer(2)), Err(TransportError::Io { peer: Some(Peer(2)), .. })));
}

#[test]
fn impossible_indices_are_an_error_of_the_peer() {
    let (mut a, mut b) = pair();
    a.send(Peer(1), &[1, 2, 3]).unwrap();
    // Whoever publishes in the place of another counts from 0 again.
    let ring = a.segment.layout().ring_bytes;
    b.peek(Peer(0)).unwrap();
    let mut impostor = crate::ring::Producer::new(ring);
    impostor.publish(b.segment.indices(0, 1), 1);
    assert!(matches!(b.peek(Peer(0)), Err(TransportError::Protocol { peer: Peer(0), .. })));
}

#[test]
fn what_was_sent_before_closing_is_read_before_it_shows() {
    let (mut a, mut b) = pair();
    a.send(Peer(1), &[1, 2]).unwrap();
    drop(a);
    assert_eq!(b.peek(Peer(0)).unwrap(), [1, 2]);
    let mut both = [0; 4];
    assert_eq!(b.recv(Peer(0), &mut both).unwrap(), 2);
    assert!(matches!(b.recv(Peer(0), &mut both), Err(TransportError::Closed { peer: Peer(0) })));
    assert!(matches!(b.send(Peer(0), &[1]), Err(TransportError::Closed { peer: Peer(0) })));
}

impl Shm {
    fn consume_after_peek(&mut self, len: usize) {
        assert!(self.peek(Peer(0)).unwrap().len() >= len);
        self.consume(Peer(0), len);
    }
}
