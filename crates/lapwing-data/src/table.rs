//! The columns of a table in memory: four bytes per value.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexSet;

use crate::date;
use crate::error::{DataError, shortened};
use crate::file::Record;
use crate::gallery::{Gallery, GalleryBuilder};
use crate::schema::{ColumnSchema, Kind, Storage};
use crate::series::MOST_MOMENTS;
use crate::texts::Texts;
use crate::value::{Lexicon, Raw, Value, write_raw};

/// Code of a missing categorical value.
pub const MISSING: u32 = u32::MAX;
/// Code of a level beyond the [`MAX_LEVELS`] that are kept.
pub const BEYOND: u32 = u32::MAX - 1;
/// Levels kept by name in a categorical feature; so many are encoded as "other" anyway, and a column that is different
/// in every row would otherwise be held in memory as text.
pub const MAX_LEVELS: usize = 65_536;

/// The feature columns of a table, without the rows that were dropped.
#[derive(Debug, Clone)]
pub struct Table {
    path: PathBuf,
    columns: Vec<Column>,
    len: usize,
    /// Data row in the file of every row; empty when no row was dropped.
    numbers: Vec<u32>,
}

/// One column.
#[derive(Debug, Clone)]
pub struct Column {
    name: String,
    values: Values,
}

#[derive(Debug, Clone)]
pub(crate) enum Values {
    /// Numbers and dates less their offset; missing is NaN.
    Numbers { values: Vec<f32>, storage: Storage, is_date: bool },
    /// Indices into the levels, [`MISSING`] or [`BEYOND`].
    Codes { codes: Vec<u32>, levels: Arc<IndexSet<Box<str>>> },
    /// Free text.
    Texts(Texts),
    /// Equally many numbers per row, row after row.
    Vectors { values: Vec<f32>, width: usize },
    /// More or fewer numbers per row, row after row, and where those of each row end.
    Series { values: Vec<f32>, ends: Vec<usize> },
    /// Pictures.
    Pictures(Gallery),
}

/// A column of 32-bit words: what they stand for.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) name: String,
    pub(crate) kind: LayoutKind,
}

/// What the words of a column stand for; see [`Values`].
#[derive(Debug, Clone)]
pub(crate) enum LayoutKind {
    Numbers { storage: Storage, is_date: bool },
    Codes { levels: Arc<IndexSet<Box<str>>> },
    Vectors { width: usize },
}

impl Layout {
    /// Words per row.
    pub(crate) fn words(&self) -> usize {
        match self.kind {
            LayoutKind::Numbers { .. } | LayoutKind::Codes { .. } => 1,
            LayoutKind::Vectors { width } => width,
        }
    }
}

