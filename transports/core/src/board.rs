//! Fused exchange of small messages inside one host.

use crate::{Error, Peer};

/// A board in shared memory: in each round every member posts one small message and reads the
/// others' messages in place. One synchronisation a round.
///
/// Rounds are counted by the board; every member takes part in every round, in the same order.
/// A member may read a message of the current round until it posts in the next.
pub trait Board {
    /// The longest message, in bytes.
    fn limit(&self) -> usize;

    /// Starts the next round with this member's message. `false`, and nothing done, as long as
    /// some member may still read what the slot holds from two rounds before.
    ///
    /// `tag` says what the message belongs to; readers compare it with theirs.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the shared memory cannot be set up.
    ///
    /// # Panics
    ///
    /// If `bytes` is longer than [`limit`](Board::limit).
    fn post(&mut self, tag: u64, bytes: &[u8]) -> Result<bool, Error>;

    /// The tag and message of `peer` in the current round (that of this member's last `post`), if
    /// it has posted. This member's own message can be read too.
    fn read(&self, peer: Peer) -> Option<(u64, &[u8])>;
}
