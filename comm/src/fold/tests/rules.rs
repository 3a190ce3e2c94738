//! The rules, each as the values that show it.

use half::{bf16, f16};

use super::reference::{Value, canonical_nan, decode, encode};
use super::{LONGEST, assert_same, elements, kernels, levels};
use crate::data_type::{Complex64, DataType, Element, Fp8E4M3, Kind, bytes_of};
use crate::fold::{Kernel, Level, Scale};
use crate::reduction::Reduction;

fn is_float(kernel: &Kernel) -> bool {
    matches!(kernel.data_type.kind(), Kind::Float | Kind::Float8)
}

#[test]
fn nan_at_any_place_of_either_operand_gives_the_canonical_nan_there_alone() {
    for kernel in kernels(2).filter(is_float) {
        let size = kernel.data_type.size();
        let one = encode(kernel.data_type, Value::Float(1.0));
        // All bits set: a NaN with a sign and a payload.
        let ones = one.repeat(LONGEST);
        for place in 0..LONGEST {
            let mut nan = ones.clone();
            nan[place * size..][..size].fill(0xff);
            for (mut into, from) in
                [(nan.clone(), &ones), (ones.clone(), &nan), (nan.clone(), &nan)]
            {
                let mut all = vec![0; into.len()];
                kernel.fold_all(&mut all, &[&ones, &into, from]);
                kernel.fold(&mut into, from);
                for (at, (folded, all)) in into.chunks(size).zip(all.chunks(size)).enumerate() {
                    let is_nan = |bytes| bytes == canonical_nan(kernel.data_type);
                    assert_eq!(is_nan(folded), at == place, "element {at} of {kernel:?}");
                    assert_eq!(is_nan(all), at == place, "element {at} of {kernel:?}");
                }
            }
        }
    }
}

#[test]
fn minimum_prefers_negative_zero_and_maximum_positive_zero() {
    fn check<T: Element>(negative: T, positive: T) {
        for (reduction, expected) in [(Reduction::Min, negative), (Reduction::Max, positive)] {
            for level in levels() {
                let kernel = Kernel::new(T::DATA_TYPE, reduction, 2, level);
                for (a, b) in [(negative, positive), (positive, negative)] {
                    let mut into = bytes_of(&[a; 40]).to_vec();
                    kernel.fold(&mut into, bytes_of(&[b; 40]));
                    assert_same(&into, bytes_of(&[expected; 40]), &kernel, "zeros");
                }
            }
        }
    }
    check(-0.0f32, 0.0);
    check(-0.0f64, 0.0);
    check(f16::NEG_ZERO, f16::ZERO);
    check(bf16::NEG_ZERO, bf16::ZERO);
}

#[test]
fn integers_wrap() {
    fn check<T: Element>(reduction: Reduction, a: T, b: T, expected: T) {
        for level in levels() {
            let kernel = Kernel::new(T::DATA_TYPE, reduction, 2, level);
            let mut into = bytes_of(&[a; 40]).to_vec();
            kernel.fold(&mut into, bytes_of(&[b; 40]));
            assert_same(&into, bytes_of(&[expected; 40]), &kernel, "wrap");
        }
    }
    check(Reduction::Sum, 200u8, 100, 44);
    check(Reduction::Sum, i8::MAX, 1, i8::MIN);
    check(Reduction::Sum, i32::MIN, -1, i32::MAX);
    check(Reduction::Sum, i64::MAX, 1, i64::MIN);
    check(Reduction::Sum, i16::MAX, 1, i16::MIN);
    check(Reduction::Sum, u16::MAX, 2, 1);
    check(Reduction::Sum, u32::MAX, 2, 1);
    check(Reduction::Sum, u64::MAX, 2, 1);
    check(Reduction::Prod, 16u8, 17, 16);
    check(Reduction::Prod, i8::MIN, -1, i8::MIN);
    check(Reduction::Prod, 1 << 16, 3 << 15, i32::MIN);
    check(Reduction::Prod, i64::MIN, -1, i64::MIN);
    check(Reduction::Prod, i16::MIN, -1, i16::MIN);
    check(Reduction::Prod, u16::MAX, u16::MAX, 1);
    check(Reduction::Prod, u32::MAX, u32::MAX, 1);
    check(Reduction::Prod, u64::MAX, u64::MAX, 1);
}

