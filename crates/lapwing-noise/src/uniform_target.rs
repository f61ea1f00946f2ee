//! Numbers to be predicted that say nothing.

use lapwing_sample::Draws;

use crate::draws::Purpose;
use crate::error::NoiseError;

/// Uniform target: the target of a sample becomes a number drawn uniformly between the least and the greatest target
/// of the training set. Fixed per sample.
#[derive(Clone, Copy, Debug)]
pub struct UniformTarget {
    seed: u64,
    low: f64,
    high: f64,
}

impl UniformTarget {
    /// Noise of a seed between two numbers.
    pub fn new(seed: u64, low: f64, high: f64) -> Result<Self, NoiseError> {
        if low.is_finite() && high.is_finite() && low <= high {
            Ok(Self { seed, low, high })
        } else {
            Err(NoiseError::Range { low, high })
        }
    }

    /// Noise over the range of the targets of a training set.
    pub fn over(seed: u64, targets: &[f64]) -> Result<Self, NoiseError> {
        let mut range = (f64::INFINITY, f64::NEG_INFINITY);
        for &target in targets {
            if !target.is_finite() {
                return Err(NoiseError::Range { low: target, high: target });
            }
            range = (range.0.min(target), range.1.max(target));
        }
        Self::new(seed, range.0, range.1)
    }

    /// The target of a sample.
    pub fn target(&self, index: u64) -> f64 {
        let share = Draws::of(self.seed, Purpose::UniformTarget, 0, index).unit();
        // Not low + share · (high − low): the difference of two finite numbers may be infinite.
        self.low * (1.0 - share) + self.high * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_uniform_over_the_range_whatever_the_distribution_was() {
        let noise = UniformTarget::over(0, &[2.0, 5.0, 2.0, 2.1, 2.0]).unwrap();
        let mut counts = [0; 10];
        for index in 0..10_000 {
            let target = noise.target(index);
            assert!((2.0..=5.0).contains(&target));
            assert_eq!(target, noise.target(index));
            counts[((target - 2.0) / 0.3) as usize] += 1;
        }
        // Mean 1,000, standard deviation 30.
        assert!(counts.iter().all(|count| (850..=1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn no_range_is_refused_and_a_huge_one_is_not() {
        for targets in [&[][..], &[f64::NAN], &[1.0, f64::INFINITY]] {
            assert!(matches!(UniformTarget::over(0, targets), Err(NoiseError::Range { .. })));
        }
        let noise = UniformTarget::new(0, f64::MIN, f64::MAX).unwrap();
        assert!((0..100).all(|index| noise.target(index).is_finite()));
        assert_eq!(UniformTarget::over(0, &[4.0]).unwrap().target(9), 4.0);
    }
}
