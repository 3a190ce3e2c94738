use std::os::fd::BorrowedFd;
use std::time::Duration;

use tutti_transport::{Board, Error as TransportError, Peer, Transport};

/// Shared memory to the ranks of this host, TCP to the others.
pub(super) struct Mixed<S, T> {
    pub(super) shm: S,
    pub(super) tcp: T,
    pub(super) is_local: Vec<bool>,
}

impl<S: Transport, T: Transport> Mixed<S, T> {
    fn way(&mut self, peer: Peer) -> &mut dyn Transport {
        if self.is_local[peer.index()] { &mut self.shm } else { &mut self.tcp }
    }
}

impl<S: Transport, T: Transport> Transport for Mixed<S, T> {
    fn send(&mut self, peer: Peer, bytes: &[u8]) -> Result<usize, TransportError> {
        self.way(peer).send(peer, bytes)
    }

    fn send_joined(
        &mut self,
        peer: Peer,
        head: &[u8],
        bytes: &[u8],
    ) -> Result<usize, TransportError> {
        self.way(peer).send_joined(peer, head, bytes)
    }

    fn peek(&mut self, peer: Peer) -> Result<&[u8], TransportError> {
        self.way(peer).peek(peer)
    }

    fn consume(&mut self, peer: Peer, len: usize) {
        self.way(peer).consume(peer, len);
    }

    fn recv(&mut self, peer: Peer, dst: &mut [u8]) -> Result<usize, TransportError> {
        self.way(peer).recv(peer, dst)
    }

    /// Sleeps in shared memory's way, and watches TCP's descriptor meanwhile.
    fn park(&mut self, also: &[BorrowedFd<'_>], limit: Duration) -> Result<(), TransportError> {
        let watched: Vec<_> = also.iter().copied().chain(self.tcp.news()).collect();
        self.shm.park(&watched, limit)?;
        self.tcp.park(&[], Duration::ZERO)
    }

    fn kind(&self, peer: Peer) -> &'static str {
        if self.is_local[peer.index()] { self.shm.kind(peer) } else { self.tcp.kind(peer) }
    }

    fn board(&mut self) -> Option<&mut dyn Board> {
        None
    }
}
