use super::*;
use crate::bench::case::Act;
use tutti::{Collective, Rank};

const COUNT: u64 = 500;

fn case(data_type: DataType, reduction: Reduction) -> Case {
    let act = Act::Collective(Collective::AllReduce);
    let (ranks, uneven, in_place) = (4, false, true);
    Case { act, data_type, reduction, ranks, count: COUNT, uneven, in_place }
}

/// Every type with every reduction that applies to it.
fn kinds() -> impl Iterator<Item = (DataType, Reduction)> {
    DataType::ALL.into_iter().flat_map(|data_type| {
        let reductions = Reduction::ALL.into_iter();
        let reductions = reductions.filter(move |reduction| {
            *reduction != Reduction::PremulSum && reduction.applies_to(data_type).is_ok()
        });
        reductions.map(move |reduction| (data_type, reduction))
    })
}

/// All elements, contributed by one rank or folded.
fn all(of: Option<u32>) -> [Run; 1] {
    [Run { at: 0, len: COUNT, of, first: 0 }]
}

/// Memory aligned for every type.
fn buffer(case: &Case) -> Vec<u64> {
    vec![0; case.bytes().div_ceil(8) as usize]
}

fn bytes_of<'a>(case: &Case, words: &'a mut [u64]) -> &'a mut [u8] {
    &mut words.as_mut_bytes()[..case.bytes() as usize]
}

