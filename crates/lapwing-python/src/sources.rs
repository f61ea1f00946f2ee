//! What is known of every source, as a table.

use arrow_array::ArrayRef;
use lapwing_judge::{Cell, SourceRow};
use pyo3::prelude::*;

use crate::table::{Table, counts, numbers, texts};

const COLUMNS: [&str; 13] = [
    "source",
    "verdict",
    "rows",
    "batches",
    "unreliability",
    "weight",
    "mean_loss",
    "reference_loss",
    "reference_std",
    "nonfinite",
    "judged",
    "above",
    "first_departure_step",
];

/// One row per source that was judged.
pub(crate) fn source_table(sources: &[SourceRow]) -> PyResult<Table> {
    Table::new(COLUMNS.map(|name| (name, column(sources, name))))
}

fn column(sources: &[SourceRow], name: &str) -> ArrayRef {
    let cells = || sources.iter().map(|source| source.cell(name));
    match SourceRow::default().cell(name) {
        Cell::Text(_) => texts(cells().map(|cell| match cell {
            Cell::Text(text) => text.to_owned(),
            _ => String::new(),
        })),
        Cell::Count(_) => counts(cells().map(|cell| match cell {
            Cell::Count(count) => count,
            _ => 0,
        })),
        _ => numbers(cells().map(|cell| match cell {
            Cell::Number(number) => number,
            Cell::Step(step) => step.map(|step| step as f64),
            _ => None,
        })),
    }
}
