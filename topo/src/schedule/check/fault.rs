use crate::Rank;

/// Why a set of schedules is wrong. Steps are indices into the steps of the rank named beside
/// them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The ranks do not cut the data alike, or cut it into nothing.
    #[error("rank {rank} cuts the data into {chunks} chunks, rank 0 into {expected}")]
    Chunks {
        /// The first rank that differs from rank 0, or rank 0 if it has no chunks.
        rank: Rank,
        /// Its chunks.
        chunks: u32,
        /// The chunks of rank 0.
        expected: u32,
    },
    /// A part is empty or reaches beyond the last chunk.
    #[error("rank {rank} step {step}: {len} chunks from chunk {first} on, of {chunks}")]
    Bounds {
        /// The rank whose step it is.
        rank: Rank,
        /// The step.
        step: u32,
        /// The first chunk of the part.
        first: u32,
        /// The length of the part.
        len: u32,
        /// How many chunks there are.
        chunks: u32,
    },
    /// The peer of a message is outside the group, or the rank itself.
    #[error("rank {rank} step {step}: a message to or from rank {peer}")]
    Peer {
        /// The rank whose step it is.
        rank: Rank,
        /// The step.
        step: u32,
        /// The impossible peer.
        peer: Rank,
    },
    /// A local step is not between the same chunks of the two vectors.
    #[error("rank {rank} step {step}: a local step between parts that do not correspond")]
    Local {
        /// The rank whose step it is.
        rank: Rank,
        /// The step.
        step: u32,
    },
    /// The input is written.
    #[error("rank {rank} step {step}: writes to the input")]
    ReadOnly {
        /// The rank whose step it is.
        rank: Rank,
        /// The step.
        step: u32,
    },
    /// A message has no receive.
    #[error("rank {rank} step {step}: rank {to} does not receive what is sent to it")]
    Unreceived {
        /// The sender.
        rank: Rank,
        /// Its send.
        step: u32,
        /// Who should receive.
        to: Rank,
    },
    /// A receive has no message.
    #[error("rank {rank} step {step}: rank {from} does not send what is received from it")]
    Unsent {
        /// The receiver.
        rank: Rank,
        /// Its receive.
        step: u32,
        /// Who should send.
        from: Rank,
    },
    /// A message meets a receive of other chunks.
    #[error("rank {rank} step {step}: receives other chunks than rank {from} sends in step {sent}")]
    Mismatch {
        /// The receiver.
        rank: Rank,
        /// Its receive.
        step: u32,
        /// The sender.
        from: Rank,
        /// Its send.
        sent: u32,
    },
    /// A chunk that holds nothing is sent, folded or copied, or folded into.
    #[error("rank {rank} step {step}: chunk {chunk} holds nothing")]
    Nothing {
        /// The rank whose step it is.
        rank: Rank,
        /// The step.
        step: u32,
        /// The empty chunk.
        chunk: u32,
    },
    /// A rank is folded into a chunk that has it already.
    #[error("rank {rank} step {step}: folds rank {again} into chunk {chunk} a second time")]
    Twice {
        /// The rank whose step it is.
        rank: Rank,
        /// The step.
        step: u32,
        /// The chunk.
        chunk: u32,
        /// A rank whose contribution is there twice.
        again: Rank,
    },
    /// A chunk is overwritten by just what it holds: the move is for nothing.
    #[error("rank {rank} step {step}: overwrites chunk {chunk} with what it holds already")]
    Idle {
        /// The rank whose step it is.
        rank: Rank,
        /// The step.
        step: u32,
        /// The chunk.
        chunk: u32,
    },
    /// Ranks wait for each other in a circle.
    #[error("stuck: {}", list(waits))]
    Stuck {
        /// The circle: each waits for the next, the last for the first.
        waits: Vec<Wait>,
    },
    /// A result lacks a contribution.
    #[error("rank {rank} ends without rank {missing} in chunk {chunk}")]
    Lost {
        /// The rank whose result it is.
        rank: Rank,
        /// The chunk.
        chunk: u32,
        /// A rank that should be in it.
        missing: Rank,
    },
    /// A result is complete, but folded in another order than on rank 0.
    #[error("rank {rank} ends with chunk {chunk} folded in another order than on rank 0")]
    Order {
        /// The rank whose result it is.
        rank: Rank,
        /// The chunk.
        chunk: u32,
    },
}

/// A rank that waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Who waits.
    pub rank: Rank,
    /// The first of its steps that is not done.
    pub step: u32,
    /// For whom it waits.
    pub on: Rank,
}

fn list(waits: &[Wait]) -> String {
    let words = waits
        .iter()
        .map(|Wait { rank, step, on }| format!("rank {rank} waits at step {step} for rank {on}"));
    words.collect::<Vec<_>>().join(", ")
}
