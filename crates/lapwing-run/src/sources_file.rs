//! `sources.csv`: one row per source, in the order of the table.

use std::path::Path;

use lapwing_report::Verdict;
use serde::{Deserialize, Serialize};

use crate::RunError;
use crate::fit::SourceFacts;

/// A row of `sources.csv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceRecord {
    /// Its name.
    pub source: String,
    /// Training rows.
    pub rows: u64,
    /// Batches in which it had a finite loss.
    pub batches: u64,
    /// C.
    pub unreliability: u64,
    /// What its rows count for at the end, guards included.
    pub weight: f64,
    /// Mean loss over its window.
    pub mean_loss: Option<f64>,
    /// Mean loss of the others.
    pub reference_loss: Option<f64>,
    /// Its standard deviation.
    pub reference_std: Option<f64>,
    /// Losses that were not finite.
    pub nonfinite: u64,
    /// First step in which it was above the threshold.
    pub first_departure_step: Option<u64>,
    /// The verdict.
    pub verdict: Verdict,
}

impl SourceRecord {
    pub(crate) fn new(name: &str, facts: &SourceFacts, verdict: Verdict) -> Self {
        Self {
            source: name.to_owned(),
            rows: facts.rows,
            batches: facts.batches,
            unreliability: facts.unreliability,
            weight: facts.weight,
            mean_loss: facts.mean_loss,
            reference_loss: facts.reference_loss,
            reference_std: facts.reference_std,
            nonfinite: facts.nonfinite,
            first_departure_step: facts.first_departure_step,
            verdict,
        }
    }

    /// Worst verdict first, then smallest weight, then largest unreliability, then name.
    pub fn sort_worst_first(records: &mut [Self]) {
        records.sort_by(|a, b| {
            a.verdict
                .cmp(&b.verdict)
                .then(a.weight.total_cmp(&b.weight))
                .then(b.unreliability.cmp(&a.unreliability))
                .then_with(|| a.source.cmp(&b.source))
        });
    }
}

pub(crate) fn encode(records: &[SourceRecord]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        writer.serialize(record)?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

pub(crate) fn read(path: &Path) -> Result<Vec<SourceRecord>, RunError> {
    let damaged =
        |error: csv::Error| RunError::Damaged { path: path.to_owned(), reason: error.to_string() };
    let mut reader = csv::Reader::from_path(path).map_err(damaged)?;
    reader.deserialize().collect::<Result<_, _>>().map_err(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_read_back_as_they_were() {
        let facts = SourceFacts { weight: 1e-300, mean_loss: Some(0.1), ..SourceFacts::default() };
        let records: Vec<SourceRecord> = ["a,b", "\"q\"\n", "=1+1", " x "]
            .map(|name| SourceRecord::new(name, &facts, Verdict::Suspect))
            .to_vec();
        let bytes = encode(&records).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.starts_with(
            "source,rows,batches,unreliability,weight,mean_loss,reference_loss,reference_std,\
             nonfinite,first_departure_step,verdict\n"
        ));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sources.csv");
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(read(&path).unwrap(), records);
    }
}
