//! Medians and percentiles of measurements.

/// The value that `share` of the samples do not exceed; nothing without samples.
pub(super) fn percentile(samples: &[f64], share: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    sorted.get(((sorted.len() as f64 * share) as usize).min(last)).copied()
}

/// The middle of the samples; nothing without samples.
pub(super) fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle).copied()?;
    let even = sorted.len().is_multiple_of(2);
    let lower = middle.checked_sub(1).filter(|_| even).and_then(|below| sorted.get(below).copied());
    Some(lower.map_or(upper, |lower| f64::midpoint(lower, upper)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles_are_right() {
        assert_eq!((median(&[]), percentile(&[], 0.5)), (None, None));
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0])), (Some(2.0), Some(2.5)));
        let hundred: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!((percentile(&hundred, 0.99), percentile(&hundred, 1.0)), (Some(99.0), Some(99.0)));
    }
}
