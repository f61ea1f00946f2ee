//! How far a source's targets are from the predictions.

use serde::{Deserialize, Serialize};

use super::Examination;
use crate::{Finding, Subject, Word};

/// Its targets differ from the predictions, and by how much more than those of reliable sources. The strength is the
/// share of its root mean square residual that reliable sources do not have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResidualSpread {
    /// Mean residual.
    pub mean: f64,
    /// Its standard deviation.
    pub std: f64,
    /// How many rows it has.
    pub of: u64,
    /// Mean and standard deviation on reliable sources.
    pub reliable: Option<(f64, f64)>,
}

impl Examination for ResidualSpread {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let residuals = subject.residuals()?;
        let own = residuals.mean.hypot(residuals.std);
        let usual = residuals.reliable.map_or(0.0, |(mean, std)| mean.hypot(std));
        let strength = if own > 0.0 { 1.0 - usual / own } else { 0.0 };
        let fault = Self {
            mean: residuals.mean,
            std: residuals.std,
            of: residuals.rows,
            reliable: residuals.reliable,
        };
        Some(Finding::new(fault, strength).shown_by(subject.examples(|_| true)))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        let mut words = vec![
            Word::Text("Its targets differ from the model's predictions by "),
            beside(self.mean, self.std),
            Word::Text(" ± "),
            Word::Number(self.std),
        ];
        if let Some((mean, std)) = self.reliable {
            words.extend([
                Word::Text(" (mean and standard deviation over "),
                Word::Count(self.of),
                Word::Text(" rows), against "),
                beside(mean, std),
                Word::Text(" ± "),
                Word::Number(std),
                Word::Text(" on reliable sources"),
            ]);
        }
        words.push(Word::Text("."));
        words
    }
}

/// A mean beside its standard deviation: zero where the difference is rounding.
fn beside(mean: f64, std: f64) -> Word<'static> {
    Word::Number(if mean.abs() < 1e-3 * std { 0.0 } else { mean })
}
