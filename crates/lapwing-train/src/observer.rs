//! What a run tells while it goes on.

use std::collections::HashMap;
use std::ops::ControlFlow;

use foldhash::fast::FixedState;
use lapwing_core::{BatchSums, SourceSum};
use serde::{Deserialize, Serialize};

use crate::method::{Method, Standing};
use crate::model::Model;

/// Watches a run: progress bars, trajectories, interruption. Every call has a default that does nothing.
pub trait Observer {
    /// After each step. Breaking ends the run here, with a checkpoint if there is a place for one.
    fn on_step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        let _ = step;
        ControlFlow::Continue(())
    }

    /// After each epoch, with the network as it stands (not the best so far).
    fn on_epoch(&mut self, epoch: &Epoch, model: &Model) {
        let _ = (epoch, model);
    }

    /// What it has gathered; travels in the checkpoint, so that a resumed run tells the same story.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Goes on from what [`save`](Self::save) gave; the reason if it cannot.
    fn load(&mut self, saved: &[u8]) -> Result<(), String> {
        let _ = saved;
        Ok(())
    }
}

/// Nobody watches.
impl Observer for () {}

/// One step.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    /// Steps before this one.
    pub step: u64,
    /// Steps planned.
    pub steps: u64,
    /// Epochs before this one.
    pub epoch: usize,
    /// The rate of this step.
    pub learning_rate: f64,
    /// The rows of the batch; of several workers each sees its own.
    pub rows: &'a [u32],
    /// The loss of each row before the update; may be NaN or infinite.
    pub losses: &'a [f32],
    /// The weight of each row.
    pub weights: &'a [f64],
    /// The sources of the batch in order of first appearance.
    pub sources: &'a [SourceStep],
}

/// One source in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceStep {
    /// The source.
    pub source: u32,
    /// The mean of its finite losses in the batch, if there are any.
    pub loss: Option<f64>,
    /// Where it stands after the step.
    pub standing: Standing,
}

impl SourceStep {
    /// The sources of a batch, in order of first appearance.
    pub(crate) fn of_batch(losses: &[f32], sources: &[u32], method: &dyn Method) -> Vec<Self> {
        // Looked up by every row of every step.
        let mut place = HashMap::with_hasher(FixedState::default());
        let mut tallies: Vec<(u32, f64, u32)> = Vec::new();
        for (&source, &loss) in sources.iter().zip(losses) {
            let at = *place.entry(source).or_insert_with(|| {
                tallies.push((source, 0.0, 0));
                tallies.len() - 1
            });
            if loss.is_finite() {
                tallies[at].1 += f64::from(loss);
                tallies[at].2 += 1;
            }
        }
        let step = |(source, sum, rows): (u32, f64, u32)| SourceStep {
            source,
            loss: (rows > 0).then(|| sum / f64::from(rows)),
            standing: method.standing(source),
        };
        tallies.into_iter().map(step).collect()
    }

    /// The same from what the whole batch says of each source.
    pub(crate) fn of_sums(sums: &BatchSums<u32>, method: &dyn Method) -> Vec<Self> {
        let step = |(&source, sum): (&u32, &SourceSum)| Self {
            source,
            loss: sum.mean(),
            standing: method.standing(source),
        };
        sums.iter().map(step).collect()
    }
}

/// One epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Epochs before this one.
    pub epoch: usize,
    /// Steps so far.
    pub step: u64,
    /// Mean of the finite training losses, every row counting the same.
    pub train_loss: f64,
    /// Training losses that were not finite.
    pub nonfinite: u64,
    /// Validation loss, rows counting as much as their sources.
    pub valid_loss: Option<f64>,
    /// What chooses the best epoch, lower is better: one minus the probability of the label, or the absolute error in
    /// standard deviations; rows counting as much as their sources.
    pub valid_score: Option<f64>,
    /// Validation loss, every row counting the same.
    pub valid_loss_unweighted: Option<f64>,
    /// Mean validation loss per source.
    pub valid_loss_by_source: Vec<(u32, f64)>,
    /// Whether the network after this epoch may be the result; not so in a phase that only prepares another.
    pub candidate: bool,
    /// Whether this is the best epoch so far.
    pub best: bool,
}
