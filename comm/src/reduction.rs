//! How a collective combines elements.

use std::fmt;

use crate::data_type::{DataType, Kind};

/// What becomes of the elements that the ranks contribute to one place.
///
/// The discriminant is the code on the wire, so it never changes for a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reduction {
    /// Their sum; integers wrap.
    Sum = 0,
    /// Their product; integers wrap.
    Prod = 1,
    /// The smallest: NaN if one is NaN, and -0 is below +0.
    Min = 2,
    /// The largest: NaN if one is NaN, and +0 is above -0.
    Max = 3,
    /// Their sum divided by the number of ranks; of integers the wrapped sum, divided toward zero.
    Avg = 4,
    /// Bitwise and of integers.
    Band = 5,
    /// Bitwise or of integers.
    Bor = 6,
    /// Bitwise exclusive or of integers.
    Bxor = 7,
    /// Logical and: 1 if no integer is zero, 0 if one is.
    Land = 8,
    /// Logical or: 1 if an integer is not zero, 0 if all are.
    Lor = 9,
    /// Logical exclusive or: 1 if an odd number of integers is not zero, 0 if an even number.
    Lxor = 10,
}

impl Reduction {
    /// Every reduction, in the order of the codes.
    pub const ALL: [Reduction; 11] = [
        Reduction::Sum,
        Reduction::Prod,
        Reduction::Min,
        Reduction::Max,
        Reduction::Avg,
        Reduction::Band,
        Reduction::Bor,
        Reduction::Bxor,
        Reduction::Land,
        Reduction::Lor,
        Reduction::Lxor,
    ];

    /// The name in reports and on command lines; [`from_name`](Self::from_name) reads it back.
    pub fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Prod => "prod",
            Reduction::Min => "min",
            Reduction::Max => "max",
            Reduction::Avg => "avg",
            Reduction::Band => "band",
            Reduction::Bor => "bor",
            Reduction::Bxor => "bxor",
            Reduction::Land => "land",
            Reduction::Lor => "lor",
            Reduction::Lxor => "lxor",
        }
    }

    /// The reduction with this name.
    pub fn from_name(name: &str) -> Option<Reduction> {
        Self::ALL.into_iter().find(|reduction| reduction.name() == name)
    }

    /// Whether elements of this type can be combined so.
    ///
    /// # Errors
    ///
    /// Why not, in one sentence.
    pub fn applies_to(self, data_type: DataType) -> Result<(), String> {
        let why = match (self, data_type.kind()) {
            (
                Reduction::Band
                | Reduction::Bor
                | Reduction::Bxor
                | Reduction::Land
                | Reduction::Lor
                | Reduction::Lxor,
                Kind::Float,
            ) => "it is for integers",
            _ => return Ok(()),
        };
        Err(format!("{self} does not apply to {data_type}: {why}"))
    }

    /// The code on the wire.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The reduction with this code on the wire.
    pub fn from_code(code: u8) -> Option<Reduction> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_read_back() {
        for reduction in Reduction::ALL {
            assert_eq!(Reduction::from_name(reduction.name()), Some(reduction));
            assert_eq!(Reduction::from_code(reduction.code()), Some(reduction));
            assert_eq!(reduction.to_string(), reduction.name());
        }
        assert_eq!(Reduction::from_code(Reduction::ALL.len() as u8), None);
        assert_eq!(Reduction::from_name("xor"), None);
    }

    #[test]
    fn a_reduction_that_does_not_apply_says_what_it_is_for() {
        let why = Reduction::Band.applies_to(DataType::F32).unwrap_err();
        assert_eq!(why, "band does not apply to fp32: it is for integers");
    }
}
