//! How the program ends.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | a finding that the user asked to fail on |
//! | 2 | bad usage, bad input, or a file that cannot be read or written |
//! | 130, 143 | stopped by Ctrl-C or SIGTERM, after saving where there is something to save |

use std::io;

use lapwing_data::DataError;
use lapwing_judge::Ruling;
use lapwing_noise::{TableNoiseError, TargetIs};
use lapwing_run::RunError;
use lapwing_train::{CheckpointError, TrainError};

use crate::interrupt::code;
use crate::say::{say, word};
use crate::team::Said;

/// Something the user asked to fail on.
#[derive(Debug)]
pub(crate) struct Finding(pub(crate) String);

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Finding {}

/// A signal, and how to go on.
#[derive(Debug)]
pub(crate) struct Interrupted {
    pub(crate) signal: i32,
    pub(crate) message: String,
}

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Interrupted {}

/// What a folder of pictures may lack.
const LIST: &str = "hint: a sources.csv in the folder, with a column `file` and others beside it, says where each picture came from";

/// What the program was asked to do, as far as advice depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stage {
    /// Columns get their types.
    Training,
    /// Columns have the types of training.
    Use,
}

/// The exit code, with a message on stderr unless all went well.
pub(crate) fn exit_code(done: anyhow::Result<()>, stage: Stage) -> u8 {
    let Err(error) = done else { return 0 };
    // `lapwing … | head` has seen enough: that is no failure.
    if is_broken_pipe(&error) {
        return 0;
    }
    if error.is::<Said>() {
        return 0;
    }
    if let Some(finding) = error.downcast_ref::<Finding>() {
        say!("{finding}");
        return 1;
    }
    if let Some(interrupted) = error.downcast_ref::<Interrupted>() {
        say!("{interrupted}");
        return u8::try_from(code(interrupted.signal)).unwrap_or(1);
    }
    say!("error: {}", with_causes(&error));
    let advice = error
        .downcast_ref()
        .and_then(|error| run_advice(error, stage))
        .or_else(|| error.downcast_ref().and_then(noise_advice).map(str::to_owned))
        .or_else(|| error.downcast_ref().and_then(|error| advice(error, stage)).map(str::to_owned));
    if let Some(advice) = advice {
        say!("{advice}");
    }
    2
}

/// The error and its causes, but for those that it tells of itself.
pub(crate) fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(cause.trim_end()) {
            text = format!("{}: {cause}", text.trim_end());
        }
    }
    text
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io_error = match cause.downcast_ref::<csv::Error>().map(csv::Error::kind) {
            Some(csv::ErrorKind::Io(error)) => Some(error),
            _ => cause.downcast_ref::<io::Error>(),
        };
        io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

fn run_advice(error: &RunError, stage: Stage) -> Option<String> {
    if let RunError::Train(TrainError::Checkpoint(checkpoint)) = error {
        return checkpoint_advice(checkpoint);
    }
    let advice = match error {
        RunError::Exists(_) => Some(
            "hint: --force replaces it once the new run is finished, --resume goes on with it, --out names another directory",
        ),
        RunError::LabelsNotJudged { .. } => Some(
            "hint: rows are judged in classification, by training without --no-folds on 30 rows or more",
        ),
        RunError::Folds(_) => Some("hint: --no-folds leaves them out"),
        RunError::Missing(_) => Some(
            "hint: DATA, --target and --source are needed: lapwing train data.csv --target label --source hospital",
        ),
        RunError::UnknownSource { ruling: Ruling::Trusted, .. } => {
            Some("hint: --trust takes names as they stand in the column of --source")
        }
        RunError::UnknownSource { ruling: Ruling::Blocked, .. } => {
            Some("hint: --block takes names as they stand in the column of --source")
        }
        RunError::NotEmpty(_) | RunError::NotOurs(_) => Some("hint: --out names another directory"),
        RunError::InputInRun { .. } => {
            Some("hint: move the table out of the run, or name another directory with --out")
        }
        RunError::InUse(_) => {
            Some("hint: wait until it is finished, or name another directory with --out")
        }
        RunError::OtherKernels { .. } => Some(
            "hint: resume on a machine of the same kind, or with LAPWING_KERNELS set as it was; --force starts anew",
        ),
        RunError::OtherData { .. } => {
            Some("hint: --force with --out starts anew with the data of now")
        }
        RunError::Changed { .. } => {
            Some("hint: take it from a copy of the run, or train again with --force")
        }
        RunError::NotARun { .. } => {
            Some("hint: `lapwing train --resume RUN` finishes a run that was interrupted")
        }
        RunError::UnseenClasses { .. } => Some(
            "hint: a model can only know classes of its training data; remove these rows, or train on data that has them",
        ),
        RunError::Data(DataError::WrongType { .. }) if stage == Stage::Use => Some(
            "hint: the column had another type in training; --types COLUMN=TYPE decides it there",
        ),
        RunError::Data(DataError::WrongType { .. }) => Some(
            "hint: --types COLUMN=TYPE says what a column holds, --task what is learnt; without them both are inferred",
        ),
        RunError::Data(DataError::MissingColumn { path, .. }) if path.is_dir() => Some(LIST),
        RunError::Data(DataError::MissingColumn { .. }) => None,
        RunError::Data(error) => advice(error, stage),
        _ => None,
    };
    advice.map(str::to_owned)
}

