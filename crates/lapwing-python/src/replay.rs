//! The rule over a log of losses.

use std::path::PathBuf;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Schema};
use lapwing_data::{DataError, LogColumns, LossLog};
use lapwing_run::Replay;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::batch::{Losses, Sources};
use crate::column;
use crate::name::Names;
use crate::rule::Rule;
use crate::sources::source_table;
use crate::table::{self, STREAM, Table};

/// Rows between two looks at whether the user has had enough.
const ROWS_BETWEEN_SIGNALS: u64 = 1 << 16;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplayError {
    #[error("no column {column:?}; the table has {available}")]
    MissingColumn { column: String, available: String },
    #[error("column {column:?} holds {found}, but must hold {expected}")]
    WrongType { column: String, found: DataType, expected: &'static str },
    #[error("row {row}: the {what} is missing")]
    MissingValue { row: u64, what: &'static str },
    #[error("row {row}: step {step} is not a whole number")]
    BrokenStep { row: u64, step: f64 },
    #[error("{steps} steps, {sources} sources and {losses} losses: expected as many of each")]
    Lengths { steps: usize, sources: usize, losses: usize },
    #[error("the table has no rows")]
    Empty,
    #[error(transparent)]
    Replay(#[from] lapwing_run::ReplayError),
    #[error(transparent)]
    File(#[from] DataError),
    #[error("the table cannot be read: {0}")]
    Arrow(#[from] ArrowError),
    #[error("interrupted")]
    Python(#[from] PyErr),
}

impl From<ReplayError> for PyErr {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Python(error) => error,
            ReplayError::MissingColumn { .. } => PyKeyError::new_err(error.to_string()),
            ReplayError::WrongType { .. } => PyTypeError::new_err(error.to_string()),
            _ => PyValueError::new_err(error.to_string()),
        }
    }
}

type Result<T> = std::result::Result<T, ReplayError>;

/// The steps so far, column by column.
struct Steps<'py, 'r> {
    py: Python<'py>,
    rule: &'r mut Rule,
    replay: Replay<i64>,
    steps: Vec<i64>,
    sources: Vec<i64>,
    losses: Vec<Option<f64>>,
    unreliability: Vec<u64>,
    weights: Vec<f64>,
}

impl<'py, 'r> Steps<'py, 'r> {
    fn new(py: Python<'py>, rule: &'r mut Rule) -> Self {
        Self {
            py,
            replay: Replay::new(rule.lap.clone()),
            rule,
            steps: Vec::new(),
            sources: Vec::new(),
            losses: Vec::new(),
            unreliability: Vec::new(),
            weights: Vec::new(),
        }
    }

    fn names(&mut self) -> &mut Names {
        &mut self.rule.names
    }

    fn row(&mut self, step: i64, source: i64, loss: f64) -> Result<()> {
        let ended = self.replay.row(step, &source, loss)?;
        self.record(ended);
        if self.replay.rows().is_multiple_of(ROWS_BETWEEN_SIGNALS) {
            self.py.check_signals()?;
        }
        Ok(())
    }

    fn record(&mut self, ended: Option<i64>) {
        let Some(step) = ended else { return };
        for present in self.replay.present() {
            self.steps.push(step);
            self.sources.push(*present.source);
            self.losses.push(present.loss);
            self.unreliability.push(present.unreliability);
            self.weights.push(present.weight);
        }
    }

    /// A row per step and source, and a row per source.
    fn finish(mut self) -> Result<(Table, Table)> {
        let ended = self.replay.finish()?;
        if ended.is_none() {
            return Err(ReplayError::Empty);
        }
        self.record(ended);
        let names = &self.rule.names;
        let sources = source_table(&self.replay.sources(|&code| names.name(code)))?;
        let steps = Table::new([
            ("step", table::integers(self.steps)),
            ("source", table::texts(self.sources.iter().map(|&code| names.name(code)))),
            ("loss", table::numbers(self.losses.into_iter())),
            ("unreliability", table::counts(self.unreliability.into_iter())),
            ("weight", table::numbers(self.weights.into_iter().map(Some))),
        ])?;
        self.rule.lap = self.replay.into_lap();
        Ok((steps, sources))
    }
}

/// Runs the rule over a log that is an Arrow stream.
#[pyfunction]
pub(crate) fn replay_stream(
    rule: &Bound<'_, Rule>,
    stream: &Bound<'_, PyCapsule>,
    step: &str,
    source: &str,
    loss: &str,
) -> PyResult<(Table, Table)> {
    let mut rule_of_log = rule.borrow_mut();
    let mut replay = Steps::new(rule.py(), &mut rule_of_log);
    let reader = take_over(stream)?;
    let places = [step, source, loss].map(|name| find(&reader.schema(), name));
    let [step_at, source_at, loss_at] = places;
    let (step_at, source_at, loss_at) = (step_at?, source_at?, loss_at?);
    for batch in reader {
        let batch: RecordBatch = batch.map_err(ReplayError::from)?;
        let column = |at: usize, name| (batch.column(at), name);
        let steps = steps(column(step_at, step), replay.replay.rows())?;
        let sources = codes(column(source_at, source), replay.replay.rows(), replay.names())?;
        let losses = losses(column(loss_at, loss))?;
        for ((step, source), loss) in steps.into_iter().zip(sources).zip(losses) {
            replay.row(step, source, loss)?;
        }
    }
    Ok(replay.finish()?)
}

/// Runs the rule over a log that is three arrays.
#[pyfunction]
pub(crate) fn replay_arrays(
    rule: &Bound<'_, Rule>,
    steps: &Bound<'_, PyArray1<i64>>,
    sources: &Bound<'_, PyAny>,
    losses: &Bound<'_, PyAny>,
) -> PyResult<(Table, Table)> {
    let mut rule_of_log = rule.borrow_mut();
    let mut replay = Steps::new(rule.py(), &mut rule_of_log);
    let steps = steps.to_vec()?;
    let sources = Sources::of(sources, replay.names())?.codes()?.to_vec();
    let losses: Vec<f64> = Losses::of(losses)?.to_f64()?;
    if steps.len() != sources.len() || steps.len() != losses.len() {
        let (steps, sources, losses) = (steps.len(), sources.len(), losses.len());
        return Err(ReplayError::Lengths { steps, sources, losses }.into());
    }
    for ((step, source), loss) in steps.into_iter().zip(sources).zip(losses) {
        replay.row(step, source, loss)?;
    }
    Ok(replay.finish()?)
}

/// Runs the rule over a log that is a file: CSV, TSV (also compressed) or Parquet.
#[pyfunction]
pub(crate) fn replay_file(
    rule: &Bound<'_, Rule>,
    path: PathBuf,
    step: &str,
    source: &str,
    loss: &str,
) -> PyResult<(Table, Table)> {
    let mut rule_of_log = rule.borrow_mut();
    let mut replay = Steps::new(rule.py(), &mut rule_of_log);
    let (step, source, loss) = (step.to_owned(), source.to_owned(), loss.to_owned());
    let log = LossLog::open(path, &LogColumns { step, source, loss }).map_err(ReplayError::from)?;
    log.each_row(|row| -> Result<()> {
        let source = replay.names().code(row.source);
        replay.row(row.step, source, row.loss)
    })?;
    Ok(replay.finish()?)
}

/// Takes the stream out of its capsule, which is left empty, as the Arrow PyCapsule interface wants.
#[allow(unsafe_code)]
fn take_over(capsule: &Bound<'_, PyCapsule>) -> Result<RecordBatchStreamReader> {
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a pointer to a stream in the C layout that it owns and
    // that nobody else uses while the interpreter is held; moving it out leaves a released one.
    Ok(unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) }?)
}

fn find(schema: &Schema, column: &str) -> Result<usize> {
    schema.index_of(column).map_err(|_| {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        ReplayError::MissingColumn { column: column.to_owned(), available: names.join(", ") }
    })
}

fn wrong((array, column): (&ArrayRef, &str), expected: &'static str) -> ReplayError {
    let (column, found) = (column.to_owned(), array.data_type().clone());
    ReplayError::WrongType { column, found, expected }
}

fn steps(column: (&ArrayRef, &str), before: u64) -> Result<Vec<i64>> {
    let (array, _) = column;
    let missing = |at: usize| ReplayError::MissingValue { row: before + at as u64, what: "step" };
    if let Some(steps) = column::whole_numbers(array) {
        let steps = steps.into_iter().enumerate();
        return steps.map(|(at, step)| step.ok_or_else(|| missing(at))).collect();
    }
    // Data frames turn whole numbers into 12.0 when a value is missing elsewhere in the column.
    let floating = Some(array).filter(|array| array.data_type().is_floating());
    let steps = floating
        .and_then(|array| column::numbers(array))
        .ok_or_else(|| wrong(column, "whole numbers"))?;
    let steps = steps.into_iter().enumerate();
    steps
        .map(|(at, step)| match step {
            Some(step) if step.trunc() == step && step.abs() <= 2f64.powi(53) => Ok(step as i64),
            Some(step) if !step.is_nan() => {
                Err(ReplayError::BrokenStep { row: before + at as u64, step })
            }
            _ => Err(missing(at)),
        })
        .collect()
}

/// Losses; NaN where there is none.
fn losses(column: (&ArrayRef, &str)) -> Result<Vec<f64>> {
    let losses = column::numbers(column.0).ok_or_else(|| wrong(column, "numbers"))?;
    Ok(losses.into_iter().map(|loss| loss.unwrap_or(f64::NAN)).collect())
}

fn codes(column: (&ArrayRef, &str), before: u64, names: &mut Names) -> Result<Vec<i64>> {
    let (array, _) = column;
    let missing = |at: usize| ReplayError::MissingValue { row: before + at as u64, what: "source" };
    if *array.data_type() != DataType::UInt64
        && let Some(numbers) = column::whole_numbers(array)
    {
        let numbers = numbers.into_iter().enumerate();
        return numbers
            .map(|(at, number)| Ok(names.code_of_number(number.ok_or_else(|| missing(at))?)))
            .collect();
    }
    let texts = column::texts(array).ok_or_else(|| wrong(column, "texts or numbers"))?;
    texts.enumerate().map(|(at, text)| Ok(names.code(&text.ok_or_else(|| missing(at))?))).collect()
}
