//! One element at a time in `f64` and `i128`: slow, and plain enough to be believed.

use half::{bf16, f16};

use crate::data_type::{Bool, DataType, Fp8E4M3, Fp8E5M2};
use crate::reduction::Reduction;

/// An element of any type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    Float(f64),
    Integer(i128),
    /// Real and imaginary part.
    Complex(f64, f64),
}

/// The reduction of elements in order, unrounded where `f64` allows.
pub(super) fn reduce(data_type: DataType, reduction: Reduction, values: &[Value]) -> Value {
    let fold = |a: Value, b: Value| match (a, b) {
        (Value::Float(a), Value::Float(b)) => Value::Float(float(reduction, a, b)),
        (Value::Complex(..), Value::Complex(..)) => complex(data_type, reduction, a, b),
        (Value::Integer(a), Value::Integer(b)) => Value::Integer(integer(reduction, a, b)),
        _ => unreachable!("{data_type} has values of one kind"),
    };
    values.iter().copied().reduce(fold).expect("there are values")
}

fn float(reduction: Reduction, a: f64, b: f64) -> f64 {
    let a_is_less = a < b || (a == b && a.is_sign_negative());
    match reduction {
        Reduction::Sum => a + b,
        Reduction::Prod => a * b,
        Reduction::Min | Reduction::Max if a.is_nan() || b.is_nan() => f64::NAN,
        Reduction::Min => [b, a][usize::from(a_is_less)],
        Reduction::Max => [a, b][usize::from(a_is_less)],
        _ => unreachable!("{reduction} does not fold floats"),
    }
}

/// The textbook's sum and product, each product of floats rounded by itself.
fn complex(data_type: DataType, reduction: Reduction, a: Value, b: Value) -> Value {
    let (Value::Complex(a, ai), Value::Complex(b, bi)) = (a, b) else {
        unreachable!("both are complex");
    };
    let times = |a: f64, b: f64| match data_type {
        DataType::Complex64 => f64::from((a * b) as f32),
        _ => a * b,
    };
    match reduction {
        Reduction::Sum => Value::Complex(a + b, ai + bi),
        Reduction::Prod => Value::Complex(times(a, b) - times(ai, bi), times(a, bi) + times(ai, b)),
        _ => unreachable!("{reduction} does not fold complex numbers"),
    }
}

fn integer(reduction: Reduction, a: i128, b: i128) -> i128 {
    match reduction {
        Reduction::Sum => a + b,
        Reduction::Prod => a.wrapping_mul(b),
        Reduction::Min => Ord::min(a, b),
        Reduction::Max => Ord::max(a, b),
        Reduction::Avg | Reduction::PremulSum => unreachable!("{reduction} folds as a sum"),
        Reduction::Band => a & b,
        Reduction::Bor => a | b,
        Reduction::Bxor => a ^ b,
        Reduction::Land => (a != 0 && b != 0).into(),
        Reduction::Lor => (a != 0 || b != 0).into(),
        Reduction::Lxor => ((a != 0) != (b != 0)).into(),
    }
}

/// The value of one element.
pub(super) fn decode(data_type: DataType, bytes: &[u8]) -> Value {
    macro_rules! read {
        ($element:ty) => {
            <$element>::from_ne_bytes(bytes.try_into().expect("one element"))
        };
    }
    match data_type {
        DataType::F32 => Value::Float(read!(f32).into()),
        DataType::F64 => Value::Float(read!(f64)),
        DataType::F16 => Value::Float(read!(f16).to_f64()),
        DataType::BF16 => Value::Float(read!(bf16).to_f64()),
        DataType::I8 => Value::Integer(read!(i8).into()),
        DataType::I32 => Value::Integer(read!(i32).into()),
        DataType::I64 => Value::Integer(read!(i64).into()),
        DataType::U8 => Value::Integer(read!(u8).into()),
        DataType::Bool => Value::Integer((bytes != [0]).into()),
        DataType::Fp8E4M3 => Value::Float(Fp8E4M3(bytes[0]).to_f32().into()),
        DataType::Fp8E5M2 => Value::Float(Fp8E5M2(bytes[0]).to_f32().into()),
        DataType::Complex64 | DataType::Complex128 => {
            let (re, im) = bytes.split_at(bytes.len() / 2);
            let part = |bytes| match decode(component(data_type), bytes) {
                Value::Float(part) => part,
                value => unreachable!("{value:?} is no float"),
            };
            Value::Complex(part(re), part(im))
        }
        DataType::I16 => Value::Integer(read!(i16).into()),
        DataType::U16 => Value::Integer(read!(u16).into()),
        DataType::U32 => Value::Integer(read!(u32).into()),
        DataType::U64 => Value::Integer(read!(u64).into()),
    }
}

/// The type of either part of a complex number.
fn component(data_type: DataType) -> DataType {
    if data_type == DataType::Complex64 { DataType::F32 } else { DataType::F64 }
}

