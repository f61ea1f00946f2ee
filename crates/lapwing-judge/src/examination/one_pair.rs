//! Disagreements that are nearly all of one kind.

use serde::{Deserialize, Serialize};

use super::{Examination, varied};
use crate::confusion::share;
use crate::{Finding, Subject, Word};

/// One pair of several classes makes up most of its disagreements. The strength is the pair's share of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnePair {
    /// The label.
    pub given: String,
    /// What the model says instead.
    pub predicted: String,
    /// The pair's share of all disagreements.
    pub share: f64,
}

impl Examination for OnePair {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let tally = varied(subject).filter(|tally| tally.given.len() > 2)?;
        let (i, j, n) = tally.most_frequent_disagreement()?;
        let share = share(n, tally.disagreeing());
        let fault = Self { given: subject.class(i), predicted: subject.class(j), share };
        let rows = subject.examples_of(|given, said| (given, said) == (i, j));
        (share >= 0.5).then(|| Finding::new(fault, share).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![Word::Text(
            "One pair of classes accounts for most of its disagreements: the rest of its labels may be sound.",
        )]
    }
}
