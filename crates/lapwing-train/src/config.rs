//! The settings of a run.

use lapwing_sample::{Data, Loss, Targets};
use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::network::Architecture;
use crate::optimiser::OptimiserConfig;
use crate::schedule::Schedule;

/// Everything about a run but the data, the method and the device. [`plan`](crate::plan) proposes one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Decides first parameters, order and dropout.
    pub seed: u64,
    /// The network.
    pub architecture: Architecture,
    /// The loss.
    pub loss: Loss,
    /// The optimiser.
    pub optimiser: OptimiserConfig,
    /// The learning rate.
    pub schedule: Schedule,
    /// Rows per step; the last batch of an epoch may be smaller.
    pub batch_size: usize,
    /// Most epochs.
    pub epochs: usize,
    /// Epochs without a better validation score after which the run ends; `usize::MAX` never.
    pub patience: usize,
}

impl TrainConfig {
    /// Checks once what the loop relies on.
    pub(crate) fn check(&self, data: &Data<'_>) -> Result<(), TrainError> {
        let (found, expected) = (data.samples.spec(), self.architecture.input());
        if found != expected {
            return Err(TrainError::Input { found, expected });
        }
        let (found, expected) = (data.targets.outputs(), self.architecture.outputs());
        if found != expected {
            return Err(TrainError::Outputs { found, expected });
        }
        let refuse = |what| Err(TrainError::Config(what));
        let learning_rate = self.schedule.highest();
        if !(learning_rate > 0.0 && learning_rate.is_finite()) {
            return refuse("the learning rate must be a number above 0");
        }
        if matches!(self.schedule, Schedule::EpochCosine { least, .. } if !(0.0..=learning_rate).contains(&least))
            || matches!(self.schedule, Schedule::Stairs { factor, every, .. }
                if !(0.0..=1.0).contains(&factor) || every == 0)
        {
            return refuse("a learning rate falls to a number from 0, by a factor of at most 1");
        }
        if self.batch_size == 0 || self.epochs == 0 || self.patience == 0 {
            return refuse("batch size, epochs and patience must be at least 1");
        }
        let classification = matches!(data.targets, Targets::Classes { .. });
        if classification != (self.loss == Loss::CrossEntropy) {
            return refuse(
                "cross-entropy goes with classes, squared error and Huber's loss with values",
            );
        }
        if matches!(self.loss, Loss::Huber { delta } if !(delta > 0.0 && delta.is_finite())) {
            return refuse("Huber's delta must be a number above 0");
        }
        let (OptimiserConfig::Sgd { weight_decay, .. } | OptimiserConfig::Adam { weight_decay }) =
            self.optimiser;
        if !(weight_decay >= 0.0 && weight_decay.is_finite()) {
            return refuse("the weight decay must be a number from 0");
        }
        if matches!(self.optimiser, OptimiserConfig::Sgd { momentum, .. } if !(0.0..1.0).contains(&momentum))
        {
            return refuse("the momentum must be from 0 to below 1");
        }
        Ok(())
    }
}
