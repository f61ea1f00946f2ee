//! How the program ends.

use std::io;
use std::process::ExitCode;

use lapwing_data::DataError;
use lapwing_judge::Ruling;
use lapwing_noise::{TableNoiseError, TargetIs};
use lapwing_run::RunError;

/// Something the user asked to fail on.
#[derive(Debug)]
pub(crate) struct Finding(pub(crate) String);

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Finding {}

/// 0 when all went well, 1 with a finding, 2 with a message on stderr when it did not go well.
pub(crate) fn exit_code(done: anyhow::Result<()>) -> ExitCode {
    let Err(error) = done else { return ExitCode::SUCCESS };
    // `lapwing … | head` has seen enough: that is no failure.
    if is_broken_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    if let Some(finding) = error.downcast_ref::<Finding>() {
        eprintln!("{finding}");
        return ExitCode::from(1);
    }
    eprintln!("error: {}", printable(&format!("{error:#}")));
    let advice = error
        .downcast_ref()
        .and_then(run_advice)
        .or_else(|| error.downcast_ref().and_then(noise_advice))
        .or_else(|| error.downcast_ref().and_then(advice));
    if let Some(advice) = advice {
        eprintln!("{advice}");
    }
    ExitCode::from(2)
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

/// Messages may hold names from data: control characters in them must not reach a terminal.
fn printable(message: &str) -> String {
    let line = |line: &str| {
        let text = line.trim();
        let indent = &line[..line.len() - line.trim_start().len()];
        if text.is_empty() {
            String::new()
        } else {
            format!("{indent}{}", lapwing_report::reveal(text))
        }
    };
    message.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn run_advice(error: &RunError) -> Option<&'static str> {
    match error {
        RunError::NotEmpty(_) => Some(
            "hint: --force replaces the run in it, --resume goes on with it, --out names another directory",
        ),
        RunError::Missing(_) => Some(
            "hint: DATA, --target and --source are needed: lapwing train data.csv --target label --source hospital",
        ),
        RunError::UnknownSource { ruling: Ruling::Trusted, .. } => {
            Some("hint: --trust takes names as they stand in the column of --source")
        }
        RunError::UnknownSource { ruling: Ruling::Blocked, .. } => {
            Some("hint: --block takes names as they stand in the column of --source")
        }
        RunError::NotARun { .. } => {
            Some("hint: `lapwing train --resume RUN` finishes a run that was interrupted")
        }
        RunError::UnseenClasses { .. } => Some(
            "hint: a model can only know classes of its training data; remove these rows, or train on data that has them",
        ),
        RunError::Data(DataError::WrongType { .. }) => Some(
            "hint: the column had another type in training; --types COLUMN=TYPE decides it there",
        ),
        RunError::Data(DataError::MissingColumn { .. }) => None,
        RunError::Data(error) => advice(error),
        _ => None,
    }
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
        TableNoiseError::Data(error) => advice(error),
        _ => None,
    }
}

/// What to do next, where the message does not say so itself.
fn advice(error: &DataError) -> Option<&'static str> {
    match error {
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
        DataError::ReadableOnce { .. } => {
            Some("hint: only a log of losses can come through a pipe: `… | lapwing replay -`")
        }
        DataError::InvalidUtf8 { .. } => {
            Some("hint: for a file from Windows: iconv -f WINDOWS-1252 -t UTF-8 OLD.csv > NEW.csv")
        }
        DataError::Ragged { expected, found, .. } if found > expected => Some(
            "hint: quote fields that hold the separator, and end no line with a separator that the header has not",
        ),
        _ => None,
    }
}
