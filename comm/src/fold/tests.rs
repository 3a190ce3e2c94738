//! Kernels of every kind and level against a plain loop over wide numbers.

mod reference;
mod rules;

use proptest::prelude::*;

use super::*;
use reference::{decode, encode, reduce, specials};

/// Beyond one unrolled step of the widest vectors of bytes.
const LONGEST: usize = 67;

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| *level <= Level::detect())
}

/// Every type with every reduction that applies to it without a scale.
fn kinds() -> impl Iterator<Item = (DataType, Reduction)> {
    let reductions = |t| {
        Reduction::ALL
            .into_iter()
            .filter(move |r: &Reduction| *r != Reduction::PremulSum && r.applies_to(t).is_ok())
    };
    DataType::ALL.into_iter().flat_map(move |t| reductions(t).map(move |r| (t, r)))
}

fn kernels(ranks: u32) -> impl Iterator<Item = Kernel> {
    kinds().flat_map(move |(t, r)| levels().map(move |level| Kernel::new(t, r, ranks, level)))
}

/// Elements as bytes: the first ones cover all pairs of special values, the rest is random.
fn elements(data_type: DataType, count: usize, stride: usize) -> Vec<u8> {
    let specials = specials(data_type);
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ stride as u64;
    let mut bytes = Vec::new();
    for place in 0..count {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match specials.get(place / stride % (2 * specials.len())) {
            Some(special) => bytes.extend(encode(data_type, *special)),
            None => bytes.extend(&state.to_ne_bytes().repeat(2)[..data_type.size()]),
        }
    }
    bytes
}

/// What `fold` shall make of two operands; an average folds as a sum does.
fn folded(kernel: &Kernel, a: &[u8], b: &[u8]) -> Vec<u8> {
    let size = kernel.data_type.size();
    let pairs = a.chunks(size).zip(b.chunks(size));
    let reduction =
        if kernel.reduction == Reduction::Avg { Reduction::Sum } else { kernel.reduction };
    pairs
        .flat_map(|(a, b)| {
            let both = [decode(kernel.data_type, a), decode(kernel.data_type, b)];
            encode(kernel.data_type, reduce(kernel.data_type, reduction, &both))
        })
        .collect()
}

#[track_caller]
fn assert_same(ours: &[u8], reference: &[u8], kernel: &Kernel, what: &str) {
    let size = kernel.data_type.size();
    for (place, (ours, reference)) in ours.chunks(size).zip(reference.chunks(size)).enumerate() {
        assert_eq!(ours, reference, "{what}: element {place} of {kernel:?}");
    }
}

#[test]
fn folds_of_any_length_and_address_match_a_plain_loop() {
    for kernel in kernels(3) {
        let size = kernel.data_type.size();
        for count in 0..=LONGEST {
            for offset in [0, 1, 3] {
                let pad = vec![0xa5; offset];
                let mut a =
                    [pad.clone(), elements(kernel.data_type, count, 1), pad.clone()].concat();
                let b = [vec![0; offset + 1], elements(kernel.data_type, count, 7)].concat();
                let (own, from) = (offset..offset + count * size, &b[offset + 1..]);
                let expected = folded(&kernel, &a[own.clone()], from);

                let mut into = vec![0; count * size];
                kernel.fold_from(&mut into, &a[own.clone()], from);
                assert_same(&into, &expected, &kernel, "fold_from");
                kernel.fold(&mut a[own.clone()], from);
                assert_same(&a[own.clone()], &expected, &kernel, "fold");
                assert!(a[..own.start] == pad && a[own.end..] == pad, "{kernel:?} left its slice");
            }
        }
    }
}

#[test]
fn all_pairs_of_special_values_match_a_plain_loop() {
    for kernel in kernels(3) {
        let period = 2 * specials(kernel.data_type).len();
        let mut into = elements(kernel.data_type, period * period, 1);
        let from = elements(kernel.data_type, period * period, period);
        let expected = folded(&kernel, &into, &from);
        kernel.fold(&mut into, &from);
        assert_same(&into, &expected, &kernel, "fold");
    }
}

