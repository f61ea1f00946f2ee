//! Labels that have nothing to do with the rows.

use serde::{Deserialize, Serialize};

use super::{Examination, INDEPENDENT, ReplacedInputs, varied};
use crate::{Finding, Subject, Word};

/// Its labels are next to independent of what the model sees. The strength is one less their association.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RandomLabels {
    /// Cramér's V of given and predicted labels, 0 to 1, less what chance makes of it.
    pub association: f64,
}

impl Examination for RandomLabels {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let association = varied(subject)?.corrected_association();
        let rows = subject.examples_of(|given, said| given != said);
        (association < INDEPENDENT && !ReplacedInputs::is_found(subject))
            .then(|| Finding::new(Self { association }, 1.0 - association).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Text(
                "Its labels have next to nothing to do with what the model sees (association ",
            ),
            Word::Fixed(self.association, 2),
            Word::Text(
                " on a scale from 0 to 1): they look given at random or attached to the wrong rows, or its inputs do not show what they are about.",
            ),
        ]
    }
}
