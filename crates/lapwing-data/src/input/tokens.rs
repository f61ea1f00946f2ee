//! Texts word by word, in their order, for networks that read.
//!
//! Number 0 is padding, 1 `<unk>`, any word that is not known; then come the words, those first that are in most texts.

use lapwing_sample::{
    Block, Exhibit, InputSpec, SampleError, Samples, Values as BlockValues, View,
};
use serde::{Deserialize, Serialize};

use super::Preprocessing;
use super::text::{columns, texts};
use super::vocabulary::Vocabulary;
use crate::dataset::Dataset;
use crate::error::DataError;
use crate::schema::Schema;
use crate::table::Table;
use crate::texts::Texts;

/// Version of the saved form.
const VERSION: u32 = 1;
/// Words of a row that are read, at most.
const MOST_TOKENS: usize = 256;
const PADDING: u32 = 0;

/// Turns texts into the numbers of their words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Saved")]
pub struct TokenEncoder {
    version: u32,
    schema: Schema,
    vocabulary: Vocabulary,
    /// Words that are read of a row: those of the longest in training, up to a bound.
    longest: usize,
}

/// As it stands in a file, not yet trusted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    version: u32,
    schema: Schema,
    vocabulary: Vocabulary,
    longest: usize,
}

impl TryFrom<Saved> for TokenEncoder {
    type Error = DataError;

    fn try_from(saved: Saved) -> Result<Self, DataError> {
        let Saved { version, schema, vocabulary, longest } = saved;
        let invalid = |what: &str| DataError::EncoderInvalid(what.to_owned());
        if version != VERSION {
            return Err(DataError::EncoderVersion { found: version, expected: VERSION });
        }
        schema.check()?;
        let count = texts(&schema).count();
        if count == 0 || count != schema.features().count() {
            return Err(invalid("its features are not columns of text"));
        }
        vocabulary.check().map_err(invalid)?;
        if !(1..=MOST_TOKENS).contains(&longest) || vocabulary.counts().1 > 0 {
            return Err(invalid("it reads no words, too many, or pairs of them"));
        }
        Ok(Self { version, schema, vocabulary, longest })
    }
}

impl TokenEncoder {
    /// The words it knows, from number 2 on.
    pub fn words(&self) -> &[String] {
        self.vocabulary.words()
    }
}

impl Preprocessing for TokenEncoder {
    const NAME: &'static str = "tokens";

    fn fit(dataset: &Dataset, rows: &[u32]) -> Result<Self, DataError> {
        let schema = dataset.schema.clone();
        let found = columns(&schema, &dataset.table)?;
        let words = |&row: &u32| found.iter().map(|texts| texts.of(row).len()).sum::<usize>();
        let longest = rows.iter().map(words).max().unwrap_or(0).clamp(1, MOST_TOKENS);
        let vocabulary = Vocabulary::of_words(&found, rows);
        Ok(Self { version: VERSION, vocabulary, longest, schema })
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn spec(&self) -> InputSpec {
        InputSpec::Tokens { longest: self.longest, vocabulary: self.vocabulary.len() + 1 }
    }

    fn bind<'a>(&'a self, table: &'a Table) -> Result<Box<dyn Samples + 'a>, DataError> {
        let columns = columns(&self.schema, table)?;
        let (tokens, ends) = self.vocabulary.tokens(&columns, table.len() as u32);
        Ok(Box::new(TokenRows { encoder: self, columns, tokens, ends }))
    }
}

/// The rows of a table as sequences of words.
#[derive(Debug)]
struct TokenRows<'a> {
    encoder: &'a TokenEncoder,
    columns: Vec<&'a Texts>,
    /// The words of each row, row after row.
    tokens: Vec<u32>,
    ends: Vec<usize>,
}

impl Samples for TokenRows<'_> {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn spec(&self) -> InputSpec {
        self.encoder.spec()
    }

    fn gather(&self, rows: &[u32], view: View) -> Result<Block, SampleError> {
        if view != View::Plain {
            return Err(SampleError::NoViews);
        }
        self.check_rows(rows)?;
        let longest = self.encoder.longest;
        let mut tokens = vec![PADDING; rows.len() * longest];
        let mut lengths = Vec::with_capacity(rows.len());
        for (&row, tokens) in rows.iter().zip(tokens.chunks_exact_mut(longest)) {
            let begin = row.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
            let found = &self.tokens[begin..self.ends[row as usize]];
            let found = &found[..found.len().min(longest)];
            tokens.iter_mut().zip(found).for_each(|(token, word)| *token = word + 1);
            lengths.push(found.len() as u32);
        }
        Ok(Block { values: BlockValues::Tokens(tokens), lengths: Some(lengths) })
    }

    fn exhibit(&self, row: u32) -> Result<Exhibit, SampleError> {
        self.check_rows(&[row])?;
        let shown: Vec<&str> = self.columns.iter().map(|texts| texts.shown(row)).collect();
        Ok(Exhibit::Text(shown.join("\n")))
    }
}
