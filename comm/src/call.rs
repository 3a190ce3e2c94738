//! What a rank asks for, and the fingerprint by which its peers compare it with what they ask for.

use std::fmt;

use tutti_topo::Rank;
use tutti_topo::schedule::Collective;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::message::{End, Message};
use crate::{DataType, Reduction};

/// One collective call of one rank, without its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// What is to be done.
    pub collective: Collective,
    /// The type of the elements.
    pub data_type: DataType,
    /// How contributions are combined; [`Reduction::Sum`] where nothing is combined.
    pub reduction: Reduction,
    /// Elements of one rank's data; where it has blocks, of all of them together. An all-to-all with
    /// uneven blocks has none: there is no number that all ranks know.
    pub count: u64,
    /// 0 if all blocks have the same size; else a number that differs, for all practical purposes,
    /// when the lists of their sizes differ.
    pub counts: u32,
}

impl Call {
    /// The length of the data in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.count * self.data_type.size() as u64
    }

    /// What the caller called.
    pub fn name(&self) -> &'static str {
        match (self.collective, self.counts) {
            (_, 0) => self.collective.name(),
            (Collective::AllGather, _) => "all_gather_v",
            (Collective::ReduceScatter, _) => "reduce_scatter_v",
            (Collective::Gather { .. }, _) => "gather_v",
            (Collective::Scatter { .. }, _) => "scatter_v",
            _ => self.collective.name(),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call { collective, data_type, reduction, count, .. } = self;
        f.write_str(self.name())?;
        match collective {
            Collective::Barrier => return Ok(()),
            _ => write!(f, " of {count} {data_type}")?,
        }
        if collective.reduces() {
            write!(f, " by {reduction}")?;
        }
        match collective {
            Collective::Broadcast { root } | Collective::Scatter { root } => {
                write!(f, " from rank {root}")
            }
            Collective::Reduce { root } | Collective::Gather { root } => {
                write!(f, " to rank {root}")
            }
            _ if self.counts != 0 => write!(f, " in blocks listed as {:08x}", self.counts),
            _ => Ok(()),
        }
    }
}

/// A call with its place in the communicator's order of calls and the plan that carries it:
/// what each rank sends ahead of its first bytes to each peer. Or a message with its place in the
/// order of messages from one rank to another: what its sender sends ahead of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Fingerprint {
    sequence: U64,
    count: U64,
    plan: U32,
    root: U32,
    collective: u8,
    data_type: u8,
    reduction: u8,
    reserved: u8,
    counts: U32,
}

impl Fingerprint {
    /// The length on the wire.
    pub(crate) const LEN: usize = size_of::<Self>();

    pub(crate) fn new(call: &Call, sequence: u64, plan: u32) -> Self {
        let collective = match call.collective {
            Collective::AllReduce => 0,
            Collective::Broadcast { .. } => 1,
            Collective::Barrier => 2,
            Collective::Reduce { .. } => 3,
            Collective::AllGather => 4,
            Collective::ReduceScatter => 5,
            Collective::Gather { .. } => 6,
            Collective::Scatter { .. } => 7,
            Collective::AllToAll => 8,
            Collective::AllToAllV => 9,
        };
        Fingerprint {
            sequence: sequence.into(),
            count: call.count.into(),
            plan: plan.into(),
            root: call.collective.root().map_or(0, |root| root.0).into(),
            collective,
            data_type: call.data_type.code(),
            reduction: call.reduction.code(),
            reserved: 0,
            counts: call.counts.into(),
        }
    }

    /// The same between two ranks that have a count of their own.
    pub(crate) fn with_count(mut self, count: u64) -> Self {
        self.count = count.into();
        self
    }

    /// Whether the two are the same but for a count that only two ranks have in common.
    pub(crate) fn differs_in_pair(&self, other: &Self) -> bool {
        let of_pair = |print: &Self| {
            print.call().is_some_and(|call| call.collective == Collective::AllToAllV)
        };
        self != other && of_pair(self) && self.with_count(0) == other.with_count(0)
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.sequence.get()
    }

    /// The fingerprint as four words.
    pub(crate) fn words(&self) -> [u64; 4] {
        zerocopy::transmute!(*self)
    }

    pub(crate) fn from_words(words: [u64; 4]) -> Self {
        zerocopy::transmute!(words)
    }

    /// 64 bits that differ, for all practical purposes, when the fingerprint differs (FNV-1a by words).
    pub(crate) fn tag(&self) -> u64 {
        self.words().iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| {
            (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
        })
    }

