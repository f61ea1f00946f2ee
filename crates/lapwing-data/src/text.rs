//! Tables of text: how they are written, and their records one by one.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use csv::StringRecord;

use crate::error::{DataError, Place};
use crate::file::{Fields, Record};
use crate::foreign;
use crate::guard::{MAX_COLUMNS, MAX_RECORD_BYTES, Objection, RecordGuard};
use crate::gzip::Gzip;

type Result<T> = std::result::Result<T, DataError>;

const BUFFER: usize = 64 << 10;
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// What may stand between fields, the first of those that are equally frequent in the header.
const DELIMITERS: [u8; 4] = *b",\t;|";

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

    pub(crate) fn of_content(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
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

/// How the text of a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) compression: Compression,
    pub(crate) delimiter: u8,
    /// It begins with a byte order mark.
    pub(crate) marked: bool,
    /// Its lines end in a carriage return and a line feed.
    pub(crate) carriage_returns: bool,
    /// Its first line is Excel's `sep=;`, which is no header.
    named: bool,
}

impl Dialect {
    /// CSV, as it is written where nothing says otherwise.
    pub(crate) const PLAIN: Self = Self {
        compression: Compression::None,
        delimiter: b',',
        marked: false,
        carriage_returns: false,
        named: false,
    };

    /// Finds out and leaves the stream at the header.
    fn of(path: &Path, compression: Compression, stream: &mut dyn BufRead) -> Result<Self> {
        let fail = |error| DataError::from_io(path, compression.label(), error);
        let marked = skip_byte_order_mark(stream).map_err(fail)?;
        let start = stream.fill_buf().map_err(fail)?;
        if let Some((what, advice)) = foreign::in_text(start) {
            return Err(DataError::Foreign { path: path.to_owned(), what, advice });
        }
        let carriage_returns = start
            .iter()
            .position(|byte| *byte == b'\n')
            .is_some_and(|end| end > 0 && start[end - 1] == b'\r');
        let (named, delimiter) = match named_delimiter(start) {
            Some((length, delimiter)) => {
                stream.consume(length);
                (true, delimiter)
            }
            None => (false, delimiter(path, compression, start)),
        };
        Ok(Self { compression, delimiter, marked, carriage_returns, named })
    }

    /// The stream from its header on, and how it is written.
    pub(crate) fn read(path: &Path, compression: Compression) -> Result<(Self, TextReader)> {
        let mut stream = decompressed(path, compression)?;
        let dialect = Self::of(path, compression, stream.as_mut())?;
        Ok((dialect, dialect.reader(stream, false)))
    }

    /// Opens a file whose dialect is known, at its header.
    fn open(&self, path: &Path, one_column: bool) -> Result<TextReader> {
        let mut stream = decompressed(path, self.compression)?;
        let fail = |error| DataError::from_io(path, self.compression.label(), error);
        skip_byte_order_mark(stream.as_mut()).map_err(fail)?;
        if self.named {
            let length =
                named_delimiter(stream.fill_buf().map_err(fail)?).map(|(length, _)| length);
            stream.consume(length.unwrap_or(0));
        }
        Ok(self.reader(stream, one_column))
    }

    fn reader(&self, stream: Box<dyn BufRead>, one_column: bool) -> TextReader {
        let guard = RecordGuard::new(stream, self.delimiter)
            .counting_from(1 + u64::from(self.named))
            .with_blank_lines_as_records(one_column);
        csv::ReaderBuilder::new()
            .delimiter(self.delimiter)
            .buffer_capacity(BUFFER)
            .from_reader(guard)
    }

