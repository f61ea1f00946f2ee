//! A table file of any supported format, read record by record.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use csv::StringRecord;

use crate::columnar::{self, Cells};
use crate::error::{DataError, Place};
use crate::folder::{Folder, LIST};
use crate::foreign;
use crate::route::route;
use crate::text::{self, Compression, Dialect, extension};
use crate::value::{Raw, write_raw};

type Result<T> = std::result::Result<T, DataError>;

/// A table file whose header has been read and found sound.
///
/// The format is told by content: Parquet, gzip and zstd by their first bytes; anything else is text. Text is split on
/// tabs when its name ends in `.tsv` or `.tab` (before `.gz` or `.zst`), else on what its header has most of: commas,
/// tabs, semicolons or vertical bars; or on what a first line such as `sep=;` names.
///
/// A table is opened and read more than once, so it has to be a regular file, or a folder of pictures.
#[derive(Debug, Clone)]
pub struct TableFile {
    path: PathBuf,
    format: Format,
    columns: Vec<String>,
    /// The names as they stand in the file.
    header: Vec<String>,
    /// What each column can hold.
    holds: Vec<Holds>,
    stamp: Stamp,
}

#[derive(Debug, Clone)]
enum Format {
    Text(Dialect),
    Parquet,
    /// A folder of pictures.
    Folder(Arc<[StringRecord]>),
}

/// What the cells of a column can hold.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Holds {
    /// Any text.
    Text,
    /// Whole numbers, from the least to the greatest.
    Whole(f64, f64),
    /// Other numbers, truths or moments.
    Value,
    /// Lists of numbers.
    List,
    /// What cannot be used, in words.
    Unsupported(&'static str),
}

/// What tells that a file is still the one that was opened.
type Stamp = (u64, Option<SystemTime>);

