//! Compiles the loops for each vector level and picks at run time. All unsafe code of the
//! folds is here.
#![allow(unsafe_code)]

use half::{bf16, f16};

use super::{level::Level, pack::Pack};
use crate::data_type::{Complex64, Complex128, Fp8E4M3, Fp8E5M2};

/// A level that this CPU has.
#[derive(Clone, Copy)]
pub(super) struct Simd(Level);

/// A loop over elements. Its `run` is `#[inline(always)]`, as is all that it calls, so that
/// it becomes code of the level that it is compiled for.
pub(super) trait Job {
    /// Does the work, reading and writing memory as `P`.
    fn run<P: Pack>(self);
}

/// An element, and how memory full of it is read best at each level.
pub(super) trait Packs {
    /// For code that runs on every CPU.
    type Baseline: Pack;
    /// For code inside [`avx2`] and [`avx512`] alone.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Pack;
}

impl Simd {
    /// The given level, or the best this CPU has if that is lower.
    pub(super) fn at_most(level: Level) -> Simd {
        Simd(level.min(Level::detect()))
    }

    /// The level.
    pub(super) fn level(self) -> Level {
        self.0
    }

    /// Runs a loop over elements of type `E`.
    pub(super) fn run<E: Packs, J: Job>(self, job: J) {
        #[cfg(target_arch = "x86_64")]
        match self.0 {
            // SAFETY: `at_most`, the only way to a `Simd`, has detected AVX2 and F16C.
            Level::Avx2 => return unsafe { avx2::<E, J>(job) },
            // SAFETY: `at_most` has detected these four parts of AVX-512, AVX2 and F16C.
            Level::Avx512 => return unsafe { avx512::<E, J>(job) },
            Level::Baseline => {}
        }
        job.run::<E::Baseline>();
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
fn avx2<E: Packs, J: Job>(job: J) {
    job.run::<E::Avx2>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
fn avx512<E: Packs, J: Job>(job: J) {
    job.run::<E::Avx2>();
}

macro_rules! packs {
    ($($element:ty: $avx2:ty;)*) => {$(
        impl Packs for $element {
            type Baseline = Self;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = $avx2;
        }
    )*};
}
packs! {
    f32: Self;
    f64: Self;
    f16: f16c::Eight;
    bf16: Self;
    i8: Self;
    i32: Self;
    i64: Self;
    u8: Self;
    i16: Self;
    u16: Self;
    u32: Self;
    u64: Self;
    Complex64: Self;
    Complex128: Self;
    Fp8E4M3: Self;
    Fp8E5M2: Self;
}

/// f16 through F16C, which the compiler does not find by itself.
#[cfg(target_arch = "x86_64")]
mod f16c {
    use std::arch::x86_64::*;
    use std::mem::transmute;

    use half::f16;
    use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

    use super::super::{number::Number, pack::Pack};

    /// Eight f16. Nothing but [`super::Packs`] names this type, as memory for [`super::avx2`]
    /// and [`super::avx512`]: so what follows runs inside these two only.
    #[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
    #[repr(transparent)]
    pub(in super::super) struct Eight([u8; 16]);

    impl Pack for Eight {
        type Number = __m256;
        type Tail = f16;
        type Block = [__m256; 16];
        // SAFETY: both are 512 bytes, and any bits are floats.
        const BLOCK: Self::Block = unsafe { transmute([0f32; 128]) };

        #[inline(always)]
        fn widen(self) -> __m256 {
            // SAFETY: F16C is there; both sides of the transmute are 16 bytes of any value.
            unsafe { _mm256_cvtph_ps(transmute::<[u8; 16], __m128i>(self.0)) }
        }

        #[inline(always)]
        fn narrow(number: __m256) -> Self {
            // SAFETY: F16C and AVX are there; the transmute is as in `widen`.
            unsafe {
                let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(number, number);
                let number =
                    _mm256_blendv_ps(number, _mm256_set1_ps(f32::from_bits(0x7fc0_0000)), nan);
                let eight = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(number);
                Eight(transmute::<__m128i, [u8; 16]>(eight))
            }
        }
    }

    /// Eight numbers, each folded with the one in the same place.
    impl Number for __m256 {
        #[inline(always)]
        fn add(self, other: Self) -> Self {
            // SAFETY: AVX is there.
            unsafe { _mm256_add_ps(self, other) }
        }

        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            // SAFETY: AVX is there.
            unsafe { _mm256_mul_ps(self, other) }
        }

        /// As for one `f32`; of zeros and of NaN the instruction returns the second operand.
        #[inline(always)]
        fn min(self, other: Self) -> Self {
            // SAFETY: AVX is there.
            unsafe { _mm256_or_ps(_mm256_min_ps(self, other), _mm256_min_ps(other, self)) }
        }

        #[inline(always)]
        fn max(self, other: Self) -> Self {
            // SAFETY: AVX is there.
            let negated = |x| unsafe { _mm256_xor_ps(x, _mm256_set1_ps(-0.0)) };
            negated(Number::min(negated(self), negated(other)))
        }

        #[inline(always)]
        fn divide(self, by: u32) -> Self {
            // SAFETY: AVX is there.
            unsafe { _mm256_div_ps(self, _mm256_set1_ps(by as f32)) }
        }
    }
}
