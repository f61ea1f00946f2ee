//! Nearly every row has the same label, and the model sees something else.

use serde::{Deserialize, Serialize};

use super::{ENOUGH, Examination};
use crate::confusion::share;
use crate::{Finding, Subject, Word};

/// It gives nearly every row one label, which the model sees in few of them. The strength is the share of rows that
/// have the label without being seen to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DefaultLabel {
    /// The label.
    pub label: String,
    /// Share of its rows in which the model sees it.
    pub seen: f64,
}

impl Examination for DefaultLabel {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let tally = subject.tally().filter(|tally| tally.total >= ENOUGH)?;
        let only = tally.dominant()?;
        let seen = share(tally.predicted[only], tally.total);
        let fault = Self { label: subject.class(only), seen };
        let rows = subject.examples_of(|given, said| given == only && said != only);
        (seen < 0.8).then(|| {
            Finding::new(fault, share(tally.given[only], tally.total) - seen).shown_by(rows)
        })
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Text("It gives nearly every row the label "),
            Word::Name(&self.label),
            Word::Text(", which the model sees in only "),
            Word::Share(self.seen),
            Word::Text(": look for a default value, a filter, or an annotator who did not read."),
        ]
    }
}
