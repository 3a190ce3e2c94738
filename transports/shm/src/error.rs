use std::io;

use tutti_transport::Peer;
use tutti_transport::handshake::HandshakeError;

/// Why a host's shared memory could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked for what cannot be: a size, a list of members, a name.
    #[error("{what}")]
    Argument {
        /// What was asked for, and what is possible.
        what: String,
    },
    /// Members had not joined when the deadline passed.
    #[error("no shared memory with {}: not joined before the deadline", list(peers))]
    Missing {
        /// Those members, in order.
        peers: Vec<Peer>,
    },
    /// The leader had not handed over the segment when the deadline passed.
    #[error("the leader, peer {leader}, has not handed over the shared memory before the deadline")]
    Late {
        /// The leader.
        leader: Peer,
    },
    /// The process at the leader's socket runs as another user.
    #[error("the process at the socket of the leader, peer {leader}, belongs to user {uid}")]
    OtherUser {
        /// The leader.
        leader: Peer,
        /// That user's id.
        uid: u32,
    },
    /// The leader and this process could not prove to each other that they belong together.
    #[error("the handshake with the leader, peer {leader}, failed")]
    Handshake {
        /// The leader.
        leader: Peer,
        /// Why.
        source: HandshakeError,
    },
    /// What the leader handed over is not the segment of these members.
    #[error("the leader's shared memory does not fit: {what}")]
    Segment {
        /// What was expected and what was found.
        what: String,
    },
    /// The system refused something.
    #[error("{what}")]
    Io {
        /// What was tried, and with which sizes or addresses.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: the system refused `what`.
    pub(crate) fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        move |source| Error::Io { what: what.into(), source: source.into() }
    }
}

fn list(peers: &[Peer]) -> String {
    let numbers: Vec<_> = peers.iter().map(Peer::to_string).collect();
    format!("peer{} {}", if peers.len() == 1 { "" } else { "s" }, numbers.join(", "))
}
