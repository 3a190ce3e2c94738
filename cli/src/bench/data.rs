//! What each rank contributes, and what must come out.

use half::{bf16, f16};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use tutti::{Bool, Complex64, Complex128, DataType, Fp8E4M3, Fp8E5M2, Reduction};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::case::Case;
use super::places::Run;

/// Writes runs of what ranks contribute into a buffer that is aligned for the type.
///
/// The values are whole numbers so small that every partial result is exact in the type, for up
/// to [`LARGEST`](Number::LARGEST) ranks: the order of folding does not show.
pub(super) fn fill(case: &Case, runs: &[Run], data: &mut [u8]) {
    match case.data_type {
        DataType::F32 => fill_as::<f32>(case, runs, data),
        DataType::F64 => fill_as::<f64>(case, runs, data),
        DataType::F16 => fill_as::<f16>(case, runs, data),
        DataType::BF16 => fill_as::<bf16>(case, runs, data),
        DataType::I8 => fill_as::<i8>(case, runs, data),
        DataType::I32 => fill_as::<i32>(case, runs, data),
        DataType::I64 => fill_as::<i64>(case, runs, data),
        DataType::U8 => fill_as::<u8>(case, runs, data),
        DataType::I16 => fill_as::<i16>(case, runs, data),
        DataType::U16 => fill_as::<u16>(case, runs, data),
        DataType::U32 => fill_as::<u32>(case, runs, data),
        DataType::U64 => fill_as::<u64>(case, runs, data),
        DataType::Bool => fill_as::<Bool>(case, runs, data),
        DataType::Complex64 => fill_as::<Complex64>(case, runs, data),
        DataType::Complex128 => fill_as::<Complex128>(case, runs, data),
        DataType::Fp8E4M3 => fill_as::<Fp8E4M3>(case, runs, data),
        DataType::Fp8E5M2 => fill_as::<Fp8E5M2>(case, runs, data),
    }
}

/// Recomputes the runs of a result from all ranks' contributions, element by element, and compares.
pub(super) fn first_wrong(case: &Case, runs: &[Run], data: &[u8]) -> Option<Wrong> {
    match case.data_type {
        DataType::F32 => first_wrong_as::<f32>(case, runs, data),
        DataType::F64 => first_wrong_as::<f64>(case, runs, data),
        DataType::F16 => first_wrong_as::<f16>(case, runs, data),
        DataType::BF16 => first_wrong_as::<bf16>(case, runs, data),
        DataType::I8 => first_wrong_as::<i8>(case, runs, data),
        DataType::I32 => first_wrong_as::<i32>(case, runs, data),
        DataType::I64 => first_wrong_as::<i64>(case, runs, data),
        DataType::U8 => first_wrong_as::<u8>(case, runs, data),
        DataType::I16 => first_wrong_as::<i16>(case, runs, data),
        DataType::U16 => first_wrong_as::<u16>(case, runs, data),
        DataType::U32 => first_wrong_as::<u32>(case, runs, data),
        DataType::U64 => first_wrong_as::<u64>(case, runs, data),
        DataType::Bool => first_wrong_as::<Bool>(case, runs, data),
        DataType::Complex64 => first_wrong_as::<Complex64>(case, runs, data),
        DataType::Complex128 => first_wrong_as::<Complex128>(case, runs, data),
        DataType::Fp8E4M3 => first_wrong_as::<Fp8E4M3>(case, runs, data),
        DataType::Fp8E5M2 => first_wrong_as::<Fp8E5M2>(case, runs, data),
    }
}

/// An element that is not what it should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Wrong {
    pub(super) index: u64,
    pub(super) expected: String,
    pub(super) found: String,
}

fn fill_as<T: Number>(case: &Case, runs: &[Run], data: &mut [u8]) {
    let inputs = Inputs::new::<T>(case);
    let elements = <[T]>::mut_from_bytes(data).expect("the buffer is aligned and whole");
    for run in runs {
        let rank = run.of.expect("a contribution is of one rank");
        let run_of = &mut elements[run.at as usize..(run.at + run.len) as usize];
        for (index, element) in (run.first..).zip(run_of) {
            *element = T::from_whole(inputs.value(rank, index));
        }
    }
}

fn first_wrong_as<T: Number>(case: &Case, runs: &[Run], data: &[u8]) -> Option<Wrong> {
    let inputs = Inputs::new::<T>(case);
    let elements = <[T]>::ref_from_bytes(data).expect("the buffer is aligned and whole");
    runs.iter().find_map(|run| {
        let run_of = &elements[run.at as usize..(run.at + run.len) as usize];
        let right = |index: u64, found: &T| {
            let (expected, slack) = expected::<T>(case, &inputs, run.of, index);
            found.is_within(expected, slack)
        };
        let (index, found) =
            (run.first..).zip(run_of).find(|(index, found)| !right(*index, found))?;
        let (expected, _) = expected::<T>(case, &inputs, run.of, index);
        let index = run.at + (index - run.first);
        Some(Wrong { index, expected: expected.to_string(), found: found.to_string() })
    })
}

