use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tutti_transport::Peer;
use tutti_transport::handshake::Handshake;

use crate::handover::{confirmed, give};

/// A connection at the leader's socket: first nobody, then a member that has the segment, and gone
/// once it has mapped it.
pub(super) struct Guest {
    stream: UnixStream,
    stage: Stage,
    /// When it has been here for too long.
    pub(super) until: Instant,
}

enum Stage {
    Proving(Box<Handshake>),
    Mapping(Peer),
}

pub(super) enum Moved {
    NotYet,
    Joined,
}

impl Guest {
    pub(super) fn new(stream: UnixStream, handshake: Handshake, patience: Duration) -> Guest {
        let until = Instant::now() + patience;
        Guest { stream, stage: Stage::Proving(Box::new(handshake)), until }
    }

    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// The member that has the segment and has not mapped it yet.
    pub(super) fn holds(&self) -> Option<Peer> {
        match self.stage {
            Stage::Proving(_) => None,
            Stage::Mapping(peer) => Some(peer),
        }
    }

    /// Moves on as far as possible. Whoever gets `file` is taken out of `awaited`.
    pub(super) fn advance(
        &mut self,
        file: BorrowedFd<'_>,
        awaited: &mut BTreeSet<Peer>,
    ) -> Result<Moved, String> {
        if let Stage::Proving(handshake) = &mut self.stage {
            let proven = handshake.advance(&mut self.stream).map_err(|why| why.to_string())?;
            let Some(peer) = proven.map(Peer) else {
                return Ok(Moved::NotYet);
            };
            if !awaited.remove(&peer) {
                return Err(format!("peer {peer} is no member of this host, or was here before"));
            }
            self.stage = Stage::Mapping(peer);
            give(&self.stream, file).map_err(|why| why.to_string())?;
        }
        match confirmed(&self.stream) {
            Ok(()) => Ok(Moved::Joined),
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(Moved::NotYet),
            Err(e) => Err(format!("it left without mapping the memory: {e}")),
        }
    }
}
