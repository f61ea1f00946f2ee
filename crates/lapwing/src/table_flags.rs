//! What is said of a table on the command line; `train` and `compare` share it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lapwing_data::Kind;
use lapwing_run::{BadRow, Choice, Settings};
use lapwing_sample::Change;
use lapwing_train::Task;

use crate::words;

#[derive(Debug, Args)]
#[command(next_help_heading = "Table")]
pub(crate) struct TableFlags {
    /// The column to predict
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,

    /// The column that says where a row came from
    #[arg(long, value_name = "COLUMN")]
    source: Option<String>,

    /// The column that says what a row is an answer to, where several sources answer on the same item: items stay whole in
    /// every split, answers on them are weighed against each other, and items.csv has what they amount to
    #[arg(long, value_name = "COLUMN")]
    item: Option<String>,

    /// Do not look for items where no column names them (rows with the same inputs, from several sources)
    #[arg(long, conflicts_with = "item")]
    no_items: bool,

    /// Learn from these columns and no other; give the flag once per column where names hold commas
    #[arg(long, value_name = "A,B")]
    features: Option<Vec<String>>,

    /// Do not learn from these columns; likewise
    #[arg(long, value_name = "A,B")]
    ignore: Option<Vec<String>>,

    /// Learn from these columns of free text, by their words and word pairs; other features stand beside them
    #[arg(long, value_name = "A,B")]
    text: Option<Vec<String>>,

    /// Learn from these channels of series: columns of lists of numbers (Parquet), or a pattern such as 'ecg_*' for
    /// columns that are the moments of a channel; they are learnt from alone
    #[arg(long, value_name = "A,B")]
    series: Option<Vec<String>>,

    /// The column with paths of pictures (PNG, JPEG, GIF, WebP), relative to the table; they are learnt from alone
    #[arg(long, value_name = "COLUMN")]
    image: Option<String>,

    /// The column that says when a row was taken, a date or a number: since when is a source bad? It is not learnt from
    /// unless it is among --features
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,

    /// Pixels of a side that pictures are stretched to [default: 64 where half of them are that large, else 32]
    #[arg(long, value_name = "PIXELS")]
    image_size: Option<usize>,

    /// Megabytes of pictures to hold; larger sets are read from their files batch by batch [default: 1073]
    #[arg(long, value_name = "MB")]
    image_memory: Option<u64>,

    /// What becomes of pictures at random while training: flip, crop, or both
    #[arg(long, value_name = "CHANGE,…", value_delimiter = ',', num_args = 0..=1, default_missing_value = "flip,crop")]
    augment: Option<Vec<Change>>,

    /// A row whose picture cannot be read is an error, or left out and counted [default: fail]
    #[arg(long, value_name = "WHAT", value_enum)]
    on_bad_row: Option<BadRowWord>,

    /// What columns hold, where it is inferred wrongly: numeric, categorical, date or text
    #[arg(long, value_name = "A=TYPE,…", value_parser = typed)]
    types: Option<Vec<Types>>,

    /// What is learnt [default: auto]
    #[arg(long, value_parser = words::task())]
    task: Option<Choice<Task>>,

    /// A table to test on
    #[arg(long, value_name = "FILE", conflicts_with = "test_fraction")]
    pub(crate) test: Option<PathBuf>,

    /// Share of rows to test on [default: 0.2, or 0 with --test]
    #[arg(long, value_name = "SHARE")]
    test_fraction: Option<f64>,

    /// Share of rows that decide when to stop [default: 0.1]
    #[arg(long, value_name = "SHARE")]
    validation_fraction: Option<f64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum BadRowWord {
    /// It is an error that names the row
    Fail,
    /// It is left out, and counted
    Skip,
}

impl From<BadRowWord> for BadRow {
    fn from(word: BadRowWord) -> Self {
        match word {
            BadRowWord::Fail => Self::Fail,
            BadRowWord::Skip => Self::Skip,
        }
    }
}

/// Columns with their types.
type Types = Vec<(String, Kind)>;

/// `a=date,b=numeric`. A comma belongs to the name where what stands before it has no type.
fn typed(text: &str) -> Result<Types, String> {
    let mut types = Types::new();
    let mut begin = 0;
    for end in text.match_indices(',').map(|(at, _)| at).chain([text.len()]) {
        let part = &text[begin..end];
        let (column, kind) = match part.rsplit_once('=') {
            None if end < text.len() => continue,
            None => return Err(format!("expected COLUMN=TYPE, found {part:?}")),
            Some(pair) => pair,
        };
        match kind.parse::<Kind>() {
            Ok(kind) => types.push((column.to_owned(), kind)),
            Err(error) => return Err(error.to_string()),
        }
        begin = end + 1;
    }
    Ok(types)
}

impl TableFlags {
    /// The flags as settings; nothing else is set.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            target: self.target.clone(),
            source: self.source.clone(),
            item: self.item.clone(),
            find_items: self.no_items.then_some(false),
            features: self.features.clone(),
            ignore: self.ignore.clone(),
            text: self.text.clone(),
            series: self.series.clone(),
            time: self.time.clone(),
            image_size: self.image_size,
            image_memory: self.image_memory,
            augment: self.augment.clone(),
            on_bad_row: self.on_bad_row.map(BadRow::from),
            types: self.types(),
            task: self.task,
            test: self.test.clone(),
            test_fraction: self.test_fraction,
            validation_fraction: self.validation_fraction,
            ..Settings::default()
        }
    }

    /// What columns hold, as far as it is said.
    fn types(&self) -> Option<BTreeMap<String, Kind>> {
        let types = self.types.iter().flatten().flatten().cloned();
        let images = self.image.iter().map(|column| (column.clone(), Kind::Image));
        Some(types.chain(images).collect()).filter(|types: &BTreeMap<_, _>| !types.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_given_as_pairs() {
        let pairs = |text: &str| typed(text).unwrap();
        assert_eq!(pairs("a=b=date"), [("a=b".to_owned(), Kind::Date)]);
        let (name, other) = ("dose, mg".to_owned(), "b".to_owned());
        let expected = [(name, Kind::Numeric), (other, Kind::Date)];
        assert_eq!(pairs("dose, mg=numeric,b=date"), expected);
        for wrong in ["a", "a=colour", "a=date,b", "a=date,", ""] {
            assert!(typed(wrong).is_err(), "{wrong}");
        }
    }
}