/// Folds with the arithmetic of the type itself, rounding after every step, in the given order.
trait Arithmetic: Number + PartialEq {
    fn add(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn divide(self, by: u32) -> Self;
    fn is_less(self, other: Self) -> bool;
    /// Combines the bytes.
    fn bitwise(mut self, other: Self, combine: fn(u8, u8) -> u8) -> Self {
        let bytes = self.as_mut_bytes().iter_mut().zip(other.as_bytes());
        bytes.for_each(|(a, b)| *a = combine(*a, *b));
        self
    }
    fn is_zero(self) -> bool {
        self == Self::from_whole(0)
    }
}

macro_rules! is_less {
    () => {
        PartialOrd::lt
    };
    ($is_less:expr) => {
        $is_less
    };
}

macro_rules! arithmetic {
    ($($type:ty, $add:expr, $multiply:expr, $divide:expr $(, $is_less:expr)?;)*) => {$(
        impl Arithmetic for $type {
            fn add(self, other: Self) -> Self { $add(self, other) }
            fn multiply(self, other: Self) -> Self { $multiply(self, other) }
            fn divide(self, by: u32) -> Self { $divide(self, by) }
            fn is_less(self, other: Self) -> bool { is_less!($($is_less)?)(&self, &other) }
        }
    )*};
}
arithmetic! {
    i8, i8::wrapping_add, i8::wrapping_mul, |a, by| (i64::from(a) / i64::from(by)) as i8;
    u8, u8::wrapping_add, u8::wrapping_mul, |a, by| (i64::from(a) / i64::from(by)) as u8;
    i32, i32::wrapping_add, i32::wrapping_mul, |a, by| a / by as i32;
    i64, i64::wrapping_add, i64::wrapping_mul, |a, by| a / i64::from(by);
    i16, i16::wrapping_add, i16::wrapping_mul, |a, by| (i64::from(a) / i64::from(by)) as i16;
    u16, u16::wrapping_add, u16::wrapping_mul, |a, by| (i64::from(a) / i64::from(by)) as u16;
    u32, u32::wrapping_add, u32::wrapping_mul, |a, by| a / by;
    u64, u64::wrapping_add, u64::wrapping_mul, |a, by| a / u64::from(by);
    f32, |a, b| a + b, |a, b| a * b, |a, by| a / by as f32;
    f64, |a, b| a + b, |a, b| a * b, |a, by| a / f64::from(by);
    f16, |a, b| a + b, |a, b| a * b, |a, by| a / f16::from_f32(by as f32);
    bf16, |a, b| a + b, |a, b| a * b, |a, by| a / bf16::from_f32(by as f32);
    Bool, |a: Bool, b: Bool| Bool::from(a.get() || b.get()),
        |a: Bool, b: Bool| Bool::from(a.get() && b.get()),
        |a, _| a, |a: &Bool, b: &Bool| a.0 < b.0;
    Complex64, |a: Complex64, b: Complex64| Complex64::new(a.re + b.re, a.im + b.im),
        |a: Complex64, b: Complex64| Complex64::new(a.re * b.re, 0.0),
        |a: Complex64, by| Complex64::new(a.re / by as f32, a.im), |_, _| false;
    Complex128, |a: Complex128, b: Complex128| Complex128::new(a.re + b.re, a.im + b.im),
        |a: Complex128, b: Complex128| Complex128::new(a.re * b.re, 0.0),
        |a: Complex128, by| Complex128::new(a.re / f64::from(by), a.im), |_, _| false;
    Fp8E4M3, |a, b| e4m3(a, b, |a, b| a + b), |a, b| e4m3(a, b, |a, b| a * b),
        |a: Fp8E4M3, by| Fp8E4M3::from_f32(a.to_f32() / by as f32),
        |a: &Fp8E4M3, b: &Fp8E4M3| a.to_f32() < b.to_f32();
    Fp8E5M2, |a, b| e5m2(a, b, |a, b| a + b), |a, b| e5m2(a, b, |a, b| a * b),
        |a: Fp8E5M2, by| Fp8E5M2::from_f32(a.to_f32() / by as f32),
        |a: &Fp8E5M2, b: &Fp8E5M2| a.to_f32() < b.to_f32();
}

fn e4m3(a: Fp8E4M3, b: Fp8E4M3, combine: fn(f32, f32) -> f32) -> Fp8E4M3 {
    Fp8E4M3::from_f32(combine(a.to_f32(), b.to_f32()))
}

fn e5m2(a: Fp8E5M2, b: Fp8E5M2, combine: fn(f32, f32) -> f32) -> Fp8E5M2 {
    Fp8E5M2::from_f32(combine(a.to_f32(), b.to_f32()))
}

fn fold<T: Arithmetic>(reduction: Reduction, ranks: u32, values: impl Iterator<Item = T>) -> T {
    let prepare = |value: T| match reduction {
        Reduction::Avg if T::FLOAT => value.divide(ranks),
        Reduction::Land | Reduction::Lor | Reduction::Lxor => {
            T::from_whole((!value.is_zero()).into())
        }
        _ => value,
    };
    let folded = values.map(prepare).reduce(|a, b| match reduction {
        Reduction::Sum | Reduction::PremulSum | Reduction::Avg => a.add(b),
        Reduction::Prod => a.multiply(b),
        Reduction::Band => a.bitwise(b, |a, b| a & b),
        Reduction::Bor => a.bitwise(b, |a, b| a | b),
        Reduction::Bxor => a.bitwise(b, |a, b| a ^ b),
        Reduction::Land => T::from_whole((!a.is_zero() && !b.is_zero()).into()),
        Reduction::Lor => T::from_whole((!a.is_zero() || !b.is_zero()).into()),
        Reduction::Lxor => T::from_whole((a.is_zero() != b.is_zero()).into()),
        Reduction::Min => {
            if b.is_less(a) {
                b
            } else {
                a
            }
        }
        Reduction::Max => {
            if a.is_less(b) {
                b
            } else {
                a
            }
        }
    });
    match (reduction, folded.expect("a group has a rank")) {
        (Reduction::Avg, sum) if !T::FLOAT => sum.divide(ranks),
        (_, folded) => folded,
    }
}

/// Reduces as a library would, forwards or backwards.
fn reduce<T: Arithmetic>(case: &Case, backwards: bool, result: &mut [u8]) {
    let (inputs, ranks) = (Inputs::new::<T>(case), case.ranks);
    let result = <[T]>::mut_from_bytes(result).unwrap();
    for (index, element) in result.iter_mut().enumerate() {
        let order = (0..ranks).map(|i| if backwards { ranks - 1 - i } else { i });
        let values = order.map(|rank| T::from_whole(inputs.value(rank, index as u64)));
        *element = fold(case.reduction, ranks, values);
    }
}

fn reduce_any(case: &Case, backwards: bool, result: &mut [u8]) {
    match case.data_type {
        DataType::F32 => reduce::<f32>(case, backwards, result),
        DataType::F64 => reduce::<f64>(case, backwards, result),
        DataType::F16 => reduce::<f16>(case, backwards, result),
        DataType::BF16 => reduce::<bf16>(case, backwards, result),
        DataType::I8 => reduce::<i8>(case, backwards, result),
        DataType::I32 => reduce::<i32>(case, backwards, result),
        DataType::I64 => reduce::<i64>(case, backwards, result),
        DataType::U8 => reduce::<u8>(case, backwards, result),
        DataType::I16 => reduce::<i16>(case, backwards, result),
        DataType::U16 => reduce::<u16>(case, backwards, result),
        DataType::U32 => reduce::<u32>(case, backwards, result),
        DataType::U64 => reduce::<u64>(case, backwards, result),
        DataType::Bool => reduce::<Bool>(case, backwards, result),
        DataType::Complex64 => reduce::<Complex64>(case, backwards, result),
        DataType::Complex128 => reduce::<Complex128>(case, backwards, result),
        DataType::Fp8E4M3 => reduce::<Fp8E4M3>(case, backwards, result),
        DataType::Fp8E5M2 => reduce::<Fp8E5M2>(case, backwards, result),
    }
}

#[test]
fn every_reduction_of_every_type_is_exact_in_any_order() {
    for (data_type, reduction) in kinds() {
        for ranks in [1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 32, 63, 64] {
            let case = Case { ranks, ..case(data_type, reduction) };
            let (mut there, mut back) = (buffer(&case), buffer(&case));
            reduce_any(&case, false, bytes_of(&case, &mut there));
            reduce_any(&case, true, bytes_of(&case, &mut back));
            let at = format!("{data_type} {reduction} over {ranks}");
            assert_eq!(there, back, "{at}");
            assert_eq!(first_wrong(&case, &all(None), bytes_of(&case, &mut there)), None, "{at}");
        }
    }
}

#[test]
fn a_flipped_bit_in_any_element_is_found_where_it_is() {
    for (data_type, reduction) in kinds() {
        let case = case(data_type, reduction);
        let mut words = buffer(&case);
        reduce_any(&case, false, bytes_of(&case, &mut words));
        let size = data_type.size();
        for index in [0, 1, COUNT / 2, COUNT - 1] {
            let result = bytes_of(&case, &mut words);
            let highest = index as usize * size + size - 1;
            result[highest] ^= 0x40;
            let wrong = first_wrong(&case, &all(None), result).expect("it was changed");
            assert_eq!(wrong.index, index, "{data_type} {reduction}");
            assert_ne!(wrong.expected, wrong.found);
            result[highest] ^= 0x40;
        }
    }
}

#[test]
fn a_rank_left_out_or_counted_twice_is_found() {
    for (data_type, reduction) in kinds() {
        if matches!(reduction, Reduction::Sum | Reduction::Prod | Reduction::Avg) {
            let case = case(data_type, reduction);
            let mut words = buffer(&case);
            reduce_any(&case, false, bytes_of(&case, &mut words));
            // Checked as if one more rank, or one less, had taken part.
            for ranks in [3, 5] {
                let other = Case { ranks, ..case };
                let wrong = first_wrong(&other, &all(None), bytes_of(&case, &mut words));
                assert!(wrong.is_some(), "{data_type} {reduction}");
            }
        }
    }
}

#[test]
fn inputs_differ_by_rank_and_by_element() {
    for data_type in DataType::ALL {
        let case = Case { ranks: 64, ..case(data_type, Reduction::Sum) };
        let (mut a, mut b) = (buffer(&case), buffer(&case));
        fill(&case, &all(Some(0)), bytes_of(&case, &mut a));
        fill(&case, &all(Some(1)), bytes_of(&case, &mut b));
        assert_ne!(a, b, "{data_type}");
        assert!(a.iter().any(|word| *word != a[0]), "{data_type}");
    }
}

#[test]
fn broadcast_must_bring_the_data_of_its_root() {
    let act = Act::Collective(Collective::Broadcast { root: Rank(2) });
    let case = Case { act, ..case(DataType::F16, Reduction::Sum) };
    let mut words = buffer(&case);
    fill(&case, &all(Some(2)), bytes_of(&case, &mut words));
    assert_eq!(first_wrong(&case, &all(Some(2)), bytes_of(&case, &mut words)), None);
    fill(&case, &all(Some(1)), bytes_of(&case, &mut words));
    assert!(first_wrong(&case, &all(Some(2)), bytes_of(&case, &mut words)).is_some());
}

#[test]
fn a_wrong_element_of_a_later_run_is_found_by_its_place() {
    let case = case(DataType::I32, Reduction::Sum);
    let runs = [
        Run { at: 0, len: 10, of: Some(1), first: 7 },
        Run { at: 20, len: 10, of: Some(3), first: 1 << 40 },
    ];
    let mut words = buffer(&case);
    fill(&case, &runs, bytes_of(&case, &mut words));
    assert_eq!(first_wrong(&case, &runs, bytes_of(&case, &mut words)), None);
    bytes_of(&case, &mut words)[25 * 4] ^= 1;
    let wrong = first_wrong(&case, &runs, bytes_of(&case, &mut words)).unwrap();
    assert_eq!(wrong.index, 25);
}

#[test]
fn nan_is_never_right() {
    for (_, reduction) in kinds().filter(|(data_type, _)| *data_type == DataType::F32) {
        let case = case(DataType::F32, reduction);
        let mut words = buffer(&case);
        reduce::<f32>(&case, false, bytes_of(&case, &mut words));
        bytes_of(&case, &mut words)[..4].copy_from_slice(&f32::NAN.to_ne_bytes());
        assert!(
            first_wrong(&case, &all(None), bytes_of(&case, &mut words)).is_some(),
            "{reduction}"
        );
    }
}

#[test]
fn an_average_over_very_many_ranks_has_room_for_rounding() {
    assert_eq!(bf16::average_slack(bf16::from_f32(0.0), 256), 0.0);
    assert!(bf16::average_slack(bf16::from_f32(0.0), 300) > 0.0);
}