    /// Calls `visit` with every record of a file.
    pub(crate) fn scan<E: From<DataError>>(
        &self,
        path: &Path,
        columns: &[String],
        visit: impl FnMut(&Record<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let fail = |error, line| {
            let error = from_csv(path, self.compression, columns, error, line);
            // A damaged archive decodes to nonsense before its checksum is reached: that is then the better answer.
            broken_archive(path, self.compression).unwrap_or(error)
        };
        // A blank line is no record, but in a file of one column it is one whose only value is missing.
        let mut reader = self.open(path, columns.len() == 1)?;
        reader.headers().map_err(|error| fail(error, 1))?;
        scan_text(path, columns, reader, fail, visit)
    }
}

/// Reads the header of a text table: its names as they stand there.
pub(crate) fn header(
    path: &Path,
    compression: Compression,
    reader: &mut TextReader,
) -> Result<Vec<String>> {
    let header = reader.headers().map_err(|error| from_csv(path, compression, &[], error, 1));
    match header {
        Ok(header) => Ok(header.iter().map(str::to_owned).collect()),
        Err(error) => Err(broken_archive(path, compression).unwrap_or(error)),
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
        let start = stream.fill_buf().map_err(fail)?;
        if let Some((what, advice)) = foreign::recognise(&path, start) {
            return Err(DataError::Foreign { path, what, advice });
        }
        if Compression::of_content(start) != Compression::None || start.starts_with(b"PAR1") {
            let what = "compressed or Parquet";
            let advice = "a stream must be plain text; unpack it on the way, or name the file";
            return Err(DataError::Foreign { path, what, advice });
        }
        let dialect = Dialect::of(&path, Compression::None, stream.as_mut())?;
        if stream.fill_buf().map_err(fail)?.is_empty() {
            return Err(DataError::Empty { path });
        }
        let one_column = has_one_column(stream.fill_buf().map_err(fail)?, dialect.delimiter);
        let mut reader = dialect.reader(stream, one_column);
        let header =
            reader.headers().map_err(|error| from_csv(&path, Compression::None, &[], error, 1))?;
        let columns = header.iter().map(|name| name.trim().to_owned()).collect();
        let columns = checked_names(&path, columns)?;
        Ok(Self { path, columns, reader })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Calls `visit` with every record.
    pub(crate) fn scan<E: From<DataError>>(
        self,
        visit: impl FnMut(&Record<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let fail =
            |error, line| from_csv(&self.path, Compression::None, &self.columns, error, line);
        scan_text(&self.path, &self.columns, self.reader, fail, visit)
    }
}

/// Calls `visit` with every record after the header, which has been read.
fn scan_text<E: From<DataError>>(
    path: &Path,
    columns: &[String],
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
        if repeats(columns, &record) {
            let place = Place { path: path.to_owned(), line: Some(line), row };
            return Err(DataError::RepeatedHeader { place }.into());
        }
        visit(&Record {
            path,
            row,
            line: Some(line),
            read: record.position().map_or(0, csv::Position::byte),
            fields: Fields::Text(&record),
        })?;
    }
}

/// Whether a record is the header once more, as in files that were joined with their headers.
fn repeats(columns: &[String], record: &StringRecord) -> bool {
    let mut pairs = columns.iter().zip(record.iter().map(str::trim));
    // The first name decides for nearly every record.
    pairs.next().is_some_and(|(name, field)| name == field)
        // An empty name was given another one.
        && pairs.all(|(name, field)| name == field || (field.is_empty() && name.starts_with("column ")))
}

pub(crate) fn extension(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_lowercase()
}

/// The text of a file without its compression.
fn decompressed(path: &Path, compression: Compression) -> Result<Box<dyn BufRead>> {
    let file =
        File::open(path).map_err(|source| DataError::Open { path: path.to_owned(), source })?;
    let raw = BufReader::with_capacity(BUFFER, file);
    Ok(match compression {
        Compression::None => Box::new(raw),
        Compression::Gzip => Box::new(BufReader::with_capacity(BUFFER, Gzip::new(raw))),
        Compression::Zstd => {
            let decoder = zstd::stream::read::Decoder::with_buffer(raw)
                .map_err(|error| DataError::from_io(path, compression.label(), error))?;
            Box::new(BufReader::with_capacity(BUFFER, decoder))
        }
    })
}

/// What is wrong with the compressed data of a file, found by decoding all of it.
fn broken_archive(path: &Path, compression: Compression) -> Option<DataError> {
    if compression == Compression::None {
        return None;
    }
    let mut stream = decompressed(path, compression).ok()?;
    let error = io::copy(&mut stream, &mut io::sink()).err()?;
    Some(DataError::from_io(path, compression.label(), error))
}

fn skip_byte_order_mark(stream: &mut dyn BufRead) -> io::Result<bool> {
    let marked = stream.fill_buf()?.starts_with(BYTE_ORDER_MARK);
    if marked {
        stream.consume(BYTE_ORDER_MARK.len());
    }
    Ok(marked)
}

/// The delimiter that Excel's first line `sep=;` names, and how long the line is.
fn named_delimiter(start: &[u8]) -> Option<(usize, u8)> {
    let rest = start.strip_prefix(b"sep=".as_slice())?;
    let (&delimiter, rest) = rest.split_first()?;
    let end = if rest.starts_with(b"\r\n") { 2 } else { usize::from(rest.starts_with(b"\n")) };
    (end > 0 && DELIMITERS.contains(&delimiter)).then_some((5 + end, delimiter))
}

fn delimiter(path: &Path, compression: Compression, start: &[u8]) -> u8 {
    let name =
        if compression == Compression::None { path.to_owned() } else { path.with_extension("") };
    if matches!(extension(&name).as_str(), "tsv" | "tab") {
        return b'\t';
    }
    let mut counts = [0_usize; DELIMITERS.len()];
    let mut quoted = false;
    for &byte in start.trim_ascii_start() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if quoted => {}
            _ => {
                let at = DELIMITERS.iter().position(|delimiter| *delimiter == byte);
                counts[at.unwrap_or(0)] += usize::from(at.is_some());
            }
        }
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    let at = counts.iter().position(|count| *count == most).unwrap_or(0);
    DELIMITERS[at]
}

/// Whether the header, if all of it has come, names one column.
fn has_one_column(start: &[u8], delimiter: u8) -> bool {
    let mut quoted = false;
    for &byte in start.trim_ascii_start() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => return true,
            _ if byte == delimiter && !quoted => return false,
            _ => {}
        }
    }
    false
}

