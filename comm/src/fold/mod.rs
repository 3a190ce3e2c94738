//! Folding: combining what the ranks contribute, element by element.
//!
//! One set of rules for all types and all vector levels, so that results repeat bit for bit:
//!
//! - Integers wrap. Their average is the wrapped sum, divided toward zero.
//! - Floats round to nearest, ties to even. Those of 16 and 8 bits are folded in
//!   `f32` and rounded once. Complex numbers are two floats; their product is the textbook's.
//! - Bitwise reductions take integers as bits; logical ones take each as whether it is not zero,
//!   and give 0 or 1. Bools are logical in all reductions: a sum is or, a product is and.
//! - NaN propagates, through minimum and maximum too (IEEE 754-2019 `minimum`, `maximum`), and
//!   a result that is NaN is the canonical quiet NaN of its type, whatever the operands carried.
//! - Floats are divided for an average before they are added: large ones do not overflow, unless
//!   rounding carries an average out of the last few units of the range.

mod bits;
mod level;
mod loops;
mod number;
mod pack;
mod simd;
#[cfg(test)]
mod tests;

use std::fmt;

use half::{bf16, f16};

pub use level::Level;

use crate::{
    data_type::{Complex64, Complex128, DataType, Element, Fp8E4M3, Fp8E5M2, Kind, bytes_of},
    reduction::Reduction,
};
use bits::{Bits, Truth};
use loops::Loops;
use number::{Add, Max, Min, Mul};
pub(crate) use pack::widen_f16;
use simd::{Packs, Simd};

/// The arithmetic of one operation: a type, a reduction and how many ranks contribute.
///
/// A result is `finish(prepare(c0) ⊕ prepare(c1) ⊕ …)`, made step by step with
/// [`prepare`](Self::prepare), [`fold`](Self::fold) or [`fold_from`](Self::fold_from) and
/// [`finish`](Self::finish), or at once with [`fold_all`](Self::fold_all) or
/// [`fold_in`](Self::fold_in). Both ways give the same bits, except for floats of 16 and 8 bits,
/// which are rounded only once when folded at once.
///
/// Buffers are elements as bytes in the byte order of the machine, at any address. Nothing
/// here blocks or allocates. What comes of a reduction that does not
/// [apply](Reduction::applies_to) to the type means nothing.
///
/// # Panics
///
/// All methods panic if the lengths of their buffers differ, or are not whole elements.
#[derive(Clone, Copy)]
pub struct Kernel {
    data_type: DataType,
    reduction: Reduction,
    ranks: u32,
    simd: Simd,
    loops: &'static Loops,
    scale: Option<Scale>,
}

impl Kernel {
    /// The kernel for a group of `ranks`, at the given vector level or the best that this CPU
    /// has, if that is lower.
    ///
    /// # Panics
    ///
    /// If `ranks` is zero.
    pub fn new(data_type: DataType, reduction: Reduction, ranks: u32, level: Level) -> Kernel {
        assert!(ranks > 0, "a group has at least one rank");
        let simd = Simd::at_most(level);
        let loops = loops_for(data_type, reduction);
        Kernel { data_type, reduction, ranks, simd, loops, scale: None }
    }

    /// The same for a rank that multiplies what it contributes.
    pub fn scaled(self, scale: Scale) -> Kernel {
        Kernel { scale: Some(scale), ..self }
    }

    /// The vector level in use.
    pub fn level(&self) -> Level {
        self.simd.level()
    }

    /// Whether this rank must [`prepare`](Self::prepare) its contribution before others see it,
    /// because they do not know its number.
    pub fn needs_scale(&self) -> bool {
        self.scale.is_some()
    }

    /// Whether contributions must be passed through [`prepare`](Self::prepare).
    pub fn needs_prepare(&self) -> bool {
        let is_whole = matches!(self.data_type.kind(), Kind::Integer | Kind::Bool);
        self.needs_scale() || self.reduction == Reduction::Avg && !is_whole
    }

