//! Rows to check by hand.

use serde::{Deserialize, Serialize};

use super::Examination;
use crate::{Finding, Subject, Word};

/// Probability above which the model is called sure.
const SURE: f64 = 0.95;

/// Among its worst rows are some of which the model is sure that another label is right. The strength is how sure it is
/// of the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SureRows {
    /// How sure at least.
    pub probability: f64,
}

impl Examination for SureRows {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let sure = |place: &u32| match (subject.given_label(*place), subject.word(*place)) {
            (Some(given), Some((said, probability, _))) => said != given && probability >= SURE,
            _ => false,
        };
        let places: Vec<u32> = subject.worst().into_iter().filter(sure).collect();
        let (_, strength, _) = subject.word(*places.first()?)?;
        let fault = Self { probability: SURE };
        Some(Finding::new(fault, strength).shown_by(subject.numbered(&places)))
    }

    fn words<'a>(&'a self, rows: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Text(if rows.len() == 1 { "Check row " } else { "Check rows " }),
            Word::Rows(rows),
            Word::Text(" by hand: the model is at least "),
            Word::Share(self.probability),
            Word::Text(" sure of another label there."),
        ]
    }
}
