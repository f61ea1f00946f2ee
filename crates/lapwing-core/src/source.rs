//! What is known of a source.

use crate::mass::Mass;
use crate::moments::Moments;
use crate::window::Window;
use crate::{DISCRETE_AMOUNT, HistoryReading, LapConfig};

/// What is known of one source.
///
/// What every step needs comes first and fills one cache line, the counts another.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Source {
    pub(crate) window: Window,
    mass: Mass,
    pub(crate) unreliability: u64,
    pub(crate) rows: u64,
    pub(crate) batches: u64,
    pub(crate) nonfinite: u64,
    pub(crate) judged: u64,
    pub(crate) above: u64,
    pub(crate) first_departure_step: Option<u64>,
}

impl Default for Source {
    fn default() -> Self {
        Self {
            window: Window::default(),
            mass: Mass::ONE,
            unreliability: 0,
            rows: 0,
            batches: 0,
            nonfinite: 0,
            judged: 0,
            above: 0,
            first_departure_step: None,
        }
    }
}

impl Source {
    pub(crate) fn set_unreliability(&mut self, unreliability: u64, config: &LapConfig) {
        let depression = DISCRETE_AMOUNT * config.depression_strength * unreliability as f64;
        self.unreliability = unreliability;
        self.mass = config.weighting.mass(depression);
    }

    pub(crate) fn weight(&self) -> f64 {
        self.mass.to_f64()
    }

    /// What the history comes to, as the rule reads it.
    pub(crate) fn moments(&self, reading: HistoryReading) -> Moments {
        let (mean, variance) = self.window.mean_and_variance();
        let mean = match reading {
            HistoryReading::Mean => mean,
            HistoryReading::Evidence => self.window.evidence(),
        };
        Moments { mass: self.mass, mean, variance }
    }
}

/// One source of the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Present<'a, K> {
    /// The source.
    pub source: &'a K,
    /// The mean of its finite losses in the batch, if there were any.
    pub loss: Option<f64>,
    /// C after the step.
    pub unreliability: u64,
    /// f(C): what its losses weigh in this step.
    pub weight: f64,
}

/// What a source would be compared with now: the others with complete histories, weighted as of
/// now. What it *was* compared with had the weights from before that step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// The weighted mean of what the others' histories are read as.
    pub mean: f64,
    /// Their weighted population standard deviation.
    pub std: f64,
}

/// Where a source stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceStatus<K> {
    /// The source.
    pub source: K,
    /// Samples seen, those with a loss that is not finite included.
    pub rows: u64,
    /// Batches in which it had a finite loss.
    pub batches: u64,
    /// C.
    pub unreliability: u64,
    /// f(C).
    pub weight: f64,
    /// What its history is read as, usually the mean of its losses, if it has any.
    pub mean_loss: Option<f64>,
    /// The others with complete histories, as of now, if there are any.
    pub reference: Option<Reference>,
    /// Losses that were NaN or infinite.
    pub nonfinite: u64,
    /// Steps in which it was compared with the others.
    pub judged: u64,
    /// How many of these found it above the threshold.
    pub above: u64,
    /// The first of these.
    pub first_departure_step: Option<u64>,
}

impl<K> SourceStatus<K> {
    /// The same under another name, for one that shall outlive the rule it comes from.
    pub fn named<N>(self, source: N) -> SourceStatus<N> {
        SourceStatus {
            source,
            rows: self.rows,
            batches: self.batches,
            unreliability: self.unreliability,
            weight: self.weight,
            mean_loss: self.mean_loss,
            reference: self.reference,
            nonfinite: self.nonfinite,
            judged: self.judged,
            above: self.above,
            first_departure_step: self.first_departure_step,
        }
    }
}