    /// Makes a contribution ready for folding: for an average of floats, divides it by the
    /// number of ranks; multiplies it if this rank [scales](Self::scaled).
    pub fn prepare(&self, data: &mut [u8]) {
        self.check(data, data.len());
        if let Some(scale) = self.scale {
            self.multiply(data, scale);
        } else if self.needs_prepare() {
            (self.loops.divide)(self.simd, data, self.ranks);
        }
    }

    fn multiply(&self, data: &mut [u8], scale: Scale) {
        let factor = &scale.bytes[..self.data_type.size()];
        let mut factors = [0; 512];
        factors.chunks_exact_mut(factor.len()).for_each(|place| place.copy_from_slice(factor));
        let product = loops_for(self.data_type, Reduction::Prod).fold;
        for data in data.chunks_mut(factors.len()) {
            product(self.simd, data, &factors[..data.len()]);
        }
    }

    /// `into = into ⊕ from`, of prepared contributions.
    pub fn fold(&self, into: &mut [u8], from: &[u8]) {
        self.check(from, into.len());
        (self.loops.fold)(self.simd, into, from);
    }

    /// `into = a ⊕ b`, of prepared contributions.
    pub fn fold_from(&self, into: &mut [u8], a: &[u8], b: &[u8]) {
        self.check(a, into.len());
        self.check(b, into.len());
        (self.loops.fold_from)(self.simd, into, a, b);
    }

    /// Whether the result must be passed through [`finish`](Self::finish).
    pub fn needs_finish(&self) -> bool {
        match self.reduction {
            _ if self.data_type == DataType::Bool => self.ranks == 1,
            Reduction::Avg => self.data_type.kind() == Kind::Integer,
            Reduction::Land | Reduction::Lor | Reduction::Lxor => self.ranks == 1,
            _ => false,
        }
    }

    /// Makes the result of folding the result of the reduction: for an average of integers,
    /// divides it toward zero by the number of ranks; what a rank contributes alone to a logical
    /// reduction, or of bools, becomes 0 or 1.
    pub fn finish(&self, data: &mut [u8]) {
        self.check(data, data.len());
        if self.needs_finish() {
            (self.loops.divide)(self.simd, data, self.ranks);
        }
    }

    /// Writes to `into` the finished result of raw contributions, folded in the given order;
    /// scaled ones are raw when they are multiplied.
    ///
    /// # Panics
    ///
    /// If there is no contribution.
    pub fn fold_all(&self, into: &mut [u8], from: &[&[u8]]) {
        assert!(!from.is_empty(), "there is no contribution to fold");
        for from in from {
            self.check(from, into.len());
        }
        let divisor = if self.needs_prepare() && !self.needs_scale() { self.ranks } else { 1 };
        match from {
            [a, b] if divisor == 1 => (self.loops.fold_from)(self.simd, into, a, b),
            _ => (self.loops.fold_all)(self.simd, into, from, divisor),
        }
        self.finish(into);
    }

    /// Makes of `into`, which holds a raw contribution, the finished result of it and of `others`,
    /// folded in this order; scaled ones are raw when they are multiplied.
    pub fn fold_in(&self, into: &mut [u8], others: &[&[u8]]) {
        for other in others {
            self.check(other, into.len());
        }
        let divisor = if self.needs_prepare() && !self.needs_scale() { self.ranks } else { 1 };
        match others {
            [other] if divisor == 1 => (self.loops.fold)(self.simd, into, other),
            _ => (self.loops.fold_in)(self.simd, into, others, divisor),
        }
        self.finish(into);
    }

    #[track_caller]
    fn check(&self, data: &[u8], len_bytes: usize) {
        assert_eq!(data.len(), len_bytes, "folding buffers of different lengths");
        let size = self.data_type.size();
        assert!(
            len_bytes.is_multiple_of(size),
            "{len_bytes} bytes are no whole {}",
            self.data_type
        );
    }
}

/// A number that one rank multiplies its contribution by: the bytes of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    data_type: DataType,
    bytes: [u8; 16],
}

