//! Losses that are no numbers.

use serde::{Deserialize, Serialize};

use super::Examination;
use crate::{Finding, Subject, Word};

/// Some of its losses were NaN or infinite. The strength is 1: one is enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NonfiniteLosses {
    /// How many.
    pub count: u64,
}

impl Examination for NonfiniteLosses {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let count = subject.row().nonfinite;
        (count > 0).then(|| Finding::new(Self { count }, 1.0))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Count(self.count),
            Word::Text(
                " of its losses were not finite: look for missing, infinite or absurdly large values.",
            ),
        ]
    }
}
