//! What can go wrong with a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lapwing_core::LapError;
use lapwing_data::DataError;
use lapwing_judge::{JudgeError, Ruling};
use lapwing_report::{ReportError, reveal};
use lapwing_sample::SampleError;
use lapwing_store::StoreError;
use lapwing_train::{DeviceError, MethodError, ModelError, PlanError, TrainError};
use lapwing_trees::TreesError;
use thiserror::Error;

/// Why a run cannot start, go on, or be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The table cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A row cannot be shown.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// Training failed.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// Trees cannot be grown or read.
    #[error(transparent)]
    Trees(#[from] TreesError),
    /// No shard at all.
    #[error("a batch has at least one shard")]
    NoShards,
    /// A file for rows on disk, and no reason why they should be there.
    #[error("a cache is for rows that do not fit into memory, and there is no memory limit")]
    CacheWithoutLimit,
    /// Trees, and several workers.
    #[error("trees are grown by one process, and there are {0}")]
    TreesAmong(usize),
    /// Trees, and a table on disk.
    #[error("trees are grown on a table in memory, and this one needs more than the limit")]
    TreesOnDisk,
    /// A setting of networks, and trees.
    #[error("{0} is for networks, and the model is trees")]
    NotForTrees(&'static str),
    /// A device that trees are not grown on.
    #[error("trees are grown on the cpu, and the device is {0}")]
    TreesDevice(String),
    /// A method that is for networks.
    #[error("trees are grown with lap or standard: {0} is for networks")]
    TreesMethod(&'static str),
    /// A model that ONNX cannot express, or that we do not.
    #[error("the model cannot be exported: {0}")]
    Onnx(String),
    /// No leniency has the rate of false alarms that was asked for.
    #[error(transparent)]
    Leniency(#[from] LapError),
    /// The model's parameters cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The device is not to be had.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The sources cannot be judged: a fault of ours.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// The report cannot be rendered.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A file could not be read or written, or is none.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of settings that cannot be read.
    #[error("{}: {source}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and where.
        source: Box<toml::de::Error>,
    },
    /// Settings that TOML cannot hold.
    #[error("the settings cannot be written down: {0}")]
    Unwritable(Box<toml::ser::Error>),
    /// Something without which there is no run.
    #[error("no {0} was given")]
    Missing(&'static str),
    /// The method refused.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// Changes of pictures where there are none.
    #[error("augment changes pictures, and the samples are {0}")]
    Augment(lapwing_sample::InputSpec),
    /// A momentum for an optimiser that has none.
    #[error("momentum is a parameter of sgd, and the optimiser is adam")]
    Momentum,
    /// A number of folds that cannot be.
    #[error("folds is {0}, but must be 0, or from 2 to {most}", most = crate::MOST_FOLDS)]
    Folds(usize),
    /// Folds where there are no labels.
    #[error("folds judge labels, and the targets are values")]
    FoldsOfValues,
    /// Items where there are no labels.
    #[error("items have labels on which answers agree or not, and the targets are values")]
    ItemsOfValues,
    /// Rows of a run whose labels were not judged.
    #[error("{}: its labels were not judged by networks that have not seen them", path.display())]
    LabelsNotJudged {
        /// The run.
        path: PathBuf,
    },
    /// A source that the run does not have.
    #[error("the run has no source {:?}{}", reveal(name), suggestion(close))]
    NoSource {
        /// The name.
        name: String,
        /// Names like it.
        close: Vec<String>,
    },
    /// Both a table and a share to test on.
    #[error("both a test file and a test fraction: expected one of them")]
    TwoTests,
    /// No network can be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A parameter of Huber's loss, and another loss.
    #[error("huber-delta is a parameter of the loss huber, which was not chosen")]
    HuberDelta,
    /// A guard names a source that is not in the data.
    #[error(
        "the source {name:?} is to be {}, and is not in the data{}",
        ruled(ruling),
        suggestion(close)
    )]
    UnknownSource {
        /// What was ruled about it.
        ruling: Ruling,
        /// The name.
        name: String,
        /// Names in the data that look like it.
        close: Vec<String>,
    },
    /// A source both trusted and blocked.
    #[error("source {0:?} is both trusted and blocked")]
    TrustedAndBlocked(String),
    /// All sources are blocked.
    #[error("every source with training rows is blocked: nothing is left to train on")]
    AllBlocked,
    /// Too few rows to train on.
    #[error("{rows} rows to train on: expected at least {least}")]
    TooFewRows {
        /// Rows.
        rows: usize,
        /// Fewest.
        least: usize,
    },
    /// Nothing to test on.
    #[error("there is no row to test on")]
    NothingToTest,
    /// No method, or no repeat.
    #[error("there is nothing to compare: expected at least one method and one repeat")]
    NothingToCompare,
    /// Training was stopped from outside.
    #[error("the training was interrupted")]
    Interrupted,
    /// Classes that training never saw.
    #[error(
        "{}: column {column:?} has classes that training never saw: {}",
        path.display(),
        counted(classes)
    )]
    UnseenClasses {
        /// The file.
        path: PathBuf,
        /// The target column.
        column: String,
        /// The classes and how many rows have them.
        classes: BTreeMap<String, u64>,
    },
    /// A directory that is in use.
    #[error("{} exists and is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// A directory that holds a run already.
    #[error("{} exists and is not empty: it holds a run", .0.display())]
    Exists(PathBuf),
    /// A directory that is in use, by somebody else's files.
    #[error("{} exists, is not empty and holds no run: only runs are replaced", .0.display())]
    NotOurs(PathBuf),
    /// A table that would be replaced by a file of the run.
    #[error("{} is a file of the run in {}, which would be replaced", input.display(), run.display())]
    InputInRun {
        /// The table.
        input: PathBuf,
        /// The run.
        run: PathBuf,
    },
    /// Another process trains in the directory.
    #[error("{}: another training uses this directory", .0.display())]
    InUse(PathBuf),
    /// No directory, or one that holds no run.
    #[error("{}: there is no such run", .0.display())]
    NoRun(PathBuf),
    /// Not a directory of a finished run.
    #[error("{} holds no finished run: {missing} is not there", path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
        /// The file that was looked for.
        missing: &'static str,
    },
    /// A run cannot be resumed with other settings.
    #[error("{} was started with {key} = {before}, now it is {now}: a run is resumed with the same settings", path.display())]
    OtherSettings {
        /// The run.
        path: PathBuf,
        /// The first key that differs.
        key: String,
        /// Its value in the run.
        before: String,
        /// Its value now.
        now: String,
    },
    /// A run cannot be resumed on other data.
    #[error("{}: other data than the run was started with: a run is resumed with the same", path.display())]
    OtherData {
        /// The table.
        path: PathBuf,
    },
    /// A run cannot be resumed with kernels that round differently.
    #[error("{} was started with the kernels {before}, now they are {now}: the result would not be the same to the last bit", path.display())]
    OtherKernels {
        /// The run.
        path: PathBuf,
        /// Those of the run.
        before: String,
        /// Those of now.
        now: String,
    },
    /// A result that somebody changed after the run.
    #[error("{} is not what the run wrote: it was changed or cut short since", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A file of a run that does not hold what it should.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

fn ruled(ruling: &Ruling) -> &'static str {
    match ruling {
        Ruling::Trusted => "trusted",
        Ruling::Blocked => "blocked",
    }
}

fn suggestion(close: &[String]) -> String {
    let names: Vec<String> = close.iter().map(|name| format!("{:?}", reveal(name))).collect();
    match names.len() {
        0 => String::new(),
        _ => format!("; close to it are {}", names.join(", ")),
    }
}

fn counted(classes: &BTreeMap<String, u64>) -> String {
    let shown = classes.iter().take(5);
    let mut text = shown
        .map(|(class, rows)| {
            format!("{:?} ({rows} {})", reveal(class), if *rows == 1 { "row" } else { "rows" })
        })
        .collect::<Vec<_>>()
        .join(", ");
    if classes.len() > 5 {
        text.push_str(&format!(" and {} more", classes.len() - 5));
    }
    text
}
