//! What a buffer's elements are.

mod boolean;
mod complex;
mod fp8;

use std::fmt;

use half::{bf16, f16};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub use boolean::Bool;
pub use complex::{Complex64, Complex128};
pub use fp8::{Fp8E4M3, Fp8E5M2};

/// The type of the elements of a collective.
///
/// The discriminant is the code on the wire, so it never changes for a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DataType {
    /// IEEE 754 binary32.
    F32 = 0,
    /// IEEE 754 binary64.
    F64 = 1,
    /// IEEE 754 binary16.
    F16 = 2,
    /// The upper half of a binary32: 8 bits of exponent, 7 of mantissa.
    BF16 = 3,
    /// Signed, 8 bits.
    I8 = 4,
    /// Signed, 32 bits.
    I32 = 5,
    /// Signed, 64 bits.
    I64 = 6,
    /// Unsigned, 8 bits.
    U8 = 7,
    /// Signed, 16 bits.
    I16 = 8,
    /// Unsigned, 16 bits.
    U16 = 9,
    /// Unsigned, 32 bits.
    U32 = 10,
    /// Unsigned, 64 bits.
    U64 = 11,
    /// A truth value in a byte; see [`Bool`].
    Bool = 12,
    /// A complex number of two binary32, the real part first.
    Complex64 = 13,
    /// A complex number of two binary64, the real part first.
    Complex128 = 14,
    /// 8 bits, 4 of exponent and 3 of mantissa, without infinity; see [`Fp8E4M3`].
    Fp8E4M3 = 15,
    /// 8 bits, 5 of exponent and 2 of mantissa; see [`Fp8E5M2`].
    Fp8E5M2 = 16,
}

impl DataType {
    /// Every type, in the order of the codes.
    pub const ALL: [DataType; 17] = [
        DataType::F32,
        DataType::F64,
        DataType::F16,
        DataType::BF16,
        DataType::I8,
        DataType::I32,
        DataType::I64,
        DataType::U8,
        DataType::I16,
        DataType::U16,
        DataType::U32,
        DataType::U64,
        DataType::Bool,
        DataType::Complex64,
        DataType::Complex128,
        DataType::Fp8E4M3,
        DataType::Fp8E5M2,
    ];

    /// The name in reports and on command lines; [`from_name`](Self::from_name) reads it back.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// The type with this name or one of its usual other names (`float`, `float32`, `f32`, …).
    pub fn from_name(name: &str) -> Option<DataType> {
        Self::ALL.into_iter().find(|data_type| data_type.names().contains(&name))
    }

    /// The size of one element in bytes.
    pub fn size(self) -> usize {
        match self {
            DataType::I8
            | DataType::U8
            | DataType::Bool
            | DataType::Fp8E4M3
            | DataType::Fp8E5M2 => 1,
            DataType::F16 | DataType::BF16 | DataType::I16 | DataType::U16 => 2,
            DataType::F32 | DataType::I32 | DataType::U32 => 4,
            DataType::F64 | DataType::I64 | DataType::U64 | DataType::Complex64 => 8,
            DataType::Complex128 => 16,
        }
    }

    /// What kind of numbers the elements are.
    pub(crate) fn kind(self) -> Kind {
        match self {
            DataType::F32 | DataType::F64 | DataType::F16 | DataType::BF16 => Kind::Float,
            DataType::I8 | DataType::I16 | DataType::I32 | DataType::I64 => Kind::Integer,
            DataType::U8 | DataType::U16 | DataType::U32 | DataType::U64 => Kind::Integer,
            DataType::Bool => Kind::Bool,
            DataType::Complex64 | DataType::Complex128 => Kind::Complex,
            DataType::Fp8E4M3 | DataType::Fp8E5M2 => Kind::Float8,
        }
    }

