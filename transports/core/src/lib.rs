//! The [`Transport`] trait, what every transport must do ([`conformance`]), the [`handshake`] by
//! which two processes prove that they belong to one job, and an in-memory transport
//! ([`memory`]) for tests.
//!
//! Absent: collectives, ranks of a communicator, plans, threads.

pub mod board;
pub mod conformance;
pub mod handshake;
pub mod memory;

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

pub use board::{Board, Posted, Round};

/// One end that a transport can reach: an index in the transport's own numbering, from 0.
///
/// A communicator's ranks map to peers; several communicators may share one transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer(pub u32);

impl Peer {
    /// The peer as an index into a list with one entry per peer.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The longest message that [`Transport::send_joined`] makes of two by copying them.
const JOINED: usize = 1 << 10;

/// Moves bytes between this process and its peers: one ordered stream of bytes each way per peer.
///
/// The caller drives. No call but [`park`](Transport::park) blocks, and none starts a thread.
/// Bytes are lent for the length of a call only, so nothing is in flight that a caller could
/// free: `send` takes what it has room for, `peek` shows what has arrived *where it arrived* (a
/// fold reads straight from the ring slot), `recv` moves it to its place. Connections are made on
/// first use of a peer; until one stands, `send` takes nothing and `peek` shows nothing.
///
/// Peers must use a link from both ends: which end opens the connection is the transport's choice.
pub trait Transport: Send {
    /// Offers `bytes` to `peer` and returns how many of them, from the front, were taken: those
    /// may be overwritten and are not offered again. 0 means no room now.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if the peer has closed its end.
    fn send(&mut self, peer: Peer, bytes: &[u8]) -> Result<usize, Error>;

    /// As `send` of `head` with `bytes` behind it, and both leave in one message where that is cheap.
    ///
    /// # Errors
    ///
    /// As for [`send`](Transport::send).
    fn send_joined(&mut self, peer: Peer, head: &[u8], bytes: &[u8]) -> Result<usize, Error> {
        let first = bytes.len().min(JOINED.saturating_sub(head.len()));
        let len = head.len() + first;
        // To clear the longer room takes longer than to copy a short message.
        let (mut short, mut long);
        let both = if len <= 128 {
            short = [0; 128];
            &mut short[..len]
        } else if len <= JOINED {
            long = [0; JOINED];
            &mut long[..len]
        } else {
            return self.send(peer, head);
        };
        both[..head.len()].copy_from_slice(head);
        both[head.len()..].copy_from_slice(&bytes[..first]);
        self.send(peer, both)
    }

    /// The bytes from `peer` that have arrived and were not consumed, in order and contiguous;
    /// empty if there are none. Repeated calls show more as more arrives, up to the transport's
    /// buffer (at least 4 KiB).
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if nothing is left and the peer has closed its end.
    fn peek(&mut self, peer: Peer) -> Result<&[u8], Error>;

    /// Drops the first `len` bytes of what `peek` shows.
    ///
    /// # Panics
    ///
    /// If `len` is more than the last `peek` of this peer showed.
    fn consume(&mut self, peer: Peer, len: usize);

    /// Moves bytes from `peer` into the front of `dst`; returns how many, 0 if none are there.
    /// The same as `peek`, copy, `consume`, but may skip the transport's own buffer.
    ///
    /// # Errors
    ///
    /// As for [`peek`](Transport::peek).
    fn recv(&mut self, peer: Peer, dst: &mut [u8]) -> Result<usize, Error> {
        let arrived = self.peek(peer)?;
        let len = arrived.len().min(dst.len());
        dst[..len].copy_from_slice(&arrived[..len]);
        if len > 0 {
            self.consume(peer, len);
        }
        Ok(len)
    }

    /// Sleeps until a `send` that took nothing, or a `peek` that showed nothing new, may now do
    /// more; until one of `also` is readable; or until `limit` has passed. May return early.
    ///
    /// The caller must have polled every peer it waits for since the last return. While parked
    /// the thread uses no processor time.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the system refuses to wait.
    fn park(&mut self, also: &[BorrowedFd<'_>], limit: Duration) -> Result<(), Error>;

    /// A descriptor that becomes readable when the transport has news (for a transport that
    /// waits in the kernel), so that another transport's `park` can watch it. It stays readable
    /// until this transport's own `park` has run, which with a limit of zero does not sleep.
    fn news(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The name of what carries the bytes to `peer`: `shm`, `tcp`, ...
    fn kind(&self, peer: Peer) -> &'static str;

    /// The board of the group, if all peers share memory and it has one.
    fn board(&mut self) -> Option<&mut dyn Board> {
        None
    }
}

/// Why a transport could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The peer has closed its end, or its process is gone.
    #[error("peer {peer} has closed the connection")]
    Closed {
        /// The peer that is gone.
        peer: Peer,
    },
    /// The peer, or somebody in its place, broke the protocol.
    #[error("peer {peer} broke the protocol: {what}")]
    Protocol {
        /// The peer.
        peer: Peer,
        /// What was expected and what came.
        what: String,
    },
    /// The system refused something.
    #[error("{what}{}", peer.map(|p| format!(" (peer {p})")).unwrap_or_default())]
    Io {
        /// The peer concerned, if one is.
        peer: Option<Peer>,
        /// What was tried, and with which sizes or addresses.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}