#[test]
fn bools_add_by_or_and_multiply_by_and() {
    for (reduction, expected) in [
        (Reduction::Sum, [0, 1, 1]),
        (Reduction::Max, [0, 1, 1]),
        (Reduction::Bor, [0, 1, 1]),
        (Reduction::Prod, [0, 0, 1]),
        (Reduction::Min, [0, 0, 1]),
        (Reduction::Band, [0, 0, 1]),
        (Reduction::Bxor, [0, 1, 0]),
    ] {
        for level in levels() {
            let kernel = Kernel::new(DataType::Bool, reduction, 2, level);
            let mut into = vec![0, 4, 2];
            kernel.fold(&mut into, &[0, 0, 1]);
            assert_same(&into, &expected, &kernel, "bools");
        }
    }
}

#[test]
fn nan_in_one_part_of_a_complex_number_stays_there_in_a_sum() {
    for level in levels() {
        let kernel = Kernel::new(DataType::Complex64, Reduction::Sum, 2, level);
        let mut into = bytes_of(&[Complex64::new(1.0, -f32::NAN); 9]).to_vec();
        kernel.fold(&mut into, bytes_of(&[Complex64::new(2.0, 1.0); 9]));
        let nan = f32::from_bits(0x7fc0_0000);
        assert_same(&into, bytes_of(&[Complex64::new(3.0, nan); 9]), &kernel, "sum");
    }
}

#[test]
fn fold_all_of_8_bit_floats_rounds_once() {
    let codes: Vec<u8> = [16.0, 1.0, 1.0].map(|number| Fp8E4M3::from_f32(number).0).into();
    for level in levels() {
        let kernel = Kernel::new(DataType::Fp8E4M3, Reduction::Sum, 3, level);
        let mut into = [0];
        kernel.fold_all(&mut into, &[&codes[..1], &codes[1..2], &codes[2..]]);
        // Step by step, 16 + 1 is 16 again.
        assert_eq!(Fp8E4M3(into[0]).to_f32(), 18.0, "{kernel:?}");
    }
}

#[test]
fn a_scaled_contribution_is_multiplied_when_it_is_prepared() {
    fn check<T: Element>(contribution: T, scale: T, expected: T) {
        for level in levels() {
            let kernel = Kernel::new(T::DATA_TYPE, Reduction::PremulSum, 3, level);
            let kernel = kernel.scaled(Scale::new(scale));
            // More than one block of factors, and a part of one.
            let mut data = bytes_of(&[contribution; 555]).to_vec();
            kernel.prepare(&mut data);
            assert_same(&data, bytes_of(&[expected; 555]), &kernel, "prepare");
        }
    }
    check(3.0f32, -0.5, -1.5);
    check(3.0f64, -0.5, -1.5);
    check(f16::from_f32(3.0), f16::from_f32(0.5), f16::from_f32(1.5));
    check(bf16::from_f32(3.0), bf16::from_f32(0.5), bf16::from_f32(1.5));
    check(100i8, 3, 44);
    check(200u8, 2, 144);
    check(i64::MIN, -1, i64::MIN);
    check(u16::MAX, u16::MAX, 1);
    check(Complex64::new(1.0, 2.0), Complex64::new(0.0, 1.0), Complex64::new(-2.0, 1.0));
    check(Fp8E4M3::from_f32(3.0), Fp8E4M3::from_f32(0.5), Fp8E4M3::from_f32(1.5));
}

#[test]
fn logical_reductions_give_zero_or_one() {
    for (reduction, expected) in
        [(Reduction::Land, [0, 0, 1]), (Reduction::Lor, [0, 1, 1]), (Reduction::Lxor, [0, 1, 0])]
    {
        for level in levels() {
            let kernel = Kernel::new(DataType::I32, reduction, 2, level);
            let mut into = bytes_of(&[0, 0, 256]).to_vec();
            kernel.fold(&mut into, bytes_of(&[0, -2, 1 << 31]));
            assert_same(&into, bytes_of(&expected), &kernel, "logical");
        }
    }
}

#[test]
fn what_one_rank_contributes_to_a_logical_reduction_becomes_zero_or_one() {
    for reduction in [Reduction::Land, Reduction::Lor, Reduction::Lxor] {
        let kernel = Kernel::new(DataType::U16, reduction, 1, Level::Baseline);
        let mut data = bytes_of(&[0u16, 256, 1]).to_vec();
        kernel.finish(&mut data);
        assert_same(&data, bytes_of(&[0u16, 1, 1]), &kernel, "finish");
    }
}

#[test]
fn averages_of_integers_divide_toward_zero() {
    for ranks in [1, 2, 3, 7, 255, 256, 65_537, u32::MAX] {
        for kernel in kernels(ranks)
            .filter(|kernel| kernel.reduction == Reduction::Avg && kernel.needs_finish())
        {
            let divide = |bytes: &[u8]| match decode(kernel.data_type, bytes) {
                Value::Integer(sum) => {
                    encode(kernel.data_type, Value::Integer(sum / i128::from(ranks)))
                }
                _ => unreachable!("only integers are finished"),
            };
            let mut data = elements(kernel.data_type, 300, 1);
            let expected: Vec<u8> = data.chunks(kernel.data_type.size()).flat_map(divide).collect();
            kernel.finish(&mut data);
            assert_same(&data, &expected, &kernel, "finish");
        }
    }
}