impl TableFile {
    /// Opens a table and reads its header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        if path.is_dir() {
            return Self::open_folder(path);
        }
        let stamp = regular(&path)?;
        let start = read_start(&path)?;
        if start.is_empty() {
            return Err(DataError::Empty { path });
        }
        let (format, header, holds) = if start.starts_with(b"PAR1") {
            let columnar::Header { names, holds } = columnar::header(&path)?;
            (Format::Parquet, names, holds)
        } else if let Some((what, advice)) = foreign::recognise(&path, &start) {
            return Err(DataError::Foreign { path, what, advice });
        } else if matches!(extension(&path).as_str(), "parquet" | "pq") {
            return Err(DataError::NotParquet { path });
        } else {
            let compression = Compression::of_content(&start);
            let (dialect, mut reader) = Dialect::read(&path, compression)?;
            let names = text::header(&path, compression, &mut reader)?;
            let holds = vec![Holds::Text; names.len()];
            (Format::Text(dialect), names, holds)
        };
        if header.is_empty() {
            return Err(DataError::Empty { path });
        }
        let columns = header.iter().map(|name| name.trim().to_owned()).collect();
        let columns = text::checked_names(&path, columns)?;
        Ok(Self { path, format, columns, header, holds, stamp })
    }

    fn open_folder(path: PathBuf) -> Result<Self> {
        let stamp = regular(&path)?;
        let Folder { columns, records } = Folder::read(&path)?;
        let columns = text::checked_names(&path, columns)?;
        let holds = vec![Holds::Text; columns.len()];
        let (header, format) = (columns.clone(), Format::Folder(records.into()));
        Ok(Self { path, format, columns, header, holds, stamp })
    }

    /// Whether it is Parquet.
    pub fn is_parquet(&self) -> bool {
        matches!(self.format, Format::Parquet)
    }

    /// Whether it is a folder of pictures.
    pub fn is_folder(&self) -> bool {
        matches!(self.format, Format::Folder(_))
    }

    /// A folder of pictures with their paths as a table in that directory names them; other tables stay what they are.
    pub fn seen_from(mut self, directory: &Path) -> Result<Self> {
        let Format::Folder(records) = &self.format else { return Ok(self) };
        let way = route(directory, &self.path)?;
        let named = |record: &StringRecord| {
            let file = format!("{way}{}", record.get(0).unwrap_or_default());
            std::iter::once(file.as_str()).chain(record.iter().skip(1)).collect()
        };
        self.format = Format::Folder(records.iter().map(named).collect());
        Ok(self)
    }

    /// Whether a file is one of those that a folder of pictures is read from.
    pub fn is_read_from(&self, file: &Path) -> bool {
        let Format::Folder(records) = &self.format else { return false };
        let (Ok(folder), Ok(file)) = (self.path.canonicalize(), file.canonicalize()) else {
            return false;
        };
        let is = |name: &str| folder.join(name).canonicalize().is_ok_and(|place| place == file);
        let mut names = records.iter().filter_map(|record| record.get(0));
        is(LIST) || (file.starts_with(&folder) && names.any(is))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of the columns: trimmed, distinct, an empty one replaced by `column N`.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Position of a column.
    pub fn position(&self, column: &str) -> Result<usize> {
        self.columns.iter().position(|name| name == column).ok_or_else(|| {
            DataError::MissingColumn {
                path: self.path.clone(),
                column: column.to_owned(),
                available: self.columns.clone(),
            }
        })
    }

    /// The type of a Parquet column that cannot be used.
    pub(crate) fn unsupported(&self, column: usize) -> Option<&str> {
        match self.holds[column] {
            Holds::Unsupported(what) => Some(what),
            _ => None,
        }
    }

    /// Whether a column holds lists of numbers.
    pub fn is_list(&self, column: usize) -> bool {
        self.holds[column] == Holds::List
    }

    /// Whether any text can stand in a column, as Parquet decides.
    pub fn holds_texts(&self, column: usize) -> bool {
        self.holds[column] == Holds::Text
    }

    /// A number as it can stand in a column: where Parquet has whole ones, the nearest that the column can hold.
    pub fn nearest(&self, column: usize, number: f64) -> f64 {
        match self.holds[column] {
            // With zero added, what is rounded to -0 is 0.
            Holds::Whole(low, high) => number.round().clamp(low, high) + 0.0,
            _ => number,
        }
    }

    /// Refuses a column whose values are not one value each.
    pub(crate) fn check_single(&self, column: usize) -> Result<()> {
        self.check_usable(column)?;
        if !self.is_list(column) {
            return Ok(());
        }
        Err(DataError::UnsupportedColumn {
            path: self.path.clone(),
            column: self.columns[column].clone(),
            found: "a list of numbers".to_owned(),
        })
    }

    /// Refuses a column whose values cannot be read.
    pub(crate) fn check_usable(&self, column: usize) -> Result<()> {
        match self.unsupported(column) {
            None => Ok(()),
            Some(found) => Err(DataError::UnsupportedColumn {
                path: self.path.clone(),
                column: self.columns[column].clone(),
                found: found.to_owned(),
            }),
        }
    }

    /// Refuses a column whose values cannot be written as text.
    pub(crate) fn check_that_it_has_text(&self) -> Result<()> {
        let list = |column| self.is_list(column).then_some("a list of numbers");
        let found = |column| self.unsupported(column).or(list(column)).map(|what| (column, what));
        match (0..self.columns.len()).find_map(found) {
            None => Ok(()),
            Some((column, what)) => Err(DataError::NotInText {
                path: self.path.clone(),
                column: self.columns[column].clone(),
                found: what.to_owned(),
            }),
        }
    }

    /// The delimiter of a text file.
    pub fn delimiter(&self) -> Option<u8> {
        match self.format {
            Format::Text(dialect) => Some(dialect.delimiter),
            Format::Parquet | Format::Folder(_) => None,
        }
    }

    /// How a text file is written; other tables are written as plain CSV.
    pub(crate) fn dialect(&self) -> Dialect {
        match self.format {
            Format::Text(dialect) => dialect,
            Format::Parquet | Format::Folder(_) => Dialect::PLAIN,
        }
    }

    /// The names of the columns as they stand in the file.
    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    /// Refuses a file that was changed since it was opened: two readings of it would not fit together.
    pub fn check_that_it_is_unchanged(&self) -> Result<()> {
        if regular(&self.path)? == self.stamp {
            Ok(())
        } else {
            Err(DataError::Changed { path: self.path.clone() })
        }
    }

    /// Calls `visit` with every record as text and its data row, counted from 1, until it returns an error. Lists are
    /// empty there.
    pub fn each_record<E: From<DataError>>(
        &self,
        mut visit: impl FnMut(u64, &StringRecord) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (mut written, mut cell) = (StringRecord::new(), String::new());
        self.scan(|record| match record.fields {
            Fields::Text(text) => visit(record.row, text),
            Fields::Cells { .. } => {
                written.clear();
                for column in 0..self.columns.len() {
                    cell.clear();
                    if !self.is_list(column) {
                        write_raw(record.value(column), &mut cell);
                    }
                    written.push_field(&cell);
                }
                visit(record.row, &written)
            }
        })
    }

    /// Calls `visit` with every record from the first to the last, or until it returns an error.
    pub(crate) fn scan<E: From<DataError>>(
        &self,
        mut visit: impl FnMut(&Record<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        match &self.format {
            Format::Text(dialect) => dialect.scan(&self.path, &self.columns, visit),
            Format::Parquet => {
                let mut row = 0;
                columnar::scan(&self.path, self.columns.len(), |columns, index| {
                    row += 1;
                    visit(&self.record(row, Fields::Cells { columns, index }))
                })
            }
            Format::Folder(records) => {
                let mut records = (1..).zip(records.iter());
                records.try_for_each(|(row, cells)| visit(&self.record(row, Fields::Text(cells))))
            }
        }
    }

    /// A record that has no line of its own.
    fn record<'a>(&'a self, row: u64, fields: Fields<'a>) -> Record<'a> {
        Record { path: &self.path, row, line: None, read: row, fields }
    }

    /// How long the file is, in the unit of [`Record::read`], where that can be told.
    pub(crate) fn length(&self) -> Option<u64> {
        match self.format {
            Format::Parquet => columnar::rows(&self.path).ok(),
            Format::Folder(ref records) => Some(records.len() as u64),
            Format::Text(Dialect { compression: Compression::None, .. }) => {
                std::fs::metadata(&self.path).ok().map(|metadata| metadata.len())
            }
            Format::Text(_) => None,
        }
    }

    /// The values of a few data rows (counted from 1) as they stand in the file, read in one pass without keeping others.
    pub fn rows(&self, wanted: &[u64]) -> Result<HashMap<u64, Vec<String>>> {
        let mut found: HashMap<u64, Vec<String>> =
            wanted.iter().map(|&row| (row, Vec::new())).collect();
        self.scan(|record| {
            if let Some(values) = found.get_mut(&record.row) {
                *values = (0..self.columns.len())
                    .map(|column| {
                        let mut text = String::new();
                        write_raw(record.value(column), &mut text);
                        text
                    })
                    .collect();
            }
            Ok::<(), DataError>(())
        })?;
        found.retain(|_, values| !values.is_empty());
        Ok(found)
    }
}

/// One record during a scan.
pub(crate) struct Record<'a> {
    pub(crate) path: &'a Path,
    /// Data row, counted from 1.
    pub(crate) row: u64,
    pub(crate) line: Option<u64>,
    /// How much had been read at the start of this record: bytes of text, rows of Parquet.
    pub(crate) read: u64,
    pub(crate) fields: Fields<'a>,
}

