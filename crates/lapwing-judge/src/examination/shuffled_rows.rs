//! Labels that are right, and belong to other rows.

use serde::{Deserialize, Serialize};

use super::{Examination, INDEPENDENT, ReplacedInputs, free_targets, varied};
use crate::chance::{is_beyond_chance, ln_squares_at_least};
use crate::{Finding, Subject, Word};

/// How near the frequencies of labels are to those that the model sees, the total variation, for them to be the same.
const ALIKE: f64 = 0.1;
/// How unlike each other frequencies are for that to say anything: the total variation to equal ones.
const UNEQUAL: f64 = 0.15;

/// Its labels have nothing to do with the rows, but come as often as the model sees them there: they are those of other
/// rows. The strength is one less their association.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShuffledRows {
    /// Association of given and predicted labels, 0 to 1, or correlation.
    pub association: f64,
}

impl Examination for ShuffledRows {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let association = classes(subject).or_else(|| values(subject))?;
        if ReplacedInputs::is_found(subject) {
            return None;
        }
        let rows = subject.examples(|_| true);
        Some(Finding::new(Self { association }, 1.0 - association.abs()).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Text("Its labels have next to nothing to do with their rows ("),
            Word::Fixed(self.association, 2),
            Word::Text(
                " on a scale from 0 to 1), but come as often as they should: they look like those of other rows. Look \
                 for columns that were sorted or joined apart.",
            ),
        ]
    }
}

fn classes(subject: &Subject<'_>) -> Option<f64> {
    let tally = varied(subject)?;
    let association = tally.corrected_association();
    let rows = tally.total as f64;
    let used =
        (0..tally.given.len()).filter(|&class| tally.given[class] + tally.predicted[class] > 0);
    let classes = used.clone().count() as f64;
    let (mut alike, mut unequal, mut squares) = (0.0, 0.0, 0.0);
    for class in used {
        let (given, predicted) = (tally.given[class] as f64, tally.predicted[class] as f64);
        alike += 0.5 * (given - predicted).abs() / rows;
        unequal += 0.5 * (given / rows - 1.0 / classes).abs();
        squares += (given - rows / classes).powi(2) / (rows / classes);
    }
    let looks = subject.case().sources().len();
    let telling =
        unequal >= UNEQUAL && is_beyond_chance(ln_squares_at_least(squares, classes - 1.0), looks);
    (association < INDEPENDENT && alike <= ALIKE && telling).then_some(association)
}

/// Values are drawn from the range of the right ones where mean and spread are those of predictions with the usual residuals.
fn values(subject: &Subject<'_>) -> Option<f64> {
    let residuals = free_targets(subject)?;
    let ((correlation, _), (_, usual)) = (residuals.line?, residuals.reliable?);
    let (given, predicted) = subject.spreads()?;
    let expected = predicted.1.hypot(usual);
    let rows = residuals.rows as f64;
    let near = (given.0 - predicted.0).abs() <= 3.0 * given.1 / rows.sqrt() + 0.1 * expected;
    let wide = (0.8..1.25).contains(&(given.1 / expected));
    (correlation.abs() < 0.2 && near && wide).then_some(correlation)
}
