//! A transport on which one rank runs alone, at the cost of copying the bytes.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use tutti_transport::{Error, Peer, Transport};

/// What rank 0 sends to a rank comes back as if from the rank at the same distance on the other side.
/// In a collective that is the same seen from every rank, those two send and receive the same
/// lengths and fingerprints, so rank 0 can run it alone. Without room nothing passes.
pub(crate) struct Mirror {
    streams: Vec<Stream>,
    room: usize,
}

/// The bytes from one rank that are not yet consumed: those from `start` on.
#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    start: usize,
}

impl Mirror {
    /// Rank 0's end in a group of `size`; each stream holds `room` bytes.
    pub(crate) fn new(size: u32, room: usize) -> Mirror {
        Mirror { streams: (0..size).map(|_| Stream::default()).collect(), room }
    }
}

impl Transport for Mirror {
    fn send(&mut self, peer: Peer, bytes: &[u8]) -> Result<usize, Error> {
        let back = (self.streams.len() - peer.index()) % self.streams.len();
        let held = &mut self.streams[back].bytes;
        let taken = bytes.len().min(self.room - held.len());
        held.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn peek(&mut self, peer: Peer) -> Result<&[u8], Error> {
        let stream = &self.streams[peer.index()];
        Ok(&stream.bytes[stream.start..])
    }

    fn consume(&mut self, peer: Peer, len: usize) {
        let stream = &mut self.streams[peer.index()];
        stream.start += len;
        if stream.start == stream.bytes.len() {
            *stream = Stream { bytes: std::mem::take(&mut stream.bytes), start: 0 };
            stream.bytes.clear();
        }
    }

    fn park(&mut self, _also: &[BorrowedFd<'_>], _limit: Duration) -> Result<(), Error> {
        Ok(())
    }

    fn kind(&self, _peer: Peer) -> &'static str {
        "mirror"
    }
}
