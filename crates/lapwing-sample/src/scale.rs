//! Mean and standard deviation.

use serde::{Deserialize, Serialize};

/// Mean and standard deviation (of the population) in double precision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// Mean.
    pub mean: f64,
    /// Standard deviation; 1 where all values are equal, so that dividing by it is safe.
    pub std: f64,
}

impl Scale {
    /// In two passes, so that values far from zero lose nothing; of no value, 0 and 1.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let Some((mean, std)) = Self::spread(values) else { return Self { mean: 0.0, std: 1.0 } };
        // Rounding leaves equal values a spread that is not theirs.
        let negligible = mean.abs() * 1e-12;
        Self { mean, std: if std > negligible && std.is_finite() { std } else { 1.0 } }
    }

    /// Mean and standard deviation as they are, in two passes; nothing for no value.
    pub fn spread(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
        let count = values.clone().count();
        if count == 0 {
            return None;
        }
        let mean = values.clone().sum::<f64>() / count as f64;
        let squares = values.map(|value| (value - mean) * (value - mean)).sum::<f64>();
        Some((mean, (squares / count as f64).sqrt()))
    }

    /// In standard deviations from the mean.
    pub fn standardised(&self, value: f64) -> f64 {
        (value - self.mean) / self.std
    }

    /// Back from standard deviations.
    pub fn restored(&self, value: f64) -> f64 {
        value * self.std + self.mean
    }

    /// Whether it can be divided by, wherever it came from.
    pub fn is_sound(&self) -> bool {
        self.mean.is_finite() && self.std.is_finite() && self.std > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_a_scale_of_one() {
        assert_eq!(Scale::of([0.1; 7].into_iter()).std, 1.0);
        assert_eq!(Scale::of([].into_iter()), Scale { mean: 0.0, std: 1.0 });
        assert_eq!(Scale::spread([].into_iter()), None);
    }

    #[test]
    fn values_far_from_zero_keep_their_spread() {
        for offset in [0.0, 1.7e9, 1.7e12] {
            let values = [1.0, 2.0, 4.0, 9.0].map(|value| value + offset);
            let scale = Scale::of(values.into_iter());
            assert_eq!(scale.mean, 4.0 + offset);
            assert!((scale.std - 9.5f64.sqrt()).abs() < 1e-12, "{scale:?}");
            let back = scale.restored(scale.standardised(values[3]));
            assert!((back - values[3]).abs() <= 1e-12 * offset.max(1.0), "{back}");
        }
    }

    #[test]
    fn what_cannot_be_divided_by_is_not_sound() {
        assert!(Scale { mean: 0.0, std: 1.0 }.is_sound());
        for (mean, std) in [(f64::NAN, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, f64::INFINITY)] {
            assert!(!Scale { mean, std }.is_sound());
        }
    }
}
