//! Truth values that any byte is.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A truth value in a byte, of which every bit pattern is one: 0 is false, all others are true.
/// Reductions give 0 or 1. Displayed as the byte.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl Bool {
    /// The truth value.
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(truth: bool) -> Self {
        Bool(truth.into())
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Bool {}

impl fmt::Display for Bool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_but_zero_is_true() {
        for byte in 0..=u8::MAX {
            assert_eq!(Bool(byte).get(), byte != 0);
            assert_eq!(Bool(byte), Bool::from(byte != 0));
        }
        assert_eq!([Bool::from(false).0, Bool::from(true).0], [0, 1]);
    }
}
