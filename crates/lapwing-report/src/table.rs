//! The table of sources, row by row.

use lapwing_judge::{Ruling, SourceNoise, SourceRow};
use serde::Serialize;

use crate::spark::Spark;
use crate::{DoubtfulRow, name, number, reason, scale};

/// A cell of the table: what is shown, and what it is sorted by (nothing when there is no value).
#[derive(Serialize)]
struct Cell {
    text: String,
    key: Option<f64>,
}

impl Cell {
    fn count(n: u64) -> Self {
        Self { text: number::count(n), key: Some(n as f64) }
    }

    fn of(value: Option<f64>, text: impl Fn(f64) -> String) -> Self {
        let key = value.filter(|v| v.is_finite());
        Self { text: value.map_or_else(|| number::NONE.to_owned(), text), key }
    }
}

#[derive(Serialize)]
pub(crate) struct SourceView {
    class: String,
    name: String,
    /// In full where `name` had to be shortened.
    full: Option<String>,
    /// Number of its evidence on the page.
    anchor: Option<usize>,
    verdict: &'static str,
    verdict_key: u8,
    ruling: Option<&'static str>,
    /// Width of the weight's bar.
    bar: String,
    weight: Cell,
    unreliability: Cell,
    rows: Cell,
    batches: Cell,
    mean_loss: Cell,
    reference: Cell,
    share_above: Cell,
    label_error: Cell,
    label_error_interval: String,
    nonfinite: Cell,
    departure: Cell,
    noise_rate: Cell,
    noise_rate_interval: String,
    disagreement: Cell,
    doubt: Cell,
    class_mix: Cell,
    reason: String,
}

impl SourceView {
    pub(crate) fn new(row: &SourceRow, class: String, anchor: Option<usize>) -> Self {
        let name = name::short(&row.source);
        let reference = Cell::of(row.reference_loss, |mean| match row.reference_std {
            Some(std) => format!("{} ± {}", number::value(mean), number::value(std)),
            None => number::value(mean),
        });
        let noise = |value: fn(&SourceNoise) -> f64| {
            Cell::of(row.noise.as_ref().map(value), number::percent)
        };
        let noise_rate = row.noise.map(|noise| noise.noise_rate);
        let interval = row.label_error.map(|e| number::percent_range(e.low, e.high));
        Self {
            class,
            full: name::in_full(&row.source, &name),
            name,
            anchor,
            verdict: row.verdict.word(),
            verdict_key: row.verdict as u8,
            ruling: row.ruling.map(|ruling| match ruling {
                Ruling::Trusted => "trusted",
                Ruling::Blocked => "blocked",
            }),
            bar: scale::at(if row.weight.is_finite() { row.weight.clamp(0.0, 1.0) } else { 0.0 }),
            weight: Cell::of(Some(row.weight), |w| number::fixed(w, 2)),
            unreliability: Cell::count(row.unreliability),
            rows: Cell::count(row.rows),
            batches: Cell::count(row.batches),
            mean_loss: Cell::of(row.mean_loss, number::value),
            reference,
            share_above: Cell::of(row.share_above(), number::percent),
            label_error: Cell::of(row.label_error.map(|e| e.estimate), number::percent),
            label_error_interval: interval.unwrap_or_default(),
            nonfinite: Cell::count(row.nonfinite),
            departure: Cell::of(row.first_departure_step.map(|s| s as f64), |s| {
                number::fixed(s, 0)
            }),
            noise_rate: noise(|noise| noise.noise_rate.estimate),
            noise_rate_interval: noise_rate
                .map(|rate| number::percent_range(rate.low, rate.high))
                .unwrap_or_default(),
            disagreement: noise(|noise| noise.disagreement),
            doubt: noise(|noise| noise.doubt),
            class_mix: noise(|noise| noise.class_mix),
            reason: reason(row),
        }
    }
}

/// A row whose label may be wrong, as it is shown.
#[derive(Serialize)]
pub(crate) struct RowView {
    row: String,
    source: String,
    label: String,
    wrong: String,
    suggestion: String,
    probability: String,
    text: Option<String>,
    file: Option<String>,
    picture: Option<String>,
    spark: Option<Spark>,
}

impl RowView {
    pub(crate) fn new(row: &DoubtfulRow) -> Self {
        Self {
            row: row.row.to_string(),
            source: name::short(&row.source),
            label: name::short(&row.label),
            wrong: row.wrong.map_or_else(|| number::NONE.to_owned(), number::probability),
            suggestion: name::short(&row.suggestion),
            probability: number::probability(row.suggestion_probability),
            text: row.text.as_deref().map(name::passage),
            file: row.file.as_deref().map(name::passage),
            picture: row.picture.clone(),
            spark: Spark::new(&row.lines, &[]),
        }
    }
}