/// What to do when no checkpoint is left that can be used.
fn checkpoint_advice(error: &CheckpointError) -> Option<String> {
    let path = match error {
        CheckpointError::Damaged { path }
        | CheckpointError::Arrays { path, .. }
        | CheckpointError::State { path, .. }
        | CheckpointError::Format { path, .. } => path,
        _ => return None,
    };
    let directory = path.parent()?;
    Some(format!(
        "hint: remove {} and resume again to start anew from the first step",
        word(directory)
    ))
}

fn noise_advice(error: &TableNoiseError) -> Option<&'static str> {
    match error {
        TableNoiseError::NotOfInputs { .. } => Some("hint: --features is for noise of the inputs"),
        TableNoiseError::Target { is: TargetIs::Number, .. } => {
            Some("hint: --task classification takes the numbers for classes")
        }
        TableNoiseError::Target { is: TargetIs::Class, .. } => {
            Some("hint: --task regression takes the classes for numbers")
        }
        TableNoiseError::Data(DataError::MissingColumn { path, .. }) if path.is_dir() => Some(LIST),
        TableNoiseError::Data(error) => advice(error, Stage::Training),
        _ => None,
    }
}

/// What to do next, where the message does not say so itself.
fn advice(error: &DataError, stage: Stage) -> Option<&'static str> {
    match error {
        DataError::MissingColumn { .. } if stage == Stage::Use => {
            Some("hint: the model reads the columns that it was trained on, by their names")
        }
        DataError::MissingColumn { .. } => {
            Some("hint: options such as --source say which column is which")
        }
        DataError::RecordTooLong { .. } => Some("hint: look for a quote that is never closed"),
        DataError::Truncated { .. } | DataError::Damaged { .. } => {
            Some("hint: copy or download the file again")
        }
        DataError::StrayValue(_) => Some(
            "hint: correct it, or say what the column holds with --types COLUMN=TYPE, or leave it out with --ignore COLUMN",
        ),
        DataError::AmbiguousNumber { .. } => Some(
            "hint: --types COLUMN=categorical takes them for names, --ignore COLUMN leaves them out",
        ),
        DataError::Vector { .. } if stage == Stage::Training => Some(
            "hint: --ignore COLUMN leaves the lists out; --series COLUMN takes lists of different lengths",
        ),
        DataError::NoFeatures { .. } => Some(
            "hint: --text names a column of texts, --image one of paths of pictures, --series one of numbers over time",
        ),
        DataError::Picture { .. } if stage == Stage::Training => {
            Some("hint: --on-bad-row skip leaves such rows out, and counts them")
        }
        DataError::ReadableOnce { .. } => Some(
            "hint: only replay and predict read what comes through a pipe: `… | lapwing predict RUN -`",
        ),
        DataError::InvalidUtf8 { .. } => {
            Some("hint: for a file from Windows: iconv -f WINDOWS-1252 -t UTF-8 OLD.csv > NEW.csv")
        }
        DataError::Ragged { expected, found, .. } if found > expected => Some(
            "hint: quote fields that hold the separator, and end no line with a separator that the header has not",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_cause_is_told_once() {
        let inner = || io::Error::new(io::ErrorKind::NotFound, "not there");
        let store = lapwing_store::StoreError::File { path: "a".into(), source: inner() };
        let error = anyhow::Error::new(RunError::from(store)).context("cannot go on");
        assert_eq!(with_causes(&error), "cannot go on: a: not there");
        let plain = Err::<(), _>(inner()).context("cannot write").unwrap_err();
        assert_eq!(with_causes(&plain), "cannot write: not there");
    }
}
