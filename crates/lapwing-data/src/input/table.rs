//! Preprocessing that is fitted on training rows and saved with the model.
//!
//! Numbers and dates become (x − mean) / std, bounded: values further from the median than three times the 0.1 % or
//! 99.9 % quantile is are first moved to that fence, so that a few wild values (an average household of 1,243 persons)
//! do not flatten the rest, and the result is kept within ±10. A missing number becomes 0, the mean; where training rows
//! had missing values, a second feature says so.
//!
//! The numbers of a vector become a feature each, (x − mean) / std within ±10.
//!
//! Levels become one feature each. Levels with few training rows share an "other" feature, which also takes levels that
//! training never saw; missing values have a feature of their own where training rows had some. A level or a missing
//! value for which training filled no such feature becomes the training shares of all features of the column, which
//! says nothing about the row and, like any other value, sums to 1.

use std::fmt;

use lapwing_sample::{InputSpec, Samples, Scale};
use serde::{Deserialize, Serialize};

use super::{EncodedRows, Preprocessing};
use crate::dataset::Dataset;
use crate::error::{DataError, shortened};
use crate::schema::{ColumnSchema, Kind, Schema};
use crate::table::{Column, MISSING, Table, Values};

/// Version of the saved form. The first also held the scale of the target, which is the model's to know.
const VERSION: u32 = 2;
const OLDEST: u32 = 1;
/// Share of values on either side that sets a fence.
const FENCE_QUANTILE: f64 = 0.001;
/// How much further from the median than that quantile the fence is. A normal value is then within 9 standard deviations.
const FENCE_FACTOR: f64 = 3.0;
/// Most levels without a feature of their own that are listed, so that new ones can be told from them.
const MAX_RARE: usize = 10_000;
/// Values that training never saw of which is told.
const EXAMPLES: usize = 3;

/// When a level is frequent enough for a feature of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EncoderConfig {
    /// Fewest training rows: with fewer, a network learns rows rather than the level.
    pub min_level_rows: u64,
    /// Smallest share of training rows, so that a long table does not get hundreds of features that are almost never 1.
    pub min_level_share: f64,
    /// Most levels of a column with a feature of their own, the most frequent first.
    pub max_levels: usize,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self { min_level_rows: 5, min_level_share: 0.001, max_levels: 255 }
    }
}

/// Turns rows of a table into vectors of a fixed width.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SavedEncoder")]
pub struct Encoder {
    version: u32,
    schema: Schema,
    columns: Vec<Encoding>,
}

/// An encoder as it stands in a file, not yet trusted.
#[derive(Deserialize)]
struct SavedEncoder {
    version: u32,
    schema: Schema,
    columns: Vec<Encoding>,
}

/// How one column is encoded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Numbers and dates.
    Number {
        /// Mean and standard deviation within the fences.
        scale: Scale,
        /// The lower fence.
        low: Option<f64>,
        /// The upper fence.
        high: Option<f64>,
        /// Whether a second feature says that the value is missing.
        indicator: bool,
    },
    /// Levels.
    Levels {
        /// Those with a feature of their own, sorted.
        levels: Vec<String>,
        /// Whether there is a feature for others.
        other: bool,
        /// Whether there is a feature for missing values, the last one.
        missing: bool,
        /// Share of training rows of every feature.
        shares: Vec<f32>,
        /// The levels of training that have no feature of their own; not kept where they are too many to list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rare: Option<Vec<String>>,
    },
    /// A list of numbers.
    Vector {
        /// Of each number.
        scales: Vec<Scale>,
    },
}

/// Values of a column that training never saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unseen {
    /// The column.
    pub column: String,
    /// Rows that have such a value.
    pub rows: u64,
    /// Rows in all.
    pub of: u64,
    /// The first few of the values.
    pub examples: Vec<String>,
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let examples: Vec<String> =
            self.examples.iter().map(|value| format!("{:?}", shortened(value))).collect();
        write!(
            f,
            "column {:?}: {} of {} values were not in training ({})",
            self.column,
            self.rows,
            self.of,
            examples.join(", ")
        )
    }
}

