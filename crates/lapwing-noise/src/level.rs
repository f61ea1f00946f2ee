//! How much of a source is made wrong.

use std::fmt;
use std::str::FromStr;

use lapwing_sample::Draws;

use crate::draws::Purpose;
use crate::error::NoiseError;

/// A share between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Level(f64);

impl Level {
    /// Everything.
    pub const FULL: Self = Self(1.0);

    /// A share; what is not between 0 and 1 is none.
    pub fn new(share: f64) -> Result<Self, NoiseError> {
        if (0.0..=1.0).contains(&share) { Ok(Self(share)) } else { Err(NoiseError::Level(share)) }
    }

    /// The share.
    pub fn share(self) -> f64 {
        self.0
    }

    /// Whether the noise reaches a sample: with the probability of the level, decided by seed and index alone. A sample
    /// that is reached at one level is reached at every higher one.
    pub fn reaches(self, seed: u64, index: u64) -> bool {
        Draws::of(seed, Purpose::Level, 0, index).unit() < self.0
    }

    /// The exact number of samples, rounded down, that the level is of `samples`.
    pub fn count_of(self, samples: usize) -> usize {
        ((samples as f64 * self.0) as usize).min(samples)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = text.parse().map_err(|_| "expected a number between 0 and 1".to_owned())?;
        Self::new(share).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shares_are_levels() {
        for wrong in [-0.1, 1.000_001, f64::NAN, f64::INFINITY] {
            assert!(Level::new(wrong).is_err(), "{wrong}");
        }
        assert!("2".parse::<Level>().is_err() && "x".parse::<Level>().is_err());
        assert_eq!("0.25".parse(), Ok(Level(0.25)));
    }

    #[test]
    fn a_level_reaches_its_share_and_higher_levels_reach_the_same_samples_and_more() {
        let reached = |share: f64, seed| -> Vec<u64> {
            (0..20_000).filter(|&index| Level(share).reaches(seed, index)).collect()
        };
        let (some, more) = (reached(0.3, 1), reached(0.5, 1));
        // Standard deviation 65.
        assert!((5675..=6325).contains(&some.len()), "{}", some.len());
        assert!(some.iter().all(|index| more.binary_search(index).is_ok()));
        assert_ne!(some, reached(0.3, 2));
        assert_eq!((reached(0.0, 1).len(), reached(1.0, 1).len()), (0, 20_000));
    }

    #[test]
    fn exact_counts_are_truncated_products() {
        assert_eq!(Level(0.25).count_of(1599), 399);
        assert_eq!(Level(1.0).count_of(7), 7);
        // As in the reference: 0.29 · 100 is 28.999999999999996 in double precision.
        assert_eq!(Level(0.29).count_of(100), 28);
    }
}