    /// The call, unless a code is unknown (then the bytes are no fingerprint of this version).
    pub(crate) fn call(&self) -> Option<Call> {
        let root = Rank(self.root.get());
        let collective = match self.collective {
            0 => Collective::AllReduce,
            1 => Collective::Broadcast { root },
            2 => Collective::Barrier,
            3 => Collective::Reduce { root },
            4 => Collective::AllGather,
            5 => Collective::ReduceScatter,
            6 => Collective::Gather { root },
            7 => Collective::Scatter { root },
            8 => Collective::AllToAll,
            9 => Collective::AllToAllV,
            _ => return None,
        };
        Some(Call {
            collective,
            data_type: DataType::from_code(self.data_type)?,
            reduction: Reduction::from_code(self.reduction)?,
            count: self.count.get(),
            counts: self.counts.get(),
        })
    }
}

/// The codes of the two ends of a message, beside those of the collectives.
const SEND: u8 = 128;
const RECV: u8 = 129;
const RECV_ANY: u8 = 130;

impl Fingerprint {
    /// The sequence of a message that has no place among those of its pair of ranks yet.
    pub(crate) const UNNUMBERED: u64 = u64::MAX;

    /// A message's, `sequence` counting those from its sender to its receiver.
    pub(crate) fn of_message(message: &Message, sequence: u64) -> Self {
        let (collective, peer) = match message.end {
            End::To(rank) => (SEND, rank.0),
            End::From(rank) => (RECV, rank.0),
            End::FromAny => (RECV_ANY, 0),
        };
        Fingerprint {
            sequence: sequence.into(),
            count: message.count.into(),
            plan: message.tag.into(),
            root: peer.into(),
            collective,
            data_type: message.data_type.code(),
            ..Self::from_words([0; 4])
        }
    }

    /// The message, if this is the fingerprint of one.
    pub(crate) fn message(&self) -> Option<Message> {
        let peer = Rank(self.root.get());
        let end = match self.collective {
            SEND => End::To(peer),
            RECV => End::From(peer),
            RECV_ANY => End::FromAny,
            _ => return None,
        };
        let data_type = DataType::from_code(self.data_type)?;
        Some(Message { end, tag: self.plan.get(), data_type, count: self.count.get() })
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message() {
            Some(message) if self.sequence == Self::UNNUMBERED => return write!(f, "{message}"),
            Some(message) => return write!(f, "{message} (message {})", self.sequence),
            None => {}
        }
        match self.call() {
            Some(call) => write!(f, "#{} {call} (plan {:08x})", self.sequence, self.plan),
            None => write!(f, "no operation of this version: {:02x?}", self.as_bytes()),
        }
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Call {
        Call {
            collective: Collective::AllReduce,
            data_type: DataType::F32,
            reduction: Reduction::Sum,
            count: 1024,
            counts: 0,
        }
    }

    #[test]
    fn fingerprint_survives_the_wire() {
        let kinds = Collective::KINDS.map(|kind| kind.with_root(Rank(3)));
        for call in kinds.map(|collective| Call { collective, counts: 5, ..call() }) {
            let print = Fingerprint::new(&call, 7, 99);
            let back = Fingerprint::from_words(print.words());
            assert_eq!(back, print);
            assert_eq!(back.call(), Some(call));
        }
    }

    #[test]
    fn message_survives_the_wire_and_is_no_collective() {
        for end in [End::To(Rank(3)), End::From(Rank(1)), End::FromAny] {
            let message = Message { end, tag: 7, data_type: DataType::I64, count: 1 << 40 };
            let print = Fingerprint::from_words(Fingerprint::of_message(&message, 5).words());
            assert_eq!((print.message(), print.sequence()), (Some(message), 5));
            assert_eq!(print.call(), None);
            assert!(print.to_string().contains(&message.to_string()), "{print}");
        }
        assert_eq!(Fingerprint::new(&call(), 7, 99).message(), None);
    }

    #[test]
    fn any_difference_changes_the_tag() {
        let base = Fingerprint::new(&call(), 7, 99);
        let others = [
            Fingerprint::new(&call(), 8, 99),
            Fingerprint::new(&call(), 7, 98),
            Fingerprint::new(&Call { count: 1023, ..call() }, 7, 99),
            Fingerprint::new(&Call { data_type: DataType::I32, ..call() }, 7, 99),
            Fingerprint::new(&Call { reduction: Reduction::Max, ..call() }, 7, 99),
            Fingerprint::new(&Call { collective: Collective::Barrier, ..call() }, 7, 99),
            Fingerprint::new(&Call { counts: 1, ..call() }, 7, 99),
        ];
        assert!(others.iter().all(|other| other.tag() != base.tag()));
    }

    #[test]
    fn unknown_code_is_no_call() {
        let mut print = Fingerprint::new(&call(), 7, 99);
        print.collective = 200;
        assert_eq!(print.call(), None);
        assert!(print.to_string().contains("no operation"));
    }
}
