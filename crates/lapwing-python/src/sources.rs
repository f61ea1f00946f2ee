//! What is known of every source, as a table.

use arrow_array::ArrayRef;
use lapwing_judge::{Cell, SourceRow};
use pyo3::prelude::*;

use crate::table::{Table, counts, numbers, texts};

/// What the rule knows.
const RULE: [&str; 13] = [
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

/// What is known from labels that networks had not seen, and from examinations.
const LABELS: [&str; 13] = [
    "noise_rate",
    "noise_rate_low",
    "noise_rate_high",
    "disagreement",
    "doubt",
    "class_mix",
    "bad_from",
    "bad_from_low",
    "bad_from_high",
    "bad_until",
    "bad_until_low",
    "bad_until_high",
    "faults",
];

/// One row per source that was judged.
pub(crate) fn source_table(sources: &[SourceRow]) -> PyResult<Table> {
    Table::new(RULE.map(|name| (name, column(sources, name))))
}

/// The same with what is known of labels, and the sentence that gives the reason for the verdict.
pub(crate) fn judged_table(sources: &[SourceRow]) -> PyResult<Table> {
    let known = RULE.into_iter().chain(LABELS).map(|name| (name, column(sources, name)));
    let reason = ("reason", texts(sources.iter().map(lapwing_report::reason)));
    Table::of(known.chain([reason]))
}

fn column(sources: &[SourceRow], name: &str) -> ArrayRef {
    let cells = || sources.iter().map(|source| source.cell(name));
    match SourceRow::default().cell(name) {
        Cell::Text(_) => texts(cells().map(|cell| match cell {
            Cell::Text(text) => text.to_owned(),
            _ => String::new(),
        })),
        Cell::Maybe(_) => texts(cells().map(|cell| match cell {
            Cell::Maybe(Some(text)) => text.into_owned(),
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
