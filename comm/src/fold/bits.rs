//! Bits as numbers: folded in the arithmetic of the two-element field, so that the operators for
//! numbers are those for bits.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{number::Number, pack::Pack, simd::Packs};

/// Bits, each a number of its own: `add` is exclusive or, `mul` and `min` are and, `max` is or.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub(super) struct Bits<U>(U);

/// An integer or bool in memory that stands for one bit: whether it is not zero.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub(super) struct Truth<U>(U);

macro_rules! bits {
    ($($unsigned:ty),*) => {$(
        impl Number for Bits<$unsigned> {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Bits(self.0 ^ other.0)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                Bits(self.0 & other.0)
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                Bits(self.0 & other.0)
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Bits(self.0 | other.0)
            }
            /// Bits have no average: what is divided is what one rank contributes alone, by 1.
            #[inline(always)]
            fn divide(self, _: u32) -> Self {
                self
            }
        }

        impl Pack for Bits<$unsigned> {
            type Number = Self;
            type Tail = Self;
            type Block = [Self; 512 / size_of::<Self>()];
            const BLOCK: Self::Block = [Bits(0); 512 / size_of::<Self>()];
            #[inline(always)]
            fn widen(self) -> Self {
                self
            }
            #[inline(always)]
            fn narrow(number: Self) -> Self {
                number
            }
        }

        impl Pack for Truth<$unsigned> {
            type Number = Bits<$unsigned>;
            type Tail = Self;
            type Block = [Bits<$unsigned>; 512 / size_of::<Self>()];
            const BLOCK: Self::Block = [Bits(0); 512 / size_of::<Self>()];
            #[inline(always)]
            fn widen(self) -> Bits<$unsigned> {
                Bits(<$unsigned>::from(self.0 != 0))
            }
            #[inline(always)]
            fn narrow(number: Bits<$unsigned>) -> Self {
                Truth(number.0)
            }
        }

        impl Packs for Truth<$unsigned> {
            type Baseline = Self;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = Self;
        }
    )*};
}
bits!(u8, u16, u32, u64);

/// Any integer's bits, by bytes: where the integers begin does not matter.
impl Packs for Bits<u8> {
    type Baseline = Self;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = Self;
}
