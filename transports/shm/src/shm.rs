mod board;
mod park;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use tutti_transport::{Board, Error as TransportError, Peer, Transport};

use crate::error::Error;
use crate::members::Members;
use crate::pipe::{Inbound, Outbound, PIECE};
use crate::segment::Segment;
use crate::sync::{Ordering, fence};
use crate::waker::Waker;
use board::Standing;
pub(crate) use board::{Head, LINE, SHARE, SHORT};
use park::Noticed;

/// A member's end of its host's shared memory: from [`Host::serve`](crate::Host::serve) on the
/// leader, from [`Shm::join`] on the others.
///
/// Dropping it tells the peers that this member is gone.
pub struct Shm {
    segment: Segment,
    members: Members,
    outbound: Vec<Outbound>,
    inbound: Vec<Inbound>,
    standing: Standing,
    noticed: Vec<Noticed>,
    waker: Waker,
}

impl Shm {
    pub(crate) fn new(segment: Segment, members: Members) -> Result<Shm, Error> {
        let me = members.me();
        let waker = Waker::bind(segment.member(me))
            .map_err(Error::io("cannot bind the socket by which this member is woken"))?;
        let ring = segment.layout().ring_bytes;
        let places = || members.peers().iter().copied().enumerate();
        let outbound = places().map(|(to, peer)| Outbound::new(peer, me, to, ring)).collect();
        let inbound = places().map(|(from, peer)| Inbound::new(peer, from, me, ring)).collect();
        let noticed = places().map(|_| Noticed::default()).collect();
        let standing = Standing::new(members.peers().len());
        Ok(Shm { segment, members, outbound, inbound, standing, noticed, waker })
    }

    /// The members, in order.
    pub(crate) fn peers(&self) -> &[Peer] {
        self.members.peers()
    }

    pub(crate) fn me(&self) -> Peer {
        self.members.peers()[self.members.me()]
    }

    /// The segment's file.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.segment.file()
    }

    fn place(&self, peer: Peer) -> Result<usize, TransportError> {
        self.members.place(peer).ok_or_else(|| TransportError::Io {
            peer: Some(peer),
            what: format!("no shared memory with it, but with {:?}", self.peers()),
            source: io::ErrorKind::InvalidInput.into(),
        })
    }

    fn is_closed(&self, place: usize) -> bool {
        self.segment.member(place).bell.is_closed()
    }

    /// Wakes all others that sleep, after something was published to them.
    fn wake_others(&self) {
        fence(Ordering::SeqCst);
        for place in (0..self.peers().len()).filter(|&place| place != self.members.me()) {
            self.waker.wake(self.segment.member(place));
        }
    }
}

/// Members share memory, so connections are not made: what is sent to a member that has not joined
/// yet waits in the ring.
impl Transport for Shm {
    fn send(&mut self, peer: Peer, bytes: &[u8]) -> Result<usize, TransportError> {
        let to = self.place(peer)?;
        if self.is_closed(to) {
            return Err(TransportError::Closed { peer });
        }
        let mut taken = 0;
        while taken < bytes.len() {
            match self.outbound[to].push(&self.segment, &bytes[taken..])? {
                0 => break,
                len => taken += len,
            }
            fence(Ordering::SeqCst);
            self.waker.wake(self.segment.member(to));
        }
        Ok(taken)
    }

    fn peek(&mut self, peer: Peer) -> Result<&[u8], TransportError> {
        let from = self.place(peer)?;
        let mut ready = self.inbound[from].ready(&self.segment)?;
        if ready == 0 && self.is_closed(from) {
            // What it sent before closing is seen now, if not before.
            ready = self.inbound[from].ready(&self.segment)?;
            if ready == 0 {
                return Err(TransportError::Closed { peer });
            }
        }
        self.inbound[from].bytes(&self.segment)
    }

    fn consume(&mut self, peer: Peer, len: usize) {
        let from = self.place(peer).expect("a peer whose bytes were shown");
        self.inbound[from].release(&self.segment, len);
        fence(Ordering::SeqCst);
        let sender = self.segment.member(from);
        if sender.bell.sleeps() && self.inbound[from].was_full(&self.segment, len) {
            self.waker.wake(sender);
        }
    }

    fn recv(&mut self, peer: Peer, dst: &mut [u8]) -> Result<usize, TransportError> {
        let mut received = 0;
        loop {
            let rest = &mut dst[received..];
            let arrived = match self.peek(peer) {
                Err(_) if received > 0 => break,
                peeked => peeked?,
            };
            // In pieces, so that the sender refills the ring meanwhile.
            let len = arrived.len().min(rest.len()).min(PIECE);
            if len == 0 {
                break;
            }
            rest[..len].copy_from_slice(&arrived[..len]);
            self.consume(peer, len);
            received += len;
        }
        Ok(received)
    }

    fn park(&mut self, also: &[BorrowedFd<'_>], limit: Duration) -> Result<(), TransportError> {
        self.sleep(also, limit).map_err(|source| TransportError::Io {
            peer: None,
            what: "cannot wait for news in shared memory".into(),
            source,
        })
    }

    fn kind(&self, _peer: Peer) -> &'static str {
        "shm"
    }

    fn board(&mut self) -> Option<&mut dyn Board> {
        Some(self)
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        self.segment.member(self.members.me()).bell.close();
        self.wake_others();
    }
}

impl fmt::Debug for Shm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shm").field("me", &self.me()).field("peers", &self.peers()).finish()
    }
}
