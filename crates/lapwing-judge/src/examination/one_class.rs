//! Disagreements about one label.

use serde::{Deserialize, Serialize};

use super::{Examination, varied};
use crate::confusion::share;
use crate::{Finding, Subject, Word};

/// Nearly all its disagreements are rows of one label. The strength is their share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OneClass {
    /// The label.
    pub label: String,
    /// Its share of all disagreements.
    pub share: f64,
}

impl Examination for OneClass {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let tally = varied(subject)?;
        let (i, ..) = tally.most_frequent_disagreement()?;
        let share = share(tally.given[i] - tally.cells[i][i], tally.disagreeing());
        let fault = Self { label: subject.class(i), share };
        let rows = subject.examples_of(|given, said| given == i && said != i);
        (share >= 0.8).then(|| Finding::new(fault, share).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Share(self.share),
            Word::Text(" of its disagreements are rows it labels "),
            Word::Name(&self.label),
            Word::Text(": the rest of its labels may be sound."),
        ]
    }
}
