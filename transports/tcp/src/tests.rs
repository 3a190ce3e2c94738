use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use tutti_transport::handshake::Secret;
use tutti_transport::{Error, Peer, Transport, conformance};

use crate::{Listener, Options, Tcp};

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const SESSION: u64 = 11;
const MOMENT: Duration = Duration::from_millis(1);

/// How many rounds of one moment a test waits for something before it fails.
const ROUNDS: usize = 20_000;

tutti_transport::conformance_tests!(make);

fn make(n: usize) -> Vec<Box<dyn Transport>> {
    boxed(group(n, &Options::default()))
}

fn group(n: usize, options: &Options) -> Vec<Tcp> {
    group_with_addresses(n, options).0
}

fn group_with_addresses(n: usize, options: &Options) -> (Vec<Tcp>, Vec<SocketAddr>) {
    let listeners: Vec<_> = (0..n).map(|_| Listener::bind(LOOPBACK).unwrap()).collect();
    let addresses: Vec<_> = listeners.iter().map(Listener::local_addr).collect();
    let secret = secret(1);
    let known: Vec<_> = addresses.iter().copied().map(Some).collect();
    let member = |(me, listener): (usize, Listener)| {
        let me = Peer(me as u32);
        listener.into_transport(me, known.clone(), secret.clone(), SESSION, options.clone())
    };
    (listeners.into_iter().enumerate().map(member).collect(), addresses)
}

fn boxed(group: Vec<Tcp>) -> Vec<Box<dyn Transport>> {
    group.into_iter().map(|member| Box::new(member) as Box<dyn Transport>).collect()
}

fn secret(byte: u8) -> Secret {
    Secret::from_bytes([byte; 32])
}

fn with_smallest_buffer(n: usize) -> Vec<Box<dyn Transport>> {
    boxed(group(n, &Options { buffer_len_bytes: 0, ..Options::default() }))
}

#[test]
fn the_smallest_buffer_passes_every_byte() {
    conformance::all_pairs_exchange(&with_smallest_buffer, 3, 1_000_000);
    conformance::recv_mixes_with_peek(&with_smallest_buffer);
    conformance::peek_grows_to_four_kibibytes(&with_smallest_buffer);
}

/// Both say a word to each other.
fn meet(members: &mut [Tcp]) {
    let mut said = [false; 2];
    for _ in 0..ROUNDS {
        for me in 0..2 {
            let peer = Peer(1 - me as u32);
            said[me] = said[me] || members[me].send(peer, b"!").unwrap() == 1;
        }
        let heard = |m: &mut Tcp, peer| m.peek(Peer(peer)).unwrap() == b"!";
        if heard(&mut members[0], 1) && heard(&mut members[1], 0) {
            return;
        }
        rest(members);
    }
    panic!("the two do not meet");
}

fn rest(members: &mut [Tcp]) {
    for member in members {
        member.park(&[], MOMENT).unwrap();
    }
}

fn first_error(members: &mut [Tcp], me: usize, peer: u32) -> Error {
    for _ in 0..ROUNDS {
        if let Err(e) = members[me].peek(Peer(peer)) {
            return e;
        }
        rest(members);
    }
    panic!("no error");
}

#[test]
fn strangers_do_not_disturb() {
    let (mut members, addresses) = group_with_addresses(2, &Options::default());
    drop(TcpStream::connect(addresses[0]).unwrap());
    let mut web = TcpStream::connect(addresses[0]).unwrap();
    web.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut slow = TcpStream::connect(addresses[0]).unwrap();
    slow.write_all(b"\xf3TU").unwrap();
    meet(&mut members);

    assert_is_dropped(&mut web, &mut members);
    slow.set_nonblocking(true).unwrap();
    assert_eq!(slow.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock, "it has time");
}

#[test]
fn a_crowd_of_silent_strangers_does_not_keep_a_peer_out() {
    let (mut members, addresses) = group_with_addresses(2, &Options::default());
    let connect = |_| TcpStream::connect(addresses[0]).unwrap();
    let mut crowd: Vec<_> = (0..200).map(connect).collect();
    meet(&mut members);
    assert_is_dropped(&mut crowd[0], &mut members);
}

