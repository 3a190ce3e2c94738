use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread;

use tutti_transport::handshake::HandshakeError;

use super::*;
use crate::handover::take;
use crate::testing::{SESSION, secret, soon};

const PEERS: [Peer; 3] = [Peer(2), Peer(3), Peer(9)];

fn host() -> Host {
    Host::create(&PEERS, PEERS[0], &Options::default()).unwrap()
}

fn join(name: &str, me: Peer) -> Result<Shm, Error> {
    Shm::join(name, &PEERS, me, PEERS[0], &secret(), SESSION, soon())
}

fn stray(name: &str) -> UnixStream {
    UnixStream::connect_addr(&socket_address(name).unwrap()).unwrap()
}

/// Serves with `visit` beside it, which gets the name.
fn serve<T: Send>(visit: impl FnOnce(&str) -> T + Send) -> (Result<Shm, Error>, T) {
    let host = host();
    let name = host.name().to_owned();
    thread::scope(|scope| {
        let visitors = scope.spawn(move || visit(&name));
        let served = host.serve(&secret(), SESSION, soon());
        (served, visitors.join().unwrap())
    })
}

#[test]
fn strays_do_not_keep_members_away() {
    let (served, _strays) = serve(|name| {
        let silent = stray(name);
        let mut slow = stray(name);
        slow.write_all(b"t").unwrap();
        for _ in 0..100 {
            // May be turned away before it has said all.
            let _ = stray(name).write_all(b"GET / HTTP/1.1\r\n\r\n");
        }
        let wrong = tutti_transport::handshake::Secret::from_bytes([8; 32]);
        let refused = Shm::join(name, &PEERS, PEERS[1], PEERS[0], &wrong, SESSION, soon());
        assert!(matches!(
            refused,
            Err(Error::Handshake { leader: Peer(2), source: HandshakeError::WrongSecret })
        ));
        let both = PEERS[1..].iter().map(|&me| join(name, me).unwrap()).collect::<Vec<_>>();
        (silent, slow, both)
    });
    served.unwrap();
}

#[test]
fn the_deadline_names_who_is_missing() {
    let Err(error) = host().serve(&secret(), SESSION, Instant::now()) else {
        panic!("served nobody");
    };
    assert!(matches!(&error, Error::Missing { peers } if peers[..] == PEERS[1..]));
    let said = "no shared memory with peers 3, 9: not joined before the deadline";
    assert_eq!(error.to_string(), said);
}

#[test]
fn a_member_that_leaves_with_the_segment_is_missing_at_once() {
    let (served, joined) = serve(|name| {
        let mut leaves = stray(name);
        let mut handshake = Handshake::connector(&secret(), SESSION, 9, 2);
        assert_eq!(handshake.advance(&mut leaves).unwrap(), Some(2));
        take(&leaves).unwrap();
        drop(leaves);
        join(name, PEERS[1]).unwrap()
    });
    assert!(matches!(served, Err(Error::Missing { peers }) if peers == [Peer(9)]));
    assert!(joined.peers() == PEERS);
}

#[test]
fn nobody_gets_the_place_of_another() {
    let (served, ()) = serve(|name| {
        // The leader's own number, a number of no member, and one that is taken.
        let _first = join(name, PEERS[1]).unwrap();
        for number in [2, 7, 3] {
            let mut again = stray(name);
            let mut handshake = Handshake::connector(&secret(), SESSION, number, 2);
            assert_eq!(handshake.advance(&mut again).unwrap(), Some(2));
            assert!(take(&again).is_err());
        }
        join(name, PEERS[2]).unwrap();
    });
    served.unwrap();
}

#[test]
fn a_silent_leader_is_late() {
    let silent = host();
    let deadline = Instant::now() + Duration::from_millis(20);
    let joined = Shm::join(silent.name(), &PEERS, PEERS[1], PEERS[0], &secret(), SESSION, deadline);
    assert!(matches!(joined, Err(Error::Late { leader: Peer(2) })));
}

#[test]
fn an_unknown_name_is_an_error() {
    assert!(matches!(join("tutti-none", PEERS[1]), Err(Error::Io { .. })));
    assert!(matches!(join(&"x".repeat(200), PEERS[1]), Err(Error::Argument { .. })));
}

#[test]
fn a_failed_setup_shows_as_a_closed_leader() {
    use tutti_transport::Transport;
    let (served, mut joined) = serve(|name| {
        let mut leaves = stray(name);
        let mut handshake = Handshake::connector(&secret(), SESSION, 9, 2);
        handshake.advance(&mut leaves).unwrap();
        take(&leaves).unwrap();
        join(name, PEERS[1]).unwrap()
    });
    drop(served);
    assert!(joined.send(PEERS[0], &[1]).is_err());
}

#[test]
fn no_name_is_left() {
    let (served, both) = serve(|name| (name.to_owned(), [1, 2].map(|i| join(name, PEERS[i]))));
    served.unwrap();
    let names = fs::read_to_string("/proc/net/unix").unwrap();
    assert!(!names.contains(&both.0));
}
