use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Registry};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use tutti_transport::{Error, Peer, Transport};

use crate::net::Net;
use crate::stream::{Brought, Stream};

const EVENTS_AT_ONCE: usize = 256;

/// Up to here copying two slices into one costs less than telling the system of two.
const COPIED: usize = 512;

/// A [`Transport`] over TCP; made by [`Listener::into_transport`](crate::Listener).
///
/// Polling a peer whose connection stands costs one system call on its socket. Connections are
/// accepted, and handshakes go on, in `park` and in the polling of a peer that is not connected.
///
/// What watches [`news`](Transport::news) hears of connections to accept and of timers too. It
/// stays readable until `park` has taken note; with a limit of zero that does not wait.
///
/// Dropping it closes all connections, and what was taken still arrives, unless the peer goes on
/// sending.
pub struct Tcp {
    poll: Poll,
    events: Events,
    net: Net,
}

impl Tcp {
    pub(crate) fn new(poll: Poll, net: Net) -> Tcp {
        Tcp { poll, events: Events::with_capacity(EVENTS_AT_ONCE), net }
    }

    /// Tells where a peer listens.
    pub(crate) fn know(&mut self, peer: Peer, address: SocketAddr) {
        self.net.know(peer, address);
    }

    /// Whether the connection to `peer` stands.
    pub(crate) fn stands(&mut self, peer: Peer) -> bool {
        self.net.stream(peer).is_some()
    }

    /// Sees to it that the connection to `peer` is made; whether it stands.
    pub(crate) fn open(&mut self, peer: Peer) -> Result<bool, Error> {
        Ok(self.stream(peer)?.is_some())
    }

    /// As `send`, of several slices, to a peer whose connection stands.
    pub(crate) fn send_vectored(
        &mut self,
        peer: Peer,
        slices: &[IoSlice<'_>],
    ) -> Result<usize, Error> {
        match self.stream(peer)? {
            Some((stream, registry)) => {
                stream.send_vectored(slices, registry).map_err(|e| broken(peer, e))
            }
            None => Ok(0),
        }
    }

    /// Reads from a peer whose connection stands, past the buffer. Not to be mixed with `peek` and
    /// `recv`; followed by `rest`.
    pub(crate) fn recv_vectored(
        &mut self,
        peer: Peer,
        slices: &mut [IoSliceMut<'_>],
    ) -> Result<Brought, Error> {
        match self.stream(peer)? {
            Some((stream, _)) => stream.recv_vectored(slices).map_err(|e| broken(peer, e)),
            None => Ok(Brought { len: 0, drained: true }),
        }
    }

    /// Ends a run of `recv_vectored`.
    pub(crate) fn rest(&mut self, peer: Peer) {
        if let Some(stream) = self.net.stream(peer) {
            stream.rest(self.poll.registry());
        }
    }

    /// The peers of whose connections events have told since the last call.
    pub(crate) fn take_stirred(&mut self) -> Vec<Peer> {
        self.net.take_stirred()
    }

    /// The descriptor that [`news`](Transport::news) gives.
    pub(crate) fn network(&self) -> BorrowedFd<'_> {
        self.poll.registry().as_fd()
    }

    /// The stream to `peer`; `None` as long as it does not stand.
    fn stream(&mut self, peer: Peer) -> Result<Option<(&mut Stream, &Registry)>, Error> {
        if self.net.stream(peer).is_none() {
            self.net.open(peer, self.poll.registry())?;
            if self.harvest(Duration::ZERO)? {
                // Of a peer, maybe, that the caller has polled already, to park next.
                self.net.tell_later()?;
            }
        }
        Ok(self.net.stream(peer).map(|stream| (stream, self.poll.registry())))
    }

    /// Waits for events, up to `limit`, and does what they call for; whether a caller can do
    /// more than before.
    fn harvest(&mut self, limit: Duration) -> Result<bool, Error> {
        match self.poll.poll(&mut self.events, Some(limit)) {
            Ok(()) if self.events.is_empty() => return Ok(false),
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(true),
            Err(e) => return Err(cannot_wait(e)),
        }
        let (now, mut news) = (Instant::now(), false);
        for event in &self.events {
            news |= self.net.on_event(event, self.poll.registry(), now);
        }
        self.net.set_timer()?;
        Ok(news)
    }

    /// As `harvest`, watching `also` too: whether one of them is readable, or there is news.
    fn watch(&mut self, also: &[BorrowedFd<'_>], limit: Duration) -> Result<bool, Error> {
        let own = self.poll.registry().as_fd();
        let all = std::iter::once(own).chain(also.iter().copied());
        let mut fds: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        // A limit beyond what the system can count is for ever.
        match rustix::event::poll(&mut fds, Timespec::try_from(limit).ok().as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(true),
            Err(e) => return Err(cannot_wait(e.into())),
        }
        let others = fds[1..].iter().any(|fd| !fd.revents().is_empty());
        Ok(self.harvest(Duration::ZERO)? || others)
    }
}

impl Transport for Tcp {
    fn send(&mut self, peer: Peer, bytes: &[u8]) -> Result<usize, Error> {
        match self.stream(peer)? {
            Some((stream, registry)) => stream.send(bytes, registry).map_err(|e| broken(peer, e)),
            None => Ok(0),
        }
    }

    fn send_joined(&mut self, peer: Peer, head: &[u8], bytes: &[u8]) -> Result<usize, Error> {
        let mut joined = [0; COPIED];
        let Some(both) = joined.get_mut(..head.len() + bytes.len()) else {
            return self.send_vectored(peer, &[IoSlice::new(head), IoSlice::new(bytes)]);
        };
        both[..head.len()].copy_from_slice(head);
        both[head.len()..].copy_from_slice(bytes);
        self.send(peer, both)
    }

    fn peek(&mut self, peer: Peer) -> Result<&[u8], Error> {
        match self.stream(peer)? {
            Some((stream, _)) => stream.peek().map_err(|e| broken(peer, e)),
            None => Ok(&[]),
        }
    }

    fn consume(&mut self, peer: Peer, len: usize) {
        match self.net.stream(peer) {
            Some(stream) => stream.consume(len, self.poll.registry()),
            None => assert_eq!(len, 0, "bytes consumed where none are shown"),
        }
    }

    fn recv(&mut self, peer: Peer, dst: &mut [u8]) -> Result<usize, Error> {
        match self.stream(peer)? {
            Some((stream, registry)) => stream.recv(dst, registry).map_err(|e| broken(peer, e)),
            None => Ok(0),
        }
    }

    fn park(&mut self, also: &[BorrowedFd<'_>], limit: Duration) -> Result<(), Error> {
        let start = Instant::now();
        let mut left = limit;
        loop {
            let news = if also.is_empty() || left.is_zero() {
                self.harvest(left)?
            } else {
                self.watch(also, left)?
            };
            if news || left.is_zero() {
                return Ok(());
            }
            left = limit.saturating_sub(start.elapsed());
        }
    }

    fn news(&self) -> Option<BorrowedFd<'_>> {
        Some(self.network())
    }

    fn kind(&self, _peer: Peer) -> &'static str {
        "tcp"
    }
}

/// What an error of an established connection means.
fn broken(peer: Peer, source: io::Error) -> Error {
    match source.kind() {
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::NotConnected
        | ErrorKind::UnexpectedEof => Error::Closed { peer },
        _ => Error::Io { peer: Some(peer), what: "the connection broke".into(), source },
    }
}

fn cannot_wait(source: io::Error) -> Error {
    Error::Io { peer: None, what: "cannot wait for the network".into(), source }
}
