//! What each column of a table holds and what it is used for.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use lapwing_sample::Task;
use serde::{Deserialize, Serialize};

use crate::dataset::ReadOptions;
use crate::distinct::Distinct;
use crate::error::DataError;
use crate::file::TableFile;
use crate::numeral::Numerals;
use crate::survey::{Places, Survey};
use crate::value::Lexicon;

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Numbers.
    Numeric,
    /// One of a set of levels.
    Categorical,
    /// ISO 8601 dates or date-times.
    Date,
    /// Free text.
    Text,
    /// Equally many numbers in every row: an embedding.
    Vector,
    /// Paths of picture files.
    Image,
    /// Numbers over time, more or fewer of them in each row.
    Series,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Numeric => "numeric",
            Self::Categorical => "categorical",
            Self::Date => "date",
            Self::Text => "text",
            Self::Vector => "vector",
            Self::Image => "image",
            Self::Series => "series",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that names no [`Kind`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a column type; expected numeric, categorical, date, text or image")]
pub struct UnknownKind(pub String);

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(word: &str) -> Result<Self, UnknownKind> {
        match word.to_lowercase().as_str() {
            "numeric" | "number" => Ok(Self::Numeric),
            "categorical" | "category" => Ok(Self::Categorical),
            "date" => Ok(Self::Date),
            "text" => Ok(Self::Text),
            "image" => Ok(Self::Image),
            _ => Err(UnknownKind(word.to_owned())),
        }
    }
}

/// What a column is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It is to be predicted.
    Target,
    /// It says where a row came from.
    Source,
    /// It says where a row came from, and was asked for as a feature too.
    SourceAndFeature,
    /// It says what a row is an answer to.
    Item,
    /// It says when a row was taken.
    Time,
    /// It is learnt from.
    Feature,
    /// It is not used.
    Ignored(Reason),
}

impl Role {
    /// Whether the column is learnt from.
    pub fn is_feature(self) -> bool {
        matches!(self, Self::Feature | Self::SourceAndFeature)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target => f.pad("target"),
            Self::Source => f.pad("source"),
            Self::SourceAndFeature => f.pad("source, feature"),
            Self::Item => f.pad("item"),
            Self::Time => f.pad("time"),
            Self::Feature => f.pad("feature"),
            Self::Ignored(reason) => f.pad(&format!("ignored: {reason}")),
        }
    }
}

/// Why a column is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The user said so.
    Asked,
    /// It has one value only.
    Constant,
    /// It numbers or names the rows.
    IdLike,
    /// It holds free text.
    FreeText,
    /// It has no value at all.
    AllMissing,
    /// Its only values are infinite.
    AllInfinite,
    /// Its numbers differ only in digits that 64 bits cannot hold.
    BeyondPrecision,
    /// Its Parquet type is nested or binary.
    Unsupported,
    /// Another column holds pictures, which are learnt from alone.
    BesidePictures,
    /// Other columns hold series, which are learnt from alone.
    BesideSeries,
    /// Other columns hold text, and the network reads nothing else.
    BesideText,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Asked => "as asked",
            Self::Constant => "constant",
            Self::IdLike => "looks like an identifier",
            Self::FreeText => "free text",
            Self::AllMissing => "no values",
            Self::AllInfinite => "no finite values",
            Self::BeyondPrecision => "whole numbers beyond 2^53 that differ in lost digits",
            Self::Unsupported => "unsupported type",
            Self::BesidePictures => "pictures are learnt from alone",
            Self::BesideSeries => "series are learnt from alone",
            Self::BesideText => "the network reads text alone",
        })
    }
}

/// One column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnSchema {
    /// Its name in the header.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// What it is used for.
    pub role: Role,
    /// Missing values among the rows kept.
    pub missing: u64,
    /// Different values among the rows kept.
    pub distinct: Distinct,
    /// Something the user should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub(crate) storage: Storage,
}

impl ColumnSchema {
    /// Whether numbers are written as programs write them, and not as `1,5` or `$3`.
    pub fn is_written_plainly(&self) -> bool {
        self.storage.numerals == Numerals::Plain
    }

