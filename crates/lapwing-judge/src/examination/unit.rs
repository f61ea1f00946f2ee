//! Targets in another unit.

use serde::{Deserialize, Serialize};

use super::{Examination, free_targets};
use crate::{Finding, Subject, Word};

/// Its targets move with the predictions, but further or less far. The strength is how closely they do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// Of targets with predictions.
    pub correlation: f64,
    /// How far targets move where predictions move by one.
    pub slope: f64,
}

impl Examination for Unit {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let residuals = free_targets(subject)?;
        let (correlation, slope) = residuals.line?;
        (correlation > 0.5 && !(0.6..1.7).contains(&slope)).then(|| {
            let fault = Self { correlation, slope };
            Finding::new(fault, correlation).shown_by(subject.examples(|_| true))
        })
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Text("Its targets move with the predictions (correlation "),
            Word::Fixed(self.correlation, 2),
            Word::Text("), but "),
            Word::Number(self.slope),
            Word::Text(" times as far: look for another unit or scale."),
        ]
    }
}
