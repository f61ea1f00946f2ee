//! A column in another unit.

use serde::{Deserialize, Serialize};

use super::{ENOUGH, Examination, Scope};
use crate::chance::is_beyond_chance;
use crate::inputs::{ColumnOf, middle};
use crate::{Finding, Subject, Word};

/// Factors that may be no more than another range.
const NEAR_ONE: std::ops::Range<f64> = 0.6..1.7;
/// How far a column is from the others' at least, and how near it comes when it is divided by the factor.
const APART: f64 = 0.3;
const NEAR: f64 = 0.15;

/// Values of a column are those of the others times a factor. The strength is how much of the distance between them the
/// factor explains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnUnit {
    /// The column.
    pub column: String,
    /// Its values are so many times those of the others.
    pub factor: f64,
}

impl ColumnUnit {
    /// The factor, and how much it explains.
    pub(super) fn of(column: &ColumnOf<'_>, looks: usize) -> Option<(f64, f64)> {
        let (distance, usual, ln_chance) = column.distance();
        let far = distance >= APART.max(2.0 * usual) && is_beyond_chance(ln_chance, looks);
        if !far || !column.is_numeric() || (column.own().len() as u64) < ENOUGH {
            return None;
        }
        let own = column.own();
        let factor = middle(own).0 / column.others_median();
        if !factor.is_finite() || factor <= 0.0 || NEAR_ONE.contains(&factor) {
            return None;
        }
        let others = column.others() as f64;
        let share = |value: f64| column.others_upto(value / factor) as f64 / others;
        let below = |value: f64| column.others_below(value / factor) as f64 / others;
        let rows = own.len() as f64;
        let left = (0..own.len()).map(|at| {
            let (before, after) = (at as f64 / rows, (at + 1) as f64 / rows);
            (after - share(own[at])).max(below(own[at]) - before)
        });
        let left = left.fold(0.0, f64::max);
        (left <= NEAR.max(1.4 / rows.sqrt())).then_some((factor, 1.0 - left / distance))
    }
}

impl Examination for ColumnUnit {
    const SCOPE: Scope = Scope::Every;

    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let looks = subject.case().inputs().looks();
        let features = subject.columns().filter(|column| column.name().is_some());
        let found = features.filter_map(|column| Some((column, Self::of(&column, looks)?)));
        let (column, (factor, strength)) =
            found.reduce(|best, next| if next.1.1 > best.1.1 { next } else { best })?;
        let fault = Self { column: column.name()?.to_owned(), factor };
        let rows = subject.numbered(&column.outermost(factor > 1.0));
        Some(Finding::new(fault, strength).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Name(&self.column),
            Word::Text(" is "),
            Word::Number(self.factor),
            Word::Text(" times what it is in other sources: look for another unit or scale."),
        ]
    }
}
