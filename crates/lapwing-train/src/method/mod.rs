//! Methods: ways to learn from batches of which some rows, or some sources, are wrong.
//!
//! The loop knows one trait, [`Method`]. Most methods decide how much each sample counts and nothing else; others change
//! the loss, the gradients, the order of the batches, or train a second network.

mod arfl;
mod cdr;
mod co_teaching;
mod idpa;
mod judged;
mod label_smoothing;
mod lap;
mod standard;
#[cfg(test)]
mod tests;

use lapwing_core::{Lap, LapConfig, LapError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::batch::Batch;
use crate::config::TrainConfig;
use crate::error::TrainError;
use crate::learner::Learner;
use crate::saved::Saved;

pub use lap::Guards;

/// A way to learn.
///
/// The training loss is the mean over the batch of weight · loss; no gradient flows through the weights, and they are
/// not divided by their sum. A sample whose loss is not finite counts for nothing, whatever it weighs.
pub trait Method {
    /// One weight per sample of a batch: all the same, unless the method says otherwise.
    fn weigh(&mut self, losses: &[f32], sources: &[u32]) -> Result<Vec<f64>, MethodError> {
        let _ = sources;
        Ok(vec![1.0; losses.len()])
    }

    /// Learns from a batch, and says what it saw.
    fn step(&mut self, learner: &mut Learner<'_>, batch: &Batch) -> Result<Seen, TrainError> {
        let pass = learner.forward(batch)?;
        let weights = self.weigh(&pass.seen, &batch.sources)?;
        let (seen, loss) = (pass.seen.clone(), pass.mean(&weights));
        learner.descend(pass, loss, batch.pace);
        Ok(Seen { losses: seen, weights })
    }

    /// Epochs in all where so many are asked for.
    fn epochs(&self, planned: usize) -> usize {
        planned
    }

    /// Whether the network as it is after this epoch (from 0) may be the result.
    fn is_candidate(&self, epoch: usize) -> bool {
        let _ = epoch;
        true
    }

    /// The batches of an epoch, from the training rows in random order. Their number must not depend on the order.
    fn batches(&self, order: &[u32], size: usize, sources: &[u32]) -> Vec<Vec<u32>> {
        let _ = sources;
        order.chunks(size).map(<[u32]>::to_vec).collect()
    }

    /// After the last batch of an epoch (from 0), before the network is validated.
    fn end_epoch(&mut self, learner: &mut Learner<'_>, epoch: usize) -> Result<(), TrainError> {
        let _ = (learner, epoch);
        Ok(())
    }

    /// Where a source stands after the last step.
    fn standing(&self, source: u32) -> Standing {
        let _ = source;
        Standing { unreliability: 0, weight: 1.0 }
    }

    /// Everything it must know to go on after a pause.
    fn save(&self) -> Result<Saved, MethodError> {
        Ok(Saved::default())
    }

    /// Goes on from what [`save`](Self::save) gave.
    fn load(&mut self, saved: &Saved) -> Result<(), TrainError> {
        let _ = saved;
        Ok(())
    }

    /// The weighting rule behind it, for verdicts, if there is one.
    fn lap(&self) -> Option<&Lap<u32>> {
        None
    }
}

/// What a step saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The loss of each row before the update; may be NaN or infinite.
    pub losses: Vec<f32>,
    /// What each row counted for.
    pub weights: Vec<f64>,
}

/// Unreliability and weight of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// C.
    pub unreliability: u64,
    /// What its samples count for.
    pub weight: f64,
}

/// Why a method refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MethodError {
    /// The weighting rule refused.
    #[error(transparent)]
    Lap(#[from] LapError),
    /// A floor outside [0, 1].
    #[error("the floor is {0}, but must be a weight from 0 to 1")]
    Floor(f64),
    /// A source both trusted and blocked.
    #[error("source {0} is both trusted and blocked")]
    Both(u32),
    /// A parameter out of range.
    #[error("{0}")]
    Parameter(&'static str),
    /// A method for classes with values to predict.
    #[error("{0} is for classification: it needs classes, and these targets are values")]
    NeedsClasses(&'static str),
    /// A saved state that cannot be read or written.
    #[error("the saved state of the method cannot be used: {0}")]
    State(#[from] serde_json::Error),
}

/// Which method, with its parameters.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum MethodConfig {
    /// Every sample counts the same.
    Standard,
    /// Loss Adapted Plasticity.
    Lap {
        /// The rule.
        rule: LapConfig,
        /// What the user knows better.
        guards: Guards,
    },
    /// Part of every label goes to all classes alike.
    LabelSmoothing {
        /// That part.
        rate: f64,
    },
    /// Two networks, each of which learns from the rows on which the other has the lowest losses.
    CoTeaching {
        /// Share of a batch that is left out in the end.
        forget_rate: f64,
        /// Epochs over which that share grows from nothing.
        ramp_epochs: usize,
        /// Epoch from which the learning rate falls to nothing at the last, and Adam's β₁ is 0.1.
        decay_from: Option<usize>,
        /// Divides the mean over the rows that are kept by their number again, as some of the experiments did.
        divide_twice: bool,
    },
    /// Only the parameters that matter to the loss learn.
    Cdr {
        /// Share of wrong labels: this share of the parameters does not learn.
        noise_rate: f64,
    },
    /// Trains, and trains as long again on labels corrected by the network, row by row.
    Idpa {
        /// Probability that a label is wrong, to begin with.
        first: f64,
        /// How fast that probability moves.
        rate: f64,
    },
    /// Sources as clients: each round they train apart, and are averaged, those with high losses less or not at all.
    Arfl {
        /// How far above the others the mean loss of a client may lie before it counts for nothing (λ/N, about).
        tolerance: f64,
        /// Clients share so many optimisers, whose moments live on from round to round.
        workers: usize,
    },
    /// Any method, while the rule of LAP looks on without a say: sources are judged, and not weighed by it.
    Judged {
        /// The method.
        method: Box<MethodConfig>,
        /// The rule.
        rule: LapConfig,
    },
}

impl MethodConfig {
    /// The method, at its first step.
    pub(crate) fn start<'a>(
        &self,
        config: &TrainConfig,
        learner: &Learner<'a>,
    ) -> Result<Box<dyn Method + 'a>, TrainError> {
        Ok(match self {
            MethodConfig::Standard => Box::new(standard::Standard),
            MethodConfig::Lap { rule, guards } => {
                Box::new(lap::GuardedLap::new(*rule, guards.clone())?)
            }
            MethodConfig::LabelSmoothing { rate } => {
                Box::new(label_smoothing::LabelSmoothing::new(*rate, learner.target.task())?)
            }
            MethodConfig::CoTeaching { forget_rate, ramp_epochs, decay_from, divide_twice } => {
                let second = Learner::new(config, learner.data, 1, &learner.device)?;
                let decay = decay_from.map(|from| (from, config.epochs));
                Box::new(co_teaching::CoTeaching::new(
                    (*forget_rate, *ramp_epochs),
                    decay,
                    *divide_twice,
                    second,
                )?)
            }
            MethodConfig::Cdr { noise_rate } => Box::new(cdr::Cdr::new(*noise_rate)?),
            MethodConfig::Idpa { first, rate } => {
                Box::new(idpa::Idpa::new(*first, *rate, config, learner)?)
            }
            MethodConfig::Arfl { tolerance, workers } => {
                Box::new(arfl::Arfl::new(*tolerance, *workers, config, learner)?)
            }
            MethodConfig::Judged { method, rule } => {
                Box::new(judged::Judged::new(method.start(config, learner)?, *rule)?)
            }
        })
    }
}
