//! Figures that stand for many.

/// The middle, of an even count the mean of the two in the middle; None of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (lower, upper) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some((sorted[lower] + sorted[upper]) / 2.0)
}

/// The least and the largest; None of nothing.
pub(crate) fn range(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().reduce(f64::min)?;
    Some((least, values.iter().copied().fold(least, f64::max)))
}

/// The geometric mean of numbers above 0; None of nothing.
pub(crate) fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (logs / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn twice_as_fast_and_half_as_fast_average_to_as_fast() {
        let mean = geometric_mean(&[2.0, 0.5]).unwrap();
        assert!((mean - 1.0).abs() < 1e-12, "{mean}");
        assert_eq!(geometric_mean(&[]), None);
    }

    #[test]
    fn the_range_has_both_ends() {
        assert_eq!(range(&[3.0, 1.0, 2.0]), Some((1.0, 3.0)));
        assert_eq!(range(&[]), None);
    }
}