#[test]
fn fold_all_is_prepare_fold_and_finish_where_nothing_is_rounded_less() {
    let exact = |kernel: &Kernel| match kernel.data_type {
        DataType::F16 | DataType::BF16 | DataType::Fp8E4M3 | DataType::Fp8E5M2 => {
            matches!(kernel.reduction, Reduction::Min | Reduction::Max)
        }
        _ => true,
    };
    for ranks in [2, 3, 8] {
        for kernel in kernels(ranks).filter(exact) {
            for count in [0, 1, 5, LONGEST, 600] {
                let mut inputs: Vec<Vec<u8>> = (1..=ranks as usize)
                    .map(|rank| elements(kernel.data_type, count, rank))
                    .collect();
                let from: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
                let mut all = vec![0; inputs[0].len()];
                kernel.fold_all(&mut all, &from);

                inputs.iter_mut().for_each(|input| kernel.prepare(input));
                let (first, rest) = inputs.split_first_mut().unwrap();
                rest.iter().for_each(|input| kernel.fold(first, input));
                kernel.finish(first);
                assert_same(&all, first, &kernel, "fold_all");
            }
        }
    }
}

#[test]
fn only_averages_are_prepared_or_finished() {
    for kernel in kernels(3) {
        let before = elements(kernel.data_type, LONGEST, 1);
        let (mut prepared, mut finished) = (before.clone(), before.clone());
        kernel.prepare(&mut prepared);
        kernel.finish(&mut finished);
        assert_eq!(prepared != before, kernel.needs_prepare(), "{kernel:?}");
        assert_eq!(finished != before, kernel.needs_finish(), "{kernel:?}");
        let needs = u8::from(kernel.needs_prepare()) + u8::from(kernel.needs_finish());
        assert_eq!(needs, u8::from(kernel.reduction == Reduction::Avg), "{kernel:?}");
    }
}

#[test]
fn kernel_never_exceeds_the_cpu() {
    let kernel = Kernel::new(DataType::F32, Reduction::Sum, 2, Level::Avx512);
    assert_eq!(kernel.level(), Level::detect());
}

#[test]
#[should_panic(expected = "different lengths")]
fn buffers_of_different_lengths_are_refused() {
    let kernel = Kernel::new(DataType::F32, Reduction::Sum, 2, Level::Baseline);
    kernel.fold(&mut [0; 8], &[0; 4]);
}

#[test]
#[should_panic(expected = "no whole fp32")]
fn parts_of_elements_are_refused() {
    let kernel = Kernel::new(DataType::F32, Reduction::Sum, 2, Level::Baseline);
    kernel.fold(&mut [0; 6], &[0; 6]);
}

fn kind() -> impl Strategy<Value = (DataType, Reduction)> {
    prop::sample::select(kinds().collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn levels_and_operand_orders_give_the_same_bits(
        (data_type, reduction) in kind(),
        ranks in 1u32..20,
        bits in prop::collection::vec(any::<[[u8; 16]; 3]>(), 0..60),
    ) {
        // Three contributions of bytes that are any bit pattern, NaN and subnormals included.
        let part = |n: usize| -> Vec<u8> { bits.iter().flat_map(|b| b[n]).collect() };
        let (a, b, c) = (part(0), part(1), part(2));
        let run = |level, a: &[u8], b: &[u8]| {
            let kernel = Kernel::new(data_type, reduction, ranks, level);
            let (mut folded, mut all) = (a.to_vec(), vec![0; a.len()]);
            let mut prepared = b.to_vec();
            kernel.prepare(&mut folded);
            kernel.prepare(&mut prepared);
            kernel.fold(&mut folded, &prepared);
            kernel.finish(&mut folded);
            kernel.fold_all(&mut all, &[a, b, &c]);
            (folded, all)
        };
        let expected = run(Level::Baseline, &a, &b);
        for level in levels() {
            prop_assert_eq!(&run(level, &a, &b), &expected, "{}", level);
            prop_assert_eq!(&run(level, &b, &a), &expected, "{} turned", level);
        }
    }
}
