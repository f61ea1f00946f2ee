//! Why a table cannot be made wrong.

use std::path::PathBuf;

use lapwing_data::{DataError, Kind};

use crate::{NoiseError, NoiseKind};

/// Sources named in a message.
const SHOWN: usize = 10;

/// Why noise cannot be put into a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableNoiseError {
    /// The table cannot be read, or its copy not written.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The noise cannot be made.
    #[error(transparent)]
    Noise(#[from] NoiseError),
    /// The kind is none for tables.
    #[error("{kind} is no noise for a table: {reason}")]
    Unfit {
        /// The kind.
        kind: NoiseKind,
        /// Why not, and what to use instead.
        reason: &'static str,
    },
    /// Columns were named for a kind that changes no inputs.
    #[error("{kind} changes the target {target:?}, not columns that are learnt from")]
    NotOfInputs {
        /// The kind.
        kind: NoiseKind,
        /// The target.
        target: String,
    },
    /// The target is of another sort than the kind changes.
    #[error("{kind} changes {}, and the target {target:?} is {is}", if *is == TargetIs::Number { "classes" } else { "numbers" })]
    Target {
        /// The kind.
        kind: NoiseKind,
        /// The target.
        target: String,
        /// What it is.
        is: TargetIs,
    },
    /// A column that was named holds no numbers.
    #[error("{kind} changes single numbers, and the column {column:?} is {is}")]
    NotNumeric {
        /// The kind.
        kind: NoiseKind,
        /// The column.
        column: String,
        /// What it holds.
        is: Kind,
    },
    /// Inputs that are pictures.
    #[error(
        "{kind} changes inputs, and those of {} are pictures, which stay as they are; noise of labels works, such as \
         random-label or exact-flip",
        path.display()
    )]
    Pictures {
        /// The kind.
        kind: NoiseKind,
        /// The folder of pictures.
        path: PathBuf,
    },
    /// No column of text.
    #[error("{kind} changes texts, and {} has no column of free text; one can be named among the features", path.display())]
    NoText {
        /// The kind.
        kind: NoiseKind,
        /// The table.
        path: PathBuf,
    },
    /// Too few columns to change.
    #[error(
        "{kind} needs {needed} numeric feature columns or more, {} has {found}{}",
        path.display(),
        if *lists { "; lists of numbers stay as they are, noise of labels works" } else { "" }
    )]
    Columns {
        /// The kind.
        kind: NoiseKind,
        /// How many it takes.
        needed: usize,
        /// The table.
        path: PathBuf,
        /// How many there are.
        found: usize,
        /// Whether there are lists of numbers.
        lists: bool,
    },
    /// A column that was named cannot hold texts.
    #[error("{kind} changes texts, and the column {column:?} holds none")]
    NotText {
        /// The kind.
        kind: NoiseKind,
        /// The column.
        column: String,
    },
    /// A target that should be a number.
    #[error("{}, row {row}, column {column:?}: expected a number, found {found:?}", path.display())]
    NotANumber {
        /// The table.
        path: PathBuf,
        /// Data row, from 1.
        row: u64,
        /// The column.
        column: String,
        /// What stands there.
        found: String,
    },
    /// A source to be made wrong has no row with a target.
    #[error(
        "no row with a target has the source {source_name:?} in column {column:?}; the sources are {}",
        listed(known)
    )]
    AbsentSource {
        /// The name.
        source_name: String,
        /// The column of sources.
        column: String,
        /// The sources there are, those that look like it first.
        known: Vec<String>,
    },
    /// The table is not the one that was read first.
    #[error("{} changed while it was being read", .0.display())]
    Changed(PathBuf),
}

/// What a target is that a kind of noise cannot change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetIs {
    /// A number, where classes are changed.
    Number,
    /// A class, where numbers are changed.
    Class,
    /// A date, where numbers are changed.
    Date,
}

impl std::fmt::Display for TargetIs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TargetIs::Number => "a number; uniform-target is for numbers",
            TargetIs::Class => "a class; random-label is for classes",
            TargetIs::Date => "a date",
        })
    }
}

fn listed(known: &[String]) -> String {
    let mut text: Vec<String> = known.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    if known.len() > SHOWN {
        text.push(format!("{} more", known.len() - SHOWN));
    }
    text.join(", ")
}
