//! Weighted mean and variance, combined by merging.

use crate::mass::Mass;

/// The mean and population variance of a weighted set of losses, and the weight of the set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    pub(crate) mass: Mass,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

impl Moments {
    /// The moments of no loss at all.
    pub(crate) const NONE: Self = Self { mass: Mass::NONE, mean: 0.0, variance: 0.0 };

    /// The moments of two disjoint sets together.
    ///
    /// Every term of the variance is a product of numbers that are not negative, so it cannot be
    /// negative either; and the mean starts from the heavier side, so that a set of negligible
    /// weight has a negligible effect however large its losses are.
    #[inline]
    pub(crate) fn merge(self, other: Self) -> Self {
        if self.mass.is_none() {
            return other;
        }
        if other.mass.is_none() {
            return self;
        }
        let (ours, theirs, block) = self.mass.align(other.mass);
        let mantissa = ours + theirs;
        let per_mass = 1.0 / mantissa;
        let (ours, theirs) = (ours * per_mass, theirs * per_mass);
        let difference = other.mean - self.mean;
        let mean = if ours >= theirs {
            self.mean + difference * theirs
        } else {
            other.mean - difference * ours
        };
        let variance = self.variance * ours
            + other.variance * theirs
            + difference * difference * ours * theirs;
        Self { mass: Mass { mantissa, block }, mean, variance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn set(weight: Mass, losses: &[f64]) -> Moments {
        let n = losses.len() as f64;
        let mean = losses.iter().sum::<f64>() / n;
        let variance = losses.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        Moments { mass: weight, mean, variance }
    }

    #[test]
    fn merging_equals_pooling() {
        let (a, b) = ([0.1, 0.4, 0.9], [2.0, 2.5, 7.0]);
        let pooled: Vec<f64> = a.iter().chain(&b).copied().collect();
        let merged = set(Mass::ONE, &a).merge(set(Mass::ONE, &b));
        let direct = set(Mass::ONE, &pooled);
        assert!((merged.mean - direct.mean).abs() < 1e-15);
        assert!((merged.variance - direct.variance).abs() < 1e-14);
    }

    #[test]
    fn merging_equal_constants_is_exact() {
        let (a, b) = (set(Mass::exp(-0.3), &[0.1]), set(Mass::exp(-1.7), &[0.1]));
        let merged = a.merge(b);
        assert_eq!((merged.mean, merged.variance), (0.1, 0.0));
    }

    #[test]
    fn a_weightless_set_has_no_effect_however_large_its_losses_are() {
        let clean = set(Mass::ONE, &[0.5, 0.7]);
        let spike = set(Mass::exp(-1e4), &[1e150, -1e150]);
        for merged in [clean.merge(spike), spike.merge(clean)] {
            assert_eq!((merged.mean, merged.variance), (clean.mean, clean.variance));
        }
    }
}