impl Table {
    pub(crate) fn new(path: PathBuf, columns: Vec<Column>, len: usize, numbers: Vec<u32>) -> Self {
        Self { path, columns, len, numbers }
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The file it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The columns, in the order of the file.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Data row in the file, counted from 1, of a row of this table.
    pub fn row_number(&self, row: u32) -> u64 {
        match self.numbers.get(row as usize) {
            Some(&number) => number.into(),
            None => u64::from(row) + 1,
        }
    }

    /// A value as a person would write it: empty when missing or out of range. Numbers are those kept in 32 bits; for
    /// the exact text of a few rows see [`TableFile::rows`](crate::TableFile::rows).
    pub fn display(&self, row: u32, column: &str) -> String {
        self.column(column).map_or_else(String::new, |column| column.display(row))
    }
}

impl Column {
    /// A column of that layout from its words, row after row.
    pub(crate) fn of(layout: &Layout, words: Vec<u32>) -> Self {
        let floats = |words: Vec<u32>| words.into_iter().map(f32::from_bits).collect();
        let values = match &layout.kind {
            &LayoutKind::Numbers { storage, is_date } => {
                Values::Numbers { values: floats(words), storage, is_date }
            }
            LayoutKind::Codes { levels } => Values::Codes { codes: words, levels: levels.clone() },
            &LayoutKind::Vectors { width } => Values::Vectors { values: floats(words), width },
        };
        Self { name: layout.name.clone(), values }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Of a column of pictures: pixels of a side, bytes of all of them, and whether these are in memory.
    pub fn pictures(&self) -> Option<(usize, u64, bool)> {
        let Values::Pictures(gallery) = &self.values else { return None };
        let (bytes, held) = gallery.size();
        Some((gallery.side(), bytes, held))
    }

    pub(crate) fn values(&self) -> &Values {
        &self.values
    }

    /// How many levels it has, if it has levels and all of them were kept.
    pub(crate) fn level_count(&self) -> Option<u64> {
        match &self.values {
            Values::Codes { levels, .. } if levels.len() < MAX_LEVELS => Some(levels.len() as u64),
            _ => None,
        }
    }

    /// Whether the value of a row is missing.
    pub fn is_missing(&self, row: u32) -> bool {
        match &self.values {
            Values::Numbers { values, .. } => values[row as usize].is_nan(),
            Values::Codes { codes, .. } => codes[row as usize] == MISSING,
            Values::Texts(texts) => texts.is_blank(row),
            Values::Vectors { .. } | Values::Series { .. } => false,
            Values::Pictures(_) => false,
        }
    }

    /// Numbers (dates as seconds since 1970) of some rows, NaN where one is missing; `None` for categories
    /// and texts.
    pub fn numbers(&self, rows: &[u32]) -> Option<Vec<f64>> {
        let Values::Numbers { values, storage, .. } = &self.values else { return None };
        let number = |&row: &u32| (f64::from(values[row as usize]) + storage.offset) * storage.unit;
        Some(rows.iter().map(number).collect())
    }

    /// Names of the levels and their codes in some rows, nothing where one is missing or has no name; `None` for
    /// numbers and texts.
    pub fn levels(&self, rows: &[u32]) -> Option<(Vec<String>, Vec<Option<u32>>)> {
        let Values::Codes { codes, levels } = &self.values else { return None };
        let code = |&row: &u32| Some(codes[row as usize]).filter(|code| *code < BEYOND);
        let names = levels.iter().map(ToString::to_string).collect();
        Some((names, rows.iter().map(code).collect()))
    }

    pub(crate) fn display(&self, row: u32) -> String {
        match &self.values {
            Values::Numbers { values, storage, is_date } => match values.get(row as usize) {
                Some(value) if !value.is_nan() => display_number(*value, storage, *is_date),
                _ => String::new(),
            },
            Values::Codes { codes, levels } => match codes.get(row as usize) {
                Some(&BEYOND) => "(other)".to_owned(),
                Some(&code) => {
                    levels.get_index(code as usize).map_or_else(String::new, ToString::to_string)
                }
                None => String::new(),
            },
            Values::Texts(texts) => texts.shown(row).to_owned(),
            Values::Vectors { values, width } => {
                let mut text = String::new();
                if let Some(numbers) = values.get(row as usize * width..(row as usize + 1) * width)
                {
                    write_raw(Raw::List(numbers), &mut text);
                }
                text
            }
            Values::Series { values, ends } => {
                let mut text = String::new();
                if let Some(numbers) = series_of(values, ends, row) {
                    write_raw(Raw::List(numbers), &mut text);
                }
                text
            }
            Values::Pictures(gallery) => gallery.path(row).to_owned(),
        }
    }
}

/// The series of a row.
pub(crate) fn series_of<'a>(values: &'a [f32], ends: &[usize], row: u32) -> Option<&'a [f32]> {
    let begin = row.checked_sub(1).map_or(Some(0), |before| ends.get(before as usize).copied())?;
    values.get(begin..*ends.get(row as usize)?)
}

