//! How often which value was seen.

use serde::{Deserialize, Serialize};

/// Bins of a distribution; enough to show two peaks, few enough to be smooth with a few hundred values.
const BINS: usize = 48;

/// Counts in bins of equal width from `low` to `high`. The outermost bins hold what lies beyond as well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Histogram {
    /// Lower end of the first bin.
    pub low: f64,
    /// Upper end of the last bin.
    pub high: f64,
    /// Values per bin.
    pub counts: Vec<u64>,
}

impl Histogram {
    /// Counts the finite values.
    pub fn of(values: &[f64], low: f64, high: f64) -> Self {
        let mut counts = vec![0; BINS];
        for value in values.iter().filter(|v| v.is_finite()) {
            let share = (value - low) / (high - low);
            // A float beyond the range of an integer becomes its nearest end, and NaN becomes 0.
            counts[((share * BINS as f64) as usize).min(BINS - 1)] += 1;
        }
        Self { low, high, counts }
    }

    /// Number of values counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }
}

/// Range of the finite values but for the outermost thousandth on either side, which would flatten all the rest.
pub(crate) fn inner_range(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.retain(|v| v.is_finite());
    values.sort_by(f64::total_cmp);
    let left_out = if values.len() < 20 { 0 } else { values.len().div_ceil(1000) };
    Some((*values.get(left_out)?, *values.get(values.len() - 1 - left_out)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_fall_into_their_bins_and_strays_into_the_outermost() {
        let histogram =
            Histogram::of(&[0.0, 0.5, 1.0, -7.0, 7.0, f64::NAN, f64::INFINITY], 0.0, 1.0);
        assert_eq!(histogram.counts[0], 2);
        assert_eq!(histogram.counts[BINS / 2], 1);
        assert_eq!(histogram.counts[BINS - 1], 2);
        assert_eq!(histogram.total(), 5);
    }

    proptest! {
        #[test]
        fn no_finite_value_is_lost(values: Vec<f64>, low: f64, high: f64) {
            let finite = values.iter().filter(|v| v.is_finite()).count() as u64;
            prop_assert_eq!(Histogram::of(&values, low, high).total(), finite);
        }
    }
}
