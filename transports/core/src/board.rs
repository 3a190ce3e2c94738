//! Exchange of messages inside one host, all members at once.

use crate::{Error, Peer};

/// A board in shared memory: in each round every member posts one message and reads the others'
/// messages in place. One synchronisation a round.
///
/// Rounds are counted by the board; every member takes part in every round, in the same order.
/// A member may read the messages of its last two rounds, and nobody overwrites them until it posts
/// again: so it can post the next message before it has dealt with those of the round.
pub trait Board {
    /// The longest message, in bytes.
    fn limit(&self) -> usize;

    /// Starts the next round with this member's message: `parts`, one after the other. Nothing is
    /// done as long as some member has not posted in the round before the last, or if one had
    /// another tag in it.
    ///
    /// `tag` says what the message belongs to. A member that reads a message compares its tag; those
    /// of messages that are never read are compared by a later `post`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the shared memory cannot be set up.
    ///
    /// # Panics
    ///
    /// If the message is longer than [`limit`](Board::limit).
    fn post(&mut self, tag: u64, parts: &[&[u8]]) -> Result<Posted, Error>;

    /// The tag and message of `peer` in one of this member's rounds, if it has posted in it. This
    /// member's own messages can be read too.
    fn read(&self, peer: Peer, round: Round) -> Option<(u64, &[u8])>;
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// It stands.
    Yes,
    /// It is to be offered again, when this peer has posted.
    NotYet(Peer),
    /// This peer's tag was another one than this member's, two rounds ago.
    Differs(Peer),
}

/// A round of a member, counted from its last [`post`](Board::post).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// The one of its last post.
    Current,
    /// The one before.
    Last,
}
