//! The first half of a step.

use alloc::borrow::ToOwned;
use core::hash::Hash;

use indexmap::Equivalent;
use serde::{Deserialize, Serialize};

use super::NoiseModel;
use crate::BatchSums;

/// What one batch says about each source and about noise: what workers exchange when a batch is
/// split over many machines. [`NoiseRate::sums`](crate::NoiseRate::sums) makes it, and
/// [`NoiseRate::update`](crate::NoiseRate::update) is the second half of the step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "K: Serialize", deserialize = "K: Deserialize<'de> + Hash + Eq"))]
pub struct NoiseSums<K> {
    /// The probabilities that a row is noise, by source.
    pub responsibilities: BatchSums<K>,
    /// What the model of noise learns from: for classes the rows of each label.
    pub model: BatchSums<u32>,
}

impl<K: Hash + Eq> Default for NoiseSums<K> {
    fn default() -> Self {
        Self { responsibilities: BatchSums::new(), model: BatchSums::new() }
    }
}

impl<K: Hash + Eq> NoiseSums<K> {
    /// A batch without rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds another worker's part of the batch. In which order the parts are merged does not matter
    /// for any source.
    pub fn merge(&mut self, other: &Self)
    where
        K: Clone,
    {
        self.responsibilities.merge(&other.responsibilities);
        self.model.merge(&other.model);
    }

    pub(super) fn add<M: NoiseModel, Q>(&mut self, source: &Q, row: M::Row, noise: Option<f64>)
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        self.responsibilities.add(source, noise.unwrap_or(f64::NAN));
        if let Some(noise) = noise {
            M::add(&mut self.model, row, 1.0 - noise);
        }
    }
}
