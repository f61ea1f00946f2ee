//! What can be wrong with a table, and where.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use lapwing_sample::SampleError;

use crate::cache::CacheError;
use crate::dataset::Dropped;
use crate::memory::shown as shown_bytes;
use crate::picture::PictureError;
use crate::schema::Kind;

/// A record of a file: by line in text, by data row in Parquet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Line on which the record starts, counted from 1; Parquet has none.
    pub line: Option<u64>,
    /// Data row, counted from 1 after the header.
    pub row: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}, line {line}", self.path.display()),
            None => write!(f, "{}, row {}", self.path.display(), self.row),
        }
    }
}

/// Everything that can go wrong between a file and its encoded rows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A table that does not fit into memory.
    #[error(
        "{}: {rows} rows need about {} of memory, and there are {}{}",
        path.display(),
        shown_bytes(*needed),
        shown_bytes(*limit),
        if *on_disk { ", although its columns would stay on disk" } else { "" }
    )]
    TooLarge {
        /// The table.
        path: PathBuf,
        /// Its rows.
        rows: u64,
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that there are.
        limit: u64,
        /// Whether its columns would be on disk.
        on_disk: bool,
    },
    /// A table with texts, series or pictures that does not fit into memory.
    #[error(
        "{}: {rows} rows need about {} of memory, and texts, series and pictures cannot be trained on from disk yet",
        path.display(),
        shown_bytes(*needed)
    )]
    TooLargeForDisk {
        /// The table.
        path: PathBuf,
        /// Its rows.
        rows: u64,
        /// Bytes that it needs.
        needed: u64,
    },
    /// Rows on disk that cannot be written or read.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The file could not be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file could not be read to its end.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is a pipe or a device, whose content is gone once it was read.
    #[error(
        "{} is a pipe or a device, which can be read only once, and a table is read more than once; \
         save it to a file first",
        path.display()
    )]
    ReadableOnce {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else than a table.
    #[error("{} is {what}: {advice}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// What to do with it.
        advice: &'static str,
    },
    /// The rewritten table could not be written.
    #[error("cannot write the rewritten table: {0}")]
    Write(#[source] io::Error),
    /// The file ends in the middle of its compressed stream or of its Parquet structure.
    #[error("{} is cut short: the {format} data ends before it is complete", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// `gzip`, `zstd` or `Parquet`.
        format: &'static str,
    },
    /// A file that is called Parquet and is not.
    #[error(
        "{} does not begin as Parquet does, though its name says so: copy it again, or give a table of text a name in .csv",
        path.display()
    )]
    NotParquet {
        /// The file.
        path: PathBuf,
    },
    /// A Parquet file whose columns are compressed in a way that is not read.
    #[error(
        "{} is compressed with {codec}, which is not read: write it with zstd, snappy, gzip or lz4",
        path.display()
    )]
    Codec {
        /// The file.
        path: PathBuf,
        /// Its compression.
        codec: String,
    },
    /// The file is not valid in its own format.
    #[error("{} is not valid {format}: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// `gzip`, `zstd`, `CSV` or `Parquet`.
        format: &'static str,
        /// What the decoder said.
        message: String,
    },
    /// The file holds nothing at all.
    #[error("{} is empty: expected a header line with column names", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file holds a header and no data.
    #[error("{} has a header but no data rows", path.display())]
    HeaderOnly {
        /// The file.
        path: PathBuf,
    },
    /// A picture that cannot be had.
    #[error("{place}, column {column:?}: {source}")]
    Picture {
        /// Where its path stands.
        place: Place,
        /// The column.
        column: String,
        /// Why.
        source: PictureError,
    },
    /// A row that cannot be had any more.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// A size that pictures cannot have.
    #[error("pictures cannot be read as {side} × {side} pixels; expected a side from 8 to 512")]
    PictureSide {
        /// Pixels of a side.
        side: usize,
    },
    /// A folder without a picture.
    #[error("{} holds no PNG, JPEG, GIF or WebP file, nor do its folders", path.display())]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A list of sources that names a picture which is not in the folder.
    #[error("{place}: there is no picture {file:?} in {}", folder.display())]
    NotInFolder {
        /// Where it is named.
        place: Place,
        /// The name.
        file: String,
        /// The folder.
        folder: PathBuf,
    },
    /// A list of sources that names a picture twice.
    #[error("{place}: the picture {file:?} is listed twice")]
    ListedTwice {
        /// Where it is named for the second time.
        place: Place,
        /// The name.
        file: String,
    },
    /// Two columns of pictures.
    #[error("{:?} and {:?} are both columns of pictures; pictures of one column are learnt from", columns[0], columns[1])]
    TwoPictures {
        /// The columns.
        columns: [String; 2],
    },
    /// A column that was named as a series cannot be one.
    #[error("{}: column {column:?} {problem}", path.display())]
    NotSeries {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Why not.
        problem: String,
    },
    /// A series that cannot be used.
    #[error("{place}, column {column:?}: {problem}")]
    Series {
        /// Where it stands.
        place: Place,
        /// The column.
        column: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A column that was named is not in the file.
    #[error("{} has no column {column:?}; its columns are {}", path.display(), listed(available))]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The name that was looked for.
        column: String,
        /// The names that are there.
        available: Vec<String>,
    },
    /// Two columns have the same name.
    #[error("{}: columns {first} and {second} are both called {column:?}", path.display())]
    DuplicateColumn {
        /// The file.
        path: PathBuf,
        /// The name.
        column: String,
        /// Position of the first, from 1.
        first: usize,
        /// Position of the second, from 1.
        second: usize,
    },
    /// A record has more or fewer fields than the header.
    #[error("{}, line {line}: expected {expected} fields, found {found}", path.display())]
    Ragged {
        /// The file.
        path: PathBuf,
        /// Line on which the record starts.
        line: u64,
        /// Fields in the header.
        expected: u64,
        /// Fields in the record.
        found: u64,
    },
    /// A record is not UTF-8.
    #[error("{}, line {line}, column {column:?}: not UTF-8; save the file as UTF-8", path.display())]
    InvalidUtf8 {
        /// The file.
        path: PathBuf,
        /// Line on which the record starts.
        line: u64,
        /// Name of the column, or its position where the header itself is not UTF-8.
        column: String,
    },
    /// A quoted field never ends.
    #[error("{}, line {line}: the quote opened here is never closed", path.display())]
    UnclosedQuote {
        /// The file.
        path: PathBuf,
        /// Line on which the quote opens.
        line: u64,
    },
    /// Text follows the closing quote of a field: usually an earlier quote was not closed.
    #[error(
        "{}, line {line}: text follows the closing quote of the field opened on line {opened}; \
         a quote inside a quoted field is written twice",
        path.display()
    )]
    TextAfterQuote {
        /// The file.
        path: PathBuf,
        /// Line of the text.
        line: u64,
        /// Line on which the quote opens.
        opened: u64,
    },
    /// The header once more in the middle of the data.
    #[error(
        "{place}: the header stands here again, as in files that were joined with their headers; remove the line"
    )]
    RepeatedHeader {
        /// Where.
        place: Place,
    },
    /// A record is longer than any sane one: in text usually a quote that is never closed.
    #[error("{place}: the record that starts here is longer than {limit} bytes")]
    RecordTooLong {
        /// Where.
        place: Place,
        /// The limit in bytes.
        limit: usize,
    },
    /// More columns than are supported.
    #[error("{}, line {line}: more than {limit} columns", path.display())]
    TooManyColumns {
        /// The file.
        path: PathBuf,
        /// Line on which the record starts.
        line: u64,
        /// The limit.
        limit: usize,
    },
    /// More rows than a 32-bit row index can address.
    #[error("{} has more than {limit} rows", path.display())]
    TooManyRows {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// The file was not the same on the second reading.
    #[error("{} changed while it was being read", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A value does not have the type of its column.
    #[error("{place}, column {column:?}: expected {expected}, found {value:?}")]
    WrongType {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// What the column holds.
        expected: Kind,
        /// The value found, shortened.
        value: String,
    },
    /// A list of numbers that is not like the others of its column.
    #[error("{place}, column {column:?}: expected {expected} numbers, found {found}")]
    Vector {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// Numbers that a row has.
        expected: usize,
        /// What this one has.
        found: String,
    },
    /// One of a few values that do not fit the rest of their column, whose type nobody named.
    #[error("{0}")]
    StrayValue(Box<Stray>),
    /// A number that is a thousand times as large in one country as in another.
    #[error(
        "{place}, column {column:?}: {value:?} may have thousands in groups or a decimal comma; \
         write the numbers without either, as 1234.5"
    )]
    AmbiguousNumber {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// The value found, shortened.
        value: String,
    },
    /// A target so large that its square is not a number any more.
    #[error("{place}, column {column:?}: the target {value} is beyond ±{limit:e}")]
    TargetTooLarge {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// The value found, shortened.
        value: String,
        /// The limit.
        limit: f64,
    },
    /// A value in a log of losses is not what its column must hold.
    #[error("{place}, column {column:?}: expected {expected}, found {value:?}")]
    WrongLogValue {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// What the column must hold.
        expected: &'static str,
        /// The value found, shortened.
        value: String,
    },
    /// The steps of a log must not fall.
    #[error(
        "{place}, column {column:?}: step {step} comes after step {previous}; sort the log by step"
    )]
    StepBackwards {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// The step found.
        step: i64,
        /// The step before it.
        previous: i64,
    },
    /// A Parquet column of a nested or binary type is needed as a value.
    #[error("{}, column {column:?}: values of type {found} cannot be used", path.display())]
    UnsupportedColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The type found.
        found: String,
    },
    /// Two kinds of columns were asked for that no network learns from together.
    #[error("{kind} and {other} cannot be learnt from together: name one of them")]
    KindsTogether {
        /// One kind.
        kind: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A feature was asked for beside a kind of data that is learnt from alone.
    #[error("column {column:?} cannot be a feature beside {kind}, which are learnt from alone")]
    FeatureBeside {
        /// The column.
        column: String,
        /// What is learnt from alone.
        kind: &'static str,
    },
    /// A column of lists was called something else.
    #[error("column {column:?} holds lists of numbers, which cannot be read as {kind}")]
    Lists {
        /// The column.
        column: String,
        /// What it was called.
        kind: Kind,
    },
    /// One column was given two roles that exclude each other.
    #[error("column {column:?} cannot be both {first} and {second}")]
    RoleConflict {
        /// The column.
        column: String,
        /// One role.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A column that is to say when rows were taken, and does not.
    #[error(
        "{}: column {column:?} does not say when rows were taken: it holds {found}; expected numbers, or dates such as \
         2024-12-31 or 2024-12-31T23:59:59",
        path.display()
    )]
    NoTimes {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// What it holds.
        found: String,
    },
    /// The target has one value only: there is nothing to learn.
    #[error("{}: the target {column:?} has one class only, {class:?}", path.display())]
    OneClass {
        /// The file.
        path: PathBuf,
        /// The target column.
        column: String,
        /// Its only value.
        class: String,
    },
    /// No column is left to learn from.
    #[error("{}: no usable feature column is left ({})", path.display(), because(ignored))]
    NoFeatures {
        /// The file.
        path: PathBuf,
        /// The ignored columns with their reasons.
        ignored: Vec<String>,
    },
    /// Every row was dropped.
    #[error("{}: every row was dropped ({dropped})", path.display())]
    AllRowsDropped {
        /// The file.
        path: PathBuf,
        /// How many for which reason.
        dropped: Dropped,
    },
    /// A column of Parquet whose values are read, but not written.
    #[error(
        "{}: column {column:?} holds {found}, which are not changed in Parquet; whole and floating-point numbers, \
         booleans and texts are",
        path.display()
    )]
    NotChanged {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// What it holds.
        found: &'static str,
    },
    /// A column that has no form in CSV.
    #[error("{}: column {column:?} is {found}, which CSV does not have; Parquet does", path.display())]
    NotInText {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// What it holds.
        found: String,
    },
    /// Fractions of a split that make no sense.
    #[error(
        "validation {validation} and test {test} must each be in [0, 1) and leave rows for training"
    )]
    BadFractions {
        /// Share of rows for validation.
        validation: f64,
        /// Share of rows for test.
        test: f64,
    },
    /// A saved encoder was written by another version.
    #[error("the saved preprocessing has version {found}; this program reads version {expected}")]
    EncoderVersion {
        /// The version in the file.
        found: u32,
        /// The version expected.
        expected: u32,
    },
    /// A saved encoder contradicts itself.
    #[error("the saved preprocessing is not valid: {0}")]
    EncoderInvalid(String),
}

