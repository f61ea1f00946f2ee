//! What the model says most often instead.

use serde::{Deserialize, Serialize};

use super::Examination;
use crate::confusion::share;
use crate::{Finding, Subject, Word};

/// The most frequent disagreement. The strength is its share of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrequentDisagreement {
    /// The label.
    pub given: String,
    /// What the model says instead.
    pub predicted: String,
    /// How often.
    pub count: u64,
    /// Of so many disagreements.
    pub of: u64,
}

impl Examination for FrequentDisagreement {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let tally = subject.tally()?;
        let (i, j, count) = tally.most_frequent_disagreement()?;
        let of = tally.disagreeing();
        let rows = subject.examples_of(|given, said| (given, said) == (i, j));
        let fault = Self { given: subject.class(i), predicted: subject.class(j), count, of };
        Some(Finding::new(fault, share(count, of)).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Text("Most frequent disagreement: given "),
            Word::Name(&self.given),
            Word::Text(", the model says "),
            Word::Name(&self.predicted),
            Word::Text(" ("),
            Word::Count(self.count),
            Word::Text(" of "),
            Word::Count(self.of),
            Word::Text(" disagreements)."),
        ]
    }
}