/// What one rank contributed with that number, or the fold of what all did, and by how much it may be
/// missed.
fn expected<T: Number>(case: &Case, inputs: &Inputs, of: Option<u32>, index: u64) -> (T, f64) {
    if let Some(rank) = of {
        return (T::from_whole(inputs.value(rank, index)), 0.0);
    }
    let values = (0..inputs.ranks).map(|rank| inputs.value(rank, index));
    let whole = match case.reduction {
        Reduction::Sum | Reduction::PremulSum => values.sum(),
        Reduction::Prod => values.fold(1, i64::wrapping_mul),
        Reduction::Min => values.min().unwrap_or(0),
        Reduction::Max => values.max().unwrap_or(0),
        Reduction::Band => values.fold(-1, |a, b| a & b),
        Reduction::Bor => values.fold(0, |a, b| a | b),
        Reduction::Bxor => values.fold(0, |a, b| a ^ b),
        Reduction::Land => values.map(truth).fold(1, |a, b| a & b),
        Reduction::Lor => values.map(truth).fold(0, |a, b| a | b),
        Reduction::Lxor => values.map(truth).fold(0, |a, b| a ^ b),
        Reduction::Avg => {
            let average = T::average(values.sum(), inputs.ranks);
            return (average, T::average_slack(average, inputs.ranks));
        }
    };
    (T::from_whole(whole), 0.0)
}

fn truth(whole: i64) -> i64 {
    i64::from(whole != 0)
}

/// The contributions of all ranks as whole numbers, each a function of rank and index.
#[derive(Clone, Copy)]
struct Inputs {
    ranks: u32,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// `low`, and `span` values from there, times `scale`.
    Range { low: i64, span: u64, scale: i64 },
    /// 1, -1 or 2; a 2 on no more than six ranks, so that the product is at most 64.
    Factors { signed: bool },
    /// 3 or 0, the rarer one with a chance of one to `odds`.
    Bits { odds: u32, rare: i64 },
    /// Up to `largest` either way, times `scale`, on no more than two ranks; 0 on the others.
    Few { largest: i64, scale: i64 },
}

impl Inputs {
    fn new<T: Number>(case: &Case) -> Self {
        let ranks = case.ranks;
        let spread = |largest: i64, scale: i64| {
            let low = if T::SIGNED { -largest } else { 0 };
            Kind::Range { low, span: (largest - low) as u64 + 1, scale }
        };
        let summand = (T::LARGEST / i64::from(ranks)).clamp(1, 100);
        let is_bool = case.data_type == DataType::Bool;
        let is_fp8 = matches!(case.data_type, DataType::Fp8E4M3 | DataType::Fp8E5M2);
        let kind = match (case.reduces(), case.reduction) {
            (true, Reduction::Sum | Reduction::Max) if is_bool => {
                Kind::Bits { odds: ranks + 1, rare: 3 }
            }
            (true, Reduction::Prod | Reduction::Min) if is_bool => {
                Kind::Bits { odds: ranks + 1, rare: 0 }
            }
            (true, Reduction::Sum) if is_fp8 => Kind::Few { largest: 3, scale: 1 },
            (true, Reduction::Avg) if is_fp8 => Kind::Few { largest: 1, scale: i64::from(ranks) },
            (true, Reduction::Prod) => Kind::Factors { signed: T::SIGNED },
            (true, Reduction::Band | Reduction::Land) => Kind::Bits { odds: ranks + 1, rare: 0 },
            (true, Reduction::Bor | Reduction::Lor) => Kind::Bits { odds: ranks + 1, rare: 3 },
            (true, Reduction::Bxor | Reduction::Lxor) => Kind::Bits { odds: 2, rare: 3 },
            (true, Reduction::Sum) => spread(summand, 1),
            // A float may be divided before it is added: let that be exact too.
            (true, Reduction::Avg) if T::FLOAT => spread(summand, i64::from(ranks)),
            (true, Reduction::Avg) => spread(summand, 1),
            _ => spread(T::LARGEST.min(100), 1),
        };
        Inputs { ranks, kind }
    }

    #[inline]
    fn value(&self, rank: u32, index: u64) -> i64 {
        let noise = mix(rank, index);
        match self.kind {
            Kind::Range { low, span, scale } => {
                (low + ((u64::from(noise) * span) >> 32) as i64) * scale
            }
            Kind::Few { largest, scale } => {
                let apart = u64::from(self.ranks.div_ceil(2));
                let span = 2 * largest as u64 + 1;
                let value = ((u64::from(noise) * span) >> 32) as i64 - largest;
                let is_one = (u64::from(rank) + index).is_multiple_of(apart);
                if is_one { value * scale } else { 0 }
            }
            Kind::Bits { odds, rare } if noise.is_multiple_of(odds) => rare,
            Kind::Bits { rare, .. } => 3 - rare,
            Kind::Factors { signed } => {
                let apart = u64::from(self.ranks.div_ceil(6));
                let may_be_two = (u64::from(rank) + index).is_multiple_of(apart);
                match noise >> 30 {
                    0 | 1 if may_be_two => 2,
                    2 if signed => -1,
                    _ => 1,
                }
            }
        }
    }
}