#[test]
fn a_stranger_that_stalls_is_dropped_in_time() {
    let options = Options { handshake_timeout: MOMENT, ..Options::default() };
    let (mut members, addresses) = group_with_addresses(1, &options);
    let mut slow = TcpStream::connect(addresses[0]).unwrap();
    slow.write_all(b"\xf3TU").unwrap();
    assert_is_dropped(&mut slow, &mut members);
}

#[test]
fn what_waits_behind_a_full_buffer_is_news() {
    let mut members = group(2, &Options { buffer_len_bytes: 0, ..Options::default() });
    meet(&mut members);
    members[0].consume(Peer(1), 1);
    assert_eq!(members[1].send(Peer(0), &[7; 40_000]).unwrap(), 40_000);
    let mut left = 40_000;
    while left > 0 {
        let shown = members[0].peek(Peer(1)).unwrap().len();
        members[0].consume(Peer(1), shown);
        left -= shown;
        let heard = is_readable(members[0].news().unwrap(), if left > 0 { 60 } else { 0 });
        assert!(heard || left == 0, "no news of {left} bytes that wait");
        members[0].park(&[], Duration::ZERO).unwrap();
    }
}

#[test]
fn news_that_comes_while_another_peer_is_polled_is_told() {
    let mut members = group(3, &Options::default());
    meet(&mut members[..2]);
    members[0].consume(Peer(1), 1);
    for _ in 0..20 {
        rest(&mut members);
    }
    assert!(members[0].peek(Peer(1)).unwrap().is_empty());
    assert_eq!(members[1].send(Peer(0), b"!").unwrap(), 1);
    // Peer 2 does not come; looking for it takes note of all that has happened.
    for _ in 0..20 {
        assert!(members[0].peek(Peer(2)).unwrap().is_empty());
    }
    assert!(is_readable(members[0].news().unwrap(), 60), "the byte was slept upon");
    members[0].park(&[], Duration::from_secs(60)).unwrap();
    assert_eq!(members[0].peek(Peer(1)).unwrap(), b"!");
    members[0].park(&[], MOMENT).unwrap();
    assert!(!is_readable(members[0].news().unwrap(), 0), "told twice");
}

fn is_readable(fd: BorrowedFd<'_>, limit_secs: i64) -> bool {
    let limit = Timespec { tv_sec: limit_secs, tv_nsec: 0 };
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&limit)).unwrap() > 0
}

#[test]
fn a_close_over_bytes_unread_in_the_kernel_loses_none_that_were_taken() {
    let mut members = group(2, &Options { buffer_len_bytes: 0, ..Options::default() });
    meet(&mut members);
    members[0].consume(Peer(1), 1);
    assert_eq!(members[0].send(Peer(1), &[7; 40_000]).unwrap(), 40_000);
    let (mut taken, mut refused) = (0, 0);
    while refused < 20 {
        let now = members[1].send(Peer(0), &[8; 50_000]).unwrap();
        refused = if now > 0 { 0 } else { refused + 1 };
        taken += now;
        rest(&mut members);
    }
    drop(members.pop());

    let mut arrived = 0;
    for _ in 0..ROUNDS {
        match members[0].peek(Peer(1)).map(<[u8]>::len) {
            Ok(len) => {
                members[0].consume(Peer(1), len);
                arrived += len;
            }
            Err(Error::Closed { peer: Peer(1) }) => return assert_eq!(arrived, taken),
            Err(e) => panic!("{e}"),
        }
        rest(&mut members);
    }
    panic!("no end after {arrived} of {taken} bytes");
}

/// What the stranger reads, while the members do what they do, is the end.
fn assert_is_dropped(stranger: &mut TcpStream, members: &mut [Tcp]) {
    stranger.set_nonblocking(true).unwrap();
    for _ in 0..ROUNDS {
        match stranger.read(&mut [0; 8]) {
            Ok(len) => return assert_eq!(len, 0, "a stranger was told something"),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return,
            Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock),
        }
        rest(members);
    }
    panic!("the stranger is still there");
}

