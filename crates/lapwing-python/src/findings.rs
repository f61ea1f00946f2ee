//! What is wrong with the sources, as data.

use lapwing_judge::{Answered, Answers, Case, Finding, JudgeError, Rows, SourceRow, examine};
use lapwing_train::Predictions;
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

/// Examines the sources (in the order of their numbers) by what the model says of the training rows, which are numbered
/// as in the array they came in.
pub(crate) fn findings(
    judged: &[SourceRow],
    sources: &[u32],
    train: &[u32],
    given: &Given,
    predictions: &Predictions,
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
    let numbers: Vec<u64> = train.iter().map(|&row| row.into()).collect();
    let rows = Rows::new(Answered { sources, answers }, &numbers);
    Ok(examine(&Case::new(judged, Some(rows))?))
}

/// A list of objects: the source, the fault with its numbers, strength, rows and the sentence.
pub(crate) fn json(
    judged: &[SourceRow],
    findings: &[Vec<Finding>],
) -> Result<String, serde_json::Error> {
    let told = judged.iter().zip(findings).flat_map(|(source, found)| {
        found.iter().map(|finding| Told {
            source: &source.source,
            finding,
            sentence: lapwing_report::phrase(finding),
        })
    });
    serde_json::to_string(&told.collect::<Vec<_>>())
}
