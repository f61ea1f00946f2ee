//! Texts and what stands beside them: words and word pairs that training knows, and numbers as in a table without text.

use lapwing_sample::{
    Block, Exhibit, InputSpec, SampleError, Samples, Values as BlockValues, View,
};
use serde::{Deserialize, Serialize};

use super::table::{self, EncoderConfig, Encoding, Unseen};
use super::vocabulary::Vocabulary;
use super::{EncodedRows, Preprocessing};
use crate::dataset::Dataset;
use crate::error::DataError;
use crate::schema::{ColumnSchema, Kind, Schema};
use crate::table::{Table, Values};
use crate::texts::Texts;

/// Version of the saved form.
const VERSION: u32 = 1;
/// Most columns of text.
const MOST_COLUMNS: usize = 100;

/// Turns texts into the words and word pairs in them, and the other features into numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SavedTextEncoder")]
pub struct TextEncoder {
    version: u32,
    schema: Schema,
    /// Of the features that are no texts.
    columns: Vec<Encoding>,
    vocabulary: Vocabulary,
}

/// An encoder as it stands in a file, not yet trusted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedTextEncoder {
    version: u32,
    schema: Schema,
    columns: Vec<Encoding>,
    vocabulary: Vocabulary,
}

pub(super) fn texts(schema: &Schema) -> impl Iterator<Item = &ColumnSchema> {
    schema.features().filter(|column| column.kind == Kind::Text)
}

fn others(schema: &Schema) -> impl Iterator<Item = &ColumnSchema> {
    schema.features().filter(|column| column.kind != Kind::Text)
}

impl TextEncoder {
    /// How many words and word pairs it knows.
    pub fn known(&self) -> (usize, usize) {
        self.vocabulary.counts()
    }

    /// The words it knows, from number 1 on.
    pub fn words(&self) -> &[String] {
        self.vocabulary.words()
    }

    /// The pairs of words that it knows, by the places of their words, with numbers behind those of the words.
    pub fn pairs(&self) -> &[[u32; 2]] {
        self.vocabulary.pairs()
    }

    /// The features that are no texts.
    pub fn encodings(&self) -> impl Iterator<Item = (&ColumnSchema, &Encoding)> {
        others(&self.schema).zip(&self.columns)
    }
}

/// The columns of text in a table.
pub(super) fn columns<'a>(schema: &Schema, table: &'a Table) -> Result<Vec<&'a Texts>, DataError> {
    texts(schema)
        .map(|column| {
            let missing = || DataError::MissingColumn {
                path: table.path().to_owned(),
                column: column.name.clone(),
                available: table.columns().iter().map(|column| column.name().to_owned()).collect(),
            };
            match table.column(&column.name).ok_or_else(missing)?.values() {
                Values::Texts(texts) => Ok(texts),
                _ => Err(DataError::EncoderInvalid(format!(
                    "column {:?} was not read as text",
                    column.name
                ))),
            }
        })
        .collect()
}

impl Preprocessing for TextEncoder {
    const NAME: &'static str = "text";

    fn fit(dataset: &Dataset, rows: &[u32]) -> Result<Self, DataError> {
        let schema = dataset.schema.clone();
        let found = columns(&schema, &dataset.table)?;
        Ok(Self {
            version: VERSION,
            columns: table::fit_columns(&dataset.table, rows, &EncoderConfig::default()),
            vocabulary: Vocabulary::fit(&found, rows),
            schema,
        })
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn unseen(&self, table: &Table) -> Vec<Unseen> {
        table::unseen(self.encodings(), table)
    }

    fn spec(&self) -> InputSpec {
        InputSpec::Text {
            longest: Vocabulary::longest(texts(&self.schema).count()),
            vocabulary: self.vocabulary.len(),
            width: self.columns.iter().map(Encoding::width).sum(),
        }
    }

    fn bind<'a>(&'a self, table: &'a Table) -> Result<Box<dyn Samples + 'a>, DataError> {
        let columns = columns(&self.schema, table)?;
        let (tokens, ends) = self.vocabulary.tokens(&columns, table.len() as u32);
        let beside = EncodedRows::new(self.encodings(), table)?;
        Ok(Box::new(TextRows { spec: self.spec(), columns, tokens, ends, beside }))
    }
}

impl TryFrom<SavedTextEncoder> for TextEncoder {
    type Error = DataError;

    fn try_from(saved: SavedTextEncoder) -> Result<Self, DataError> {
        let SavedTextEncoder { version, schema, columns, vocabulary } = saved;
        let invalid = |what: &str| DataError::EncoderInvalid(what.to_owned());
        if version != VERSION {
            return Err(DataError::EncoderVersion { found: version, expected: VERSION });
        }
        schema.check()?;
        if !(1..=MOST_COLUMNS).contains(&texts(&schema).count()) {
            return Err(invalid("there is no column of text, or there are more than 100"));
        }
        table::check_encodings(others(&schema), &columns)?;
        vocabulary.check().map_err(invalid)?;
        Ok(Self { version, schema, columns, vocabulary })
    }
}

/// The rows of a table as texts with numbers beside them.
#[derive(Debug)]
struct TextRows<'a> {
    spec: InputSpec,
    columns: Vec<&'a Texts>,
    /// What is found in each row, row after row.
    tokens: Vec<u32>,
    ends: Vec<usize>,
    beside: EncodedRows<'a>,
}

impl Samples for TextRows<'_> {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn spec(&self) -> InputSpec {
        self.spec
    }

    fn gather(&self, rows: &[u32], view: View) -> Result<Block, SampleError> {
        let numbers = self.beside.gather(rows, view)?.into_floats().unwrap_or_default();
        let mut tokens = Vec::new();
        let mut lengths = Vec::with_capacity(rows.len());
        for &row in rows {
            let begin = row.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
            let found = &self.tokens[begin..self.ends[row as usize]];
            tokens.extend_from_slice(found);
            lengths.push(found.len() as u32);
        }
        Ok(Block { values: BlockValues::Texts { tokens, numbers }, lengths: Some(lengths) })
    }

    fn exhibit(&self, row: u32) -> Result<Exhibit, SampleError> {
        self.check_rows(&[row])?;
        let shown: Vec<&str> = self.columns.iter().map(|texts| texts.shown(row)).collect();
        Ok(Exhibit::Text(shown.join("\n")))
    }
}
