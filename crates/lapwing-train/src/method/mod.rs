//! Methods: ways to learn from batches of which some rows, or some sources, are wrong.
//!
//! A method is a file and a line in [`METHODS`]. Its [`MethodKind`] says what it is called, what it does and which
//! parameters it has; flags, help, configuration files, recipes and Python are made from that. Started, it is a
//! [`Method`], which is all the loop knows. Most methods decide how much each row counts and nothing else; others change
//! the loss, the gradients, the order of the batches, or train a second network.
//!
//! Both traits can be implemented outside this crate: [`MethodConfig::new`] takes any kind, listed or not, so that
//! somebody's own method needs no fork. What it can reach is public for that reason: [`Learner`], [`Pass`](crate::Pass),
//! [`Batch`], [`Saved`].

mod arfl;
mod cdr;
mod co_teaching;
mod config;
mod group_dro;
mod guards;
mod idpa;
mod item_noise;
mod judged;
mod kind;
mod label_smoothing;
mod lap;
mod lap_state;
mod noise_rate;
mod observed;
mod parameter;
mod rrl;
mod standard;
#[cfg(test)]
mod tests;

use lapwing_core::{Lap, LapError, PeerError};
use lapwing_sample::InputSpec;
use thiserror::Error;

use crate::batch::Batch;
use crate::error::TrainError;
use crate::learner::Learner;
use crate::saved::Saved;

pub use config::MethodConfig;
pub use guards::{Guards, Weighs};
pub use kind::{MethodKind, Start, method_named, owners};
pub use observed::Observed;
pub use parameter::{Audience, Parameter, Range};

/// All methods, in the order in which they are listed; the first is the default.
pub static METHODS: &[&dyn MethodKind] = &[
    &lap::Kind,
    &standard::Kind,
    &group_dro::Kind,
    &label_smoothing::Kind,
    &co_teaching::Kind,
    &cdr::Kind,
    &idpa::Kind,
    &arfl::Kind,
    &noise_rate::Kind,
    &rrl::Plain,
    &rrl::WithLap,
];

/// A way to learn.
///
/// The training loss is the mean over the batch of weight · loss; no gradient flows through the weights, and they are
/// not divided by their sum. A sample whose loss is not finite counts for nothing, whatever it weighs.
pub trait Method {
    /// One weight per sample of a batch: all the same, unless the method says otherwise.
    fn weigh(&mut self, observed: &Observed<'_>) -> Result<Vec<f64>, MethodError> {
        Ok(vec![1.0; observed.len()])
    }

    /// Learns from a batch, and says what it saw.
    fn step(&mut self, learner: &mut Learner<'_>, batch: &Batch) -> Result<Seen, TrainError> {
        let pass = learner.forward(batch)?;
        let weights = self.weigh(&pass.observed(batch, &|| pass.outputs_on_host()))?;
        let (seen, loss) = (pass.seen.clone(), pass.mean(&weights));
        learner.descend(pass, loss, batch.pace)?;
        Ok(Seen { losses: seen, weights })
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

    /// Before the first batch of an epoch (from 0).
    fn begin_epoch(&mut self, learner: &mut Learner<'_>, epoch: usize) -> Result<(), TrainError> {
        let _ = (learner, epoch);
        Ok(())
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
    /// C, the points of unreliability that the rule has given it.
    pub unreliability: u64,
    /// What its samples count for.
    pub weight: f64,
}

/// Why a method refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MethodError {
    /// No method of this name.
    #[error("no method is called {0:?}; there are {all}", all = names())]
    Unknown(String),
    /// A parameter of another method, or of none.
    #[error("{}", not_its_parameter(parameter, owners, method))]
    NotItsParameter {
        /// The parameter.
        parameter: String,
        /// The methods that have it.
        owners: Vec<&'static str>,
        /// The method that was given it.
        method: &'static str,
    },
    /// A parameter out of range.
    #[error("{parameter} is {value}, but must be {range}")]
    Range {
        /// The parameter.
        parameter: &'static str,
        /// The value given.
        value: f64,
        /// What it may be.
        range: Range,
    },
    /// A method for classes with values to predict.
    #[error("{0} is for classification: it needs classes, and these targets are values")]
    NeedsClasses(&'static str),
    /// A method that wants several views of a row, of which there is one.
    #[error(
        "{0} learns from pictures: it wants to see each as it is and changed at random, and the samples are {1}"
    )]
    Views(&'static str, InputSpec),
    /// A method that needs heads which the network does not have.
    #[error("{method} needs the network {expected}, and the network is {found}")]
    Network {
        /// The method.
        method: &'static str,
        /// The network that it needs.
        expected: &'static str,
        /// The one that was chosen.
        found: &'static str,
    },
    /// A method that must see whole batches.
    #[error(
        "{0} must see whole batches, and cannot be trained in shards or by several workers yet"
    )]
    Shards(&'static str),
    /// A floor outside [0, 1].
    #[error("the floor is {0}, but must be a weight from 0 to 1")]
    Floor(f64),
    /// A floor where sources have no weights.
    #[error("{0} gives sources no weights, so there is nothing for a floor to hold up")]
    FloorWithoutWeights(&'static str),
    /// A source both trusted and blocked.
    #[error("source {0} is both trusted and blocked")]
    Both(u32),
    /// The weighting rule refused.
    #[error(transparent)]
    Lap(#[from] LapError),
    /// Workers could not talk.
    #[error(transparent)]
    Peers(#[from] PeerError),
    /// A saved state that cannot be read or written.
    #[error("the saved state of the method cannot be used: {0}")]
    State(#[from] serde_json::Error),
    /// A saved state without a column that it must have.
    #[error("the saved state of the method cannot be used: it has no column {0:?}")]
    Column(String),
    /// A saved state whose columns differ in length.
    #[error("the saved state of the method cannot be used: its columns do not fit each other")]
    Columns,
    /// What a method from elsewhere has to say.
    #[error("{0}")]
    Other(String),
}

fn names() -> String {
    METHODS.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

fn not_its_parameter(parameter: &str, owners: &[&str], method: &str) -> String {
    match owners {
        [] => format!("no method has a parameter called {parameter:?}"),
        _ => format!(
            "{parameter} is a parameter of {}, and the method is {method}",
            owners.join(" and ")
        ),
    }
}
