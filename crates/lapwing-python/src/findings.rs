//! What is wrong with the sources, as data.

use std::hash::{DefaultHasher, Hash, Hasher};

use lapwing_judge::{
    Answered, Answers, Case, Column, Features, Finding, JudgeError, Rows, SourceRow, examine,
};
use lapwing_train::Predictions;
use numpy::ndarray::ArrayView2;
use serde::Serialize;

/// A finding with the source it is on and its sentence.
#[derive(Serialize)]
struct Told<'a> {
    source: &'a str,
    #[serde(flatten)]
    finding: &'a Finding,
    sentence: String,
}

/// What was given to each training row, as the model was trained with it.
pub(crate) enum Given {
    Classes { names: Vec<String>, labels: Vec<u32> },
    Values(Vec<f64>),
}

/// The inputs as they came, of the training rows.
pub(crate) struct Inputs<'a> {
    pub(crate) names: &'a [String],
    pub(crate) values: ArrayView2<'a, f64>,
    pub(crate) train: &'a [u32],
}

impl Features for Inputs<'_> {
    fn names(&self) -> Vec<String> {
        self.names.to_vec()
    }

    fn column(&self, name: &str) -> Option<Column<'_>> {
        let at = self.names.iter().position(|own| own == name)?;
        let values: Vec<f64> =
            self.train.iter().map(|&row| self.values[[row as usize, at]]).collect();
        Some(Column::Numbers(values.into()))
    }

    fn digests(&self) -> Option<Vec<u64>> {
        let digest = |&row: &u32| {
            let mut digest = DefaultHasher::new();
            self.values.row(row as usize).iter().for_each(|v| v.to_bits().hash(&mut digest));
            digest.finish()
        };
        Some(self.train.iter().map(digest).collect())
    }
}

/// Examines the sources (in the order of their numbers) by what the model says of the training rows, which are numbered
/// as in the array they came in, and by what networks say that have not seen them, where there are such.
pub(crate) fn findings(
    judged: &[SourceRow],
    sources: &[u32],
    inputs: &Inputs<'_>,
    given: &Given,
    predictions: &Predictions,
    out_of_sample: Option<&[f64]>,
) -> Result<Vec<Vec<Finding>>, JudgeError> {
    let answers = match (given, predictions) {
        (Given::Classes { names, labels }, Predictions::Classes { probabilities, .. }) => {
            Answers::Classes { names, given: labels, probabilities }
        }
        (Given::Values(given), Predictions::Values(predicted)) => {
            Answers::Values { given, predicted }
        }
        _ => return Ok(vec![Vec::new(); judged.len()]),
    };
    let numbers: Vec<u64> = inputs.train.iter().map(|&row| row.into()).collect();
    let rows = Rows {
        features: Some(inputs),
        out_of_sample,
        ..Rows::new(Answered { sources, answers }, &numbers)
    };
    Ok(examine(&Case::new(judged, Some(rows))?))
}

/// A list of objects: the source, the fault with its numbers, strength, rows and the sentence.
pub(crate) fn json(judged: &[SourceRow]) -> Result<String, serde_json::Error> {
    let told = judged.iter().flat_map(|source| {
        source.findings.iter().map(|finding| Told {
            source: &source.source,
            finding,
            sentence: lapwing_report::phrase(finding),
        })
    });
    serde_json::to_string(&told.collect::<Vec<_>>())
}