fn display_number(value: f32, storage: &Storage, is_date: bool) -> String {
    if is_date {
        return date::format((f64::from(value) + storage.offset) * storage.unit, storage.with_time);
    }
    if storage.offset == 0.0 {
        return value.to_string();
    }
    // Digits below the step of the stored number would be noise.
    let step = f64::from(value.abs().max(f32::MIN_POSITIVE).next_up() - value.abs());
    let decimals = (-step.log10()).floor().clamp(0.0, 9.0) as usize;
    let text = format!("{:.decimals$}", f64::from(value) + storage.offset);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Fills a column value by value.
#[derive(Debug)]
pub(crate) struct ColumnBuilder {
    /// Position in the file.
    position: usize,
    name: String,
    kind: Kind,
    values: Values,
    max_levels: usize,
    buffer: String,
    /// Where the column holds pictures.
    pictures: Option<GalleryBuilder>,
}

impl ColumnBuilder {
    /// A column of the kind and storage of `schema`, at `position` in the file.
    pub(crate) fn new(schema: &ColumnSchema, position: usize, capacity: usize) -> Self {
        let (kind, storage) = (schema.kind, schema.storage);
        let values = match kind {
            Kind::Numeric | Kind::Date => Values::Numbers {
                values: Vec::with_capacity(capacity),
                storage,
                is_date: kind == Kind::Date,
            },
            Kind::Text => Values::Texts(Texts::default()),
            Kind::Vector => Values::Vectors { values: Vec::new(), width: storage.width },
            Kind::Categorical => {
                Values::Codes { codes: Vec::with_capacity(capacity), levels: Arc::default() }
            }
            Kind::Series => {
                Values::Series { values: Vec::new(), ends: Vec::with_capacity(capacity) }
            }
            Kind::Image => Values::Pictures(Gallery::new(storage.width)),
        };
        let pictures =
            (kind == Kind::Image).then(|| GalleryBuilder::new(&schema.name, storage.width));
        Self {
            position,
            name: schema.name.clone(),
            kind,
            values,
            max_levels: MAX_LEVELS,
            buffer: String::new(),
            pictures,
        }
    }

    /// A column of names that are all kept.
    pub(crate) fn names(name: &str, position: usize, capacity: usize) -> Self {
        Self {
            position,
            name: name.to_owned(),
            kind: Kind::Categorical,
            values: Values::Codes { codes: Vec::with_capacity(capacity), levels: Arc::default() },
            max_levels: BEYOND as usize,
            buffer: String::new(),
            pictures: None,
        }
    }

    pub(crate) fn push(&mut self, lexicon: &Lexicon, record: &Record<'_>) -> Result<(), DataError> {
        let raw = record.value(self.position);
        match &mut self.values {
            Values::Numbers { values, storage, is_date } => {
                let number = match lexicon.look_as(raw, storage.numerals) {
                    Value::Missing | Value::Infinite => f64::NAN,
                    Value::Number(number) if !*is_date => number,
                    Value::Date(moment) if *is_date => moment.seconds / storage.unit,
                    _ => {
                        return Err(DataError::WrongType {
                            place: record.place(),
                            column: self.name.clone(),
                            expected: self.kind,
                            value: shortened(
                                lexicon.text(raw, &mut self.buffer).unwrap_or_default(),
                            ),
                        });
                    }
                };
                // Clamping leaves NaN alone and keeps what 32 bits cannot hold finite.
                let limit = f64::from(f32::MAX);
                values.push((number - storage.offset).clamp(-limit, limit) as f32);
            }
            Values::Codes { codes, levels } => {
                codes.push(match lexicon.text(raw, &mut self.buffer) {
                    None => MISSING,
                    Some(level) => match levels.get_index_of(level) {
                        Some(code) => code as u32,
                        None if levels.len() < self.max_levels => {
                            Arc::make_mut(levels).insert_full(level.into()).0 as u32
                        }
                        None => BEYOND,
                    },
                });
            }
            Values::Vectors { values, width } => {
                let invalid = |found: String| DataError::Vector {
                    place: record.place(),
                    column: self.name.clone(),
                    expected: *width,
                    found,
                };
                let Raw::List(numbers) = raw else {
                    return Err(invalid("none".to_owned()));
                };
                if numbers.len() != *width {
                    return Err(invalid(numbers.len().to_string()));
                }
                if let Some(at) = numbers.iter().position(|number| !number.is_finite()) {
                    return Err(invalid(format!("none that is finite in place {}", at + 1)));
                }
                values.extend_from_slice(numbers);
            }
            Values::Series { values, ends } => {
                let invalid = |problem: String| DataError::Series {
                    place: record.place(),
                    column: self.name.clone(),
                    problem,
                };
                let numbers = match raw {
                    Raw::List(numbers) => numbers,
                    Raw::Null => return Err(invalid("the series has no numbers".to_owned())),
                    _ => {
                        let problem = "expected a list of numbers, as Parquet has them";
                        return Err(invalid(problem.to_owned()));
                    }
                };
                if let Some(at) = numbers.iter().position(|number| !number.is_finite()) {
                    let problem =
                        format!("the number in place {} is missing or not finite", at + 1);
                    return Err(invalid(problem));
                }
                if numbers.len() > MOST_MOMENTS {
                    let problem =
                        format!("the series has {} moments; at most {MOST_MOMENTS}", numbers.len());
                    return Err(invalid(problem));
                }
                values.extend_from_slice(numbers);
                ends.push(values.len());
            }
            Values::Texts(texts) => match raw {
                // As it stands: `None` is a word like any other.
                Raw::Text(text) => texts.push(text),
                raw => {
                    self.buffer.clear();
                    write_raw(raw, &mut self.buffer);
                    texts.push(&self.buffer);
                }
            },
            Values::Pictures(_) => {
                let path = lexicon.text(raw, &mut self.buffer).map(str::to_owned);
                if let Some(pictures) = &mut self.pictures {
                    pictures.push(path, record)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How long the last series is, where the column holds series.
    pub(crate) fn last_moments(&self) -> Option<usize> {
        let Values::Series { ends, .. } = &self.values else { return None };
        let begin = ends.len().checked_sub(2).map_or(0, |before| ends[before]);
        Some(ends.last()? - begin)
    }

    /// Whether the last value is a number.
    pub(crate) fn last_is_number(&self) -> bool {
        match &self.values {
            Values::Numbers { values, .. } => values.last().is_some_and(|value| !value.is_nan()),
            _ => false,
        }
    }

    /// Holds at most so many bytes of pictures.
    pub(crate) fn holding(mut self, most_held: u64) -> Self {
        self.pictures = self.pictures.map(|pictures| pictures.holding(most_held));
        self
    }

    /// Takes out the rows so far, as words: how many per row, and those of one row after another. Texts and pictures are
    /// not words.
    pub(crate) fn drain(&mut self) -> (usize, Vec<u32>) {
        let words = |values: &mut Vec<f32>| values.drain(..).map(f32::to_bits).collect();
        match &mut self.values {
            Values::Numbers { values, .. } => (1, words(values)),
            Values::Codes { codes, .. } => (1, std::mem::take(codes)),
            Values::Vectors { values, width } => (*width, words(values)),
            Values::Texts(_) | Values::Series { .. } | Values::Pictures { .. } => (0, Vec::new()),
        }
    }

    /// What the words of the column stand for, once all rows are read; `None` for texts and pictures.
    pub(crate) fn layout(self) -> Option<Layout> {
        let kind = match self.values {
            Values::Numbers { storage, is_date, .. } => LayoutKind::Numbers { storage, is_date },
            Values::Codes { levels, .. } => LayoutKind::Codes { levels },
            Values::Vectors { width, .. } => LayoutKind::Vectors { width },
            Values::Texts(_) | Values::Series { .. } | Values::Pictures { .. } => return None,
        };
        Some(Layout { name: self.name, kind })
    }

    pub(crate) fn finish(self) -> Result<Column, DataError> {
        let mut values = match self.pictures {
            Some(pictures) => Values::Pictures(pictures.finish()?),
            None => self.values,
        };
        match &mut values {
            Values::Numbers { values, .. } => values.shrink_to_fit(),
            Values::Codes { codes, levels } => {
                codes.shrink_to_fit();
                Arc::make_mut(levels).shrink_to_fit();
            }
            Values::Texts(texts) => texts.shrink_to_fit(),
            Values::Vectors { values, .. } => values.shrink_to_fit(),
            Values::Series { values, .. } => values.shrink_to_fit(),
            Values::Pictures(_) => {}
        }
        Ok(Column { name: self.name, values })
    }

    /// Codes and names of a column made by [`ColumnBuilder::names`].
    pub(crate) fn into_names(self) -> (Vec<u32>, Vec<String>) {
        match self.values {
            Values::Codes { codes, levels } => {
                let levels = Arc::unwrap_or_clone(levels);
                (codes, levels.into_iter().map(String::from).collect())
            }
            _ => (Vec::new(), Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_they_were_written() {
        let near = Storage::default();
        let far = Storage { offset: 1_700_000_000.0, ..near };
        assert_eq!(display_number(8.3252, &near, false), "8.3252");
        assert_eq!(display_number(41.0, &near, false), "41");
        assert_eq!(display_number(12_345.0, &far, false), "1700012345");
        assert_eq!(display_number(0.5, &far, false), "1700000000.5");
        let days = Storage { offset: 19_000.0, unit: date::DAY, ..near };
        assert_eq!(display_number(1.0, &days, true), "2022-01-09");
    }
}
