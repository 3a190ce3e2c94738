//! The two ends of a ring with its bytes.

use std::io;

use tutti_transport::{Error, Peer};

use crate::mapping::Region;
use crate::ring::{Consumer, Corrupt, Producer};
use crate::segment::Segment;

/// How many bytes are copied before the other end may see them, so that both ends copy at once.
/// Half as much is slower by a tenth for 2 MiB messages on an EPYC with 1 MiB of L2 per core.
pub(crate) const PIECE: usize = 32 << 10;

/// The sending end.
pub(crate) struct Outbound {
    peer: Peer,
    from: usize,
    to: usize,
    pub(crate) index: Producer,
    data: Option<Region>,
}

impl Outbound {
    pub(crate) fn new(peer: Peer, from: usize, to: usize, ring_bytes: usize) -> Outbound {
        Outbound { peer, from, to, index: Producer::new(ring_bytes), data: None }
    }

    /// Puts a piece of the front of `bytes` into the ring; returns its length, 0 if the ring is
    /// full.
    pub(crate) fn push(&mut self, segment: &Segment, bytes: &[u8]) -> Result<usize, Error> {
        let indices = segment.indices(self.from, self.to);
        let room = self.index.room(indices, bytes.len()).map_err(|c| broken(self.peer, c))?;
        let len = bytes.len().min(room).min(PIECE);
        if len == 0 {
            return Ok(0);
        }
        let data = match &mut self.data {
            Some(data) => data,
            data => data.insert(open(segment, self.peer, self.from, self.to)?),
        };
        // SAFETY: this is the only producer of the ring (a place in the segment is given to one
        // `Shm`), `room` says that the consumer is done with these bytes, and it reads them only
        // after `publish`.
        unsafe { data.write(place(segment, self.index.at()), &bytes[..len]) };
        self.index.publish(indices, len);
        Ok(len)
    }
}

/// The receiving end.
pub(crate) struct Inbound {
    peer: Peer,
    from: usize,
    to: usize,
    pub(crate) index: Consumer,
    data: Option<Region>,
}

impl Inbound {
    pub(crate) fn new(peer: Peer, from: usize, to: usize, ring_bytes: usize) -> Inbound {
        Inbound { peer, from, to, index: Consumer::new(ring_bytes), data: None }
    }

    /// How many bytes have arrived.
    pub(crate) fn ready(&mut self, segment: &Segment) -> Result<usize, Error> {
        let indices = segment.indices(self.from, self.to);
        self.index.ready(indices).map_err(|c| broken(self.peer, c))
    }

    /// The bytes that the last `ready` counted.
    pub(crate) fn bytes(&mut self, segment: &Segment) -> Result<&[u8], Error> {
        let shown = self.index.shown();
        if shown == 0 {
            return Ok(&[]);
        }
        let data = match &mut self.data {
            Some(data) => data,
            // The sender has committed the ring before its first byte.
            data => {
                let map = segment.map_ring(self.from, self.to);
                data.insert(map.map_err(|e| cannot("map", self.peer, segment, "from", e))?)
            }
        };
        // SAFETY: the producer has published these bytes and does not write them before
        // `release`, which the borrow of `self` keeps away; a member that breaks this could only
        // make the bytes change under the reader, see the documentation of the crate.
        Ok(unsafe { data.slice(place(segment, self.index.at()), shown) })
    }

    /// Gives the first `len` bytes back; whether the sender may sleep for want of room is to be
    /// asked of `index` after a fence.
    pub(crate) fn release(&mut self, segment: &Segment, len: usize) {
        self.index.release(segment.indices(self.from, self.to), len);
    }

    /// Whether the ring was full before the `len` bytes last released.
    pub(crate) fn was_full(&self, segment: &Segment, len: usize) -> bool {
        self.index.was_full(segment.indices(self.from, self.to), len)
    }
}

/// Commits and maps the ring to `peer`.
fn open(segment: &Segment, peer: Peer, from: usize, to: usize) -> Result<Region, Error> {
    segment
        .commit_ring(from, to)
        .and_then(|()| segment.map_ring(from, to))
        .map_err(|e| cannot("commit", peer, segment, "to", e))
}

fn cannot(verb: &str, peer: Peer, segment: &Segment, way: &str, source: io::Error) -> Error {
    let len = segment.layout().ring_bytes;
    let what = format!(
        "cannot {verb} {len} bytes of shared memory for the ring {way} a peer: free memory, raise \
         the memory limit, or choose smaller ring_bytes"
    );
    Error::Io { peer: Some(peer), what, source }
}

fn broken(peer: Peer, corrupt: Corrupt) -> Error {
    Error::Protocol { peer, what: corrupt.to_string() }
}

/// Where the byte with this index is in the ring.
fn place(segment: &Segment, index: u64) -> usize {
    (index & (segment.layout().ring_bytes as u64 - 1)) as usize
}
