//! Since when, and how often, a source's losses were too high.

use serde::{Deserialize, Serialize};

use super::Examination;
use crate::{Finding, Subject, Word};

/// Its losses departed from those of the others. The strength is the share of its steps in which they were above the
/// threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Departure {
    /// The first step in which it did.
    pub step: Option<i64>,
    /// Share of its steps in which its loss was above the threshold.
    pub share_above: Option<f64>,
}

impl Examination for Departure {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let row = subject.row();
        // A source that never was above the threshold has other faults, or none.
        let (step, share_above) =
            (row.first_departure_step, row.share_above().filter(|share| *share > 0.0));
        (step.is_some() || share_above.is_some())
            .then(|| Finding::new(Self { step, share_above }, share_above.unwrap_or(0.0)))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        let mut words = Vec::new();
        if let Some(step) = self.step {
            words.extend([
                Word::Text("It first departed from the others at step "),
                Word::Step(step),
            ]);
        }
        if let Some(share) = self.share_above {
            words.push(Word::Text(if self.step.is_some() { "; its" } else { "Its" }));
            words.push(Word::Text(" loss was above the threshold in "));
            words.extend([Word::Share(share), Word::Text(" of its steps")]);
        }
        words.push(Word::Text("."));
        words
    }
}
