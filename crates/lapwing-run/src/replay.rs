//! The rule over a log of losses, without training.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use lapwing_core::{BatchSums, Lap, LapError, Present};
use lapwing_judge::SourceRow;

/// Why a log cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The rule refuses.
    #[error(transparent)]
    Lap(#[from] LapError),
    /// The log is not in the order of its steps.
    #[error("row {row}: step {step} comes after step {previous}; sort the log by step")]
    StepBackwards {
        /// The row, from 0.
        row: u64,
        /// Its step.
        step: i64,
        /// The step before it.
        previous: i64,
    },
}

/// Takes in losses one by one; consecutive ones of one step are a batch. Memory grows with the sources, not with the
/// log.
///
/// ```
/// use lapwing_core::{Lap, LapConfig};
/// use lapwing_run::Replay;
///
/// let mut replay = Replay::new(Lap::new(LapConfig { history_length: 2, ..LapConfig::default() })?);
/// for step in 0..100 {
///     replay.row(step, "sound", 0.1 + 0.01 * (step % 3) as f64)?;
///     replay.row(step, "broken", 2.0)?;
/// }
/// replay.finish()?;
/// let sources = replay.sources(String::clone);
/// assert_eq!((sources[1].source.as_str(), sources[1].verdict.word()), ("broken", "unreliable"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Replay<K> {
    lap: Lap<K>,
    sums: BatchSums<K>,
    step: Option<i64>,
    rows: u64,
    /// The step of the log at which each source was first above the threshold.
    departures: HashMap<K, i64>,
}

impl<K: Clone + Hash + Eq> Replay<K> {
    /// A replay with a rule that has seen nothing yet.
    pub fn new(lap: Lap<K>) -> Self {
        Self { lap, sums: BatchSums::new(), step: None, rows: 0, departures: HashMap::new() }
    }

    /// Takes in a loss. Gives the step that this ended, if it did: [`present`](Self::present) tells of it then.
    ///
    /// # Errors
    /// Where the step is before the last one, or there are too many sources.
    pub fn row<Q>(&mut self, step: i64, source: &Q, loss: f64) -> Result<Option<i64>, ReplayError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let ended = match self.step {
            Some(previous) if step < previous => {
                return Err(ReplayError::StepBackwards { row: self.rows, step, previous });
            }
            Some(previous) if step > previous => self.finish()?,
            _ => None,
        };
        self.step = Some(step);
        self.sums.add(source, loss);
        self.rows += 1;
        Ok(ended)
    }

    /// Ends the last step, if there is one that was not ended.
    ///
    /// # Errors
    /// Where there are too many sources.
    pub fn finish(&mut self) -> Result<Option<i64>, ReplayError> {
        if self.sums.is_empty() {
            return Ok(None);
        }
        self.lap.update(&self.sums)?;
        self.sums.clear();
        if let Some(step) = self.step {
            for present in self.lap.present() {
                // Unreliability starts at 0 and moves by 1, so a first departure makes it 1.
                if present.unreliability == 1 && !self.departures.contains_key(present.source) {
                    self.departures.insert(present.source.clone(), step);
                }
            }
        }
        Ok(self.step)
    }

    /// The sources of the step that ended last, in order of first appearance in it.
    pub fn present(&self) -> impl Iterator<Item = Present<'_, K>> {
        self.lap.present()
    }

    /// The sources, in order of first appearance, judged; departures in the steps of the log.
    pub fn sources(&self, name: impl Fn(&K) -> String) -> Vec<SourceRow> {
        let mut rows = SourceRow::all(&self.lap, name);
        for (row, status) in rows.iter_mut().zip(self.lap.sources()) {
            row.first_departure_step = self.departures.get(status.source).copied();
        }
        rows
    }

    /// Losses taken in.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The rule.
    pub fn lap(&self) -> &Lap<K> {
        &self.lap
    }

    /// The rule, in the state at the end of the log.
    pub fn into_lap(self) -> Lap<K> {
        self.lap
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_core::LapConfig;

    fn replay() -> Replay<String> {
        let config = LapConfig { history_length: 2, ..LapConfig::default() };
        Replay::new(Lap::new(config).unwrap())
    }

    #[test]
    fn consecutive_rows_of_one_step_are_one_batch() {
        let mut replay = replay();
        assert_eq!(replay.row(-7, "a", 1.0).unwrap(), None);
        assert_eq!(replay.row(-7, "b", 2.0).unwrap(), None);
        assert_eq!(replay.row(-7, "a", 3.0).unwrap(), None);
        assert_eq!(replay.row(4, "b", 5.0).unwrap(), Some(-7));
        let present: Vec<_> = replay.present().map(|p| (p.source.clone(), p.loss)).collect();
        assert_eq!(present, [("a".to_owned(), Some(2.0)), ("b".to_owned(), Some(2.0))]);
        assert_eq!(replay.finish().unwrap(), Some(4));
        assert_eq!((replay.finish().unwrap(), replay.rows(), replay.lap().step()), (None, 4, 2));
    }

    #[test]
    fn a_log_that_goes_back_is_refused_with_its_row() {
        let mut replay = replay();
        replay.row(3, "a", 1.0).unwrap();
        let refused = replay.row(2, "a", 1.0).unwrap_err().to_string();
        assert_eq!(refused, "row 1: step 2 comes after step 3; sort the log by step");
    }

    #[test]
    fn departures_are_counted_in_the_steps_of_the_log() {
        let mut replay = replay();
        for step in 0..40 {
            let steady = 0.1 + 0.01 * (step % 2) as f64;
            replay.row(1000 + 10 * step, "steady", steady).unwrap();
            let breaks = if step < 20 { steady } else { 9.0 };
            replay.row(1000 + 10 * step, "breaks", breaks).unwrap();
        }
        replay.finish().unwrap();
        let sources = replay.sources(String::clone);
        let departures: Vec<_> = sources.iter().map(|row| row.first_departure_step).collect();
        assert_eq!(departures, [None, Some(1200)]);
        assert_eq!(sources[1].rows, 40);
    }
}
