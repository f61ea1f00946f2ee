//! What can go wrong between a recipe and its table.

use std::io;
use std::path::PathBuf;

use lapwing_noise::NoiseError;
use lapwing_store::StoreError;
use lapwing_train::TrainError;
use thiserror::Error;

/// Why an experiment cannot be run or told of.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PaperError {
    /// Nobody said where the data sets are.
    #[error(
        "{set} is needed: give the directory of the data sets with --data DIR or LAPWING_DATA; {set} comes from {page}"
    )]
    NoDataDirectory {
        /// The data set.
        set: &'static str,
        /// Where it comes from.
        page: &'static str,
    },
    /// A file of a data set is not there.
    #[error(
        "{set}: there is no {file} (nor {file}.gz) in {}; the official file is called {file} and comes from {page}",
        .looked.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    MissingFile {
        /// The data set.
        set: &'static str,
        /// The name of the official file.
        file: &'static str,
        /// Where it was looked for.
        looked: Vec<PathBuf>,
        /// Where it comes from.
        page: &'static str,
    },
    /// A file of a data set is not what it should be.
    #[error("{}: {problem}; the official file of {set} is called {file} and comes from {page}", .path.display())]
    WrongFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// The data set.
        set: &'static str,
        /// The name of the official file.
        file: &'static str,
        /// Where it comes from.
        page: &'static str,
    },
    /// A file or directory that cannot be read or written.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A record or a result that cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A recipe that cannot be read.
    #[error("recipe {id}: {problem}")]
    Recipe {
        /// The recipe.
        id: String,
        /// Why.
        problem: String,
    },
    /// A word that names no experiment, condition or method.
    #[error("{word:?} is no {what}; expected one of {expected}")]
    Unknown {
        /// What was asked for.
        what: String,
        /// The word.
        word: String,
        /// What there is.
        expected: String,
    },
    /// A record that cannot be used.
    #[error("{}: not a record of `lapwing paper` ({problem}); remove the file to run its cell again", .path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// Noise that cannot be made.
    #[error(transparent)]
    Noise(#[from] NoiseError),
    /// A training that failed.
    #[error("{cell}: {error}")]
    Train {
        /// The cell.
        cell: String,
        /// Why.
        error: TrainError,
    },
    /// A request that makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A picture that cannot be drawn.
    #[error("the figure {name} cannot be drawn: {problem}")]
    Figure {
        /// The figure.
        name: String,
        /// Why.
        problem: String,
    },
}