    /// The code on the wire.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The type with this code on the wire.
    pub fn from_code(code: u8) -> Option<DataType> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// All names of the type, the one that we print first.
    fn names(self) -> &'static [&'static str] {
        match self {
            DataType::F32 => &["fp32", "f32", "float32", "float"],
            DataType::F64 => &["fp64", "f64", "float64", "double"],
            DataType::F16 => &["fp16", "f16", "float16", "half"],
            DataType::BF16 => &["bf16", "bfp16", "bfloat16"],
            DataType::I8 => &["int8", "i8"],
            DataType::I32 => &["int32", "i32", "int"],
            DataType::I64 => &["int64", "i64", "long"],
            DataType::U8 => &["uint8", "u8", "byte"],
            DataType::I16 => &["int16", "i16", "short"],
            DataType::U16 => &["uint16", "u16"],
            DataType::U32 => &["uint32", "u32"],
            DataType::U64 => &["uint64", "u64"],
            DataType::Bool => &["bool"],
            DataType::Complex64 => &["complex64", "c64", "cfloat"],
            DataType::Complex128 => &["complex128", "c128", "cdouble"],
            DataType::Fp8E4M3 => &["fp8_e4m3", "fp8e4m3", "float8_e4m3fn", "e4m3"],
            DataType::Fp8E5M2 => &["fp8_e5m2", "fp8e5m2", "float8_e5m2", "e5m2"],
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Types that the same reductions apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of 16 bits and more.
    Float,
    Float8,
    Complex,
    Integer,
    Bool,
}

/// A Rust type that is one of the [`DataType`]s. Sealed: the kernels know exactly these.
pub trait Element:
    Copy + Send + Sync + FromBytes + IntoBytes + Immutable + KnownLayout + sealed::Sealed + 'static
{
    /// The type that this is.
    const DATA_TYPE: DataType;
}

/// The elements as the bytes they are, in the byte order of the machine.
pub(crate) fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    elements.as_bytes()
}

/// The elements as bytes that can be written: any bytes are an element.
pub(crate) fn bytes_of_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    elements.as_mut_bytes()
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($element:ty => $data_type:ident),*) => {$(
        impl sealed::Sealed for $element {}
        impl Element for $element {
            const DATA_TYPE: DataType = DataType::$data_type;
        }
    )*};
}
elements! {
    f32 => F32,
    f64 => F64,
    f16 => F16,
    bf16 => BF16,
    i8 => I8,
    i32 => I32,
    i64 => I64,
    u8 => U8,
    i16 => I16,
    u16 => U16,
    u32 => U32,
    u64 => U64,
    Bool => Bool,
    Complex64 => Complex64,
    Complex128 => Complex128,
    Fp8E4M3 => Fp8E4M3,
    Fp8E5M2 => Fp8E5M2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_read_back() {
        for data_type in DataType::ALL {
            assert_eq!(DataType::from_name(data_type.name()), Some(data_type));
            assert_eq!(DataType::from_code(data_type.code()), Some(data_type));
            assert_eq!(data_type.to_string(), data_type.name());
        }
        assert_eq!(DataType::from_code(DataType::ALL.len() as u8), None);
        assert_eq!(DataType::from_name("int7"), None);
    }

    #[test]
    fn every_name_means_one_type() {
        let mut names: Vec<_> = DataType::ALL.iter().flat_map(|t| t.names()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn names_of_other_libraries_are_known() {
        for (name, data_type) in [
            ("float", DataType::F32),
            ("float32", DataType::F32),
            ("double", DataType::F64),
            ("half", DataType::F16),
            ("bfloat16", DataType::BF16),
            ("bfp16", DataType::BF16),
        ] {
            assert_eq!(DataType::from_name(name), Some(data_type));
        }
    }

    #[test]
    fn size_is_that_of_the_rust_type() {
        fn check<T: Element>() {
            assert_eq!(T::DATA_TYPE.size(), size_of::<T>(), "{}", T::DATA_TYPE);
        }
        check::<f32>();
        check::<f64>();
        check::<f16>();
        check::<bf16>();
        check::<i8>();
        check::<i32>();
        check::<i64>();
        check::<u8>();
        check::<i16>();
        check::<u16>();
        check::<u32>();
        check::<u64>();
        check::<Bool>();
        check::<Complex64>();
        check::<Complex128>();
        check::<Fp8E4M3>();
        check::<Fp8E5M2>();
    }

    #[test]
    fn bytes_are_those_of_the_elements() {
        let mut elements = [1i32, -2];
        assert_eq!(bytes_of(&elements), [1i32.to_ne_bytes(), (-2i32).to_ne_bytes()].concat());
        bytes_of_mut(&mut elements)[4..].copy_from_slice(&7i32.to_ne_bytes());
        assert_eq!(elements, [1, 7]);
    }
}
