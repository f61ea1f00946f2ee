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
        let Some(spread) = Spread::of(values) else { return Self { mean: 0.0, std: 1.0 } };
        let (mean, std) = (spread.mean, spread.std());
        // Rounding leaves equal values a spread that is not theirs.
        let negligible = mean.abs() * 1e-12;
        Self { mean, std: if std > negligible && std.is_finite() { std } else { 1.0 } }
    }

    /// Mean and standard deviation as they are; nothing for no value.
    pub fn spread(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
        Spread::of(values).map(|spread| (spread.mean, spread.std()))
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

/// How values lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Number of values, at least 1.
    pub count: usize,
    /// Mean.
    pub mean: f64,
    /// Sum of the squared distances from it.
    squares: f64,
}

impl Spread {
    /// In two passes, so that values far from zero lose nothing; nothing for no value.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let count = values.clone().count();
        if count == 0 {
            return None;
        }
        let mean = values.clone().sum::<f64>() / count as f64;
        let squares = values.map(|value| (value - mean) * (value - mean)).sum::<f64>();
        Some(Self { count, mean, squares })
    }

    /// Standard deviation of the population.
    pub fn std(&self) -> f64 {
        (self.squares / self.count as f64).sqrt()
    }

    /// Standard deviation of what these values are a sample of; a single value says nothing about it.
    pub fn sample_std(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_a_scale_of_one() {
        assert_eq!(Scale::of([0.1; 7].into_iter()).std, 1.0);
        assert_eq!(Scale::of([].into_iter()), Scale { mean: 0.0, std: 1.0 });
        assert_eq!(Spread::of([].into_iter()), None);
        let one = Spread::of([3.0].into_iter()).unwrap();
        assert_eq!((one.mean, one.std(), one.sample_std()), (3.0, 0.0, None));
        let two = Spread::of([1.0, 3.0].into_iter()).unwrap();
        assert_eq!((two.mean, two.std(), two.sample_std()), (2.0, 1.0, Some(2.0f64.sqrt())));
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