impl Unseen {
    /// Takes in what was found in the rows behind these.
    pub fn extend(&mut self, later: Self) {
        self.rows += later.rows;
        self.of += later.of;
        for example in later.examples {
            if self.examples.len() < EXAMPLES && !self.examples.contains(&example) {
                self.examples.push(example);
            }
        }
    }
}

impl Encoder {
    /// Fits on the training rows, and on nothing else.
    pub fn fit(dataset: &Dataset, rows: &[u32], config: &EncoderConfig) -> Self {
        let columns = fit_columns(&dataset.table, rows, config);
        Self { version: VERSION, schema: dataset.schema.clone(), columns }
    }

    /// The types with which a table has to be read for this encoder.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Features per row.
    pub fn width(&self) -> usize {
        self.columns.iter().map(Encoding::width).sum()
    }

    /// How the columns are encoded, in the order of the features.
    pub fn columns(&self) -> &[Encoding] {
        &self.columns
    }

    /// One name per feature: `age`, `age (missing)`, `colour=red`, `colour=(other)`, `colour=(missing)`.
    pub fn feature_names(&self) -> Vec<String> {
        let mut names = Vec::with_capacity(self.width());
        for (column, encoding) in self.schema.features().zip(&self.columns) {
            let name = &column.name;
            match encoding {
                Encoding::Number { indicator, .. } => {
                    names.push(name.clone());
                    names.extend(indicator.then(|| format!("{name} (missing)")));
                }
                Encoding::Levels { levels, other, missing, .. } => {
                    names.extend(levels.iter().map(|level| format!("{name}={level}")));
                    names.extend(other.then(|| format!("{name}=(other)")));
                    names.extend(missing.then(|| format!("{name}=(missing)")));
                }
                Encoding::Vector { scales } => {
                    names.extend((0..scales.len()).map(|at| format!("{name}[{at}]")));
                }
            }
        }
        names
    }

    /// The columns of a table that have values which training never saw: all that the model can say of them is what it
    /// says of rare values. A value that is missing is not among them.
    pub fn unseen(&self, table: &Table) -> Vec<Unseen> {
        unseen(self.schema.features().zip(&self.columns), table)
    }

    /// Finds the columns of a table and prepares to encode its rows.
    pub fn bind<'a>(&'a self, table: &'a Table) -> Result<EncodedRows<'a>, DataError> {
        EncodedRows::new(self.schema.features().zip(&self.columns), table)
    }
}

impl Preprocessing for Encoder {
    const NAME: &'static str = "table";

    fn fit(dataset: &Dataset, rows: &[u32]) -> Result<Self, DataError> {
        Ok(Self::fit(dataset, rows, &EncoderConfig::default()))
    }

    fn schema(&self) -> &Schema {
        self.schema()
    }

    fn unseen(&self, table: &Table) -> Vec<Unseen> {
        self.unseen(table)
    }

    fn spec(&self) -> InputSpec {
        InputSpec::Vector { width: self.width() }
    }

    fn bind<'a>(&'a self, table: &'a Table) -> Result<Box<dyn Samples + 'a>, DataError> {
        Ok(Box::new(self.bind(table)?))
    }
}

/// Fits an encoding for every column that has one: all but texts and pictures.
pub(super) fn fit_columns(table: &Table, rows: &[u32], config: &EncoderConfig) -> Vec<Encoding> {
    let fit = |column: &Column| match column.values() {
        Values::Numbers { values, storage, .. } => Some(fit_number(values, storage.offset, rows)),
        Values::Codes { codes, levels } => {
            let names: Vec<&str> = levels.iter().map(AsRef::as_ref).collect();
            Some(fit_levels(codes, &names, rows, config))
        }
        Values::Vectors { values, width } => {
            let of = |at: usize| rows.iter().map(move |&row| values[row as usize * width + at]);
            let scale = |at| Scale::of(of(at).map(f64::from));
            Some(Encoding::Vector { scales: (0..*width).map(scale).collect() })
        }
        Values::Texts(_) | Values::Pictures { .. } | Values::Series { .. } => None,
    };
    table.columns().iter().filter_map(fit).collect()
}

