//! The first half of a step.

use alloc::borrow::{Cow, ToOwned};
use core::hash::Hash;

use indexmap::Equivalent;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{NoiseModel, NoiseRate};
use crate::{BatchSums, PeerError, Peers};

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

impl<K: Hash + Eq + Clone + Serialize + DeserializeOwned> NoiseSums<K> {
    /// The sums of the whole batch, of which every worker has summed up a part.
    ///
    /// # Errors
    /// Those of [`BatchSums::among`].
    pub fn among(&self, step: u64, peers: &dyn Peers) -> Result<Cow<'_, Self>, PeerError> {
        if peers.count() == 1 {
            return Ok(Cow::Borrowed(self));
        }
        let responsibilities = self.responsibilities.among(step, peers)?.into_owned();
        let model = self.model.among(step, peers)?.into_owned();
        Ok(Cow::Owned(Self { responsibilities, model }))
    }
}

impl<K: Hash + Eq + Clone + Serialize + DeserializeOwned, M: NoiseModel> NoiseRate<K, M> {
    /// The second half of a step with the part of a batch that this worker holds. All workers end in
    /// the state of one worker with the whole batch.
    ///
    /// # Errors
    /// Those of [`BatchSums::among`] and of [`update`](Self::update). Nothing has changed then.
    pub fn update_among(&mut self, own: &NoiseSums<K>, peers: &dyn Peers) -> Result<(), PeerError> {
        let whole = own.among(self.step(), peers)?;
        Ok(self.update(&whole)?)
    }
}