/// 32 bits in which rank and index do not show (the finalizer of MurmurHash3).
#[inline]
fn mix(rank: u32, index: u64) -> u32 {
    let mut x = index ^ (u64::from(rank) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (x >> 32) as u32
}

/// An element as the check computes with it.
trait Number: Copy + Display + FromBytes + IntoBytes + Immutable + KnownLayout {
    /// All whole numbers up to this one are exact, in a sum too.
    const LARGEST: i64;
    const SIGNED: bool;
    const FLOAT: bool;
    /// The number; an integer type keeps its low bits.
    fn from_whole(whole: i64) -> Self;
    /// `sum / ranks`; of integers the sum as the type holds it, divided toward zero.
    fn average(sum: i64, ranks: u32) -> Self;
    /// How far an average may be off: one unit in the last place, and more where so many ranks
    /// contribute that their values are not exact.
    fn average_slack(average: Self, ranks: u32) -> f64;
    /// Whether it differs by no more than `slack`; NaN never does.
    fn is_within(self, expected: Self, slack: f64) -> bool;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            const LARGEST: i64 = if <$type>::BITS < 32 { <$type>::MAX as i64 } else { 1 << 30 };
            const SIGNED: bool = <$type>::MIN != 0;
            const FLOAT: bool = false;
            fn from_whole(whole: i64) -> Self {
                whole as $type
            }
            fn average(sum: i64, ranks: u32) -> Self {
                (i128::from(sum as $type) / i128::from(ranks)) as $type
            }
            fn average_slack(_: Self, _: u32) -> f64 {
                0.0
            }
            fn is_within(self, expected: Self, _: f64) -> bool {
                self == expected
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! floats {
    ($($type:ty, $digits:expr, $from_f64:expr, $to_f64:expr;)*) => {$(
        impl Number for $type {
            const LARGEST: i64 = 1 << $digits;
            const SIGNED: bool = true;
            const FLOAT: bool = true;
            fn from_whole(whole: i64) -> Self {
                $from_f64(whole as f64)
            }
            fn average(sum: i64, ranks: u32) -> Self {
                $from_f64(sum as f64 / f64::from(ranks))
            }
            fn average_slack(average: Self, ranks: u32) -> f64 {
                let exact = i64::from(ranks) <= Self::LARGEST;
                let most = if exact { $to_f64(average).abs() } else { f64::from(ranks) };
                most * 2.0 / Self::LARGEST as f64
            }
            fn is_within(self, expected: Self, slack: f64) -> bool {
                self == expected || ($to_f64(self) - $to_f64(expected)).abs() <= slack
            }
        }
    )*};
}
floats! {
    f32, f32::MANTISSA_DIGITS, |x: f64| x as f32, f64::from;
    f64, f64::MANTISSA_DIGITS, |x: f64| x, |x: f64| x;
    f16, f16::MANTISSA_DIGITS, f16::from_f64, f16::to_f64;
    bf16, bf16::MANTISSA_DIGITS, bf16::from_f64, bf16::to_f64;
    Fp8E4M3, 4, |x: f64| Fp8E4M3::from_f32(x as f32), |x: Fp8E4M3| f64::from(x.to_f32());
    Fp8E5M2, 3, |x: f64| Fp8E5M2::from_f32(x as f32), |x: Fp8E5M2| f64::from(x.to_f32());
}

impl Number for Bool {
    const LARGEST: i64 = 1;
    const SIGNED: bool = false;
    const FLOAT: bool = false;
    fn from_whole(whole: i64) -> Self {
        Bool::from(whole != 0)
    }
    fn average(sum: i64, _: u32) -> Self {
        Self::from_whole(sum)
    }
    fn average_slack(_: Self, _: u32) -> f64 {
        0.0
    }
    /// A result is 0 or 1.
    fn is_within(self, expected: Self, _: f64) -> bool {
        self.0 == expected.0
    }
}

macro_rules! complex {
    ($($complex:ty => $part:ty;)*) => {$(
        /// Real numbers.
        impl Number for $complex {
            const LARGEST: i64 = <$part>::LARGEST;
            const SIGNED: bool = true;
            const FLOAT: bool = true;
            fn from_whole(whole: i64) -> Self {
                Self::new(<$part>::from_whole(whole), 0.0)
            }
            fn average(sum: i64, ranks: u32) -> Self {
                Self::new(<$part>::average(sum, ranks), 0.0)
            }
            fn average_slack(average: Self, ranks: u32) -> f64 {
                <$part>::average_slack(average.re, ranks)
            }
            fn is_within(self, expected: Self, slack: f64) -> bool {
                self.re.is_within(expected.re, slack) && self.im.is_within(expected.im, slack)
            }
        }
    )*};
}
complex! {
    Complex64 => f32;
    Complex128 => f64;
}

#[cfg(test)]
mod tests;
