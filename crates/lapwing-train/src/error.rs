//! What can go wrong in a run.

use lapwing_sample::{DataError, InputSpec, SampleError};
use thiserror::Error;

use crate::checkpoint::CheckpointError;
use crate::device::DeviceError;
use crate::method::MethodError;
use crate::model::ModelError;
use crate::network::ArchitectureError;
use crate::parameters::ParameterError;

/// Why a run cannot start or go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The data cannot be trained on.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A setting is out of range.
    #[error("{0}")]
    Config(&'static str),
    /// A sample cannot be had.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// A network that is not for these samples.
    #[error("the network takes {expected}, the samples are {found}")]
    Input {
        /// What the samples are.
        found: InputSpec,
        /// What the network takes.
        expected: InputSpec,
    },
    /// A network that is not for these targets.
    #[error("the network puts out {expected} numbers, the targets need {found}")]
    Outputs {
        /// Outputs that the targets need.
        found: usize,
        /// Those of the network.
        expected: usize,
    },
    /// The network cannot be asked.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Settings that cannot be written down.
    #[error("the settings cannot be written down: {0}")]
    Settings(serde_json::Error),
    /// The network cannot be built.
    #[error(transparent)]
    Architecture(#[from] ArchitectureError),
    /// The device is not to be had.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The method refused.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// Parameters, or the losses of every row, became infinite or NaN.
    #[error(
        "training diverged: losses or parameters are no longer finite numbers at step {step} (epoch {epoch}); a lower learning rate may help, or a look at the features for enormous values"
    )]
    Diverged {
        /// Steps done.
        step: u64,
        /// Epochs done.
        epoch: usize,
    },
    /// More workers than shards.
    #[error(
        "{workers} workers cannot share batches of {shards} shards: at most one worker per shard"
    )]
    Shards {
        /// Shards of a batch.
        shards: usize,
        /// Workers.
        workers: usize,
    },
    /// Texts, of which gradients are of some rows of a table.
    #[error("texts cannot be trained on in shards or by several workers yet")]
    TextInShards,
    /// A worker that has something else to do than the first.
    #[error(
        "worker {rank} has other data or other settings than worker 0: every worker must read the same table"
    )]
    OtherWorker {
        /// Its rank.
        rank: usize,
    },
    /// A checkpoint cannot be written or read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The checkpoint belongs to other data or another configuration.
    #[error(
        "the checkpoint was made with other data or another configuration: it can only be resumed with the same"
    )]
    OtherRun,
    /// The checkpoint belongs to a table with other features.
    #[error(
        "the features have changed since the checkpoint was made (same rows, targets and sources, other values): it can only be resumed with the same"
    )]
    OtherFeatures,
    /// The checkpoint's arrays do not fit.
    #[error("the checkpoint does not fit the network: {0}")]
    Parameters(#[from] ParameterError),
    /// The checkpoint holds what no run comes to.
    #[error("the checkpoint contradicts itself or the data: {0}")]
    Contradiction(&'static str),
    /// The observer could not go on from the checkpoint.
    #[error("the checkpoint's record of the run cannot be used: {0}")]
    Observer(String),
}
