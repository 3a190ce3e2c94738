use std::collections::VecDeque;
use std::io::{self, Read, Write};

use proptest::prelude::*;

use super::*;

const SESSION: u64 = 0x0123_4567_89ab_cdef;
const HELLO: usize = size_of::<Hello>();
const CHALLENGE: usize = size_of::<Challenge>();
const PROOF: usize = size_of::<Proof>();
const VERDICT: usize = size_of::<Verdict>();

fn secret(byte: u8) -> Secret {
    Secret::from_bytes([byte; 32])
}

/// What one side sees of a connection: bytes to read, bytes it wrote, and how many bytes may
/// still pass each way before it would block.
struct End {
    inbox: VecDeque<u8>,
    outbox: Vec<u8>,
    may_read: usize,
    may_write: usize,
    closed: bool,
}

impl End {
    fn open() -> End {
        let (inbox, outbox) = Default::default();
        End { inbox, outbox, may_read: usize::MAX, may_write: usize::MAX, closed: false }
    }

    fn saying(bytes: &[u8]) -> End {
        End { inbox: bytes.iter().copied().collect(), ..End::open() }
    }

    fn pass_to(&mut self, other: &mut End) -> usize {
        other.inbox.extend(&self.outbox);
        self.outbox.drain(..).count()
    }
}

impl Read for End {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.inbox.is_empty() && self.closed {
            return Ok(0);
        }
        let len = buf.len().min(self.inbox.len()).min(self.may_read);
        if len == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.may_read -= len;
        self.inbox.read(&mut buf[..len])
    }
}

