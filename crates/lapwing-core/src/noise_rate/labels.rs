//! Noise among classes: a wrong label is drawn from the label frequencies.

use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Likelihoods, NoiseModel};
use crate::{BatchSums, LapError};

/// One row of a batch: what the network thinks of the label that the row was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// p(y|x): the network's probability of the label.
    pub probability: f64,
    /// y: the label, counted from 0.
    pub label: u32,
}

/// Noise that is drawn from the frequencies m(y) of the labels.
///
/// With all classes equally probable, a rule that votes for the most frequent class only would look
/// like noise: so frequencies are counted while training goes on ([`Labels::counted`]), or given
/// from the beginning where they are known ([`Labels::given`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labels {
    counts: Vec<f64>,
    total: f64,
    given: bool,
}

impl Labels {
    /// So many classes, whose frequencies are counted from batch to batch; at first all are alike.
    ///
    /// # Errors
    /// Where there is no class.
    pub fn counted(classes: u32) -> Result<Self, LapError> {
        // One row of each class in advance: no label is impossible before it has been seen.
        let counts = vec![1.0; classes as usize];
        Self { total: f64::from(classes), counts, given: false }.checked()
    }

    /// Classes whose frequencies (or counts) are known, and stay as they are.
    ///
    /// # Errors
    /// Where one of them is negative or not finite, or all are 0.
    pub fn given(frequencies: &[f64]) -> Result<Self, LapError> {
        let total = frequencies.iter().sum();
        Self { counts: frequencies.to_vec(), total, given: true }.checked()
    }

    fn checked(self) -> Result<Self, LapError> {
        let usable = |count: &f64| *count >= 0.0 && count.is_finite();
        if self.counts.iter().all(usable) && self.total > 0.0 && self.total.is_finite() {
            return Ok(self);
        }
        Err(LapError::Parameter {
            parameter: "frequencies",
            value: self.total,
            expected: "one per class, finite, at least 0 and not all 0",
        })
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.counts.len()
    }

    /// m(y); `None` for a label that is no class.
    pub fn frequency(&self, label: u32) -> Option<f64> {
        self.counts.get(label as usize).map(|count| count / self.total)
    }

    /// The probability that a label is wrong, where noise has this rate: it is noise, and not noise
    /// that happens to have drawn the truth, r·(1 − p). `None` where nothing can be said.
    pub fn wrong(&self, row: Answer, rate: f64) -> Option<f64> {
        let noise = self.likelihoods(row)?.responsibility(rate);
        Some(noise * (1.0 - row.probability.min(1.0)))
    }

    fn unknown(&self, label: usize) -> LapError {
        LapError::Label { label, classes: self.counts.len() }
    }
}

impl super::model::Sealed for Labels {}

impl NoiseModel for Labels {
    type Row = Answer;

    fn check_row(&self, row: Answer) -> Result<(), LapError> {
        let label = row.label as usize;
        if label < self.counts.len() { Ok(()) } else { Err(self.unknown(label)) }
    }

    fn likelihoods(&self, row: Answer) -> Option<Likelihoods> {
        // Probabilities come from sums in f32, and may exceed 1 by their rounding.
        Likelihoods::new(row.probability.min(1.0), self.frequency(row.label)?)
            .filter(|_| !row.probability.is_nan())
    }

    fn add(sums: &mut BatchSums<u32>, row: Answer, truth: f64) {
        sums.add(&row.label, truth);
    }

    fn check_sums(&self, sums: &BatchSums<u32>) -> Result<(), LapError> {
        let highest = sums.iter().map(|(&label, _)| label as usize).max();
        match highest {
            Some(label) if label >= self.counts.len() => Err(self.unknown(label)),
            _ => Ok(()),
        }
    }

    fn update(&mut self, sums: &BatchSums<u32>, _: f64) {
        if self.given {
            return;
        }
        for (&label, sum) in sums.iter() {
            if let Some(count) = self.counts.get_mut(label as usize) {
                // Whole numbers below 2⁵³ add exactly, in any order.
                *count += sum.finite() as f64;
                self.total += sum.finite() as f64;
            }
        }
    }

    fn check_state(&self, loaded: &Self) -> Result<(), &'static str> {
        if loaded.counts.len() != self.counts.len() {
            return Err("it has another number of classes");
        }
        loaded.clone().checked().map_err(|_| "its label frequencies are not frequencies")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_frequencies_start_alike_and_follow_the_batches() {
        let mut labels = Labels::counted(4).unwrap();
        assert_eq!(labels.frequency(3), Some(0.25));
        let mut sums = BatchSums::new();
        for label in [0, 2, 2, 2] {
            Labels::add(&mut sums, Answer { probability: 0.5, label }, 1.0);
        }
        labels.update(&sums, 0.5);
        let found: Vec<f64> = (0..4).map(|label| labels.frequency(label).unwrap()).collect();
        assert_eq!(found, [0.25, 0.125, 0.5, 0.125]);
        assert_eq!(labels.frequency(4), None);
    }

    #[test]
    fn given_frequencies_stay() {
        let mut labels = Labels::given(&[30.0, 10.0, 0.0]).unwrap();
        let mut sums = BatchSums::new();
        sums.add(&2, 1.0);
        labels.update(&sums, 0.5);
        let found: Vec<f64> = (0..3).map(|label| labels.frequency(label).unwrap()).collect();
        assert_eq!(found, [0.75, 0.25, 0.0]);
        for bad in [&[][..], &[0.0, 0.0], &[1.0, -1.0], &[f64::NAN, 1.0], &[f64::MAX, f64::MAX]] {
            assert!(Labels::given(bad).is_err(), "{bad:?}");
        }
        assert!(Labels::counted(0).is_err());
    }

    #[test]
    fn a_label_is_wrong_where_the_sum_over_all_truths_says_so() {
        let (labels, p, rate) = (Labels::given(&[5.0, 3.0, 2.0]).unwrap(), [0.2, 0.7, 0.1], 0.3);
        for (label, m) in [(0, 0.5), (1, 0.3), (2, 0.2)] {
            // How probable label and truth are together, for every truth.
            let joint = |truth: usize| {
                let right = if truth == label { 1.0 } else { 0.0 };
                p[truth] * (rate * m + (1.0 - rate) * right)
            };
            let all: f64 = (0..3).map(joint).sum();
            let expected = 1.0 - joint(label) / all;
            let row = Answer { probability: p[label], label: label as u32 };
            assert!((labels.wrong(row, rate).unwrap() - expected).abs() < 1e-12);
        }
        assert_eq!(labels.wrong(Answer { probability: f64::NAN, label: 0 }, rate), None);
    }

    #[test]
    fn a_probability_that_is_none_says_nothing_and_one_slightly_above_1_is_1() {
        let labels = Labels::counted(2).unwrap();
        let at = |probability| labels.likelihoods(Answer { probability, label: 0 });
        assert!(at(f64::NAN).is_none() && at(-0.1).is_none());
        assert_eq!(at(1.000_000_2), at(1.0));
        assert!(at(0.0).is_some());
    }
}
