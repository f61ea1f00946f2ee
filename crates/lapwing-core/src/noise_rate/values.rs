//! Noise among numbers: a wrong target is drawn from the distribution of the targets.

use serde::{Deserialize, Serialize};

use super::{Likelihoods, NoiseModel};
use crate::{BatchSums, LapError};

/// One row of a batch for regression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// What the network predicts.
    pub prediction: f64,
    /// The target that the row was given.
    pub target: f64,
}

/// A target is the prediction and a Gaussian error, whose variance is that of the rows that are not
/// noise; or it is noise, drawn from a Gaussian with mean and variance of all targets.
///
/// Targets should be standardised: their variance is computed from their squares, which loses
/// digits where the mean is more than a million times the deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Values {
    targets: f64,
    target_sum: f64,
    target_squares: f64,
    truths: f64,
    error_squares: f64,
}

/// What the sums of a batch are sums of.
const TARGETS: u32 = 0;
const TARGET_SQUARES: u32 = 1;
const TRUTHS: u32 = 2;
const ERROR_SQUARES: u32 = 3;

impl Values {
    /// Nothing known of targets and errors: in the first step every row is noise with the
    /// probability that its source has.
    pub fn new() -> Self {
        Self::default()
    }

    /// Mean and variance of all targets so far; no variance before the first batch, nor where all
    /// are alike.
    fn targets(&self) -> Option<(f64, f64)> {
        let mean = self.target_sum / self.targets;
        let variance = self.target_squares / self.targets - mean * mean;
        (variance > 0.0 && variance.is_finite()).then_some((mean, variance))
    }

    /// The running variance of the errors of rows that are not noise.
    pub fn error_variance(&self) -> Option<f64> {
        let variance = self.error_squares / self.truths;
        (variance >= 0.0 && variance.is_finite()).then_some(variance)
    }
}

/// Errors are at least this share of the targets' variance: a network that fits some rows exactly
/// must not make noise of all others.
const LEAST_ERROR: f64 = 1e-6;

impl super::model::Sealed for Values {}

impl NoiseModel for Values {
    type Row = Reading;

    fn check_row(&self, _: Reading) -> Result<(), LapError> {
        Ok(())
    }

    fn likelihoods(&self, row: Reading) -> Option<Likelihoods> {
        let error = row.target - row.prediction;
        if !error.is_finite() {
            return None;
        }
        let (Some((mean, spread)), Some(variance)) = (self.targets(), self.error_variance()) else {
            return Likelihoods::new(1.0, 1.0);
        };
        let logarithm = |deviation: f64, variance: f64| {
            -0.5 * (deviation * deviation / variance + libm::log(variance))
        };
        Likelihoods::from_logarithms(
            logarithm(error, variance.max(LEAST_ERROR * spread)),
            logarithm(row.target - mean, spread),
        )
        // Both may be 0 for a target beyond everything: then nothing speaks for the prediction.
        .or_else(|| Likelihoods::new(0.0, 1.0))
    }

    fn add(sums: &mut BatchSums<u32>, row: Reading, truth: f64) {
        let error = row.target - row.prediction;
        sums.add(&TARGETS, row.target);
        sums.add(&TARGET_SQUARES, row.target * row.target);
        sums.add(&TRUTHS, truth);
        sums.add(&ERROR_SQUARES, truth * error * error);
    }

    fn check_sums(&self, _: &BatchSums<u32>) -> Result<(), LapError> {
        Ok(())
    }

    fn update(&mut self, sums: &BatchSums<u32>, decay: f64) {
        self.truths *= decay;
        self.error_squares *= decay;
        for (&what, sum) in sums.iter() {
            // Sums that arrive from elsewhere may hold anything.
            let Some(mean) = sum.mean() else { continue };
            let (rows, sum) = (sum.finite() as f64, mean * sum.finite() as f64);
            match what {
                TARGETS => {
                    self.targets += rows;
                    self.target_sum += sum;
                }
                TARGET_SQUARES => self.target_squares += sum.max(0.0),
                TRUTHS => self.truths += sum.max(0.0),
                ERROR_SQUARES => self.error_squares += sum.max(0.0),
                _ => {}
            }
        }
    }

    fn check_state(&self, loaded: &Self) -> Result<(), &'static str> {
        let Self { targets, target_sum, target_squares, truths, error_squares } = *loaded;
        let counts = [targets, target_squares, truths, error_squares];
        if counts.iter().all(|value| *value >= 0.0 && value.is_finite()) && target_sum.is_finite() {
            return Ok(());
        }
        Err("its variances are not variances")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(rows: &[(f64, f64, f64)], decay: f64) -> Values {
        let mut values = Values::new();
        for &(prediction, target, truth) in rows {
            let mut sums = BatchSums::new();
            Values::add(&mut sums, Reading { prediction, target }, truth);
            values.update(&sums, decay);
        }
        values
    }

    #[test]
    fn variances_are_those_of_the_formulas() {
        let rows = [(1.0, 1.5, 1.0), (2.0, 0.0, 0.25), (-1.0, -1.1, 0.9)];
        let values = after(&rows, 0.5);
        let errors = 0.25 * 0.25 + 0.5 * 0.25 * 4.0 + 0.9 * 0.01;
        let truths = 0.25 + 0.5 * 0.25 + 0.9;
        assert!((values.error_variance().unwrap() - errors / truths).abs() < 1e-12);
        let (mean, variance) = values.targets().unwrap();
        let expected = [1.5, 0.0, -1.1].map(|y| (y - 0.4 / 3.0) * (y - 0.4 / 3.0));
        assert!((mean - 0.4 / 3.0).abs() < 1e-15);
        assert!((variance - expected.iter().sum::<f64>() / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_target_that_fits_is_truth_and_one_that_does_not_is_noise() {
        let values = after(&[(1.0, 1.1, 1.0), (-1.0, -0.9, 1.0), (2.0, 2.1, 1.0)], 1.0);
        let noise = |prediction, target| {
            values.likelihoods(Reading { prediction, target }).unwrap().responsibility(0.5)
        };
        assert!(noise(0.5, 0.6) < 0.2 && noise(0.5, 1.5) > 0.99);
        assert_eq!(noise(0.0, 1e200), 1.0);
        assert!(values.likelihoods(Reading { prediction: f64::NAN, target: 0.0 }).is_none());
    }

    #[test]
    fn before_anything_is_known_a_row_is_as_its_source() {
        let row = Reading { prediction: 0.0, target: 3.0 };
        let found = Values::new().likelihoods(row).unwrap().responsibility(0.1);
        assert!((found - 0.1).abs() < 1e-15);
        let alike = after(&[(0.0, 3.0, 1.0), (1.0, 3.0, 1.0)], 1.0);
        assert!((alike.likelihoods(row).unwrap().responsibility(0.1) - 0.1).abs() < 1e-15);
    }
}