#[test]
fn every_byte_divides_exactly_by_every_small_divisor() {
    let bytes: Vec<u8> = (0..=u8::MAX).collect();
    for divisor in 1..=300 {
        for level in levels() {
            let mut unsigned = bytes.clone();
            Kernel::new(DataType::U8, Reduction::Avg, divisor, level).finish(&mut unsigned);
            let mut signed = bytes.clone();
            Kernel::new(DataType::I8, Reduction::Avg, divisor, level).finish(&mut signed);
            for byte in 0..=u8::MAX {
                let at = usize::from(byte);
                assert_eq!(u32::from(unsigned[at]), u32::from(byte) / divisor);
                let quotient = i64::from(byte.cast_signed()) / i64::from(divisor);
                assert_eq!(i64::from(signed[at].cast_signed()), quotient);
            }
        }
    }
}

#[test]
fn averages_of_large_floats_do_not_overflow() {
    fn check<T: Element>(large: T, ranks: u32) {
        for level in levels() {
            let kernel = Kernel::new(T::DATA_TYPE, Reduction::Avg, ranks, level);
            let contribution = bytes_of(&[large; 21]).to_vec();
            let mut into = vec![0; contribution.len()];
            kernel.fold_all(&mut into, &vec![&contribution[..]; ranks as usize]);
            let (Value::Float(ours), Value::Float(exact)) = (
                decode(T::DATA_TYPE, &into[..T::DATA_TYPE.size()]),
                decode(T::DATA_TYPE, bytes_of(&[large])),
            ) else {
                unreachable!("floats")
            };
            assert!((ours / exact - 1.0).abs() < 1e-5, "{kernel:?}: {ours:e}, not {exact:e}");
        }
    }
    for ranks in [2, 3, 7, 8, 11, 100] {
        check(f32::MAX * 0.999, ranks);
        check(f64::MAX * 0.999, ranks);
        check(f16::MAX, ranks);
        check(bf16::MAX, ranks);
        check(f16::from_f32(60_000.0), ranks);
    }
    check(f32::MAX, 8);
    check(f64::MAX, 8);
}

#[test]
fn average_of_eight_times_60000_is_60000_in_fp16() {
    let value = f16::from_f32(60_000.0);
    for level in levels() {
        let kernel = Kernel::new(DataType::F16, Reduction::Avg, 8, level);
        let mut all = vec![0; 2];
        kernel.fold_all(&mut all, &[&value.to_ne_bytes()[..]; 8]);
        let mut prepared = value.to_ne_bytes();
        kernel.prepare(&mut prepared);
        let mut folded = prepared;
        (1..8).for_each(|_| kernel.fold(&mut folded, &prepared));
        assert_eq!(all, value.to_ne_bytes(), "{kernel:?}");
        // Step by step, the sums from 32768 up round to multiples of 32: four of the seven.
        let error = f16::from_ne_bytes(folded).to_f32() - 60_000.0;
        assert!(error.abs() <= 4.0 * 16.0, "{kernel:?} is {error} off");
    }
}

#[test]
fn fold_all_of_16_bit_floats_rounds_once() {
    for data_type in [DataType::F16, DataType::BF16] {
        let value =
            |rank: usize, place: usize| Value::Float((place * 37 + rank * 101) as f64 % 89.0 / 7.0);
        let input =
            |rank| (0..LONGEST).flat_map(move |place| encode(data_type, value(rank, place)));
        let inputs: Vec<Vec<u8>> = (0..16).map(|rank| input(rank).collect()).collect();
        let from: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let sum_at = |place: usize| -> f64 {
            let terms = from.iter().map(|input| decode(data_type, &input[2 * place..][..2]));
            terms.map(|term| if let Value::Float(term) = term { term } else { f64::NAN }).sum()
        };
        for level in levels() {
            let mut into = vec![0; 2 * LONGEST];
            Kernel::new(data_type, Reduction::Sum, 16, level).fold_all(&mut into, &from);
            for (place, ours) in into.chunks(2).enumerate() {
                let exact = encode(data_type, Value::Float(sum_at(place)));
                let bits = |bytes: &[u8]| u16::from_ne_bytes([bytes[0], bytes[1]]);
                let apart = bits(ours).abs_diff(bits(&exact));
                assert!(apart <= 1, "element {place} of {data_type} is {apart} units off");
            }
        }
    }
}
