//! A column, or the target, that has one value in this source only.

use serde::{Deserialize, Serialize};

use super::{ENOUGH, Examination, Scope, its_targets_or};
use crate::chance::is_beyond_chance;
use crate::inputs::ColumnOf;
use crate::{Finding, Subject, Word};

/// All its values of a column are the same, and elsewhere they are not. The strength is the share of the other sources'
/// values that are others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstantColumn {
    /// The column; nothing for the target.
    pub column: Option<String>,
    /// Its value.
    pub value: String,
    /// The share of the other sources' values that are the same.
    pub others: f64,
    /// Further columns that are constant.
    pub further: u64,
}

impl ConstantColumn {
    /// The value, and the share of the others' values that are the same.
    pub(super) fn of(column: &ColumnOf<'_>, looks: usize) -> Option<(f64, f64)> {
        let own = column.own();
        let (first, last) = (*own.first()?, *own.last()?);
        if first != last || (own.len() as u64) < ENOUGH || column.others() == 0 {
            return None;
        }
        let others = column.others_share_at(first);
        let ln_chance = own.len() as f64 * others.ln();
        (others < 0.9 && !column.is_often_constant() && is_beyond_chance(ln_chance, looks))
            .then_some((first, column.others_seen_at(first)))
    }
}

impl Examination for ConstantColumn {
    const SCOPE: Scope = Scope::Every;

    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let looks = subject.case().inputs().looks();
        let mut found =
            subject.columns().filter_map(|column| Some((column, Self::of(&column, looks)?)));
        let (column, (value, others)) = found.next()?;
        let fault = Self {
            column: column.name().map(str::to_owned),
            value: match column.level(value) {
                Some(level) => level.to_owned(),
                None => (value as f32).to_string(),
            },
            others,
            further: found.count() as u64,
        };
        let rows = subject.numbered(&column.places(f64::is_finite));
        Some(Finding::new(fault, 1.0 - others).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        let mut words =
            its_targets_or(self.column.as_deref(), "Its targets are always ", " is always ");
        words.extend([
            Word::Name(&self.value),
            Word::Text(" here, and in "),
            Word::Share(self.others),
            Word::Text(" of the rows of other sources"),
        ]);
        if self.further > 0 {
            words.extend([
                Word::Text("; "),
                Word::Count(self.further),
                Word::Text(" more have one value only"),
            ]);
        }
        words.push(Word::Text(": look for a default value, or a device that no longer measures."));
        words
    }
}
