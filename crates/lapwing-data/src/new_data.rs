//! A table read after training, with the types that training fixed.

use std::collections::BTreeMap;
use std::path::Path;

use lapwing_sample::Targets;

use crate::dataset::{Dropped, RowNumbers, Sources};
use crate::error::DataError;
use crate::file::TableFile;
use crate::schema::Schema;
use crate::series::Channels;
use crate::table::{ColumnBuilder, MISSING, Table};
use crate::target::TargetBuilder;
use crate::value::{Lexicon, Value};

/// Name of the group of rows whose group is missing.
const NO_GROUP: &str = "(missing)";

/// What to read beside the features.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewDataOptions {
    /// Read the target too; rows without it are then dropped, and the column has to be there.
    pub target: bool,
    /// Read this column as names of groups; rows without a value form the group `(missing)`.
    pub group: Option<String>,
}

/// A table to predict or evaluate.
#[derive(Debug, Clone)]
pub struct NewData {
    /// The features.
    pub table: Table,
    /// The target, where asked for.
    pub target: Option<Targets>,
    /// Classes that training never saw, and how many rows have them; their code is
    /// [`UNSEEN_CLASS`](crate::UNSEEN_CLASS).
    pub unseen_classes: BTreeMap<String, u64>,
    /// The groups, where asked for.
    pub groups: Option<Sources>,
    /// Rows that were left out.
    pub dropped: Dropped,
}

impl NewData {
    /// Reads a table in one pass. Columns are matched by name, in any order; those that training did not use are skipped.
    /// A value of another type than in training is an error that says where it stands.
    pub fn read(
        path: impl AsRef<Path>,
        schema: &Schema,
        options: &NewDataOptions,
    ) -> Result<Self, DataError> {
        let file = TableFile::open(path)?;
        let lexicon = Lexicon::new(&schema.missing_tokens);
        let mut builders = schema
            .features()
            .map(|column| Ok(ColumnBuilder::new(column, usable(&file, &column.name)?, 0)))
            .collect::<Result<Vec<_>, DataError>>()?;
        let mut target = match schema.target().filter(|_| options.target) {
            Some(column) => {
                let position = usable(&file, &column.name)?;
                file.check_single(position)?;
                Some((
                    position,
                    TargetBuilder::like(schema.task, column, position, &schema.classes),
                ))
            }
            None => None,
        };
        let mut groups = match &options.group {
            Some(name) => {
                let position = usable(&file, name)?;
                file.check_single(position)?;
                Some(ColumnBuilder::names(name, position, 0))
            }
            None => None,
        };
        let channels = Channels::of(schema);
        let mut dropped = Dropped::default();
        let mut numbers = RowNumbers::new(target.is_some(), 0);
        let mut rows = 0;
        file.scan(|record| {
            if record.row >= u64::from(u32::MAX - 1) {
                return Err(DataError::TooManyRows {
                    path: file.path().to_owned(),
                    limit: u64::from(u32::MAX - 2),
                });
            }
            if let Some((position, target)) = &mut target {
                match lexicon.look(record.value(*position)) {
                    Value::Missing => {
                        dropped.target_missing += 1;
                        return Ok(());
                    }
                    Value::Infinite => {
                        dropped.target_infinite += 1;
                        return Ok(());
                    }
                    _ => {}
                }
                target.push(&lexicon, record)?;
            }
            for builder in builders.iter_mut().chain(&mut groups) {
                builder.push(&lexicon, record)?;
            }
            channels.check(&builders, record)?;
            numbers.push(record.row);
            rows += 1;
            Ok(())
        })?;
        match (rows, dropped.total()) {
            (0, 0) => {
                return Err(DataError::HeaderOnly { path: file.path().to_owned() });
            }
            (0, _) => {
                return Err(DataError::AllRowsDropped { path: file.path().to_owned(), dropped });
            }
            _ => {}
        }
        let (target, unseen_classes) = match target {
            Some((_, builder)) => {
                let target = builder.finish();
                (Some(target.targets), target.unseen)
            }
            None => (None, BTreeMap::new()),
        };
        let columns =
            builders.into_iter().map(ColumnBuilder::finish).collect::<Result<_, DataError>>()?;
        Ok(Self {
            table: Table::new(file.path().to_owned(), columns, rows, numbers.0),
            target,
            unseen_classes,
            groups: groups.map(named_groups),
            dropped,
        })
    }
}

/// Position of a column whose values can be read.
fn usable(file: &TableFile, column: &str) -> Result<usize, DataError> {
    let position = file.position(column)?;
    file.check_usable(position)?;
    Ok(position)
}

fn named_groups(builder: ColumnBuilder) -> Sources {
    let (mut codes, mut names) = builder.into_names();
    if codes.contains(&MISSING) {
        for code in &mut codes {
            if *code == MISSING {
                *code = names.len() as u32;
            }
        }
        names.push(NO_GROUP.to_owned());
    }
    Sources { codes, names }
}
