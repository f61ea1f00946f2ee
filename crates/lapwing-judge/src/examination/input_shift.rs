//! Inputs unlike those of the others.

use serde::{Deserialize, Serialize};

use super::{
    ClippedRange, ColumnUnit, ConstantColumn, Examination, ReplacedInputs, Scope, StuckValue, named,
};
use crate::chance::is_beyond_chance;
use crate::inputs::{ColumnOf, middle};
use crate::{Finding, Subject, Word};

/// How far distributions are apart at least, and how many times as far as those of the sources usually are.
const APART: f64 = 0.2;
const UNUSUAL: f64 = 2.0;

/// Values of a column are distributed otherwise than in the other sources, more than sources usually differ, and no other
/// fault explains it. It says nothing against the source: it may see other rows. The strength is how far they are apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputShift {
    /// The columns, the furthest first.
    pub columns: Vec<String>,
    /// How far the first is from that of the others: the largest difference of the distribution functions (of categories:
    /// the total variation), 0 to 1.
    pub distance: f64,
    /// Medians of the first, here and elsewhere, where it holds numbers.
    pub medians: Option<(f64, f64)>,
}

impl Examination for InputShift {
    const SCOPE: Scope = Scope::Every;

    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        if ReplacedInputs::is_found(subject) {
            return None;
        }
        let looks = subject.case().inputs().looks();
        let found = |column: &ColumnOf<'_>| {
            let (distance, usual, ln_chance) = column.distance();
            distance >= APART.max(UNUSUAL * usual)
                && is_beyond_chance(ln_chance, looks)
                && ConstantColumn::of(column, looks).is_none()
                && StuckValue::of(column, looks).is_none()
                && ClippedRange::of(column, looks).is_none()
                && ColumnUnit::of(column, looks).is_none()
        };
        let features = subject.columns().filter(|column| column.name().is_some());
        let mut columns: Vec<ColumnOf<'_>> = features.filter(found).collect();
        columns.sort_by(|a, b| b.distance().0.total_cmp(&a.distance().0));
        let first = *columns.first()?;
        let (own, others) = (middle(first.own()).0, first.others_median());
        let places = match first.is_numeric() {
            true => first.outermost(own >= others),
            false => {
                let more = |&(value, _): &(f64, f64)| value;
                let excess = first.own().chunk_by(|a, b| a == b).map(|run| {
                    let share = run.len() as f64 / first.own().len() as f64;
                    (run[0], share - first.others_share_at(run[0]))
                });
                let most = excess.max_by(|a, b| a.1.total_cmp(&b.1)).as_ref().map(more);
                first.places(|value| Some(value) == most)
            }
        };
        let fault = Self {
            columns: columns.iter().filter_map(ColumnOf::name).map(str::to_owned).collect(),
            distance: first.distance().0,
            medians: first.is_numeric().then_some((own, others)),
        };
        Some(Finding::new(fault, first.distance().0).shown_by(subject.numbered(&places)))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        let mut words = named(&self.columns);
        let one = self.columns.len() == 1;
        words.extend([
            Word::Text(if one { " is distributed" } else { " are distributed" }),
            Word::Text(" otherwise than in other sources ("),
            Word::Text(if one { "" } else { "the first by " }),
            Word::Fixed(self.distance, 2),
            Word::Text(" on a scale from 0 to 1"),
        ]);
        if let Some((own, others)) = self.medians {
            words.extend([
                Word::Text("; the median is "),
                Word::Number(own),
                Word::Text(" here and "),
                Word::Number(others),
                Word::Text(" elsewhere"),
            ]);
        }
        words.push(Word::Text(
            "). That says nothing against its labels: it may see other rows, or measure them otherwise.",
        ));
        words
    }
}
