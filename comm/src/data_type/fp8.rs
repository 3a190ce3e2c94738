//! Floats of eight bits, as in the OCP 8-bit floating point specification.

use std::fmt;

use half::f16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A float with 4 bits of exponent and 3 of mantissa. It has no infinity: the largest is 448, and
/// only `S.1111.111` is NaN. Compared by its bits.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(transparent)]
pub struct Fp8E4M3(pub u8);

/// A float with 5 bits of exponent and 2 of mantissa, the upper half of a binary16. The largest is
/// 57344. Compared by its bits.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(transparent)]
pub struct Fp8E5M2(pub u8);

impl Fp8E4M3 {
    /// The nearest value, ties to even; what rounds to more than 448 is NaN, as is NaN.
    #[inline(always)]
    pub fn from_f32(number: f32) -> Self {
        let code = nearest::<3, 7>(number).min(0x7f);
        let sign = if code == 0x7f { 0 } else { sign(number) };
        Fp8E4M3((sign | code) as u8)
    }

    /// The exact value.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        let magnitude = u32::from(self.0 & 0x7f);
        let sign = u32::from(self.0 & 0x80) << 24;
        // The smallest above zero is 2^-9.
        let subnormal = (magnitude as i32 as f32 / 512.0).to_bits();
        let normal = (magnitude << 20) + ((127 - 7) << 23);
        let value = if magnitude < 0x08 { subnormal } else { normal };
        f32::from_bits(if magnitude == 0x7f { 0x7fc0_0000 } else { sign | value })
    }
}

impl Fp8E5M2 {
    /// The nearest value, ties to even; what rounds to more than 57344 is infinite.
    #[inline(always)]
    pub fn from_f32(number: f32) -> Self {
        let code = sign(number) | nearest::<2, 15>(number).min(0x7c);
        Fp8E5M2(if number.is_nan() { 0x7e } else { code as u8 })
    }

    /// The exact value.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        crate::fold::widen_f16(f16::from_bits(u16::from(self.0) << 8))
    }
}

/// The sign of an 8-bit float.
#[inline(always)]
fn sign(number: f32) -> u32 {
    (number.to_bits() >> 31) << 7
}

/// The code of the nearest magnitude with so many bits of mantissa and this exponent bias, ties to
/// even, as if exponents had no end.
#[inline(always)]
fn nearest<const MANTISSA: u32, const BIAS: u32>(number: f32) -> u32 {
    let magnitude = number.to_bits() & 0x7fff_ffff;
    let shift = 23 - MANTISSA;
    // Adding this leaves a mantissa whose unit is the smallest value, rounded by the adder.
    let anchor = (127 + 1 + shift - BIAS) << 23;
    let small = f32::from_bits(magnitude) + f32::from_bits(anchor);
    let subnormal = small.to_bits().wrapping_sub(anchor);
    // Half a unit of the last place less one, and one more if that place is odd.
    let round = (1 << (shift - 1)) - 1 + ((magnitude >> shift) & 1);
    let normal = magnitude.wrapping_sub((127 - BIAS) << 23).wrapping_add(round) >> shift;
    if magnitude < (128 - BIAS) << 23 { subnormal } else { normal }
}

macro_rules! displays {
    ($($float:ty),*) => {$(
        impl fmt::Display for $float {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.to_f32().fmt(f)
            }
        }
    )*};
}
displays!(Fp8E4M3, Fp8E5M2);

#[cfg(test)]
mod tests {
    use super::*;

    /// Values by their definition: sign, exponent, mantissa.
    fn defined(code: u8, mantissa_bits: u32, bias: i32) -> f64 {
        let exponent = i32::from(code & 0x7f) >> mantissa_bits;
        let fraction = f64::from(code & ((1 << mantissa_bits) - 1)) / f64::from(1 << mantissa_bits);
        let magnitude = match exponent {
            0 => fraction * 2f64.powi(1 - bias),
            _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
        };
        if code & 0x80 == 0 { magnitude } else { -magnitude }
    }

    #[test]
    fn every_code_has_its_value_and_reads_back() {
        for code in 0..=u8::MAX {
            let value = Fp8E4M3(code).to_f32();
            if code & 0x7f == 0x7f {
                assert!(value.is_nan());
                assert_eq!(Fp8E4M3::from_f32(value), Fp8E4M3(0x7f));
            } else {
                assert_eq!(f64::from(value).to_bits(), defined(code, 3, 7).to_bits(), "{code:#x}");
                assert_eq!(Fp8E4M3::from_f32(value), Fp8E4M3(code));
            }
            let value = Fp8E5M2(code).to_f32();
            match code & 0x7f {
                0x7c => assert!(value.is_infinite() && value.is_sign_negative() == (code > 0x7f)),
                0x7d.. => assert!(value.is_nan()),
                _ => assert_eq!(f64::from(value).to_bits(), defined(code, 2, 15).to_bits()),
            }
            let back = if value.is_nan() { 0x7e } else { code };
            assert_eq!(Fp8E5M2::from_f32(value), Fp8E5M2(back));
        }
    }

    /// Between each value and the next: what is nearer to one becomes that, halfway the even one.
    /// `last` is the code behind the largest value, as if exponents went on.
    fn rounds_to_nearest(last: u8, value: impl Fn(u8) -> f64, encode: impl Fn(f32) -> u8) {
        for code in 0..last {
            let halfway = ((value(code) + value(code + 1)) / 2.0) as f32;
            for sign in [0, 0x80] {
                let signed = |number: f32| if sign == 0 { number } else { -number };
                let overflow = encode(signed(f32::MAX));
                let above = if code + 1 == last { overflow } else { sign | (code + 1) };
                assert_eq!(encode(signed(halfway.next_down())), sign | code);
                assert_eq!(encode(signed(halfway.next_up())), above);
                let even = if code % 2 == 0 { sign | code } else { above };
                assert_eq!(encode(signed(halfway)), even, "{halfway}");
            }
        }
    }

    #[test]
    fn numbers_round_to_the_nearest_and_ties_to_even() {
        rounds_to_nearest(0x7f, |code| defined(code, 3, 7), |number| Fp8E4M3::from_f32(number).0);
        rounds_to_nearest(0x7c, |code| defined(code, 2, 15), |number| Fp8E5M2::from_f32(number).0);
    }

    #[test]
    fn what_is_too_large_is_nan_or_infinite() {
        for large in [480.0, 1e6, f32::MAX, f32::INFINITY, -480.0, f32::NEG_INFINITY, -f32::NAN] {
            assert_eq!(Fp8E4M3::from_f32(large), Fp8E4M3(0x7f), "{large}");
        }
        for large in [61_440.0, 1e6, f32::MAX, f32::INFINITY] {
            assert_eq!(Fp8E5M2::from_f32(large), Fp8E5M2(0x7c), "{large}");
            assert_eq!(Fp8E5M2::from_f32(-large), Fp8E5M2(0xfc), "{large}");
        }
        assert_eq!(Fp8E4M3::from_f32(448.0), Fp8E4M3(0x7e));
        assert_eq!(Fp8E4M3::from_f32(464.0), Fp8E4M3(0x7e));
        assert_eq!(Fp8E5M2::from_f32(57_344.0), Fp8E5M2(0x7b));
    }
}
