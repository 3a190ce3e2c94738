//! What a rank asks for, and the fingerprint by which its peers compare it with what they ask for.

use std::fmt;

use tutti_topo::Rank;
use tutti_topo::schedule::Collective;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

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
    /// Elements per rank.
    pub count: u64,
}

impl Call {
    /// The length of the data in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.count * self.data_type.size() as u64
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call { collective, data_type, reduction, count } = self;
        match collective {
            Collective::AllReduce => write!(f, "all_reduce of {count} {data_type} by {reduction}"),
            Collective::Broadcast { root } => {
                write!(f, "broadcast of {count} {data_type} from rank {root}")
            }
            Collective::Barrier => write!(f, "barrier"),
        }
    }
}

/// A call with its place in the communicator's order of calls and the plan that carries it:
/// what each rank sends ahead of its first bytes to each peer.
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
    reserved: [u8; 5],
}

impl Fingerprint {
    /// The length on the wire.
    pub(crate) const LEN: usize = size_of::<Self>();

    pub(crate) fn new(call: &Call, sequence: u64, plan: u32) -> Self {
        let (collective, root) = match call.collective {
            Collective::AllReduce => (0, 0),
            Collective::Broadcast { root } => (1, root.0),
            Collective::Barrier => (2, 0),
        };
        Fingerprint {
            sequence: sequence.into(),
            count: call.count.into(),
            plan: plan.into(),
            root: root.into(),
            collective,
            data_type: call.data_type.code(),
            reduction: call.reduction.code(),
            reserved: [0; 5],
        }
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
        let collective = match self.collective {
            0 => Collective::AllReduce,
            1 => Collective::Broadcast { root: Rank(self.root.get()) },
            2 => Collective::Barrier,
            _ => return None,
        };
        Some(Call {
            collective,
            data_type: DataType::from_code(self.data_type)?,
            reduction: Reduction::from_code(self.reduction)?,
            count: self.count.get(),
        })
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        }
    }

    #[test]
    fn fingerprint_survives_the_wire() {
        let broadcast = Call { collective: Collective::Broadcast { root: Rank(3) }, ..call() };
        for call in [call(), broadcast] {
            let print = Fingerprint::new(&call, 7, 99);
            let back = Fingerprint::from_words(print.words());
            assert_eq!(back, print);
            assert_eq!(back.call(), Some(call));
        }
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
