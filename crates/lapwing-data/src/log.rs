//! A log of losses: which source had which loss in which step of a training run.

use std::io;
use std::path::Path;

use crate::error::{DataError, shortened};
use crate::file::Record;
use crate::records::Records;
use crate::value::{Lexicon, MISSING_TOKENS, Raw, write_raw};

type Result<T> = std::result::Result<T, DataError>;

/// Longest record of a log in bytes. Tables may have longer ones; three columns do not.
const MAX_RECORD_BYTES: usize = 1 << 20;
/// Longest name of a source in bytes.
const MAX_SOURCE_BYTES: usize = 4 << 10;

/// What the columns of a log are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogColumns {
    /// The step: whole numbers that never fall. Consecutive rows of one step are one batch.
    pub step: String,
    /// The source: any text that does not stand for a missing value, without the white space around it.
    pub source: String,
    /// The loss: a number. NaN, infinities and nothing at all are losses that are not finite.
    pub loss: String,
}

impl Default for LogColumns {
    fn default() -> Self {
        Self { step: "step".to_owned(), source: "source".to_owned(), loss: "loss".to_owned() }
    }
}

/// A row of a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogRow<'a> {
    /// The step.
    pub step: i64,
    /// The source.
    pub source: &'a str,
    /// The loss; NaN where there is none.
    pub loss: f64,
    /// How much of the log has been read, in the unit of [`LossLog::length`].
    pub read: u64,
}

/// A log of losses, read row by row in bounded memory.
///
/// ```
/// use lapwing_data::{DataError, LogColumns, LossLog};
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("losses.csv");
/// std::fs::write(&path, "step,source,loss\n0,ward 1,0.5\n0,ward 2,0.75\n").unwrap();
/// let mut sum = 0.0;
/// LossLog::open(&path, &LogColumns::default())?.each_row(|row| {
///     sum += row.loss;
///     Ok::<(), DataError>(())
/// })?;
/// assert_eq!(sum, 1.25);
/// # Ok::<(), DataError>(())
/// ```
pub struct LossLog {
    records: Records,
    step: Column,
    source: Column,
    loss: Column,
}

struct Column {
    at: usize,
    name: String,
}

impl LossLog {
    /// Opens a CSV, TSV (also compressed by gzip or zstd) or Parquet file and finds its columns.
    pub fn open(path: impl AsRef<Path>, columns: &LogColumns) -> Result<Self> {
        Self::new(Records::open(path)?, columns)
    }

    /// Reads a CSV from a stream, such as standard input; `name` stands for it in messages.
    pub fn from_reader(
        name: &str,
        reader: impl io::Read + 'static,
        columns: &LogColumns,
    ) -> Result<Self> {
        Self::new(Records::from_reader(name, reader)?, columns)
    }

    fn new(records: Records, columns: &LogColumns) -> Result<Self> {
        let find = |name: &str| -> Result<Column> {
            Ok(Column { at: records.position(name)?, name: name.to_owned() })
        };
        let (step, source, loss) =
            (find(&columns.step)?, find(&columns.source)?, find(&columns.loss)?);
        let roles = [(&step, "step"), (&source, "source"), (&loss, "loss")];
        for (at, (column, role)) in roles.iter().enumerate() {
            if let Some((_, other)) = roles[..at].iter().find(|(other, _)| other.at == column.at) {
                let (first, second) = (*other, *role);
                return Err(DataError::RoleConflict { column: column.name.clone(), first, second });
            }
        }
        Ok(Self { records, step, source, loss })
    }

    /// How long the log is: bytes of a text file, rows of a Parquet file, `None` where nobody
    /// knows in advance.
    pub fn length(&self) -> Option<u64> {
        self.records.length()
    }

    /// Calls `visit` with every row in turn, until it returns an error.
    ///
    /// # Errors
    /// What `visit` returned; or where the log is not what it should be, with file, line and
    /// column. A log without rows is an error, too.
    pub fn each_row<E: From<DataError>>(
        self,
        mut visit: impl FnMut(LogRow<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let Self { records, step, source, loss } = self;
        let path = records.path().to_owned();
        let lexicon = Lexicon::new(&MISSING_TOKENS.map(str::to_owned));
        let mut previous = None;
        let mut name = String::new();
        records.scan(|record: &Record<'_>| -> std::result::Result<(), E> {
            record.check_length(MAX_RECORD_BYTES)?;
            let step = read_step(record, &step, previous)?;
            let source = read_source(&lexicon, record, &source, &mut name)?;
            let loss = read_loss(record, &loss)?;
            previous = Some(step);
            visit(LogRow { step, source, loss, read: record.read })
        })?;
        if previous.is_none() {
            return Err(DataError::HeaderOnly { path }.into());
        }
        Ok(())
    }
}

fn wrong(record: &Record<'_>, column: &Column, expected: &'static str, raw: Raw<'_>) -> DataError {
    let mut text = String::new();
    write_raw(raw, &mut text);
    DataError::WrongLogValue {
        place: record.place(),
        column: column.name.clone(),
        expected,
        value: shortened(&text),
    }
}

fn read_step(record: &Record<'_>, column: &Column, previous: Option<i64>) -> Result<i64> {
    let raw = record.value(column.at);
    // Data frames turn whole numbers into 12.0 when a value is missing elsewhere in the column.
    let whole = |number: f64| {
        (number.trunc() == number && number.abs() <= 2f64.powi(53)).then_some(number as i64)
    };
    let step = match raw {
        Raw::Integer(number) => i64::try_from(number).ok(),
        Raw::Single(number) => whole(f64::from(number)),
        Raw::Double(number) => whole(number),
        Raw::Text(text) => {
            let text = text.trim();
            text.parse().ok().or_else(|| text.parse().ok().and_then(whole))
        }
        Raw::Null | Raw::Bool(_) | Raw::Date(_) | Raw::List(_) => None,
    };
    let step = step.ok_or_else(|| wrong(record, column, "a whole number", raw))?;
    match previous {
        Some(previous) if step < previous => Err(DataError::StepBackwards {
            place: record.place(),
            column: column.name.clone(),
            step,
            previous,
        }),
        _ => Ok(step),
    }
}

/// The name that training would give it, so that a log and a table speak of the same sources.
fn read_source<'a>(
    lexicon: &Lexicon,
    record: &Record<'a>,
    column: &Column,
    buffer: &'a mut String,
) -> Result<&'a str> {
    let raw = record.value(column.at);
    let Some(source) = lexicon.text(raw, buffer) else {
        return Err(wrong(record, column, "the name of a source", raw));
    };
    if source.len() > MAX_SOURCE_BYTES {
        return Err(wrong(record, column, "a name of at most 4096 bytes", raw));
    }
    Ok(source)
}

fn read_loss(record: &Record<'_>, column: &Column) -> Result<f64> {
    let raw = record.value(column.at);
    let loss = match raw {
        Raw::Null => Some(f64::NAN),
        Raw::Integer(number) => Some(number as f64),
        Raw::Single(number) => Some(f64::from(number)),
        Raw::Double(number) => Some(number),
        Raw::Text(text) => match text.trim() {
            "" => Some(f64::NAN),
            text => text.parse().ok(),
        },
        Raw::Bool(_) | Raw::Date(_) | Raw::List(_) => None,
    };
    loss.ok_or_else(|| wrong(record, column, "a number", raw))
}