pub(crate) type TextReader = csv::Reader<RecordGuard<Box<dyn BufRead>>>;

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
            let place = Place { path, line: Some(line), row: 0 };
            DataError::RecordTooLong { place, limit: MAX_RECORD_BYTES }
        }
        Objection::TooManyColumns { line } => {
            DataError::TooManyColumns { path, line, limit: MAX_COLUMNS }
        }
    }
}

pub(crate) fn checked_names(path: &Path, mut names: Vec<String>) -> Result<Vec<String>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_what_the_header_has_most_of_outside_quotes() {
        let found =
            |start: &str| delimiter(Path::new("t.csv"), Compression::None, start.as_bytes());
        assert_eq!(found("a,b\n1;2;3;4\n"), b',');
        assert_eq!(found("\"a,b,c\";d\n"), b';');
        assert_eq!(found("price, EUR;site;y\n"), b';');
        assert_eq!(found("\n\na|b|c\n"), b'|');
        assert_eq!(found("alone\n"), b',');
        assert_eq!(delimiter(Path::new("t.tsv.gz"), Compression::Gzip, b"a,b\n"), b'\t');
    }

    #[test]
    fn the_line_of_excel_that_names_the_delimiter_is_no_header() {
        assert_eq!(named_delimiter(b"sep=;\r\na;b\n"), Some((7, b';')));
        assert_eq!(named_delimiter(b"sep=,\na,b\n"), Some((6, b',')));
        assert_eq!(named_delimiter(b"sep=x\n"), None);
        assert_eq!(named_delimiter(b"sep=,b\n"), None);
    }
}
