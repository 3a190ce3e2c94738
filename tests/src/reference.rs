//! Inputs whose reductions are exact in every type, and the plain loop that reduces them.

use tutti::{DataType, Reduction};

/// The contribution of `rank` at `index`: differs per rank and per element, and is small enough
/// that every reduction over up to 64 ranks is exact in every type but for wrapping integers.
pub fn value(rank: u32, index: u64, ranks: u32, data_type: DataType, reduction: Reduction) -> i64 {
    let hash = splitmix(u64::from(rank) << 40 ^ index);
    let few = if hash.is_multiple_of(u64::from(ranks) + 1) { 3 } else { 0 };
    let holders = [index, !index].map(|place| splitmix(place) % u64::from(ranks));
    let held = holders.iter().filter(|holder| **holder == u64::from(rank)).count() as i64;
    match reduction {
        // Two contributions of at most 3, as 8-bit floats are exact to 8 only.
        Reduction::Sum if is_fp8(data_type) => held * (1 + (hash % 3) as i64),
        // And averages are exact if the number of ranks is.
        Reduction::Avg if is_fp8(data_type) && (ranks <= 8 || ranks.is_power_of_two()) => {
            held * i64::from(ranks)
        }
        Reduction::Avg if is_fp8(data_type) => 0,
        // At most 64 x 3 = 192: exact in bf16.
        Reduction::Sum | Reduction::PremulSum | Reduction::Min | Reduction::Max => {
            (hash % 4) as i64
        }
        // Divisible by the number of ranks, so that dividing before or after the sum is exact.
        Reduction::Avg => (hash % 4) as i64 * i64::from(ranks),
        // All bits on few ranks, or on all but few.
        Reduction::Bor | Reduction::Lor => few,
        Reduction::Band | Reduction::Land => 3 - few,
        Reduction::Bxor | Reduction::Lxor => (hash % 2) as i64 * 3,
        // One rank per element contributes 2, the rest 1.
        Reduction::Prod => {
            if splitmix(index) % u64::from(ranks) == u64::from(rank) {
                2
            } else {
                1
            }
        }
    }
}

fn is_fp8(data_type: DataType) -> bool {
    matches!(data_type, DataType::Fp8E4M3 | DataType::Fp8E5M2)
}

fn splitmix(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The reduction of all ranks' values at `index`. Sums wrap where the type does.
pub fn reduced(index: u64, ranks: u32, data_type: DataType, reduction: Reduction) -> i64 {
    let values = (0..ranks).map(|rank| value(rank, index, ranks, data_type, reduction));
    match reduction {
        Reduction::Sum | Reduction::PremulSum => values.sum(),
        Reduction::Prod => values.product(),
        Reduction::Min => values.min().expect("there are ranks"),
        Reduction::Max => values.max().expect("there are ranks"),
        Reduction::Band => values.fold(-1, |a, b| a & b),
        Reduction::Bor => values.fold(0, |a, b| a | b),
        Reduction::Bxor => values.fold(0, |a, b| a ^ b),
        Reduction::Land => values.map(truth).fold(1, |a, b| a & b),
        Reduction::Lor => values.map(truth).fold(0, |a, b| a | b),
        Reduction::Lxor => values.map(truth).fold(0, |a, b| a ^ b),
        Reduction::Avg => wrapped(values.sum(), data_type) / i64::from(ranks),
    }
}

fn truth(value: i64) -> i64 {
    i64::from(value != 0)
}

fn wrapped(sum: i64, data_type: DataType) -> i64 {
    match data_type {
        DataType::I8 => i64::from(sum as i8),
        DataType::U8 => i64::from(sum as u8),
        _ => sum,
    }
}

/// A small whole number as the bytes of one element.
pub fn encode(value: i64, data_type: DataType, out: &mut Vec<u8>) {
    match data_type {
        DataType::F32 => out.extend((value as f32).to_ne_bytes()),
        DataType::F64 => out.extend((value as f64).to_ne_bytes()),
        // Whole numbers up to 256 by their definition: sign, exponent, mantissa.
        DataType::F16 => out.extend(narrow(value, 5, 10).to_ne_bytes()),
        DataType::BF16 => out.extend(narrow(value, 8, 7).to_ne_bytes()),
        DataType::I8 => out.extend((value as i8).to_ne_bytes()),
        DataType::I32 => out.extend((value as i32).to_ne_bytes()),
        DataType::I64 => out.extend(value.to_ne_bytes()),
        DataType::U8 => out.extend((value as u8).to_ne_bytes()),
        DataType::Bool => out.push((value != 0).into()),
        DataType::Fp8E4M3 => out.push(narrow(value, 4, 3) as u8),
        DataType::Fp8E5M2 => out.push(narrow(value, 5, 2) as u8),
        DataType::Complex64 => out.extend([value as f32, 0.0].map(f32::to_ne_bytes).concat()),
        DataType::Complex128 => out.extend([value as f64, 0.0].map(f64::to_ne_bytes).concat()),
        DataType::I16 => out.extend((value as i16).to_ne_bytes()),
        DataType::U16 => out.extend((value as u16).to_ne_bytes()),
        DataType::U32 => out.extend((value as u32).to_ne_bytes()),
        DataType::U64 => out.extend((value as u64).to_ne_bytes()),
    }
}

fn narrow(value: i64, exponent_bits: u32, mantissa_bits: u32) -> u16 {
    if value == 0 {
        return 0;
    }
    let exponent = value.ilog2();
    let mantissa = (value as u32 - (1 << exponent)) << mantissa_bits >> exponent;
    let bias = (1 << (exponent_bits - 1)) - 1;
    ((exponent + bias) << mantissa_bits | mantissa) as u16
}

/// Every type with every reduction that applies to it and needs no scale.
pub fn types_and_reductions() -> impl Iterator<Item = (DataType, Reduction)> {
    DataType::ALL.into_iter().flat_map(|data_type| {
        let reductions = Reduction::ALL.into_iter();
        let reductions = reductions.filter(move |reduction| {
            *reduction != Reduction::PremulSum && reduction.applies_to(data_type).is_ok()
        });
        reductions.map(move |reduction| (data_type, reduction))
    })
}

/// The contribution of `rank` as bytes.
pub fn input(
    rank: u32,
    count: u64,
    ranks: u32,
    data_type: DataType,
    reduction: Reduction,
) -> Vec<u8> {
    bytes(count, data_type, |index| value(rank, index, ranks, data_type, reduction))
}

/// The result of an all_reduce as bytes.
pub fn output(count: u64, ranks: u32, data_type: DataType, reduction: Reduction) -> Vec<u8> {
    bytes(count, data_type, |index| reduced(index, ranks, data_type, reduction))
}

fn bytes(count: u64, data_type: DataType, value: impl Fn(u64) -> i64) -> Vec<u8> {
    let mut out = Vec::with_capacity(count as usize * data_type.size());
    (0..count).for_each(|index| encode(value(index), data_type, &mut out));
    out
}

/// The first difference, in words.
pub fn compare(got: &[u8], want: &[u8], data_type: DataType) -> Result<(), String> {
    let size = data_type.size();
    let wrong = got.chunks(size).zip(want.chunks(size)).position(|(got, want)| got != want);
    match wrong {
        _ if got.len() != want.len() => {
            Err(format!("{} bytes instead of {}", got.len(), want.len()))
        }
        None => Ok(()),
        Some(index) => {
            let at = index * size..(index + 1) * size;
            Err(format!(
                "element {index} is {:02x?} instead of {:02x?}",
                &got[at.clone()],
                &want[at]
            ))
        }
    }
}
