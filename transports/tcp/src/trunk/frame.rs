//! What goes ahead of every piece on a shared connection: 16 bytes, little-endian.

/// A head's length in bytes.
pub(super) const LEN: usize = 16;

/// What follows, or all there is to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// So many bytes of the channel follow.
    Data { channel: u64, len: u32 },
    /// So many more bytes of the channel may be sent.
    Credit { channel: u64, len: u32 },
    /// The channel is closed at this end.
    Close { channel: u64 },
}

impl Head {
    pub(super) fn encode(self) -> [u8; LEN] {
        let (kind, channel, len) = match self {
            Head::Data { channel, len } => (0_u32, channel, len),
            Head::Credit { channel, len } => (1, channel, len),
            Head::Close { channel } => (2, channel, 0),
        };
        let mut bytes = [0; LEN];
        bytes[..8].copy_from_slice(&channel.to_le_bytes());
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        bytes[12..].copy_from_slice(&kind.to_le_bytes());
        bytes
    }

    /// None if the bytes are no head.
    pub(super) fn decode(bytes: &[u8; LEN]) -> Option<Head> {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let (channel, len) = (u64::from(word(0)) | u64::from(word(4)) << 32, word(8));
        match word(12) {
            0 => Some(Head::Data { channel, len }),
            1 => Some(Head::Credit { channel, len }),
            2 => Some(Head::Close { channel }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_survive_the_wire_and_nonsense_is_none() {
        let channel = 0x0123_4567_89ab_cdef;
        for head in [
            Head::Data { channel, len: 1 },
            Head::Credit { channel, len: u32::MAX },
            Head::Close { channel },
        ] {
            assert_eq!(Head::decode(&head.encode()), Some(head));
        }
        assert_eq!(Head::decode(&[0xff; LEN]), None);
    }
}
