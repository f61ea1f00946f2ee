//! One label for all rows, where the other sources give several.

use serde::{Deserialize, Serialize};

use super::{ENOUGH, Examination, Scope};
use crate::{Finding, Subject, Word};

/// Chance below which it is no accident that all rows drawn as from the other sources have one label.
const ACCIDENT: f64 = 1e-6;

/// It gives all its rows the same label, which other sources do not. It needs no model: the labels alone show it, even
/// where losses are low because the model has learnt to say the same. The strength is the share of rows of the other
/// sources with another label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OneLabel {
    /// The label.
    pub label: String,
    /// How many rows have it.
    pub of: u64,
    /// Share of the other sources' rows that have it.
    pub others: f64,
}

impl Examination for OneLabel {
    const SCOPE: Scope = Scope::Every;

    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let given = subject.given();
        let mut used = (0..given.len()).filter(|&class| given[class] > 0);
        let (only, None) = (used.next()?, used.next()) else { return None };
        let (of, others) = (given[only], subject.share_among_others(only)?);
        let fault = Self { label: subject.class(only), of, others };
        // In logarithms, as the chance itself is too small a number for many rows.
        (of >= ENOUGH && of as f64 * others.ln() < ACCIDENT.ln())
            .then(|| Finding::new(fault, 1.0 - others).shown_by(subject.examples(|_| true)))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Text("All its "),
            Word::Count(self.of),
            Word::Text(" rows have the label "),
            Word::Name(&self.label),
            Word::Text(", which other sources give to "),
            Word::Share(self.others),
            Word::Text(
                " of theirs: look for a filter, a default value, or another way of choosing rows.",
            ),
        ]
    }
}
