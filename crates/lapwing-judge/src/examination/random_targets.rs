//! Targets that have nothing to do with the rows.

use serde::{Deserialize, Serialize};

use super::{Examination, ReplacedInputs, free_targets};
use crate::{Finding, Subject, Word};

/// Its targets are next to independent of the predictions. The strength is one less their correlation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RandomTargets {
    /// Of targets with predictions.
    pub correlation: f64,
}

impl Examination for RandomTargets {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let residuals = free_targets(subject)?;
        let (correlation, _) = residuals.line?;
        (correlation < 0.2 && !ReplacedInputs::is_found(subject)).then(|| {
            let strength = 1.0 - correlation.abs();
            Finding::new(Self { correlation }, strength).shown_by(subject.examples(|_| true))
        })
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Text("Its targets have next to nothing to do with the predictions (correlation "),
            Word::Fixed(self.correlation, 2),
            Word::Text("): they look drawn at random, or attached to the wrong rows."),
        ]
    }
}
