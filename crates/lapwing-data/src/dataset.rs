//! A table read for training: features, target and sources.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use lapwing_sample::{Targets, Task};
use serde::{Deserialize, Serialize};

use crate::error::DataError;
use crate::file::TableFile;
use crate::schema::{Kind, Schema};
use crate::survey::{Places, Survey};
use crate::table::{ColumnBuilder, Table};
use crate::target::{Filled, TargetBuilder};
use crate::value::{Lexicon, MISSING_TOKENS};

type Result<T> = std::result::Result<T, DataError>;

/// What to read and as what.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadOptions {
    /// Column to predict.
    pub target: String,
    /// Column that says where a row came from.
    pub source: String,
    /// Use these columns and no other; naming the source column makes it a feature too.
    pub features: Option<Vec<String>>,
    /// Do not use these columns.
    pub ignore: Vec<String>,
    /// Kinds that override inference. A column named here is used even where inference would ignore it.
    pub types: BTreeMap<String, Kind>,
    /// What is learnt; inferred when not given.
    pub task: Option<Task>,
    /// Texts that stand for a missing value; an empty field always does.
    pub missing_tokens: Vec<String>,
}

impl ReadOptions {
    /// Everything inferred.
    pub fn new(target: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            source: source.into(),
            features: None,
            ignore: Vec::new(),
            types: BTreeMap::new(),
            task: None,
            missing_tokens: MISSING_TOKENS.map(str::to_owned).to_vec(),
        }
    }
}

/// Rows that were left out, by reason; a row counts for the first that applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// The target was missing or not finite.
    pub target_missing: u64,
    /// The source was missing.
    pub source_missing: u64,
}

impl Dropped {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.target_missing + self.source_missing
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} without target, {} without source", self.target_missing, self.source_missing)
    }
}

/// Where rows came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// For every row an index into `names`.
    pub codes: Vec<u32>,
    /// In order of first appearance.
    pub names: Vec<String>,
}

/// Something that does not stop training but may surprise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// All rows come from one source: there is nothing to compare it with.
    OneSource(String),
    /// Every row is its own source: no source can be judged.
    SourcePerRow(u64),
    /// On average a class has fewer than two rows; the target may be the wrong column.
    ManyClasses {
        /// Classes.
        classes: u64,
        /// Rows.
        rows: u64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneSource(name) => write!(f, "all rows come from one source, {name:?}"),
            Self::SourcePerRow(rows) => write!(f, "each of the {rows} rows is a source of its own"),
            Self::ManyClasses { classes, rows } => {
                write!(f, "the target has {classes} classes in {rows} rows")
            }
        }
    }
}

/// A table ready to be split and encoded.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// What each column holds and is used for.
    pub schema: Schema,
    /// The features.
    pub table: Table,
    /// What is to be predicted, row by row.
    pub target: Targets,
    /// Where the rows came from.
    pub sources: Sources,
    /// Rows that were left out.
    pub dropped: Dropped,
    /// What the user should be told.
    pub warnings: Vec<Warning>,
}

impl Dataset {
    /// Reads a table in two passes: the first infers types and counts, the second fills columns of exactly that size.
    pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self> {
        let file = TableFile::open(path)?;
        let places = Places::new(&file, options)?;
        let lexicon = Lexicon::new(&options.missing_tokens);
        let survey = Survey::new(&file, &places, &lexicon)?;
        let mut schema = survey.schema(&file, &places, options)?;
        schema.check_that_it_has_features(file.path())?;

        let rows = survey.rows as usize;
        let mut builders: Vec<ColumnBuilder> = schema
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.role.is_feature())
            .map(|(position, column)| ColumnBuilder::new(column, position, rows))
            .collect();
        let mut target =
            TargetBuilder::new(schema.task, &schema.columns[places.target], places.target, rows);
        let mut sources = ColumnBuilder::names(&options.source, places.source, rows);
        let mut numbers = RowNumbers::new(survey.dropped.total() > 0, rows);
        let mut kept = 0;
        file.scan(|record| {
            if places.drops(&lexicon, record).is_some() {
                return Ok(());
            }
            kept += 1;
            if kept > rows {
                return Err(DataError::Changed { path: file.path().to_owned() });
            }
            for builder in &mut builders {
                builder.push(&lexicon, record)?;
            }
            target.push(&lexicon, record)?;
            sources.push(&lexicon, record)?;
            numbers.push(record.row);
            Ok(())
        })?;
        if kept != rows {
            return Err(DataError::Changed { path: file.path().to_owned() });
        }

        let target = target.finish();
        check_that_it_varies(&target, file.path(), &options.target)?;
        schema.classes = target.classes;
        let (codes, names) = sources.into_names();
        let columns = builders.into_iter().map(ColumnBuilder::finish).collect();
        let mut dataset = Self {
            schema,
            table: Table::new(file.path().to_owned(), columns, rows, numbers.0),
            target: target.targets,
            sources: Sources { codes, names },
            dropped: survey.dropped,
            warnings: Vec::new(),
        };
        dataset.warnings = dataset.find_warnings();
        Ok(dataset)
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    fn find_warnings(&self) -> Vec<Warning> {
        let rows = self.len() as u64;
        let mut warnings = Vec::new();
        match self.sources.names.as_slice() {
            [only] => warnings.push(Warning::OneSource(only.clone())),
            names if names.len() as u64 == rows => warnings.push(Warning::SourcePerRow(rows)),
            _ => {}
        }
        let classes = self.schema.classes.len() as u64;
        if classes > 2 && classes * 2 > rows {
            warnings.push(Warning::ManyClasses { classes, rows });
        }
        warnings
    }
}

fn check_that_it_varies(target: &Filled, path: &Path, column: &str) -> Result<()> {
    let only = match &target.targets {
        Targets::Classes { classes: 1, .. } => target.classes[0].clone(),
        Targets::Values(values) if values.iter().all(|value| *value == values[0]) => {
            values[0].to_string()
        }
        _ => return Ok(()),
    };
    Err(DataError::OneClass { path: path.to_owned(), column: column.to_owned(), class: only })
}

/// Row numbers, kept only when they are not simply 1, 2, 3, ….
pub(crate) struct RowNumbers(pub(crate) Vec<u32>, bool);

impl RowNumbers {
    pub(crate) fn new(needed: bool, capacity: usize) -> Self {
        Self(Vec::with_capacity(if needed { capacity } else { 0 }), needed)
    }

    pub(crate) fn push(&mut self, row: u64) {
        if self.1 {
            // The survey refuses tables with more rows than 32 bits can number.
            self.0.push(row as u32);
        }
    }
}
