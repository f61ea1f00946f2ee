//! The columns of a table as they are, for trees: one number each, and as many as a vector has.
//!
//! A number or a date stays what it is, and a missing one is NaN: trees neither mind scales nor wild values, and learn
//! where to send what is missing. A level becomes its place among the frequent levels of training, rare ones share a
//! place behind them; a level for which training had no such place is missing.

use lapwing_sample::{Block, Exhibit, InputSpec, SampleError, Samples, View};
use serde::{Deserialize, Serialize};

use super::table::Encoding;
use super::{EncodedRows, Encoder, EncoderConfig, Preprocessing, Unseen};
use crate::dataset::Dataset;
use crate::error::DataError;
use crate::schema::{ColumnSchema, Schema};
use crate::table::{Column, MISSING, Table, Values};

/// Columns with their levels, as [`Encoder`] finds them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Columns(Encoder);

impl Columns {
    /// The columns and what is known of them; trees see numbers as they are and levels by their place.
    pub fn encoder(&self) -> &Encoder {
        &self.0
    }
}

impl Preprocessing for Columns {
    const NAME: &'static str = "columns";

    fn fit(dataset: &Dataset, rows: &[u32]) -> Result<Self, DataError> {
        let encoder = Encoder::fit(dataset, rows, &EncoderConfig::default());
        super::table::check_encodings(dataset.schema.features(), encoder.columns())?;
        Ok(Self(encoder))
    }

    fn schema(&self) -> &Schema {
        self.0.schema()
    }

    fn unseen(&self, table: &Table) -> Vec<Unseen> {
        self.0.unseen(table)
    }

    fn spec(&self) -> InputSpec {
        InputSpec::Vector { width: self.0.columns().iter().map(numbers).sum() }
    }

    fn categorical(&self) -> Vec<bool> {
        let levels = |encoding: &Encoding| {
            vec![matches!(encoding, Encoding::Levels { .. }); numbers(encoding)]
        };
        self.0.columns().iter().flat_map(levels).collect()
    }

    fn numbers(&self) -> Vec<usize> {
        self.0.columns().iter().map(numbers).collect()
    }

    fn bind<'a>(&'a self, table: &'a Table) -> Result<Box<dyn Samples + 'a>, DataError> {
        // Finds and checks the columns, and shows rows.
        let encoded = self.0.bind(table)?;
        let columns = self.0.schema().features().zip(self.0.columns());
        let columns = columns
            .filter_map(|(schema, encoding)| Some((schema, encoding, table.column(&schema.name)?)))
            .flat_map(|(schema, encoding, column)| {
                (0..numbers(encoding)).map(move |at| Bound::new(schema, encoding, column, at))
            })
            .collect();
        Ok(Box::new(ColumnRows { encoded, columns }))
    }
}

/// How many numbers a column becomes.
fn numbers(encoding: &Encoding) -> usize {
    match encoding {
        Encoding::Vector { scales } => scales.len(),
        _ => 1,
    }
}

/// The rows of a table, a number per column.
#[derive(Debug)]
struct ColumnRows<'a> {
    encoded: EncodedRows<'a>,
    columns: Vec<Bound<'a>>,
}

#[derive(Debug)]
enum Bound<'a> {
    /// Stored numbers, and by how much further from zero they are stored than in training.
    Number { values: &'a [f32], shift: f64 },
    /// Codes, and the place of each among the levels of training; NaN where there is none.
    Levels { codes: &'a [u32], places: Vec<f32>, other: f32 },
    /// One of the numbers of a vector.
    Part { values: &'a [f32], width: usize, at: usize },
}

impl<'a> Bound<'a> {
    fn new(schema: &ColumnSchema, encoding: &Encoding, column: &'a Column, at: usize) -> Self {
        match (encoding, column.values()) {
            (Encoding::Levels { levels, other, .. }, Values::Codes { codes, levels: found }) => {
                let other = if *other { levels.len() as f32 } else { f32::NAN };
                let place = |name: &str| {
                    let place = levels.binary_search_by(|level| level.as_str().cmp(name));
                    place.map_or(other, |place| place as f32)
                };
                let places = found.iter().map(|name| place(name)).collect();
                Self::Levels { codes, places, other }
            }
            (_, Values::Numbers { values, storage, .. }) => {
                Self::Number { values, shift: storage.offset - schema.storage.offset }
            }
            (_, Values::Vectors { values, width }) => Self::Part { values, width: *width, at },
            // `EncodedRows` has refused these already.
            (_, Values::Codes { codes, .. }) => {
                Self::Levels { codes, places: Vec::new(), other: f32::NAN }
            }
            (_, Values::Texts(_) | Values::Pictures { .. } | Values::Series { .. }) => {
                Self::Levels { codes: &[], places: Vec::new(), other: f32::NAN }
            }
        }
    }

    fn value(&self, row: usize) -> f32 {
        match self {
            Self::Number { values, shift } => (f64::from(values[row]) + shift) as f32,
            Self::Part { values, width, at } => values[row * width + at],
            Self::Levels { codes, places, other } => match codes[row] {
                MISSING => f32::NAN,
                code => places.get(code as usize).copied().unwrap_or(*other),
            },
        }
    }
}

impl Samples for ColumnRows<'_> {
    fn len(&self) -> usize {
        self.encoded.len()
    }

    fn spec(&self) -> InputSpec {
        InputSpec::Vector { width: self.columns.len() }
    }

    fn gather(&self, rows: &[u32], view: View) -> Result<Block, SampleError> {
        if view != View::Plain {
            return Err(SampleError::NoViews);
        }
        self.check_rows(rows)?;
        let width = self.columns.len();
        let mut out = vec![0.0; rows.len() * width];
        for (place, column) in self.columns.iter().enumerate() {
            let cells = out[place.min(rows.len() * width)..].iter_mut().step_by(width.max(1));
            cells.zip(rows).for_each(|(cell, &row)| *cell = column.value(row as usize));
        }
        Ok(Block::of(out))
    }

    fn exhibit(&self, row: u32) -> Result<Exhibit, SampleError> {
        self.encoded.exhibit(row)
    }
}