    /// What is subtracted from numbers before they are kept in 32 bits.
    pub fn offset(&self) -> f64 {
        self.storage.offset
    }
}

/// How the numbers of a column are kept in 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Storage {
    /// Subtracted from every value, so that numbers far from zero keep their precision.
    pub(crate) offset: f64,
    /// Seconds in a unit; 86,400 for dates without time, which are then whole numbers.
    pub(crate) unit: f64,
    pub(crate) with_time: bool,
    /// How the numbers are written in text.
    #[serde(default)]
    pub(crate) numerals: Numerals,
    /// Numbers of a vector; of a series, those of the longest; of pictures, pixels of a side.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) width: usize,
}

fn is_zero(width: &usize) -> bool {
    *width == 0
}

impl Default for Storage {
    fn default() -> Self {
        Self { offset: 0.0, unit: 1.0, with_time: false, numerals: Numerals::Plain, width: 0 }
    }
}

/// All columns of a table in the order of the file, and what is learnt from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// What is learnt.
    pub task: Task,
    /// The columns.
    pub columns: Vec<ColumnSchema>,
    /// The classes in order, numbers by value and names by alphabet; empty in regression.
    pub classes: Vec<String>,
    /// Texts that stand for a missing value.
    pub missing_tokens: Vec<String>,
    /// The columns of each channel, where series are learnt from: one column of lists, or one for each moment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Vec<String>>,
}

impl Schema {
    /// Infers it in one pass over a file, in little memory: what [`Dataset::read`](crate::Dataset::read) would find,
    /// without reading the rows.
    ///
    /// `classes` stays empty, and a table without a usable feature is accepted.
    pub fn infer(file: &TableFile, options: &ReadOptions) -> Result<Self, DataError> {
        let places = Places::new(file, options)?;
        let survey = Survey::new(file, &places, &Lexicon::new(&options.missing_tokens))?;
        survey.schema(file, &places, options)
    }

    pub(crate) fn check_that_it_has_features(&self, path: &Path) -> Result<(), DataError> {
        if self.columns.iter().any(|column| column.role.is_feature()) {
            return Ok(());
        }
        let ignored = self
            .columns
            .iter()
            .filter(|column| matches!(column.role, Role::Ignored(_)))
            .map(|column| format!("{} {}", column.name, column.role))
            .collect();
        Err(DataError::NoFeatures { path: path.to_owned(), ignored })
    }

    /// Whether a schema from a file is one that a table can have.
    pub(crate) fn check(&self) -> Result<(), DataError> {
        let invalid = |what: &str| Err(DataError::EncoderInvalid(what.to_owned()));
        let mut names = HashSet::new();
        if !self.columns.iter().all(|column| names.insert(column.name.as_str())) {
            return invalid("two columns have the same name");
        }
        let sound = |Storage { offset, unit, .. }: &Storage| {
            offset.is_finite() && unit.is_finite() && *unit > 0.0
        };
        if !self.columns.iter().all(|column| sound(&column.storage)) {
            return invalid("a column has an offset or unit that is no number");
        }
        let fits = match self.task {
            Task::Classification => self.classes.len() > 1,
            Task::Regression => self.classes.is_empty(),
        };
        if fits { Ok(()) } else { invalid("the classes do not fit the task") }
    }

    /// The columns that are learnt from, in the order of the file.
    pub fn features(&self) -> impl Iterator<Item = &ColumnSchema> {
        self.columns.iter().filter(|column| column.role.is_feature())
    }

    /// The place of the column of pictures that is learnt from.
    pub(crate) fn pictures(&self) -> Option<usize> {
        let pictures =
            |column: &ColumnSchema| column.kind == Kind::Image && column.role.is_feature();
        self.columns.iter().position(pictures)
    }

    /// The target column.
    pub fn target(&self) -> Option<&ColumnSchema> {
        self.columns.iter().find(|column| column.role == Role::Target)
    }

    /// The source column.
    pub fn source(&self) -> Option<&ColumnSchema> {
        self.columns
            .iter()
            .find(|column| matches!(column.role, Role::Source | Role::SourceAndFeature))
    }
}
