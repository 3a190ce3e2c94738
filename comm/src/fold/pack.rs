//! How elements lie in memory, and the numbers they are folded as.

use half::{bf16, f16};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::number::Number;
use crate::data_type::{Complex64, Complex128, Fp8E4M3, Fp8E5M2};

/// What a loop reads and writes at once: one element, or several that are converted together.
pub(super) trait Pack: Copy + FromBytes + IntoBytes + Immutable + KnownLayout {
    /// What it is folded as: `f32` for floats of 16 and 8 bits, for others itself.
    type Number: Number;
    /// What the elements behind the last whole pack are read as.
    type Tail: Pack;
    /// An array of numbers.
    type Block: AsMut<[Self::Number]>;
    /// 512 bytes of memory to work in.
    const BLOCK: Self::Block;

    /// The exact value.
    fn widen(self) -> Self::Number;
    /// The nearest value, ties to even; every NaN becomes the canonical one.
    fn narrow(number: Self::Number) -> Self;
}

macro_rules! floats {
    ($($float:ty, nan $nan:literal;)*) => {$(
        impl Pack for $float {
            type Number = Self;
            type Tail = Self;
            type Block = [Self; 512 / size_of::<Self>()];
            const BLOCK: Self::Block = [0 as Self; 512 / size_of::<Self>()];
            #[inline(always)]
            fn widen(self) -> Self {
                self
            }
            #[inline(always)]
            fn narrow(number: Self) -> Self {
                if number.is_nan() { Self::from_bits($nan) } else { number }
            }
        }
    )*};
}
floats! {
    f32, nan 0x7fc0_0000;
    f64, nan 0x7ff8_0000_0000_0000;
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Pack for $integer {
            type Number = Self;
            type Tail = Self;
            type Block = [Self; 512 / size_of::<Self>()];
            const BLOCK: Self::Block = [0 as Self; 512 / size_of::<Self>()];
            #[inline(always)]
            fn widen(self) -> Self {
                self
            }
            #[inline(always)]
            fn narrow(number: Self) -> Self {
                number
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Pack for bf16 {
    type Number = f32;
    type Tail = Self;
    type Block = [f32; 128];
    const BLOCK: Self::Block = [0.0; 128];

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn narrow(number: f32) -> Self {
        let bits = f32::narrow(number).to_bits();
        // Half a unit of the last place less one, and one more if that place is odd.
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
        bf16::from_bits((rounded >> 16) as u16)
    }
}

/// In shifts and selects, which every CPU has as vector instructions.
impl Pack for f16 {
    type Number = f32;
    type Tail = Self;
    type Block = [f32; 128];
    const BLOCK: Self::Block = [0.0; 128];

    #[inline(always)]
    fn widen(self) -> f32 {
        widen_f16(self)
    }

    #[inline(always)]
    fn narrow(number: f32) -> Self {
        let magnitude = number.to_bits() & 0x7fff_ffff;
        let sign = (number.to_bits() ^ magnitude) >> 16;
        // Adding 0.5 leaves a mantissa whose unit is the smallest f16, rounded by the adder.
        let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
        let odd = (magnitude >> 13) & 1;
        let normal = magnitude.wrapping_sub(REBIAS).wrapping_add(0x0fff + odd) >> 13;
        let narrowed = if magnitude < 0x3880_0000 { subnormal } else { normal };
        let narrowed = if magnitude < 0x4780_0000 { narrowed } else { 0x7c00 };
        f16::from_bits(if number.is_nan() { 0x7e00 } else { sign | narrowed } as u16)
    }
}

/// The exact value.
#[inline(always)]
pub(crate) fn widen_f16(half: f16) -> f32 {
    let bits = u32::from(half.to_bits());
    let sign = (bits & 0x8000) << 16;
    let magnitude = bits & 0x7fff;
    let subnormal = (magnitude as i32 as f32 * SUBNORMAL_UNIT).to_bits();
    let normal = (magnitude << 13) + REBIAS;
    // Infinity and NaN: from the highest exponent to the highest.
    let normal = if magnitude < 0x7c00 { normal } else { normal + REBIAS };
    let widened = if magnitude < 0x0400 { subnormal } else { normal };
    f32::from_bits(sign | widened)
}

/// The difference of the exponent biases of f32 and f16, where f32 keeps its exponent.
const REBIAS: u32 = (127 - 15) << 23;
/// The smallest f16 above zero, 2^-24.
const SUBNORMAL_UNIT: f32 = 1.0 / 16_777_216.0;

macro_rules! floats_of_8_bits {
    ($($float:ty),*) => {$(
        impl Pack for $float {
            type Number = f32;
            type Tail = Self;
            type Block = [f32; 128];
            const BLOCK: Self::Block = [0.0; 128];
            #[inline(always)]
            fn widen(self) -> f32 {
                self.to_f32()
            }
            #[inline(always)]
            fn narrow(number: f32) -> Self {
                Self::from_f32(number)
            }
        }
    )*};
}
floats_of_8_bits!(Fp8E4M3, Fp8E5M2);

macro_rules! complex {
    ($($complex:ty),*) => {$(
        impl Pack for $complex {
            type Number = Self;
            type Tail = Self;
            type Block = [Self; 512 / size_of::<Self>()];
            const BLOCK: Self::Block = [Self::new(0.0, 0.0); 512 / size_of::<Self>()];
            #[inline(always)]
            fn widen(self) -> Self {
                self
            }
            #[inline(always)]
            fn narrow(number: Self) -> Self {
                Self::new(Pack::narrow(number.re), Pack::narrow(number.im))
            }
        }
    )*};
}
complex!(Complex64, Complex128);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_widens_to_its_value() {
        for bits in 0..=u16::MAX {
            let half = f16::from_bits(bits);
            let (ours, theirs) = (half.widen(), half.to_f32_const());
            assert!(same(ours, theirs), "{bits:#06x}: {ours} and {theirs}");
        }
    }

    #[test]
    fn every_bf16_widens_to_its_value() {
        for bits in 0..=u16::MAX {
            let half = bf16::from_bits(bits);
            assert!(same(half.widen(), half.to_f32_const()), "{bits:#06x}");
        }
    }

    #[test]
    fn f32_narrows_to_the_nearest_f16_and_bf16() {
        for number in around_every_halfway_point() {
            let (ours, theirs) = (f16::narrow(number), f16::from_f32_const(number));
            assert!(ours == theirs && ours.to_bits() == theirs.to_bits(), "f16 of {number:e}");
            let (ours, theirs) = (bf16::narrow(number), bf16::from_f32_const(number));
            assert!(ours == theirs && ours.to_bits() == theirs.to_bits(), "bf16 of {number:e}");
        }
    }

    #[test]
    fn every_nan_narrows_to_the_canonical_one() {
        for bits in [0x7f80_0001, 0x7fc0_0000, 0x7fff_ffff, 0xff80_0001, 0xffff_ffff] {
            let nan = f32::from_bits(bits);
            assert_eq!(f16::narrow(nan).to_bits(), 0x7e00);
            assert_eq!(bf16::narrow(nan).to_bits(), 0x7fc0);
            assert_eq!(f32::narrow(nan).to_bits(), 0x7fc0_0000);
        }
        assert_eq!(f64::narrow(-f64::NAN).to_bits(), 0x7ff8_0000_0000_0000);
    }

    /// For each value of either 16-bit type: itself, the point halfway to the next one, and
    /// the numbers beside both.
    fn around_every_halfway_point() -> impl Iterator<Item = f32> {
        (0..=u16::MAX)
            .flat_map(|bits| {
                let half = f16::from_bits(bits).to_f32_const().to_bits();
                let brain = u32::from(bits) << 16;
                [half, half | 0x1000, half | 0x0800, half ^ 0x2000, brain, brain | 0x8000]
            })
            .flat_map(|bits| [bits.wrapping_sub(1), bits, bits.wrapping_add(1)])
            .map(f32::from_bits)
            .filter(|number| !number.is_nan())
    }

    fn same(a: f32, b: f32) -> bool {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
    }
}
