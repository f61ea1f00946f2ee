//! The state of noise rates as a value.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::hash::Hash;

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

use super::{Evidence, Labels, NoiseModel, NoiseRate};
use crate::LapError;
use crate::lap::MOST_SOURCES;

/// The version of [`NoiseState`] that this version of the crate writes and reads.
pub const NOISE_STATE_VERSION: u32 = 1;

/// Everything that [`NoiseRate`] knows between two steps, to be saved with any serde format that
/// keeps f64 exactly. A `NoiseRate` that loads it goes on as if it had never stopped, to the last
/// bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseState<K, M = Labels> {
    /// The version of this layout.
    pub version: u32,
    /// How many steps have been made.
    pub step: u64,
    /// What is known of noise.
    pub model: M,
    /// The sources in order of first appearance.
    pub sources: Vec<NoiseSourceState<K>>,
}

/// One source of a [`NoiseState`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseSourceState<K> {
    /// The source.
    pub source: K,
    /// Rows that were noise, older ones counting less.
    pub noise: f64,
    /// Rows, older ones counting less.
    pub rows: f64,
    /// Rows seen.
    pub seen: u64,
    /// Rows with a number that was not finite.
    pub nonfinite: u64,
}

impl<K: Hash + Eq, M: NoiseModel> NoiseRate<K, M> {
    /// The state as it is between two steps.
    pub fn state(&self) -> NoiseState<K, M>
    where
        K: Clone,
    {
        let sources = self.names.iter().zip(&self.sources).map(|(source, known)| {
            let Evidence { noise, rows, seen, nonfinite, .. } = *known;
            NoiseSourceState { source: source.clone(), noise, rows, seen, nonfinite }
        });
        NoiseState {
            version: NOISE_STATE_VERSION,
            step: self.step,
            model: self.model.clone(),
            sources: sources.collect(),
        }
    }

    /// Replaces all that is known by a saved state. The parameters stay as they are, and may differ
    /// from those of the run that saved it.
    ///
    /// # Errors
    /// Where the state is of another version, of another number of classes, or contradicts itself.
    /// Nothing has changed then.
    pub fn load(&mut self, state: NoiseState<K, M>) -> Result<(), LapError> {
        let refuse = |why| Err(LapError::State(why));
        if state.version != NOISE_STATE_VERSION {
            let version = state.version;
            return refuse(format!("it is of version {version}, not {NOISE_STATE_VERSION}"));
        }
        if let Err(why) = self.model.check_state(&state.model) {
            return refuse(why.to_string());
        }
        if state.sources.len() as u64 > MOST_SOURCES {
            return Err(LapError::TooManySources);
        }
        let (mut names, mut sources) = (IndexSet::default(), Vec::new());
        for (at, saved) in state.sources.into_iter().enumerate() {
            let NoiseSourceState { source, noise, rows, seen, nonfinite } = saved;
            if !(0.0 <= noise && noise <= rows && rows.is_finite()) {
                return refuse(format!("source {at} has {noise} noisy rows of {rows}"));
            }
            if !names.insert(source) {
                return refuse("a source occurs twice".to_string());
            }
            sources.push(Evidence { noise, rows, seen, nonfinite, ..Evidence::default() });
        }
        let mut fresh = Self::new(self.config, state.model)?;
        fresh.step = state.step;
        fresh.names = names;
        fresh.sources = sources;
        *self = fresh;
        Ok(())
    }
}
