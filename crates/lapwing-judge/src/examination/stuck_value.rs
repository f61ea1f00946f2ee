//! A value that comes again and again.

use serde::{Deserialize, Serialize};

use super::{ClippedRange, ENOUGH, Examination, Scope, its_targets_or};
use crate::chance::{is_beyond_chance, ln_at_least};
use crate::inputs::ColumnOf;
use crate::{Finding, Subject, Word};

/// The share of rows from which on a value is called stuck, and how many times as frequent as elsewhere.
const OFTEN: (f64, f64) = (0.1, 3.0);

/// A number of a column, or the target, is the same in many of its rows, and elsewhere in few. The strength is the share
/// of its rows that are beyond that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StuckValue {
    /// The column; nothing for the target.
    pub column: Option<String>,
    /// The value.
    pub value: f64,
    /// Share of its rows that have it.
    pub share: f64,
    /// The same of the other sources.
    pub others: f64,
}

impl StuckValue {
    /// The value, its share, and that of the others.
    pub(super) fn of(column: &ColumnOf<'_>, looks: usize) -> Option<(f64, f64, f64)> {
        let own = column.own();
        let (value, count) = column.most_frequent()?;
        let varies = own.first() != own.last();
        if !column.is_numeric() || !varies || (own.len() as u64) < ENOUGH || column.others() == 0 {
            return None;
        }
        let (share, others) = (count as f64 / own.len() as f64, column.others_share_at(value));
        let (least, times) = OFTEN;
        let ln_chance = ln_at_least(count as f64, own.len() as f64, others);
        let stuck = share >= least && share >= times * others && is_beyond_chance(ln_chance, looks);
        let seen = column.others_seen_at(value);
        (stuck && ClippedRange::of(column, looks).is_none()).then_some((value, share, seen))
    }
}

impl Examination for StuckValue {
    const SCOPE: Scope = Scope::Every;

    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let looks = subject.case().inputs().looks();
        let found =
            subject.columns().filter_map(|column| Some((column, Self::of(&column, looks)?)));
        let (column, (value, share, others)) =
            found.reduce(|best, next| match next.1.1 > best.1.1 {
                true => next,
                false => best,
            })?;
        let fault = Self { column: column.name().map(str::to_owned), value, share, others };
        let rows = subject.numbered(&column.places(|v| v == value));
        Some(Finding::new(fault, share - others).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        let mut words = its_targets_or(self.column.as_deref(), "Its targets are ", " is ");
        words.extend([
            Word::Number(self.value),
            Word::Text(" in "),
            Word::Share(self.share),
            Word::Text(" of its rows, and elsewhere in "),
            Word::Share(self.others),
            Word::Text(": look for a device that is stuck, or a number that stands for none."),
        ]);
        words
    }
}
