//! Rows that are there more than once.

use serde::{Deserialize, Serialize};

use super::{ENOUGH, Examination, Scope};
use crate::chance::{is_beyond_chance, ln_at_least};
use crate::confusion::share;
use crate::inputs::at_most;
use crate::{Finding, Subject, Word};

/// The share of rows that are there already, and how many times as many as elsewhere.
const LEAST: f64 = 0.05;
const TIMES: f64 = 4.0;

/// Rows of it are the same as others of its own, target included, and elsewhere rows are not. The strength is the share of
/// its rows that are there already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DuplicatedRows {
    /// Rows that are the same as an earlier one.
    pub count: u64,
    /// Of so many.
    pub of: u64,
    /// The share in the other sources.
    pub others: f64,
}

impl Examination for DuplicatedRows {
    const SCOPE: Scope = Scope::Every;

    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let [(count, of), (others, others_of)] = subject.repetitions()?;
        let (own, usual) = (share(count, of), share(others, others_of));
        let chance = at_most(others as f64, others_of as f64);
        let looks = subject.case().sources().len();
        let repeated = of >= ENOUGH
            && others_of >= ENOUGH
            && own >= LEAST.max(TIMES * usual)
            && is_beyond_chance(ln_at_least(count as f64, of as f64, chance), looks);
        repeated.then(|| {
            let rows = subject.numbered(&subject.duplicated());
            Finding::new(Self { count, of, others: usual }, own).shown_by(rows)
        })
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Count(self.count),
            Word::Text(" of its "),
            Word::Count(self.of),
            Word::Text(" rows are the same as an earlier one (elsewhere "),
            Word::Share(self.others),
            Word::Text(
                "): look for a file that was read twice, or rows that were copied to fill a quota.",
            ),
        ]
    }
}
