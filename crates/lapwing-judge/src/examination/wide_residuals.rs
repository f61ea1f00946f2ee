//! Targets that scatter.

use serde::{Deserialize, Serialize};

use super::{Examination, free_targets};
use crate::{Finding, Subject, Word};

/// Its residuals spread wider than those of reliable sources. The strength is the part of the spread that is beyond
/// theirs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WideResiduals {
    /// How many times as wide.
    pub ratio: f64,
}

impl Examination for WideResiduals {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let residuals = free_targets(subject)?;
        let (_, reliable_std) = residuals.reliable?;
        let ratio = residuals.std / reliable_std;
        (ratio.is_finite() && residuals.std > 1.5 * reliable_std).then(|| {
            Finding::new(Self { ratio }, 1.0 - 1.0 / ratio).shown_by(subject.examples(|_| true))
        })
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Text("Its residuals spread "),
            Word::Fixed(self.ratio, 1),
            Word::Text(" times as wide as those of reliable sources."),
        ]
    }
}
