//! A table read after training part by part, so that it need not fit into memory.

use std::io::Read;
use std::path::Path;

use crate::error::DataError;
use crate::picture;
use crate::records::Records;
use crate::schema::{ColumnSchema, Kind, Schema};
use crate::series::{Channels, MOST_MOMENTS};
use crate::table::{ColumnBuilder, Table};
use crate::value::Lexicon;

/// Values of a part: as many rows as have so many, within bounds.
const PART: usize = 1 << 20;
const MOST_ROWS: usize = 1 << 14;
const FEWEST_ROWS: usize = 1 << 6;

/// The rows of a table to predict, in the order of the file.
///
/// Columns are matched by name, in any order; those that training did not use are skipped. A value of another type than in
/// training is an error that says where it stands, once it is reached.
pub struct NewRows<'a> {
    records: Records,
    schema: &'a Schema,
    /// Where the features are.
    positions: Vec<usize>,
}

/// Rows that follow each other.
#[derive(Debug)]
pub struct Part {
    /// Their features.
    pub table: Table,
    /// Data row of the first of them, counted from 1.
    pub first: u64,
    /// How much has been read, in the unit of [`NewRows::length`].
    pub read: u64,
}

impl<'a> NewRows<'a> {
    /// Opens a CSV, TSV (also compressed) or Parquet file and finds the columns of `schema`.
    pub fn open(path: impl AsRef<Path>, schema: &'a Schema) -> Result<Self, DataError> {
        Self::new(Records::open(path)?, schema)
    }

    /// Reads a CSV from a stream, such as standard input; `name` stands for it in messages.
    pub fn from_reader(
        name: &str,
        reader: impl Read + 'static,
        schema: &'a Schema,
    ) -> Result<Self, DataError> {
        Self::new(Records::from_reader(name, reader)?, schema)
    }

    fn new(records: Records, schema: &'a Schema) -> Result<Self, DataError> {
        let positions = schema.features().map(|column| records.usable(&column.name));
        let positions = positions.collect::<Result<_, _>>()?;
        Ok(Self { records, schema, positions })
    }

    /// How long the table is: bytes of a text file, rows of a Parquet file, `None` where nobody knows in advance.
    pub fn length(&self) -> Option<u64> {
        self.records.length()
    }

    /// Calls `visit` with one part after another, until it returns an error.
    ///
    /// # Errors
    /// What `visit` returned; or where the table is not what it should be, with file, line and column. A table without
    /// rows is an error, too.
    pub fn each_part<E: From<DataError>>(
        self,
        mut visit: impl FnMut(&Part) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { records, schema, positions } = self;
        let path = records.path().to_owned();
        let values = |column: &ColumnSchema| match column.kind {
            Kind::Image => picture::numbers(column.storage.width.max(picture::SIDES[0])),
            Kind::Series => column.storage.width.min(MOST_MOMENTS),
            _ => 1,
        };
        let values: usize = schema.features().map(values).sum();
        let channels = Channels::of(schema);
        let rows = (PART / values.max(1)).clamp(FEWEST_ROWS, MOST_ROWS);
        let lexicon = Lexicon::new(&schema.missing_tokens);
        let start = || -> Vec<ColumnBuilder> {
            let columns = schema.features().zip(&positions);
            columns.map(|(column, &at)| ColumnBuilder::new(column, at, rows)).collect()
        };
        let part = |builders: &mut Vec<ColumnBuilder>, first, len, read| {
            let built = std::mem::replace(builders, start());
            let columns = built.into_iter().map(ColumnBuilder::finish).collect::<Result<_, _>>()?;
            let table = Table::new(path.clone(), columns, len, Vec::new());
            Ok::<Part, DataError>(Part { table, first, read })
        };
        let mut builders = start();
        let (mut first, mut len, mut read) = (1, 0, 0);
        records.scan(|record| {
            if len == rows {
                visit(&part(&mut builders, first, len, record.read)?)?;
                (first, len) = (record.row, 0);
            }
            for builder in &mut builders {
                builder.push(&lexicon, record)?;
            }
            channels.check(&builders, record)?;
            (len, read) = (len + 1, record.read);
            Ok::<(), E>(())
        })?;
        if len == 0 {
            return Err(DataError::HeaderOnly { path }.into());
        }
        visit(&part(&mut builders, first, len, read)?)
    }
}
