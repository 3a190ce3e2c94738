//! The arithmetic of reductions, free of branches so that loops over it become vector code.

use crate::data_type::{Complex64, Complex128};

/// A number as it is folded. Integers wrap. NaN stays NaN, in no particular form: the step
/// that stores the result makes it canonical.
pub(super) trait Number: Copy {
    /// The sum.
    fn add(self, other: Self) -> Self;
    /// The product.
    fn mul(self, other: Self) -> Self;
    /// The smaller: IEEE 754-2019 `minimum` for floats.
    fn min(self, other: Self) -> Self;
    /// The larger: IEEE 754-2019 `maximum` for floats.
    fn max(self, other: Self) -> Self;
    /// The quotient, of integers rounded toward zero. `by` is not zero.
    fn divide(self, by: u32) -> Self;
}

/// One of the four ways to fold, as a type, so that each loop is compiled for its own.
pub(super) trait Operator {
    /// Folds two numbers into one.
    fn apply<N: Number>(a: N, b: N) -> N;
}

macro_rules! operators {
    ($($operator:ident => $method:ident),*) => {$(
        #[doc = concat!("Folds by [`Number::", stringify!($method), "`].")]
        pub(super) struct $operator;
        impl Operator for $operator {
            #[inline(always)]
            fn apply<N: Number>(a: N, b: N) -> N {
                a.$method(b)
            }
        }
    )*};
}
operators!(Add => add, Mul => mul, Min => min, Max => max);

macro_rules! floats {
    ($($float:ty),*) => {$(
        impl Number for $float {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                // Both are the smaller one, but for zeros and NaN: then they are one operand
                // each, and the union of the bits has either one's sign, or is NaN.
                let one = if self < other { self } else { other };
                let two = if other < self { other } else { self };
                Self::from_bits(one.to_bits() | two.to_bits())
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                -Number::min(-self, -other)
            }
            #[inline(always)]
            fn divide(self, by: u32) -> Self {
                self / by as $float
            }
        }
    )*};
}
floats!(f32, f64);

/// The textbook's product. No reduction compares them: smaller and larger are by component.
macro_rules! complex {
    ($($complex:ty),*) => {$(
        impl Number for $complex {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self::new(self.re + other.re, self.im + other.im)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                Self::new(
                    self.re * other.re - self.im * other.im,
                    self.re * other.im + self.im * other.re,
                )
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                Self::new(Number::min(self.re, other.re), Number::min(self.im, other.im))
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Self::new(Number::max(self.re, other.re), Number::max(self.im, other.im))
            }
            #[inline(always)]
            fn divide(self, by: u32) -> Self {
                Self::new(Number::divide(self.re, by), Number::divide(self.im, by))
            }
        }
    )*};
}
complex!(Complex64, Complex128);

macro_rules! integers {
    ($($integer:ty, through $quotient:ty;)*) => {$(
        impl Number for $integer {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                if self < other { self } else { other }
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                if self > other { self } else { other }
            }
            #[inline(always)]
            fn divide(self, by: u32) -> Self {
                (self as $quotient / by as $quotient) as Self
            }
        }
    )*};
}
// CPUs divide vectors of floats, not of integers. Truncating the quotient of two integers below
// 2^32 is exact in f64: one that is not whole is at least 2^-32 away from a whole one, relative
// to its size at least 2^-32 too, and f64 rounds by 2^-53.
integers! {
    i8, through f32;
    u8, through f32;
    i32, through f64;
    i64, through i64;
    i16, through f32;
    u16, through f32;
    u32, through f64;
    u64, through u64;
}
