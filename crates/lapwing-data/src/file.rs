//! A table file of any supported format, read record by record.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use csv::StringRecord;
use flate2::bufread::MultiGzDecoder;

use crate::columnar::{self, Cells};
use crate::error::{DataError, Place};
use crate::guard::{MAX_COLUMNS, MAX_RECORD_BYTES, Objection, RecordGuard};
use crate::value::{Raw, write_raw};

type Result<T> = std::result::Result<T, DataError>;

const BUFFER: usize = 64 << 10;

/// A table file whose header has been read and found sound.
///
/// The format is told by content: Parquet, gzip and zstd by their first bytes; anything else is text. Text is split on
/// tabs when its name ends in `.tsv` or `.tab` (before `.gz` or `.zst`), else on commas; a header without a comma but
/// with tabs or semicolons is split on those.
#[derive(Debug, Clone)]
pub struct TableFile {
    path: PathBuf,
    format: Format,
    columns: Vec<String>,
    /// Parquet types that cannot be used, by column.
    unsupported: Vec<Option<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Text { delimiter: u8, compression: Compression },
    Parquet,
}

/// How a text file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, `.gz`.
    Gzip,
    /// Zstandard, `.zst`.
    Zstd,
}

impl Compression {
    /// The compression that a file name asks for.
    pub fn of_name(path: &Path) -> Self {
        match extension(path).as_str() {
            "gz" => Self::Gzip,
            "zst" => Self::Zstd,
            _ => Self::None,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::None => "CSV",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

impl TableFile {
    /// Opens a table and reads its header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let mut start = [0; 4];
        let length = read_start(&path, &mut start)?;
        if length == 0 {
            return Err(DataError::Empty { path });
        }
        let (format, columns, unsupported) = if &start == b"PAR1" {
            let (columns, unsupported) = columnar::header(&path)?;
            (Format::Parquet, columns, unsupported)
        } else if matches!(extension(&path).as_str(), "parquet" | "pq") {
            let message = "it does not start with the mark PAR1".to_owned();
            return Err(DataError::Damaged { path, format: "Parquet", message });
        } else {
            let compression = match start {
                [0x1f, 0x8b, ..] => Compression::Gzip,
                [0x28, 0xb5, 0x2f, 0xfd] => Compression::Zstd,
                _ => Compression::None,
            };
            let mut stream = decompressed(&path, compression)?;
            let delimiter = delimiter(&path, compression, stream.as_mut())?;
            let mut reader = csv_reader(stream, delimiter);
            let header =
                reader.headers().map_err(|error| from_csv(&path, compression, &[], error, 1))?;
            let columns: Vec<String> = header.iter().map(|name| name.trim().to_owned()).collect();
            let unsupported = vec![None; columns.len()];
            (Format::Text { delimiter, compression }, columns, unsupported)
        };
        if columns.is_empty() {
            return Err(DataError::Empty { path });
        }
        let columns = checked_names(&path, columns)?;
        Ok(Self { path, format, columns, unsupported })
    }

    /// Opens a table of text, the kind that can be copied row by row.
    pub fn open_text(path: impl AsRef<Path>) -> Result<Self> {
        let file = Self::open(path)?;
        match file.format {
            Format::Text { .. } => Ok(file),
            Format::Parquet => Err(DataError::CannotRewrite { path: file.path }),
        }
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
        self.unsupported[column].as_deref()
    }

    /// The delimiter of a text file.
    pub fn delimiter(&self) -> Option<u8> {
        match self.format {
            Format::Text { delimiter, .. } => Some(delimiter),
            Format::Parquet => None,
        }
    }

    /// Calls `visit` with every record of text and its data row, counted from 1, until it returns an error. What
    /// [`rewrite`](crate::rewrite) does, without writing; Parquet has no such records.
    pub fn each_record<E: From<DataError>>(
        &self,
        mut visit: impl FnMut(u64, &StringRecord) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.scan(|record| match record.text() {
            Some(text) => visit(record.row, text),
            None => Err(DataError::CannotRewrite { path: self.path.clone() }.into()),
        })
    }

    /// Calls `visit` with every record from the first to the last, or until it returns an error.
    pub(crate) fn scan<E: From<DataError>>(
        &self,
        mut visit: impl FnMut(&Record<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let Format::Text { delimiter, compression } = self.format else {
            let mut row = 0;
            return columnar::scan(&self.path, self.columns.len(), |columns, index| {
                row += 1;
                visit(&Record {
                    path: &self.path,
                    row,
                    line: None,
                    read: row,
                    fields: Fields::Cells { columns, index },
                })
            });
        };
        let fail = |error, line| from_csv(&self.path, compression, &self.columns, error, line);
        let mut reader = csv_reader(decompressed(&self.path, compression)?, delimiter);
        reader.headers().map_err(|error| fail(error, 1))?;
        scan_text(&self.path, reader, fail, visit)
    }

    /// How long the file is, in the unit of [`Record::read`], where that can be told.
    pub(crate) fn length(&self) -> Option<u64> {
        match self.format {
            Format::Parquet => columnar::rows(&self.path).ok(),
            Format::Text { compression: Compression::None, .. } => {
                std::fs::metadata(&self.path).ok().map(|metadata| metadata.len())
            }
            Format::Text { .. } => None,
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

/// Text that can be read once only, from its header on.
pub(crate) struct TextStream {
    path: PathBuf,
    columns: Vec<String>,
    reader: TextReader,
}

impl TextStream {
    /// Reads the header; `path` stands for the stream in messages.
    pub(crate) fn new(path: PathBuf, mut stream: Box<dyn BufRead>) -> Result<Self> {
        let fail = |error| DataError::from_io(&path, Compression::None.label(), error);
        skip_byte_order_mark(stream.as_mut()).map_err(fail)?;
        if stream.fill_buf().map_err(fail)?.is_empty() {
            return Err(DataError::Empty { path });
        }
        let delimiter = delimiter(&path, Compression::None, stream.as_mut())?;
        let mut reader = csv_reader(stream, delimiter);
        let header =
            reader.headers().map_err(|error| from_csv(&path, Compression::None, &[], error, 1))?;
        let columns = header.iter().map(|name| name.trim().to_owned()).collect();
        let columns = checked_names(&path, columns)?;
        Ok(Self { path, columns, reader })
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Calls `visit` with every record; returns the path.
    pub(crate) fn scan<E: From<DataError>>(
        self,
        visit: impl FnMut(&Record<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<PathBuf, E> {
        let fail =
            |error, line| from_csv(&self.path, Compression::None, &self.columns, error, line);
        scan_text(&self.path, self.reader, fail, visit)?;
        Ok(self.path)
    }
}

/// Calls `visit` with every record after the header, which has been read.
fn scan_text<E: From<DataError>>(
    path: &Path,
    mut reader: TextReader,
    fail: impl Fn(csv::Error, u64) -> DataError,
    mut visit: impl FnMut(&Record<'_>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut record = StringRecord::new();
    let mut row = 0;
    reader.get_mut().next_start();
    loop {
        let read = reader.read_record(&mut record);
        let line = reader.get_mut().next_start();
        if !read.map_err(|error| fail(error, line))? {
            return Ok(());
        }
        row += 1;
        visit(&Record {
            path,
            row,
            line: Some(line),
            read: record.position().map_or(0, csv::Position::byte),
            fields: Fields::Text(&record),
        })?;
    }
}

/// One record during a scan.
pub(crate) struct Record<'a> {
    path: &'a Path,
    /// Data row, counted from 1.
    pub(crate) row: u64,
    line: Option<u64>,
    /// How much had been read at the start of this record: bytes of text, rows of Parquet.
    pub(crate) read: u64,
    fields: Fields<'a>,
}

enum Fields<'a> {
    Text(&'a StringRecord),
    Cells { columns: &'a [Cells], index: usize },
}

impl<'a> Record<'a> {
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
                Err(DataError::RecordTooLong {
                    path: self.path.to_owned(),
                    line: self.line.unwrap_or_default(),
                    limit,
                })
            }
            _ => Ok(()),
        }
    }

    /// The record as text; Parquet has none.
    pub(crate) fn text(&self) -> Option<&'a StringRecord> {
        match self.fields {
            Fields::Text(record) => Some(record),
            Fields::Cells { .. } => None,
        }
    }

    pub(crate) fn place(&self) -> Place {
        Place { path: self.path.to_owned(), line: self.line, row: self.row }
    }
}

fn extension(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_lowercase()
}

fn read_start(path: &Path, start: &mut [u8]) -> Result<usize> {
    let fail = |source| DataError::Open { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(fail)?;
    let mut length = 0;
    while length < start.len() {
        match file.read(&mut start[length..]).map_err(fail)? {
            0 => break,
            count => length += count,
        }
    }
    Ok(length)
}

/// The text of a file without compression and byte order mark.
fn decompressed(path: &Path, compression: Compression) -> Result<Box<dyn BufRead>> {
    let file =
        File::open(path).map_err(|source| DataError::Open { path: path.to_owned(), source })?;
    let raw = BufReader::with_capacity(BUFFER, file);
    let fail = |error| DataError::from_io(path, compression.label(), error);
    let mut stream: Box<dyn BufRead> = match compression {
        Compression::None => Box::new(raw),
        Compression::Gzip => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(raw))),
        Compression::Zstd => {
            let decoder = zstd::stream::read::Decoder::with_buffer(raw).map_err(fail)?;
            Box::new(BufReader::with_capacity(BUFFER, decoder))
        }
    };
    skip_byte_order_mark(stream.as_mut()).map_err(fail)?;
    Ok(stream)
}

fn skip_byte_order_mark(stream: &mut dyn BufRead) -> io::Result<()> {
    let mark = b"\xef\xbb\xbf";
    if stream.fill_buf()?.starts_with(mark) {
        stream.consume(mark.len());
    }
    Ok(())
}

fn delimiter(path: &Path, compression: Compression, stream: &mut dyn BufRead) -> Result<u8> {
    let name =
        if compression == Compression::None { path.to_owned() } else { path.with_extension("") };
    if matches!(extension(&name).as_str(), "tsv" | "tab") {
        return Ok(b'\t');
    }
    let start =
        stream.fill_buf().map_err(|error| DataError::from_io(path, compression.label(), error))?;
    let header = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Ok([b',', b'\t', b';'].into_iter().find(|byte| header.contains(byte)).unwrap_or(b','))
}

type TextReader = csv::Reader<RecordGuard<Box<dyn BufRead>>>;

fn csv_reader(stream: Box<dyn BufRead>, delimiter: u8) -> TextReader {
    csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .buffer_capacity(BUFFER)
        .from_reader(RecordGuard::new(stream, delimiter))
}

/// An error of the parser as one that names file, line (that of the record at hand) and column.
fn from_csv(
    path: &Path,
    compression: Compression,
    columns: &[String],
    error: csv::Error,
    line: u64,
) -> DataError {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => {
            match error.get_ref().and_then(|inner| inner.downcast_ref::<Objection>()) {
                Some(objection) => from_objection(path, *objection),
                None => DataError::from_io(path, compression.label(), error),
            }
        }
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            DataError::Ragged { path: path.to_owned(), line, expected: expected_len, found: len }
        }
        csv::ErrorKind::Utf8 { err, .. } => DataError::InvalidUtf8 {
            path: path.to_owned(),
            line,
            column: columns
                .get(err.field())
                .cloned()
                .unwrap_or_else(|| format!("column {}", err.field() + 1)),
        },
        other => {
            let source = io::Error::other(format!("{other:?}"));
            DataError::Read { path: path.to_owned(), source }
        }
    }
}

fn from_objection(path: &Path, objection: Objection) -> DataError {
    let path = path.to_owned();
    match objection {
        Objection::UnclosedQuote { line } => DataError::UnclosedQuote { path, line },
        Objection::TextAfterQuote { line, opened } => {
            DataError::TextAfterQuote { path, line, opened }
        }
        Objection::RecordTooLong { line } => {
            DataError::RecordTooLong { path, line, limit: MAX_RECORD_BYTES }
        }
        Objection::TooManyColumns { line } => {
            DataError::TooManyColumns { path, line, limit: MAX_COLUMNS }
        }
    }
}

fn checked_names(path: &Path, mut names: Vec<String>) -> Result<Vec<String>> {
    let mut positions = HashMap::new();
    for (index, name) in names.iter_mut().enumerate() {
        if name.is_empty() {
            *name = format!("column {}", index + 1);
        }
        if let Some(first) = positions.insert(name.clone(), index) {
            return Err(DataError::DuplicateColumn {
                path: path.to_owned(),
                column: name.clone(),
                first: first + 1,
                second: index + 1,
            });
        }
    }
    Ok(names)
}
