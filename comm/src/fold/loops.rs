//! The loops of a kernel: each a job that is compiled once per type, operator and vector level.

use std::marker::PhantomData;

use zerocopy::{FromBytes, Unalign};

use super::{
    number::{Number, Operator},
    pack::Pack,
    simd::{Job, Packs, Simd},
};

/// The loops for one type and operator. The caller has checked all lengths.
pub(super) struct Loops {
    /// `into = into ⊕ from`.
    pub(super) fold: fn(Simd, into: &mut [u8], from: &[u8]),
    /// `into = a ⊕ b`.
    pub(super) fold_from: fn(Simd, into: &mut [u8], a: &[u8], b: &[u8]),
    /// `into = from[0] ⊕ from[1] ⊕ …`, of `from[i] / divisor`, rounded once.
    pub(super) fold_all: fn(Simd, into: &mut [u8], from: &[&[u8]], divisor: u32),
    /// `into = into ⊕ from[0] ⊕ from[1] ⊕ …`, likewise.
    pub(super) fold_in: fn(Simd, into: &mut [u8], from: &[&[u8]], divisor: u32),
    /// `data = data / divisor`.
    pub(super) divide: fn(Simd, data: &mut [u8], divisor: u32),
}

impl Loops {
    /// The loops for elements of type `E`, folded by `O`.
    pub(super) const fn new<E: Packs, O: Operator>() -> Loops {
        Loops {
            fold: |simd, into, from| simd.run::<E, _>(Fold { into, from, by: PhantomData::<O> }),
            fold_from: |simd, into, a, b| {
                simd.run::<E, _>(FoldFrom { into, a, b, by: PhantomData::<O> });
            },
            fold_all: |simd, into, from, divisor| {
                simd.run::<E, _>(FoldAll::<_, false> { into, from, divisor, by: PhantomData::<O> });
            },
            fold_in: |simd, into, from, divisor| {
                simd.run::<E, _>(FoldAll::<_, true> { into, from, divisor, by: PhantomData::<O> });
            },
            divide: |simd, data, divisor| simd.run::<E, _>(Divide { data, divisor }),
        }
    }
}

struct Fold<'a, O> {
    into: &'a mut [u8],
    from: &'a [u8],
    by: PhantomData<O>,
}

impl<O: Operator> Job for Fold<'_, O> {
    #[inline(always)]
    fn run<P: Pack>(self) {
        let (into, into_tail) = packs_mut::<P>(self.into);
        let (from, from_tail) = packs::<P>(self.from);
        fold::<P, O>(into, from);
        fold::<P::Tail, O>(packs_mut(into_tail).0, packs(from_tail).0);
    }
}

#[inline(always)]
fn fold<P: Pack, O: Operator>(into: &mut [Unalign<P>], from: &[Unalign<P>]) {
    for (into, from) in into.iter_mut().zip(from) {
        into.set(P::narrow(O::apply(into.get().widen(), from.get().widen())));
    }
}

struct FoldFrom<'a, O> {
    into: &'a mut [u8],
    a: &'a [u8],
    b: &'a [u8],
    by: PhantomData<O>,
}

impl<O: Operator> Job for FoldFrom<'_, O> {
    #[inline(always)]
    fn run<P: Pack>(self) {
        let (into, into_tail) = packs_mut::<P>(self.into);
        let (a, a_tail) = packs::<P>(self.a);
        let (b, b_tail) = packs::<P>(self.b);
        fold_from::<P, O>(into, a, b);
        fold_from::<P::Tail, O>(packs_mut(into_tail).0, packs(a_tail).0, packs(b_tail).0);
    }
}

#[inline(always)]
fn fold_from<P: Pack, O: Operator>(into: &mut [Unalign<P>], a: &[Unalign<P>], b: &[Unalign<P>]) {
    for (into, (a, b)) in into.iter_mut().zip(a.iter().zip(b)) {
        into.set(P::narrow(O::apply(a.get().widen(), b.get().widen())));
    }
}

/// With `OWN`, what is in `into` comes first.
struct FoldAll<'a, O, const OWN: bool> {
    into: &'a mut [u8],
    from: &'a [&'a [u8]],
    divisor: u32,
    by: PhantomData<O>,
}

impl<O: Operator, const OWN: bool> Job for FoldAll<'_, O, OWN> {
    #[inline(always)]
    fn run<P: Pack>(self) {
        let (into, tail) = packs_mut::<P>(self.into);
        let tail_at = size_of_val(into);
        fold_all::<P, O, OWN>(into, self.from, 0, self.divisor);
        if !tail.is_empty() {
            fold_all::<P::Tail, O, OWN>(packs_mut(tail).0, self.from, tail_at, self.divisor);
        }
    }
}

/// Folds what lies `at` bytes into each of `from`, block after block.
#[inline(always)]
fn fold_all<P: Pack, O: Operator, const OWN: bool>(
    into: &mut [Unalign<P>],
    from: &[&[u8]],
    mut at: usize,
    divisor: u32,
) {
    let mut room = CacheLines(P::BLOCK);
    let room = room.0.as_mut();
    for into in into.chunks_mut(room.len()) {
        let block = at..at + size_of_val(into);
        let folded = &mut room[..into.len()];
        let mut inputs = from.iter().map(|from| packs::<P>(&from[block.clone()]).0);
        if OWN {
            gather(folded, into, divisor, |_, input| input);
        } else if let Some(first) = inputs.next() {
            gather(folded, first, divisor, |_, input| input);
        }
        for input in inputs {
            gather(folded, input, divisor, O::apply);
        }
        for (into, folded) in into.iter_mut().zip(folded) {
            into.set(P::narrow(*folded));
        }
        at = block.end;
    }
}

/// Vectors that straddle cache lines would make [`fold_all`] half as fast.
#[repr(align(64))]
struct CacheLines<T>(T);

/// Takes one more input into `folded`.
#[inline(always)]
fn gather<P: Pack>(
    folded: &mut [P::Number],
    input: &[Unalign<P>],
    divisor: u32,
    fold: impl Fn(P::Number, P::Number) -> P::Number,
) {
    let both = folded.iter_mut().zip(input);
    if divisor == 1 {
        both.for_each(|(folded, input)| *folded = fold(*folded, input.get().widen()));
    } else {
        both.for_each(|(folded, input)| {
            *folded = fold(*folded, input.get().widen().divide(divisor));
        });
    }
}

struct Divide<'a> {
    data: &'a mut [u8],
    divisor: u32,
}

impl Job for Divide<'_> {
    #[inline(always)]
    fn run<P: Pack>(self) {
        let (data, tail) = packs_mut::<P>(self.data);
        divide(data, self.divisor);
        divide(packs_mut::<P::Tail>(tail).0, self.divisor);
    }
}

#[inline(always)]
fn divide<P: Pack>(data: &mut [Unalign<P>], divisor: u32) {
    for element in data {
        element.set(P::narrow(element.get().widen().divide(divisor)));
    }
}

/// The whole packs in `bytes`, and the bytes behind them.
#[inline(always)]
fn packs<P: Pack>(bytes: &[u8]) -> (&[Unalign<P>], &[u8]) {
    <[Unalign<P>]>::ref_from_prefix(bytes).expect("any length and address will do")
}

#[inline(always)]
fn packs_mut<P: Pack>(bytes: &mut [u8]) -> (&mut [Unalign<P>], &mut [u8]) {
    <[Unalign<P>]>::mut_from_prefix(bytes).expect("any length and address will do")
}