impl Scale {
    /// This number.
    pub fn new<T: Element>(number: T) -> Scale {
        let mut bytes = [0; 16];
        bytes[..size_of::<T>()].copy_from_slice(bytes_of(&[number]));
        Scale { data_type: T::DATA_TYPE, bytes }
    }

    /// The type of the number.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kernel { data_type, reduction, ranks, .. } = self;
        write!(f, "Kernel({data_type} {reduction} of {ranks} ranks, {})", self.level())
    }
}

fn loops_for(data_type: DataType, reduction: Reduction) -> &'static Loops {
    match reduction {
        _ if data_type == DataType::Bool => logical(data_type, of_bools(reduction)),
        Reduction::Band => const { &Loops::new::<Bits<u8>, Min>() },
        Reduction::Bor => const { &Loops::new::<Bits<u8>, Max>() },
        Reduction::Bxor => const { &Loops::new::<Bits<u8>, Add>() },
        Reduction::Land => logical(data_type, Reduction::Min),
        Reduction::Lor => logical(data_type, Reduction::Max),
        Reduction::Lxor => logical(data_type, Reduction::Sum),
        Reduction::Sum
        | Reduction::Prod
        | Reduction::Min
        | Reduction::Max
        | Reduction::Avg
        | Reduction::PremulSum => arithmetic(data_type, reduction),
    }
}

/// The reduction of numbers 0 and 1 that is this one of bools.
fn of_bools(reduction: Reduction) -> Reduction {
    match reduction {
        Reduction::Prod | Reduction::Min | Reduction::Band | Reduction::Land => Reduction::Min,
        Reduction::Bxor | Reduction::Lxor => Reduction::Sum,
        _ => Reduction::Max,
    }
}

/// Of whether elements are zero: least, most, or sum modulo 2.
fn logical(data_type: DataType, reduction: Reduction) -> &'static Loops {
    match data_type.size() {
        1 => loops_of::<Truth<u8>>(reduction),
        2 => loops_of::<Truth<u16>>(reduction),
        4 => loops_of::<Truth<u32>>(reduction),
        _ => loops_of::<Truth<u64>>(reduction),
    }
}

fn arithmetic(data_type: DataType, reduction: Reduction) -> &'static Loops {
    match data_type {
        DataType::F32 => loops_of::<f32>(reduction),
        DataType::F64 => loops_of::<f64>(reduction),
        DataType::F16 => loops_of::<f16>(reduction),
        DataType::BF16 => loops_of::<bf16>(reduction),
        DataType::I8 => loops_of::<i8>(reduction),
        DataType::I32 => loops_of::<i32>(reduction),
        DataType::I64 => loops_of::<i64>(reduction),
        DataType::U8 => loops_of::<u8>(reduction),
        DataType::I16 => loops_of::<i16>(reduction),
        DataType::U16 => loops_of::<u16>(reduction),
        DataType::U32 => loops_of::<u32>(reduction),
        DataType::U64 => loops_of::<u64>(reduction),
        DataType::Bool => loops_of::<Truth<u8>>(reduction),
        // Sums and quotients are those of the components, which are faster alone.
        DataType::Complex64 if reduction != Reduction::Prod => loops_of::<f32>(reduction),
        DataType::Complex128 if reduction != Reduction::Prod => loops_of::<f64>(reduction),
        DataType::Complex64 => loops_of::<Complex64>(reduction),
        DataType::Complex128 => loops_of::<Complex128>(reduction),
        DataType::Fp8E4M3 => loops_of::<Fp8E4M3>(reduction),
        DataType::Fp8E5M2 => loops_of::<Fp8E5M2>(reduction),
    }
}

/// The loops for the arithmetic reductions.
fn loops_of<E: Packs>(reduction: Reduction) -> &'static Loops {
    match reduction {
        Reduction::Prod => const { &Loops::new::<E, Mul>() },
        Reduction::Min => const { &Loops::new::<E, Min>() },
        Reduction::Max => const { &Loops::new::<E, Max>() },
        _ => const { &Loops::new::<E, Add>() },
    }
}
