//! How a collective combines elements.

use std::fmt;

use crate::data_type::{DataType, Kind};

/// What becomes of the elements that the ranks contribute to one place.
///
/// The discriminant is the code on the wire, so it never changes for a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reduction {
    /// Their sum; integers wrap. Of bools, whether one is true.
    Sum = 0,
    /// Their product; integers wrap. Of bools, whether all are true.
    Prod = 1,
    /// The smallest: NaN if one is NaN, and -0 is below +0.
    Min = 2,
    /// The largest: NaN if one is NaN, and +0 is above -0.
    Max = 3,
    /// Their sum divided by the number of ranks; of integers the wrapped sum, divided toward zero.
    Avg = 4,
    /// Bitwise and of integers and bools.
    Band = 5,
    /// Bitwise or of integers and bools.
    Bor = 6,
    /// Bitwise exclusive or of integers and bools.
    Bxor = 7,
    /// Logical and: 1 if none is zero, 0 if one is.
    Land = 8,
    /// Logical or: 1 if one is not zero, 0 if all are.
    Lor = 9,
    /// Logical exclusive or: 1 if an odd number of them is not zero, 0 if an even number.
    Lxor = 10,
    /// The sum of what each rank contributes times a number of its own; see
    /// [`Request::scaled`](crate::Request::scaled).
    PremulSum = 11,
}

impl Reduction {
    /// Every reduction, in the order of the codes.
    pub const ALL: [Reduction; 12] = [
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
        Reduction::PremulSum,
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
            Reduction::PremulSum => "premul_sum",
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
        let is_for_bits = matches!(
            self,
            Reduction::Band
                | Reduction::Bor
                | Reduction::Bxor
                | Reduction::Land
                | Reduction::Lor
                | Reduction::Lxor
        );
        let why = match (self, data_type.kind()) {
            (_, Kind::Float | Kind::Float8 | Kind::Complex) if is_for_bits => {
                "it is for integers and bool"
            }
            (Reduction::Avg | Reduction::PremulSum, Kind::Bool) => {
                "it is for integers, floats and complex numbers"
            }
            (Reduction::Min | Reduction::Max, Kind::Complex) => "complex numbers have no order",
            (Reduction::Prod, Kind::Float8) => "products need more than eight bits",
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
        assert_eq!(why, "band does not apply to fp32: it is for integers and bool");
        for (reduction, data_type, why) in [
            (Reduction::Lxor, DataType::Complex64, "for integers and bool"),
            (Reduction::Avg, DataType::Bool, "it is for integers, floats and complex numbers"),
            (Reduction::Max, DataType::Complex128, "no order"),
            (Reduction::Prod, DataType::Fp8E5M2, "more than eight bits"),
        ] {
            assert!(reduction.applies_to(data_type).unwrap_err().ends_with(why));
        }
    }
}
