//! A column that has no values, in this source only.

use serde::{Deserialize, Serialize};

use super::{Examination, Scope, named};
use crate::chance::{is_beyond_chance, ln_at_least};
use crate::confusion::share;
use crate::inputs::{ColumnOf, at_most};
use crate::{Finding, Subject, Word};

/// How much larger the share of missing values is than elsewhere.
const MORE: f64 = 0.2;

/// Values of a column are missing here and not elsewhere. The strength is by how large a share of the rows more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingColumn {
    /// The columns, most is missing in the first.
    pub columns: Vec<String>,
    /// Share of its rows without a value in the first.
    pub missing: f64,
    /// The same of the other sources.
    pub others: f64,
}

impl Examination for MissingColumn {
    const SCOPE: Scope = Scope::Every;

    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let looks = subject.case().inputs().looks();
        let shares = |column: &ColumnOf<'_>| column.missing().map(|(none, of)| share(none, of));
        let found = |column: &ColumnOf<'_>| {
            let [(none, rows), (others, of)] = column.missing();
            let [own, usual] = shares(column);
            let chance = at_most(others as f64, of as f64);
            own >= usual + MORE
                && is_beyond_chance(ln_at_least(none as f64, rows as f64, chance), looks)
        };
        let more = |column: &ColumnOf<'_>| {
            let [own, others] = shares(column);
            own - others
        };
        let mut columns: Vec<ColumnOf<'_>> = subject.columns().filter(found).collect();
        columns.sort_by(|a, b| more(b).total_cmp(&more(a)));
        let first = *columns.first()?;
        let [missing, others] = shares(&first);
        let names = columns.iter().filter_map(ColumnOf::name).map(str::to_owned).collect();
        let fault = Self { columns: names, missing, others };
        let rows = subject.numbered(&first.places(f64::is_nan));
        Some(Finding::new(fault, missing - others).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        let mut words = named(&self.columns);
        words.extend([
            Word::Text(if self.columns.len() == 1 { " is missing in " } else { " are missing, the first in " }),
            Word::Share(self.missing),
            Word::Text(" of its rows and in "),
            Word::Share(self.others),
            Word::Text(
                " of those of other sources: look for a field that was renamed, or lost on the way.",
            ),
        ]);
        words
    }
}
