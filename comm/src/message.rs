//! Messages from one rank to another: what a send and its receive must agree in.

use std::fmt;

use tutti_topo::Rank;

use crate::DataType;

/// The other end of a message, and its tag. A plain [`Rank`] stands for tag 0.
///
/// Tags do not select: messages between two ranks are matched in the order in which they are sent,
/// and a receive whose tag differs from that of the next message is an error that names both.
///
/// ```
/// use tutti::{Envelope, Rank};
///
/// let envelope = Envelope { peer: Rank(3), tag: 7 };
/// assert_eq!(Envelope::from(Rank(3)), Envelope { tag: 0, ..envelope });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// The rank that the message goes to, or comes from.
    pub peer: Rank,
    /// Any number, the same on both ends.
    pub tag: u32,
}

impl From<Rank> for Envelope {
    fn from(peer: Rank) -> Self {
        Envelope { peer, tag: 0 }
    }
}

/// One end of a message, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) end: End,
    pub(crate) tag: u32,
    pub(crate) data_type: DataType,
    /// In elements.
    pub(crate) count: u64,
}

/// Which end of a message this rank is, and who is the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    To(Rank),
    From(Rank),
    FromAny,
}

impl End {
    pub(crate) fn is_send(self) -> bool {
        matches!(self, End::To(_))
    }

    pub(crate) fn peer(self) -> Option<Rank> {
        match self {
            End::To(rank) | End::From(rank) => Some(rank),
            End::FromAny => None,
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Message { end, tag, data_type, count } = self;
        match end {
            End::To(rank) => write!(f, "send of {count} {data_type} to rank {rank}")?,
            End::From(rank) => write!(f, "recv of {count} {data_type} from rank {rank}")?,
            End::FromAny => write!(f, "recv of {count} {data_type} from any rank")?,
        }
        write!(f, " with tag {tag}")
    }
}