/// One of a few values that do not fit the rest of their column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// Where the first of them is.
    pub place: Place,
    /// The column.
    pub column: String,
    /// What nearly all its values are.
    pub expected: Kind,
    /// The value found, shortened.
    pub value: String,
    /// How many values do not fit.
    pub strays: u64,
    /// How many there are in all.
    pub present: u64,
    /// Further columns that have such values.
    pub others: Vec<String>,
}

impl fmt::Display for Stray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, column, expected, value, strays, present, others } = self;
        let fitting = present - strays;
        write!(
            f,
            "{place}, column {column:?}: expected {}, as are {fitting} of its {present} values, found {value:?}",
            article(*expected)
        )?;
        if !others.is_empty() {
            write!(f, "; so it is in {}", listed(others))?;
        }
        Ok(())
    }
}

/// What the values of a kind are.
fn article(kind: Kind) -> &'static str {
    match kind {
        Kind::Numeric => "a number",
        Kind::Categorical => "a name",
        Kind::Date => "a date",
        Kind::Text => "a text",
        Kind::Vector => "a list of numbers",
        Kind::Image => "the path of a picture",
        Kind::Series => "a list of numbers",
    }
}

fn because(ignored: &[String]) -> String {
    match ignored {
        [] => "there is no column beside target and source".to_owned(),
        ignored => listed(ignored),
    }
}

/// The first few names, so that a wide table does not flood a message.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut text =
        names.iter().take(SHOWN).map(|name| shortened(name)).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// A value cut to a length that fits into a message.
pub(crate) fn shortened(value: &str) -> String {
    const KEPT: usize = 60;
    match value.char_indices().nth(KEPT) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

impl DataError {
    /// Tells a truncated stream from a damaged one and from a failing disk.
    pub(crate) fn from_io(path: &Path, format: &'static str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated { path, format },
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other
                if format != "CSV" =>
            {
                Self::Damaged { path, format, message: source.to_string() }
            }
            _ => Self::Read { path, source },
        }
    }
}