/// Two members, of which the second has its own idea of the secret and the session.
fn estranged(secret_byte: u8, session: u64) -> Vec<Tcp> {
    let (low, high) = (Listener::bind(LOOPBACK).unwrap(), Listener::bind(LOOPBACK).unwrap());
    let known = vec![Some(low.local_addr()), Some(high.local_addr())];
    let options = Options::default();
    let low = low.into_transport(Peer(0), known.clone(), secret(1), SESSION, options.clone());
    let high = high.into_transport(Peer(1), known, secret(secret_byte), session, options);
    vec![low, high]
}

#[test]
fn a_wrong_secret_is_refused() {
    let mut members = estranged(2, SESSION);
    let error = first_error(&mut members, 1, 0);
    assert!(matches!(&error, Error::Protocol { peer: Peer(0), what } if what.contains("secret")));
    rest(&mut members);
    assert_eq!(members[0].send(Peer(1), b"secret payload").unwrap(), 0);
}

#[test]
fn another_session_is_refused() {
    let mut members = estranged(1, SESSION + 1);
    let error = first_error(&mut members, 1, 0);
    assert!(matches!(&error, Error::Protocol { peer: Peer(0), what } if what.contains("session")));
    assert!(first_error(&mut members, 1, 0).to_string().contains("session"), "it stays so");
}

/// The second of two members, where the first listens at an address of its own, but not yet.
fn early(options: &Options) -> (Tcp, SocketAddr) {
    // No other test uses this address, so nobody else is given the port.
    let listener = Listener::bind((Ipv4Addr::new(127, 0, 0, 77), 0).into()).unwrap();
    let (address, high) = (listener.local_addr(), Listener::bind(LOOPBACK).unwrap());
    drop(listener);
    let known = vec![Some(address), None];
    (high.into_transport(Peer(1), known, secret(1), SESSION, options.clone()), address)
}

#[test]
fn a_peer_that_comes_up_late_is_reached() {
    let (mut high, address) = early(&Options::default());
    for _ in 0..20 {
        assert_eq!(high.send(Peer(0), b"!").unwrap(), 0);
        high.park(&[], MOMENT).unwrap();
    }
    let low = Listener::bind_at(address).unwrap();
    let known = vec![None, None];
    let low = low.into_transport(Peer(0), known, secret(1), SESSION, Options::default());
    meet(&mut [low, high]);
}

#[test]
fn a_peer_that_never_comes_up_is_named_with_address_and_attempts() {
    let options = Options { connect_timeout: Duration::from_millis(60), ..Options::default() };
    let (high, address) = early(&options);
    let error = first_error(&mut [high], 0, 0);
    let text = error.to_string();
    assert!(text.contains(&address.to_string()) && text.contains("attempts"), "{text}");
    let Error::Io { peer: Some(Peer(0)), source, .. } = error else {
        panic!("another error: {text}");
    };
    assert_eq!(source.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn who_is_no_peer_is_an_error() {
    let listener = Listener::bind(LOOPBACK).unwrap();
    let known = vec![None, None, None];
    let mut tcp = listener.into_transport(Peer(1), known, secret(1), SESSION, Options::default());
    let mut why = |peer| tcp.send(Peer(peer), b"!").unwrap_err().to_string();
    assert!(why(0).contains("address is not known"));
    assert!(why(1).contains("oneself"));
    assert!(why(3).contains("there are 3 peers"));
    assert_eq!(tcp.send(Peer(2), b"!").unwrap(), 0, "the higher number connects");
}

#[test]
fn first_free_port_of_a_range_is_taken() {
    let ip = SocketAddr::new(Ipv4Addr::new(127, 0, 0, 78).into(), 0);
    let taken = Listener::bind(ip).unwrap();
    let port = taken.local_addr().port();
    let free = Listener::bind(ip).unwrap().local_addr().port();
    assert_eq!(Listener::bind_in(ip, [port, free]).unwrap().local_addr().port(), free);
    let Err(Error::Io { source, .. }) = Listener::bind_in(ip, [port]) else {
        panic!("the port is taken")
    };
    assert_eq!(source.kind(), std::io::ErrorKind::AddrInUse);
}
