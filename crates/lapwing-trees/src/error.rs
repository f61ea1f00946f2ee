//! What can go wrong with trees.

use std::path::PathBuf;

use hessboost::error::HessboostError;
use lapwing_core::LapError;
use lapwing_sample::{DataError, InputSpec, Loss, SampleError, Task};
use lapwing_store::StoreError;
use thiserror::Error;

/// Why trees cannot be grown, saved or loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TreesError {
    /// Data that cannot be trained on.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A sample cannot be had.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// The rule refused.
    #[error(transparent)]
    Rule(#[from] LapError),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] StoreError),
    /// A setting out of its range.
    #[error("{name} is {value}, expected {expected}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A loss that is for the other kind of targets.
    #[error("{0:?} is not a loss for such targets")]
    Loss(Loss),
    /// Samples that are no vectors.
    #[error("the samples are {found}, trees take {expected}")]
    Input {
        /// What the samples are.
        found: InputSpec,
        /// What the trees take.
        expected: String,
    },
    /// Classes where values are expected, or the other way round.
    #[error("the targets are for {found}, the model was trained for {expected}")]
    Targets {
        /// What the targets are for.
        found: Task,
        /// What the model is for.
        expected: Task,
    },
    /// Numbers became infinite.
    #[error(
        "training diverged in round {round}: no loss is a finite number; try a lower learning rate"
    )]
    Diverged {
        /// The round, from 1.
        round: usize,
    },
    /// The library of trees refused, or failed.
    #[error("the trees cannot be grown: {0}")]
    Library(String),
    /// The file is not the one that the description was written for.
    #[error("{}: damaged or exchanged: its BLAKE3 digest is {found}, expected {expected}", path.display())]
    Digest {
        /// The file.
        path: PathBuf,
        /// Digest of the file.
        found: String,
        /// Digest in the description.
        expected: String,
    },
    /// The file holds no trees, or others than were described.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A description of another version.
    #[error("the trees have format {found}, this program reads {expected}")]
    Format {
        /// That of the file.
        found: u32,
        /// That of this program.
        expected: u32,
    },
    /// A description that contradicts itself.
    #[error("the description of the trees contradicts itself: {0}")]
    Description(&'static str),
}

impl From<HessboostError> for TreesError {
    fn from(error: HessboostError) -> Self {
        Self::Library(error.to_string())
    }
}
