//! The first half of a step.

use alloc::borrow::ToOwned;
use core::hash::Hash;

use indexmap::Equivalent;
use serde::{Deserialize, Serialize};

use super::{Labels, NoiseModel};
use crate::BatchSums;

/// What one batch says about each source and about noise: what workers exchange when a batch is
/// split over many machines. [`NoiseRate::sums`](crate::NoiseRate::sums) makes it, and
/// [`NoiseRate::update`](crate::NoiseRate::update) is the second half of the step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(
    serialize = "K: Serialize, M: NoiseModel",
    deserialize = "K: Deserialize<'de> + Hash + Eq, M: NoiseModel"
))]
pub struct NoiseSums<K, M: NoiseModel = Labels> {
    /// The probabilities that a row is noise, summed up by source.
    pub(super) responsibilities: BatchSums<K>,
    pub(super) model: M::Sums,
}

impl<K: Hash + Eq, M: NoiseModel> Default for NoiseSums<K, M> {
    fn default() -> Self {
        Self { responsibilities: BatchSums::new(), model: M::Sums::default() }
    }
}

impl<K: Hash + Eq, M: NoiseModel> NoiseSums<K, M> {
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
        M::merge(&mut self.model, &other.model);
    }

    pub(super) fn add<Q>(&mut self, source: &Q, row: M::Row, responsibility: Option<f64>)
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        self.responsibilities.add(source, responsibility.unwrap_or(f64::NAN));
        if let Some(noise) = responsibility {
            M::add(&mut self.model, row, 1.0 - noise);
        }
    }
}
