//! The verdicts on a terminal, and as JSON.

use std::collections::HashMap;

use lapwing_report::{Interval, Verdict};
use lapwing_run::{Metrics, Results, SourceRecord};
use serde_json::{Value, json};

use crate::output::count;
use crate::table::TextTable;

/// The sources of a run, worst first, and the label errors of those that have an estimate.
pub(crate) fn worst_first(results: &Results) -> (Vec<SourceRecord>, HashMap<String, Interval>) {
    let errors = results
        .sources
        .iter()
        .zip(&results.label_errors)
        .filter_map(|(record, error)| Some((record.source.clone(), (*error)?)))
        .collect();
    let mut sources = results.sources.clone();
    SourceRecord::sort_worst_first(&mut sources);
    (sources, errors)
}

/// A table of sources, worst first, with estimated label errors where there are any.
pub(crate) fn table(records: &[SourceRecord], errors: &HashMap<String, Interval>) -> String {
    let mut header =
        vec!["verdict", "source", ">rows", ">weight", ">unreliability", ">loss", ">others"];
    if !errors.is_empty() {
        header.push(">label errors");
    }
    let mut table = TextTable::new(&header);
    let loss = |loss: Option<f64>| loss.map_or_else(|| "–".to_owned(), short);
    for record in records {
        let mut cells = vec![
            record.verdict.word().to_owned(),
            record.source.clone(),
            count(record.rows),
            short(record.weight),
            count(record.unreliability),
            loss(record.mean_loss),
            loss(record.reference_loss),
        ];
        if !errors.is_empty() {
            cells.push(errors.get(&record.source).map_or_else(|| "–".to_owned(), interval));
        }
        table.row(cells);
    }
    table.render()
}

/// What the verdicts come to, in a line.
pub(crate) fn tally(records: &[SourceRecord]) -> String {
    let of = |verdict: Verdict| records.iter().filter(|r| r.verdict == verdict).count();
    let words = [Verdict::Unreliable, Verdict::Suspect, Verdict::Insufficient, Verdict::Reliable]
        .into_iter()
        .filter(|verdict| of(*verdict) > 0)
        .map(|verdict| format!("{} {}", of(verdict), verdict.word()))
        .collect::<Vec<_>>();
    format!("{} sources: {}", count(records.len() as u64), words.join(", "))
}

/// One source as a JSON object: the columns of `sources.csv`, and the estimate where there is one.
pub(crate) fn object(record: &SourceRecord, error: Option<&Interval>) -> anyhow::Result<Value> {
    let mut object = serde_json::to_value(record)?;
    if let (Some(fields), Some(error)) = (object.as_object_mut(), error) {
        let error = json!({"estimate": error.estimate, "low": error.low, "high": error.high});
        fields.insert("label_error".to_owned(), error);
    }
    Ok(object)
}

/// Metrics in a line: `accuracy 0.9755, …`.
pub(crate) fn metrics(metrics: &Metrics) -> String {
    let named = metrics.named().into_iter();
    named
        .filter_map(|(name, value)| Some(format!("{} {}", name.replace('_', " "), short(value?))))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Metrics as a JSON object.
pub(crate) fn metrics_object(metrics: &Metrics) -> Value {
    let fields = metrics.named().into_iter().map(|(name, value)| (name.to_owned(), json!(value)));
    let mut object: serde_json::Map<String, Value> =
        [("rows".to_owned(), json!(metrics.rows()))].into_iter().collect();
    object.extend(fields);
    Value::Object(object)
}

/// Four figures that matter.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !size.is_finite() => value.to_string(),
        size if !(1e-4..1e7).contains(&size) => format!("{value:.1e}"),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn interval(interval: &Interval) -> String {
    let per_cent = |share: f64| format!("{:.0}", 100.0 * share);
    let Interval { estimate, low, high } = interval;
    format!("{} % ({}–{})", per_cent(*estimate), per_cent(*low), per_cent(*high))
}