/// See [`Encoder::unseen`].
pub(super) fn unseen<'a>(
    encoded: impl Iterator<Item = (&'a ColumnSchema, &'a Encoding)>,
    table: &Table,
) -> Vec<Unseen> {
    encoded
        .filter_map(|(schema, encoding)| {
            let Encoding::Levels { levels, rare: Some(rare), .. } = encoding else {
                return None;
            };
            let Values::Codes { codes, levels: found } = table.column(&schema.name)?.values()
            else {
                return None;
            };
            let is_new = |level: &str| {
                let is = |known: &[String]| known.binary_search_by(|k| k.as_str().cmp(level));
                is(levels).is_err() && is(rare).is_err()
            };
            let new: Vec<bool> = found.iter().map(|level| is_new(level)).collect();
            let is_unseen =
                |code: &u32| *code != MISSING && *new.get(*code as usize).unwrap_or(&true);
            let rows = codes.iter().filter(|code| is_unseen(code)).count() as u64;
            let examples = found.iter().zip(&new).filter(|(_, new)| **new);
            (rows > 0).then(|| Unseen {
                column: schema.name.clone(),
                rows,
                of: codes.len() as u64,
                examples: examples.take(EXAMPLES).map(|(level, _)| level.to_string()).collect(),
            })
        })
        .collect()
}

fn fit_number(values: &[f32], offset: f64, rows: &[u32]) -> Encoding {
    let mut present: Vec<f32> =
        rows.iter().map(|&row| values[row as usize]).filter(|value| !value.is_nan()).collect();
    let indicator = present.len() < rows.len();
    let mut quantile = |share: f64| {
        let last = present.len().checked_sub(1)?;
        let exact = share * last as f64;
        // Rounded outwards: in a short column the fences hang on its extremes.
        let index = if share < 0.5 { exact.floor() } else { exact.ceil() } as usize;
        Some(f64::from(*present.select_nth_unstable_by(index, f32::total_cmp).1) + offset)
    };
    let (low, median, high) =
        (quantile(FENCE_QUANTILE), quantile(0.5), quantile(1.0 - FENCE_QUANTILE));
    // Where that quantile is the median itself, the other values are rare but not wild: there is no fence on that side.
    let fence = |edge: Option<f64>| {
        let (edge, median) = (edge?, median?);
        (edge != median).then_some(median + FENCE_FACTOR * (edge - median))
    };
    let (low, high) = (fence(low), fence(high));
    // In the order of the rows, so that rounding does not depend on how the quantiles were found.
    let fenced =
        rows.iter().map(|&row| values[row as usize]).filter(|value| !value.is_nan()).map(|value| {
            (f64::from(value) + offset)
                .max(low.unwrap_or(f64::NEG_INFINITY))
                .min(high.unwrap_or(f64::INFINITY))
        });
    Encoding::Number { scale: Scale::of(fenced), low, high, indicator }
}

