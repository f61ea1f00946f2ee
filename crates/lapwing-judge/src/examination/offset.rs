//! Targets from another zero.

use serde::{Deserialize, Serialize};

use super::{Examination, free_targets};
use crate::{Finding, Subject, Word};

/// Its targets lie above or below those of reliable sources on average. The strength is the part of the offset in
/// offset and spread together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offset {
    /// By how much; negative where they lie below.
    pub shift: f64,
}

impl Examination for Offset {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let residuals = free_targets(subject)?;
        let (reliable_mean, reliable_std) = residuals.reliable?;
        let shift = residuals.mean - reliable_mean;
        let noise = 3.0 * residuals.std / (residuals.rows as f64).sqrt();
        (shift.is_finite() && shift.abs() > noise.max(0.5 * reliable_std)).then(|| {
            let strength = shift.abs() / (shift.abs() + residuals.std);
            Finding::new(Self { shift }, strength).shown_by(subject.examples(|_| true))
        })
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Text("On average its targets lie "),
            Word::Number(self.shift.abs()),
            Word::Text(if self.shift > 0.0 { " above" } else { " below" }),
            Word::Text(
                " what reliable sources report for such rows: look for an offset, such as another unit, baseline or \
                 calibration.",
            ),
        ]
    }
}
