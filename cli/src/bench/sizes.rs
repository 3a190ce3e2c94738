//! The sizes of the rows.

/// How a size follows from the one before.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// By as many bytes; 0 ends after the first.
    Bytes(u64),
    /// By a factor of at least 2; after 0 it goes on from one element.
    Factor(u64),
}

/// The sizes from `begin` up to `end` bytes, each rounded down to whole elements of so many bytes,
/// no size twice.
pub(super) fn sizes(
    begin: u64,
    end: u64,
    step: Step,
    element: u64,
) -> impl Iterator<Item = u64> + use<> {
    let next = move |size: &u64| {
        let next = match (step, *size) {
            (Step::Bytes(0), _) => None,
            (Step::Bytes(bytes), size) => size.checked_add(bytes),
            (Step::Factor(_), 0) => Some(element),
            (Step::Factor(factor), size) => size.checked_mul(factor),
        };
        next.filter(|next| *next <= end)
    };
    let mut last = None;
    std::iter::successors(Some(begin), next)
        .map(move |size| size - size % element)
        .filter(move |size| last.replace(*size) != Some(*size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(begin: u64, end: u64, step: Step, element: u64) -> Vec<u64> {
        sizes(begin, end, step, element).collect()
    }

    #[test]
    fn sizes_grow_by_factor_or_by_bytes() {
        assert_eq!(list(8, 64, Step::Factor(2), 4), [8, 16, 32, 64]);
        assert_eq!(list(8, 1000, Step::Factor(10), 4), [8, 80, 800]);
        assert_eq!(list(8, 21, Step::Bytes(4), 4), [8, 12, 16, 20]);
        assert_eq!(list(8, 64, Step::Bytes(0), 4), [8]);
    }

    #[test]
    fn sizes_are_whole_elements_and_none_comes_twice() {
        assert_eq!(list(1, 17, Step::Bytes(3), 4), [0, 4, 8, 12, 16]);
        assert_eq!(list(0, 32, Step::Factor(2), 8), [0, 8, 16, 32]);
        assert_eq!(list(0, 0, Step::Factor(2), 8), [0]);
        assert_eq!(list(0, 4, Step::Factor(2), 8), [0]);
    }

    #[test]
    fn the_last_size_may_be_the_largest_number() {
        assert_eq!(list(1 << 63, u64::MAX, Step::Factor(2), 1), [1 << 63]);
        assert_eq!(list(u64::MAX, u64::MAX, Step::Bytes(1), 1), [u64::MAX]);
    }
}