/// The element with this value: rounded, short floats by way of `f32`, or wrapped.
pub(super) fn encode(data_type: DataType, value: Value) -> Vec<u8> {
    match (data_type, value) {
        (_, Value::Float(value)) if value.is_nan() => canonical_nan(data_type),
        (DataType::F32, Value::Float(value)) => (value as f32).to_ne_bytes().into(),
        (DataType::F64, Value::Float(value)) => value.to_ne_bytes().into(),
        (DataType::F16, Value::Float(value)) => f16::from_f32(value as f32).to_ne_bytes().into(),
        (DataType::BF16, Value::Float(value)) => bf16::from_f32(value as f32).to_ne_bytes().into(),
        (DataType::I8, Value::Integer(value)) => (value as i8).to_ne_bytes().into(),
        (DataType::I32, Value::Integer(value)) => (value as i32).to_ne_bytes().into(),
        (DataType::I64, Value::Integer(value)) => (value as i64).to_ne_bytes().into(),
        (DataType::U8, Value::Integer(value)) => (value as u8).to_ne_bytes().into(),
        (DataType::I16, Value::Integer(value)) => (value as i16).to_ne_bytes().into(),
        (DataType::U16, Value::Integer(value)) => (value as u16).to_ne_bytes().into(),
        (DataType::U32, Value::Integer(value)) => (value as u32).to_ne_bytes().into(),
        (DataType::U64, Value::Integer(value)) => (value as u64).to_ne_bytes().into(),
        (DataType::Bool, Value::Integer(value)) => vec![Bool::from(value != 0).0],
        (DataType::Fp8E4M3, Value::Float(value)) => vec![Fp8E4M3::from_f32(value as f32).0],
        (DataType::Fp8E5M2, Value::Float(value)) => vec![Fp8E5M2::from_f32(value as f32).0],
        (DataType::Complex64 | DataType::Complex128, Value::Complex(re, im)) => {
            [re, im].map(|part| encode(component(data_type), Value::Float(part))).concat()
        }
        _ => unreachable!("{value:?} is no {data_type}"),
    }
}

/// The one NaN that results carry.
pub(super) fn canonical_nan(data_type: DataType) -> Vec<u8> {
    match data_type {
        DataType::F32 => 0x7fc0_0000u32.to_ne_bytes().into(),
        DataType::F64 => 0x7ff8_0000_0000_0000u64.to_ne_bytes().into(),
        DataType::F16 => 0x7e00u16.to_ne_bytes().into(),
        DataType::BF16 => 0x7fc0u16.to_ne_bytes().into(),
        DataType::Fp8E4M3 => vec![0x7f],
        DataType::Fp8E5M2 => vec![0x7e],
        _ => unreachable!("{data_type} has no NaN"),
    }
}

/// Values at which arithmetic goes wrong first.
pub(super) fn specials(data_type: DataType) -> Vec<Value> {
    let floats = |largest: f64, smallest: f64, subnormal: f64| {
        let magnitudes =
            [0.0, 1.0, 1.5, largest, largest / 2.0, smallest, subnormal, f64::INFINITY, f64::NAN];
        magnitudes.iter().flat_map(|m| [Value::Float(*m), Value::Float(-*m)]).collect()
    };
    let integers = |least: i128, most: i128| {
        [0, 1, 2, 3, 100, least, least + 1, most, most - 1, most / 2, least / 2]
            .map(Value::Integer)
            .into()
    };
    match data_type {
        DataType::F32 => floats(f32::MAX.into(), f32::MIN_POSITIVE.into(), 1e-45),
        DataType::F64 => floats(f64::MAX, f64::MIN_POSITIVE, 5e-324),
        DataType::F16 => floats(65_504.0, 2f64.powi(-14), 2f64.powi(-24)),
        DataType::BF16 => floats(bf16::MAX.to_f64(), f64::from(f32::MIN_POSITIVE), 2f64.powi(-133)),
        DataType::Bool => integers(0, 1),
        DataType::Fp8E4M3 => floats(448.0, 2f64.powi(-6), 2f64.powi(-9)),
        DataType::Fp8E5M2 => floats(57_344.0, 2f64.powi(-14), 2f64.powi(-16)),
        DataType::Complex64 | DataType::Complex128 => {
            let parts = specials(component(data_type));
            let turned = parts.iter().cycle().skip(5);
            let both = parts.iter().zip(turned).map(|both| match both {
                (Value::Float(re), Value::Float(im)) => Value::Complex(*re, *im),
                _ => unreachable!("parts are floats"),
            });
            both.collect()
        }
        DataType::I8 => integers(i8::MIN.into(), i8::MAX.into()),
        DataType::I32 => integers(i32::MIN.into(), i32::MAX.into()),
        DataType::I64 => integers(i64::MIN.into(), i64::MAX.into()),
        DataType::U8 => integers(0, u8::MAX.into()),
        DataType::I16 => integers(i16::MIN.into(), i16::MAX.into()),
        DataType::U16 => integers(u16::MIN.into(), u16::MAX.into()),
        DataType::U32 => integers(u32::MIN.into(), u32::MAX.into()),
        DataType::U64 => integers(u64::MIN.into(), u64::MAX.into()),
    }
}