pub(crate) enum Fields<'a> {
    Text(&'a StringRecord),
    Cells { columns: &'a [Cells], index: usize },
}

impl<'a> Record<'a> {
    /// A record without fields, for tests of what only wants to know where it stands.
    #[cfg(test)]
    pub(crate) fn example(row: u64) -> Self {
        let fields = Fields::Cells { columns: &[], index: 0 };
        Self { path: Path::new("example"), row, line: Some(row + 1), read: 0, fields }
    }

    pub(crate) fn value(&self, column: usize) -> Raw<'a> {
        match self.fields {
            Fields::Text(record) => record.get(column).map_or(Raw::Null, Raw::Text),
            Fields::Cells { columns, index } => columns[column].value(index),
        }
    }

    /// Refuses a record of text that is longer than this kind of file can sensibly hold.
    pub(crate) fn check_length(&self, limit: usize) -> Result<()> {
        match self.fields {
            Fields::Text(record) if record.as_slice().len() > limit => {
                Err(DataError::RecordTooLong { place: self.place(), limit })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn place(&self) -> Place {
        Place { path: self.path.to_owned(), line: self.line, row: self.row }
    }
}

/// Refuses what cannot be read twice: opening a pipe again goes on where the last reader left it, and the rows between are
/// lost without a word.
fn regular(path: &Path) -> Result<Stamp> {
    let fail = |source| DataError::Open { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(fail)?;
    if !metadata.is_file() && !metadata.is_dir() {
        return Err(DataError::ReadableOnce { path: path.to_owned() });
    }
    Ok((metadata.len(), metadata.modified().ok()))
}

fn read_start(path: &Path) -> Result<Vec<u8>> {
    let fail = |source| DataError::Open { path: path.to_owned(), source };
    let file = File::open(path).map_err(fail)?;
    let mut start = Vec::new();
    file.take(foreign::LOOKED_AT as u64).read_to_end(&mut start).map_err(fail)?;
    Ok(start)
}
