//! Disagreements without a pattern.

use serde::{Deserialize, Serialize};

use super::{Examination, varied};
use crate::confusion::share;
use crate::{Finding, Subject, Word};

/// Its disagreements are spread over the classes. The strength is the share of rows that disagree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScatteredDisagreements {}

impl Examination for ScatteredDisagreements {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let tally = varied(subject).filter(|tally| tally.disagreeing() > 0)?;
        let rows = subject.examples_of(|given, said| given != said);
        Some(Finding::new(Self {}, share(tally.disagreeing(), tally.total)).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![Word::Text(
            "Its disagreements are spread over the classes, as by carelessness rather than by rule.",
        )]
    }
}
