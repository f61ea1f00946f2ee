//! What the rule knows of every source, as a table.

use std::hash::Hash;

use lapwing_core::{Lap, SourceStatus};
use lapwing_run::{Facts, verdict};
use pyo3::prelude::*;

use crate::table::{Table, counts, numbers, texts};

/// One row per source, in order of first appearance. `rows` counts those of a source, given how many
/// samples the rule has seen of it, and `step` is what a step of the rule is called.
pub(crate) fn source_table<K: Hash + Eq>(
    lap: &Lap<K>,
    name: impl Fn(&K) -> String,
    rows: impl Fn(&K, u64) -> u64,
    step: impl Fn(u64) -> i64,
) -> PyResult<Table> {
    let history_length = lap.config().history_length;
    let mut statuses: Vec<SourceStatus<'_, K>> = lap.sources().collect();
    for status in &mut statuses {
        status.rows = rows(status.source, status.rows);
    }
    let all = || statuses.iter();
    let departure =
        |status: &SourceStatus<'_, K>| status.first_departure_step.map(|at| step(at) as f64);
    Table::new([
        ("source", texts(all().map(|status| name(status.source)))),
        ("verdict", texts(all().map(|status| verdict_of(status, history_length)))),
        ("rows", counts(all().map(|status| status.rows))),
        ("batches", counts(all().map(|status| status.batches))),
        ("unreliability", counts(all().map(|status| status.unreliability))),
        ("weight", numbers(all().map(|status| Some(status.weight)))),
        ("mean_loss", numbers(all().map(|status| status.mean_loss))),
        ("reference_loss", numbers(all().map(|status| status.reference.map(|r| r.mean)))),
        ("reference_std", numbers(all().map(|status| status.reference.map(|r| r.std)))),
        ("nonfinite", counts(all().map(|status| status.nonfinite))),
        ("judged", counts(all().map(|status| status.judged))),
        ("above", counts(all().map(|status| status.above))),
        ("first_departure_step", numbers(all().map(departure))),
    ])
}

fn verdict_of<K>(status: &SourceStatus<'_, K>, history_length: usize) -> String {
    let facts = Facts {
        rows: status.rows,
        judged: status.judged,
        above: status.above,
        unreliability: status.unreliability,
        weight: status.weight,
    };
    verdict(&facts, history_length).word().to_owned()
}