impl Write for End {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let len = buf.len().min(self.may_write);
        if len == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.may_write -= len;
        self.outbox.write(&buf[..len])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

type Outcome = Result<Option<u32>, HandshakeError>;

/// Moves both sides, a failed one not again, until no byte moves.
fn run(c: &mut Handshake, c_end: &mut End, a: &mut Handshake, a_end: &mut End) -> [Outcome; 2] {
    let mut outcomes = [Ok(None), Ok(None)];
    loop {
        if outcomes[0].is_ok() {
            outcomes[0] = c.advance(c_end);
        }
        let there = c_end.pass_to(a_end);
        if outcomes[1].is_ok() {
            outcomes[1] = a.advance(a_end);
        }
        let back = a_end.pass_to(c_end);
        if there + back == 0 {
            return outcomes;
        }
    }
}

fn meet(mut c: Handshake, mut a: Handshake) -> [Outcome; 2] {
    run(&mut c, &mut End::open(), &mut a, &mut End::open())
}

fn pair() -> (Handshake, Handshake) {
    let secret = secret(7);
    (Handshake::connector(&secret, SESSION, 3, 1), Handshake::acceptor(&secret, SESSION, 1))
}

#[test]
fn each_side_learns_the_others_number() {
    let (c, a) = pair();
    assert!(matches!(meet(c, a), [Ok(Some(1)), Ok(Some(3))]));
}

#[test]
fn unnumbered_sides_meet() {
    let secret = secret(7);
    let c = Handshake::connector(&secret, SESSION, ANY, ANY);
    let a = Handshake::acceptor(&secret, SESSION, 5);
    assert!(matches!(meet(c, a), [Ok(Some(5)), Ok(Some(ANY))]));
}

#[test]
fn a_cut_at_any_byte_only_delays() {
    for cut in 0..=HELLO + PROOF {
        for cuts_reads in [false, true] {
            let (mut c, mut a) = pair();
            let (mut c_end, mut a_end) = (End::open(), End::open());
            *if cuts_reads { &mut a_end.may_read } else { &mut c_end.may_write } = cut;
            let early = run(&mut c, &mut c_end, &mut a, &mut a_end);
            let whole = cut == HELLO + PROOF;
            assert!(
                matches!(early, [Ok(c), Ok(a)] if c.is_some() == whole && a.is_some() == whole)
            );

            (c_end.may_write, a_end.may_read) = (usize::MAX, usize::MAX);
            let late = run(&mut c, &mut c_end, &mut a, &mut a_end);
            assert!(matches!(late, [Ok(Some(1)), Ok(Some(3))]), "cut at {cut}");
        }
    }
    for cut in 0..=CHALLENGE + VERDICT {
        for cuts_reads in [false, true] {
            let (mut c, mut a) = pair();
            let (mut c_end, mut a_end) = (End::open(), End::open());
            *if cuts_reads { &mut c_end.may_read } else { &mut a_end.may_write } = cut;
            let [early, _] = run(&mut c, &mut c_end, &mut a, &mut a_end);
            assert_eq!(early.unwrap().is_some(), cut == CHALLENGE + VERDICT);

            (a_end.may_write, c_end.may_read) = (usize::MAX, usize::MAX);
            let late = run(&mut c, &mut c_end, &mut a, &mut a_end);
            assert!(matches!(late, [Ok(Some(1)), Ok(Some(3))]), "cut at {cut}");
        }
    }
}

#[test]
fn a_close_at_any_byte_is_closed_early() {
    for cut in 0..HELLO + PROOF {
        let (mut c, mut a) = pair();
        let (mut c_end, mut a_end) = (End::open(), End::open());
        c_end.may_write = cut;
        run(&mut c, &mut c_end, &mut a, &mut a_end)[1].as_ref().unwrap();
        a_end.closed = true;
        assert!(matches!(a.advance(&mut a_end), Err(HandshakeError::Closed)), "cut at {cut}");
    }
    for cut in 0..CHALLENGE + VERDICT {
        let (mut c, mut a) = pair();
        let (mut c_end, mut a_end) = (End::open(), End::open());
        a_end.may_write = cut;
        run(&mut c, &mut c_end, &mut a, &mut a_end)[0].as_ref().unwrap();
        c_end.closed = true;
        assert!(matches!(c.advance(&mut c_end), Err(HandshakeError::Closed)), "cut at {cut}");
    }
}

#[test]
fn payload_that_follows_at_once_stays_in_the_stream() {
    let (mut c, mut a) = pair();
    let (mut c_end, mut a_end) = (End::open(), End::open());
    c.advance(&mut c_end).unwrap();
    c_end.pass_to(&mut a_end);
    a.advance(&mut a_end).unwrap();
    a_end.pass_to(&mut c_end);
    c.advance(&mut c_end).unwrap();
    c_end.outbox.extend(b"more");
    c_end.pass_to(&mut a_end);
    assert_eq!(a.advance(&mut a_end).unwrap(), Some(3));
    assert_eq!(a_end.inbox, b"more");

    a_end.outbox.extend(b"back");
    a_end.pass_to(&mut c_end);
    assert_eq!(c.advance(&mut c_end).unwrap(), Some(1));
    assert_eq!(c_end.inbox, b"back");
}

#[test]
fn another_secret_is_refused_on_both_sides() {
    let c = Handshake::connector(&secret(7), SESSION, 3, 1);
    let a = Handshake::acceptor(&secret(8), SESSION, 1);
    let both = meet(c, a);
    assert!(matches!(both, [Err(HandshakeError::WrongSecret), Err(HandshakeError::WrongSecret)]));
}

#[test]
fn another_session_is_refused_on_both_sides() {
    let c = Handshake::connector(&secret(7), SESSION, 3, 1);
    let a = Handshake::acceptor(&secret(7), SESSION + 1, 1);
    let both = meet(c, a);
    assert!(matches!(both, [Err(HandshakeError::WrongSession), Err(HandshakeError::WrongSession)]));
}

#[test]
fn another_number_is_refused_on_both_sides() {
    let c = Handshake::connector(&secret(7), SESSION, 3, 2);
    let a = Handshake::acceptor(&secret(7), SESSION, 1);
    let both = meet(c, a);
    assert!(matches!(both, [Err(HandshakeError::WrongNumber), Err(HandshakeError::WrongNumber)]));
}

fn names_both_versions(error: HandshakeError) {
    let text = error.to_string();
    assert!(matches!(error, HandshakeError::Version { ours: PROTOCOL, theirs: 9, .. }));
    let parts = ["protocol 1", env!("CARGO_PKG_VERSION"), "protocol 9", "7.7.7-x?"];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

const THEIR_BUILD: [u8; 16] = *b"7.7.7-x\x1b\0\0\0\0\0\0\0\0";

#[test]
fn the_acceptor_names_both_versions_and_tells_the_connector() {
    let (mut c, mut a) = pair();
    let mut c_end = End::open();
    c.advance(&mut c_end).unwrap();
    let mut hello = Hello::read_from_bytes(&c_end.outbox).unwrap();
    (hello.version, hello.build) = (9.into(), THEIR_BUILD);
    let mut a_end = End::saying(hello.as_bytes());
    names_both_versions(a.advance(&mut a_end).unwrap_err());
    let told = Challenge::read_from_bytes(&a_end.outbox).unwrap();
    assert_eq!(told.version.get(), PROTOCOL);
    assert_eq!(told.build, wire::build());
    assert_eq!(Status::of(told.status.get()), Status::WrongVersion);
    assert_eq!(told.proof, [0; 32]);
}

#[test]
fn the_connector_names_both_versions() {
    let (mut c, _) = pair();
    let mut challenge = Challenge::new_zeroed();
    (challenge.magic, challenge.version, challenge.build) = (MAGIC, 9.into(), THEIR_BUILD);
    names_both_versions(c.advance(&mut End::saying(challenge.as_bytes())).unwrap_err());
}

#[test]
fn a_stranger_is_known_by_its_first_wrong_byte() {
    let (_, mut a) = pair();
    let mut end = End::saying(b"\xf3TUX");
    assert!(matches!(a.advance(&mut end), Err(HandshakeError::NotOurs)));
    assert!(end.outbox.is_empty(), "a stranger learns nothing");
}

/// All bytes that the connector says in one good handshake.
fn connectors_words() -> Vec<u8> {
    let (mut c, mut a) = pair();
    let (mut c_end, mut a_end) = (End::open(), End::open());
    let mut words = Vec::new();
    loop {
        c.advance(&mut c_end).unwrap();
        words.extend(&c_end.outbox);
        c_end.pass_to(&mut a_end);
        let peer = a.advance(&mut a_end).unwrap();
        a_end.pass_to(&mut c_end);
        if peer.is_some() {
            return words;
        }
    }
}

#[test]
fn an_old_proof_does_not_open_a_new_connection() {
    let words = connectors_words();
    assert_eq!(words.len(), HELLO + PROOF);
    let (_, mut a) = pair();
    let replayed = a.advance(&mut End::saying(&words));
    assert!(matches!(replayed, Err(HandshakeError::WrongSecret)));
}

#[test]
fn an_old_challenge_does_not_convince_a_new_connector() {
    let (mut c, mut a) = pair();
    let (mut c_end, mut a_end) = (End::open(), End::open());
    c.advance(&mut c_end).unwrap();
    c_end.pass_to(&mut a_end);
    a.advance(&mut a_end).unwrap();
    let (mut fresh, _) = pair();
    let replayed = fresh.advance(&mut End::saying(&a_end.outbox));
    assert!(matches!(replayed, Err(HandshakeError::WrongSecret)));
}

#[test]
fn the_acceptors_own_proof_sent_back_is_refused() {
    let (mut c, mut a) = pair();
    let (mut c_end, mut a_end) = (End::open(), End::open());
    c.advance(&mut c_end).unwrap();
    c_end.pass_to(&mut a_end);
    a.advance(&mut a_end).unwrap();
    let challenge = Challenge::read_from_bytes(&a_end.outbox).unwrap();
    a_end.inbox.extend(challenge.proof);
    assert!(matches!(a.advance(&mut a_end), Err(HandshakeError::WrongSecret)));
}

#[test]
fn a_changed_bit_in_anything_said_is_refused() {
    for bit in (0..8 * (HELLO + PROOF)).filter(|bit| bit % 8 == bit / 8 % 8) {
        let (mut c, mut a) = pair();
        let (mut c_end, mut a_end) = (End::open(), End::open());
        c.advance(&mut c_end).unwrap();
        let flip = |end: &mut End, from: usize| {
            if let Some(byte) = (bit / 8).checked_sub(from).and_then(|n| end.outbox.get_mut(n)) {
                *byte ^= 1 << (bit % 8);
            }
        };
        flip(&mut c_end, 0);
        c_end.pass_to(&mut a_end);
        let mut end = a.advance(&mut a_end);
        if end.is_ok() {
            a_end.pass_to(&mut c_end);
            let _ = c.advance(&mut c_end);
            flip(&mut c_end, HELLO);
            c_end.pass_to(&mut a_end);
            end = a.advance(&mut a_end);
        }
        assert!(end.is_err(), "bit {bit} was changed unnoticed");
    }
}

proptest! {
    #[test]
    fn garbage_is_refused_by_an_acceptor(
        ours in 0..=HELLO + PROOF,
        garbage in proptest::collection::vec(any::<u8>(), HELLO + PROOF..300),
    ) {
        let mut said = connectors_words();
        said.truncate(ours);
        said.extend(garbage);
        let (_, mut a) = pair();
        prop_assert!(a.advance(&mut End::saying(&said)).is_err());
    }

    #[test]
    fn garbage_is_refused_by_a_connector(
        with_magic in any::<bool>(),
        garbage in proptest::collection::vec(any::<u8>(), CHALLENGE..300),
    ) {
        let mut said = if with_magic { [&MAGIC[..], &PROTOCOL.to_le_bytes()].concat() } else { vec![] };
        said.extend(garbage);
        let (mut c, _) = pair();
        prop_assert!(c.advance(&mut End::saying(&said)).is_err());
    }
}

#[test]
fn a_secret_survives_hex_and_shows_nothing() {
    let secret = Secret::random().unwrap();
    let hex = secret.to_hex();
    assert_eq!(Secret::from_hex(&hex).unwrap().to_hex(), hex);
    assert_eq!(format!("{secret:?}"), "Secret(..)");
    assert_ne!(Secret::random().unwrap().to_hex(), hex);
    for wrong in
        ["", "12", &hex[1..], &format!("{}g", &hex[1..]), &"+1".repeat(32), &"é".repeat(32)]
    {
        assert!(Secret::from_hex(wrong).is_none(), "{wrong}");
    }
}
