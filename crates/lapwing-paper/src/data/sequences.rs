//! Samples that are sequences: texts as tokens, signals over time.

use lapwing_sample::{InputSpec, Values};

/// Sequences of equal length, the class of each, and the source where the data set says it.
#[derive(Clone, Debug)]
pub struct Sequences {
    /// Values, sample after sample.
    pub values: Values,
    /// What a sample looks like.
    pub spec: InputSpec,
    /// The class of each sample.
    pub labels: Vec<u32>,
    /// The source of each sample, where the data set has sources of its own.
    pub sources: Option<Vec<u32>>,
}

impl Sequences {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}
