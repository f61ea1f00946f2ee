//! Targets that run the other way.

use serde::{Deserialize, Serialize};

use super::{ENOUGH, Examination};
use crate::{Finding, Subject, Word};

/// Its targets fall where the predictions rise. The strength is how closely.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlippedSign {
    /// Of targets with predictions.
    pub correlation: f64,
}

impl Examination for FlippedSign {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let residuals = subject.residuals().filter(|residuals| residuals.rows >= ENOUGH)?;
        let (correlation, _) = residuals.line?;
        (correlation < -0.3).then(|| {
            Finding::new(Self { correlation }, -correlation).shown_by(subject.examples(|_| true))
        })
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Text("Its targets fall where the predictions rise (correlation "),
            Word::Fixed(self.correlation, 2),
            Word::Text("): look for a flipped sign or a scale that runs the other way."),
        ]
    }
}
