//! The state as a value.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::hash::Hash;

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

use crate::lap::MOST_SOURCES;
use crate::source::Source;
use crate::window::Window;
use crate::{LARGEST_LOSS, Lap, LapError};

/// The version of [`State`] that this version of the crate writes and reads.
pub const STATE_VERSION: u32 = 1;

/// Everything that [`Lap`] knows between two steps, to be saved with any serde format that keeps
/// f64 exactly. A `Lap` that loads it goes on as if it had never stopped, to the last bit.
///
/// ```
/// use lapwing_core::{Lap, LapConfig, State};
/// let mut lap = Lap::new(LapConfig::default())?;
/// lap.weigh(&[0.5, 0.7], [3, 8].iter())?;
/// let saved = serde_json::to_string(&lap.state()).unwrap();
///
/// let mut resumed = Lap::<i32>::new(LapConfig::default())?;
/// resumed.load(serde_json::from_str(&saved).unwrap())?;
/// assert_eq!(resumed.step(), 1);
/// # Ok::<(), lapwing_core::LapError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State<K> {
    /// The version of this layout.
    pub version: u32,
    /// How long the histories are.
    pub history_length: usize,
    /// How many steps have been made.
    pub step: u64,
    /// The sources in order of first appearance.
    pub sources: Vec<SourceState<K>>,
}

/// One source of a [`State`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceState<K> {
    /// The source.
    pub source: K,
    /// C.
    pub unreliability: u64,
    /// The last batch-mean losses, the oldest first.
    pub window: Vec<f64>,
    /// How many of them belong to the current round of the ring they are kept in: the order in
    /// which they are merged, and so the last bit of their mean, depends on it.
    pub cursor: usize,
    /// Samples seen.
    pub rows: u64,
    /// Batches in which it had a finite loss.
    pub batches: u64,
    /// Losses that were not finite.
    pub nonfinite: u64,
    /// Steps in which it was compared with the others.
    pub judged: u64,
    /// How many of these found it above the threshold.
    pub above: u64,
    /// The first of these.
    pub first_departure_step: Option<u64>,
}

impl<K> State<K> {
    /// The same sources with the same unreliability and nothing else: no histories, no counts,
    /// step 0. Load it to start the next run with what this one found out; its losses, those of a
    /// trained model, would not compare with those of a fresh one.
    pub fn into_prior(self) -> Self {
        let sources = self.sources.into_iter().map(|source| SourceState {
            source: source.source,
            unreliability: source.unreliability,
            window: Vec::new(),
            cursor: 0,
            rows: 0,
            batches: 0,
            nonfinite: 0,
            judged: 0,
            above: 0,
            first_departure_step: None,
        });
        Self { step: 0, sources: sources.collect(), ..self }
    }
}

impl<K: Hash + Eq> Lap<K> {
    /// The state as it is between two steps.
    pub fn state(&self) -> State<K>
    where
        K: Clone,
    {
        State {
            version: STATE_VERSION,
            history_length: self.config.history_length,
            step: self.step,
            sources: self.source_states().collect(),
        }
    }

    /// The sources of [`state`](Self::state) one at a time: where there are millions, all of them
    /// at once take as much room as the rule itself.
    pub fn source_states(&self) -> impl ExactSizeIterator<Item = SourceState<K>>
    where
        K: Clone,
    {
        self.names.iter().zip(&self.sources).map(|(source, known)| {
            let (window, cursor) = known.window.save();
            SourceState {
                source: source.clone(),
                unreliability: known.unreliability,
                window,
                cursor,
                rows: known.rows,
                batches: known.batches,
                nonfinite: known.nonfinite,
                judged: known.judged,
                above: known.above,
                first_departure_step: known.first_departure_step,
            }
        })
    }

    /// Replaces all that is known by a saved state. The parameters stay as they are, and may
    /// differ from those of the run that saved it, except for the length of the histories (unless
    /// they are empty, as in a [prior](State::into_prior)).
    ///
    /// # Errors
    /// Where the state is of another version, of another history length, or contradicts itself.
    /// Nothing has changed then.
    pub fn load(&mut self, state: State<K>) -> Result<(), LapError> {
        if state.version != STATE_VERSION {
            let why = format!("it is of version {}, not {STATE_VERSION}", state.version);
            return Err(LapError::State(why));
        }
        self.load_sources(state.history_length, state.step, state.sources)
    }

    /// [`load`](Self::load) with sources that come one at a time: what
    /// [`source_states`](Self::source_states) gave after `step` steps, with histories of
    /// `history_length`.
    ///
    /// # Errors
    /// Those of [`load`](Self::load).
    pub fn load_sources(
        &mut self,
        history_length: usize,
        step: u64,
        saved: impl IntoIterator<Item = SourceState<K>>,
    ) -> Result<(), LapError> {
        let refuse = |why| Err(LapError::State(why));
        let length = self.config.history_length;
        let (mut names, mut sources) = (IndexSet::default(), Vec::new());
        for (at, saved) in saved.into_iter().enumerate() {
            if history_length != length && !saved.window.is_empty() {
                return refuse(format!(
                    "its histories are of length {history_length}, not {length}; as a prior it can be used"
                ));
            }
            if at as u64 >= MOST_SOURCES {
                return Err(LapError::TooManySources);
            }
            let usable = |loss: &f64| loss.abs() <= LARGEST_LOSS;
            if !saved.window.iter().all(usable) {
                return refuse(format!("source {at} has a loss in its history that is not finite"));
            }
            let Some(window) = Window::restore(&saved.window, saved.cursor, length) else {
                return refuse(format!("the history of source {at} does not fit its cursor"));
            };
            let mut known = Source::default();
            known.set_unreliability(saved.unreliability, &self.config);
            known.window = window;
            known.rows = saved.rows;
            known.batches = saved.batches;
            known.nonfinite = saved.nonfinite;
            known.judged = saved.judged;
            known.above = saved.above;
            known.first_departure_step = saved.first_departure_step;
            if !names.insert(saved.source) {
                return refuse("a source occurs twice".to_string());
            }
            sources.push(known);
        }
        let mut fresh = Self::new(self.config)?;
        fresh.step = step;
        fresh.names = names;
        fresh.sources = sources;
        fresh.rebuild();
        *self = fresh;
        Ok(())
    }
}