fn fit_levels(codes: &[u32], names: &[&str], rows: &[u32], config: &EncoderConfig) -> Encoding {
    let mut counts = vec![0_u64; names.len()];
    let (mut missing, mut other) = (0_u64, 0_u64);
    for &row in rows {
        match codes[row as usize] {
            MISSING => missing += 1,
            code => *counts.get_mut(code as usize).unwrap_or(&mut other) += 1,
        }
    }
    let least = config
        .min_level_rows
        .max((config.min_level_share * rows.len() as f64).ceil() as u64)
        .max(1);
    let mut frequent: Vec<usize> = (0..names.len()).filter(|&code| counts[code] >= least).collect();
    frequent.sort_by_key(|&code| (std::cmp::Reverse(counts[code]), names[code]));
    frequent.truncate(config.max_levels);
    frequent.sort_by_key(|&code| names[code]);
    let beyond = other;
    other += counts.iter().sum::<u64>() - frequent.iter().map(|&code| counts[code]).sum::<u64>();
    let mut is_frequent = vec![false; names.len()];
    frequent.iter().for_each(|&code| is_frequent[code] = true);
    let is_rare = |code: &usize| counts[*code] > 0 && !is_frequent[*code];
    let mut rare: Vec<String> = (0..names.len())
        .filter(is_rare)
        .take(MAX_RARE + 1)
        .map(|code| names[code].to_owned())
        .collect();
    rare.sort_unstable();

    let features = frequent.iter().map(|&code| counts[code]);
    let features =
        features.chain((other > 0).then_some(other)).chain((missing > 0).then_some(missing));
    Encoding::Levels {
        levels: frequent.iter().map(|&code| names[code].to_owned()).collect(),
        other: other > 0,
        missing: missing > 0,
        shares: features.map(|count| (count as f64 / rows.len() as f64) as f32).collect(),
        rare: (beyond == 0 && rare.len() <= MAX_RARE).then_some(rare),
    }
}

impl Encoding {
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Number { indicator, .. } => 1 + usize::from(*indicator),
            Self::Levels { levels, other, missing, .. } => {
                levels.len() + usize::from(*other) + usize::from(*missing)
            }
            Self::Vector { scales } => scales.len(),
        }
    }

    fn check(&self, column: &ColumnSchema) -> Result<(), DataError> {
        let (name, kind) = (&column.name, column.kind);
        let sound = match self {
            Self::Vector { scales } => {
                kind == Kind::Vector
                    && scales.len() == column.storage.width
                    && scales.iter().all(Scale::is_sound)
            }
            Self::Number { scale, low, high, .. } => {
                matches!(kind, Kind::Numeric | Kind::Date)
                    && scale.is_sound()
                    && low.is_none_or(f64::is_finite)
                    && high.is_none_or(f64::is_finite)
                    && low.zip(*high).is_none_or(|(low, high)| low <= high)
            }
            Self::Levels { levels, shares, rare, .. } => {
                matches!(kind, Kind::Categorical | Kind::Text)
                    && levels.is_sorted_by(|a, b| a < b)
                    && rare.as_ref().is_none_or(|rare| rare.is_sorted_by(|a, b| a < b))
                    && shares.len() == self.width()
                    && shares.iter().all(|share| (0.0..=1.0).contains(share))
            }
        };
        if sound {
            Ok(())
        } else {
            Err(DataError::EncoderInvalid(format!("the encoding of column {name:?}")))
        }
    }
}

impl TryFrom<SavedEncoder> for Encoder {
    type Error = DataError;

    fn try_from(saved: SavedEncoder) -> Result<Self, DataError> {
        let SavedEncoder { version, schema, columns } = saved;
        if !(OLDEST..=VERSION).contains(&version) {
            return Err(DataError::EncoderVersion { found: version, expected: VERSION });
        }
        schema.check()?;
        if columns.is_empty() {
            return Err(DataError::EncoderInvalid("there is no feature column".to_owned()));
        }
        check_encodings(schema.features(), &columns)?;
        Ok(Self { version: VERSION, schema, columns })
    }
}

/// That there is a sound encoding for each of these columns.
pub(super) fn check_encodings<'a>(
    columns: impl Iterator<Item = &'a ColumnSchema>,
    encodings: &[Encoding],
) -> Result<(), DataError> {
    let columns: Vec<&ColumnSchema> = columns.collect();
    if columns.len() != encodings.len() {
        let what = "there is not one encoding for every feature column";
        return Err(DataError::EncoderInvalid(what.to_owned()));
    }
    columns.iter().zip(encodings).try_for_each(|(column, encoding)| encoding.check(column))
}
