//! The memory that a collective works on, with guards around it.

use std::ops::Range;

use anyhow::{Context, Result};

/// The buffers of a rank: of its contribution, if that is not in place, and of the result.
pub(super) struct Buffers {
    pub(super) from: Buffer,
    pub(super) into: Buffer,
}

impl Buffers {
    /// Room for rows that need up to so many bytes each.
    pub(super) fn new(from_bytes: u64, into_bytes: u64) -> Result<Self> {
        Ok(Buffers { from: Buffer::new(from_bytes)?, into: Buffer::new(into_bytes)? })
    }
}

/// Room for the largest row. The data starts on a page; before and behind it lie guards that no
/// collective may touch.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

const PAGE: usize = 4096;
const GUARD: usize = 64;
const UNTOUCHED: u8 = 0xa5;

impl Buffer {
    /// Room for up to `max_bytes` of data, all of it touched.
    pub(super) fn new(max_bytes: u64) -> Result<Self> {
        let no_room = || format!("there is no memory for {max_bytes} bytes");
        let data = usize::try_from(max_bytes).ok();
        let room =
            data.and_then(|data| data.checked_add(2 * PAGE + GUARD)).with_context(no_room)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(room).with_context(no_room)?;
        bytes.resize(room, UNTOUCHED);
        let start = GUARD + (bytes.as_ptr() as usize + GUARD).wrapping_neg() % PAGE;
        Ok(Buffer { bytes, start, len: 0 })
    }

    /// Sets the length of the data and puts the guards around it.
    pub(super) fn resize(&mut self, len_bytes: u64) {
        self.len = len_bytes as usize;
        for guard in self.guards() {
            self.bytes[guard].fill(UNTOUCHED);
        }
    }

    /// Overwrites the data with what no case contributes, so that nothing is right from before.
    pub(super) fn spoil(&mut self) {
        self.data().fill(UNTOUCHED);
    }

    pub(super) fn data(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }

    /// The distance from the start of the data of the first guard byte that was overwritten.
    pub(super) fn touched(&self) -> Option<i64> {
        let mut guards = self.guards().into_iter().flatten();
        let touched = guards.find(|at| self.bytes[*at] != UNTOUCHED)?;
        Some(touched as i64 - self.start as i64)
    }

    fn guards(&self) -> [Range<usize>; 2] {
        let end = self.start + self.len;
        [self.start - GUARD..self.start, end..end + GUARD]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_starts_on_a_page_and_has_its_length() {
        let mut buffer = Buffer::new(1000).unwrap();
        for len in [0, 1, 1000] {
            buffer.resize(len);
            assert_eq!(buffer.data().as_ptr() as usize % PAGE, 0);
            assert_eq!(buffer.data().len() as u64, len);
        }
    }

    #[test]
    fn a_write_next_to_the_data_is_found() {
        let mut buffer = Buffer::new(100).unwrap();
        buffer.resize(10);
        buffer.data().fill(0);
        assert_eq!(buffer.touched(), None);
        let start = buffer.start;
        buffer.bytes[start + 10] = 0;
        assert_eq!(buffer.touched(), Some(10));
        buffer.bytes[start - 1] = 0;
        assert_eq!(buffer.touched(), Some(-1));
        buffer.resize(10);
        assert_eq!(buffer.touched(), None);
    }

    #[test]
    fn too_large_a_size_is_an_error() {
        assert!(Buffer::new(u64::MAX).is_err());
        assert!(Buffer::new(i64::MAX as u64).is_err());
    }
}
