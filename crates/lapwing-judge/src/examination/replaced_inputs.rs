//! Inputs that hang together elsewhere, and not here.

use serde::{Deserialize, Serialize};

use super::{Examination, Scope};
use crate::structure::Compared;
use crate::{Finding, Subject, Word};

/// The share of the correlations elsewhere below which nothing is left of them, and how well it has to be known.
const NOTHING: f64 = 0.2;
const ERROR: f64 = 0.15;

/// Its columns have nothing to do with each other, and those of the other sources do. The strength is the share of the
/// others' correlations that is lacking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplacedInputs {
    /// How much of the correlations between columns elsewhere is found here: 1 all, 0 nothing.
    pub kept: f64,
    /// Columns that were compared.
    pub columns: u64,
}

impl ReplacedInputs {
    /// Whether inputs have nothing to do with each other, which explains why labels have nothing to do with them.
    pub(super) fn is_found(subject: &Subject<'_>) -> bool {
        subject.structure().is_some_and(|(compared, _)| Self::is(&compared))
    }

    fn is(compared: &Compared) -> bool {
        compared.kept.abs() <= NOTHING && compared.error <= ERROR
    }
}

impl Examination for ReplacedInputs {
    const SCOPE: Scope = Scope::Every;

    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let (compared, names) = subject.structure()?;
        if !Self::is(&compared) {
            return None;
        }
        let first = compared.columns.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
        let places: Vec<u32> =
            first.largest.iter().filter_map(|&at| subject.looked_at(at)).take(10).collect();
        let fault = Self { kept: compared.kept, columns: names.len() as u64 };
        let strength = 1.0 - compared.kept.max(0.0);
        Some(Finding::new(fault, strength).shown_by(subject.numbered(&places)))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Text("Its "),
            Word::Count(self.columns),
            Word::Text(
                " columns of numbers have nothing to do with each other, unlike those of other sources (",
            ),
            Word::Share(self.kept.clamp(0.0, 1.0)),
            Word::Text(
                " of the correlations there are found): its inputs look replaced, or put together from different rows.",
            ),
        ]
    }
}
