//! Values that end where others go on.

use serde::{Deserialize, Serialize};

use super::{ENOUGH, Examination, Scope, its_targets_or};
use crate::chance::{is_beyond_chance, ln_at_least};
use crate::inputs::ColumnOf;
use crate::{Finding, Subject, Word};

/// The share of rows at the limit and of others' values beyond it from which on a range is called clipped, and how many
/// times as frequent as elsewhere the limit is.
const LEAST: f64 = 0.02;
const TIMES: f64 = 3.0;
/// Fewest rows at the limit.
const FEWEST: usize = 5;

/// Values of a column, or the target, end at a limit at which many of them lie, and those of the others go on. The strength
/// is the share of the others' values beyond the limit that the rows at it stand for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClippedRange {
    /// The column; nothing for the target.
    pub column: Option<String>,
    /// The limit.
    pub limit: f64,
    /// Whether values end above it.
    pub upper: bool,
    /// Share of its values at the limit.
    pub share: f64,
    /// Share of the others' values beyond it.
    pub beyond: f64,
}

/// A limit of a column.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    limit: f64,
    upper: bool,
    share: f64,
    beyond: f64,
}

impl ClippedRange {
    pub(super) fn of(column: &ColumnOf<'_>, looks: usize) -> Option<Limit> {
        let own = column.own();
        if !column.is_numeric() || (own.len() as u64) < ENOUGH || own.first() == own.last() {
            return None;
        }
        let (rows, others) = (own.len() as f64, column.others() as f64);
        let at = |upper: bool| {
            let limit = *if upper { own.last()? } else { own.first()? };
            let count = match upper {
                true => own.len() - own.partition_point(|v| *v < limit),
                false => own.partition_point(|v| *v <= limit),
            };
            let beyond = match upper {
                true => column.others() - column.others_upto(limit),
                false => column.others_below(limit),
            };
            let (share, beyond) = (count as f64 / rows, beyond as f64 / others);
            let usual = column.others_share_at(limit);
            let clipped = count >= FEWEST
                && share >= LEAST.max(TIMES * usual)
                && beyond >= LEAST
                // Neither are so many at the limit by chance, nor is there none beyond it.
                && is_beyond_chance(ln_at_least(count as f64, rows, usual), 2 * looks)
                && is_beyond_chance(rows * (1.0 - beyond).ln(), 2 * looks);
            clipped.then_some(Limit { limit, upper, share, beyond })
        };
        at(true).or_else(|| at(false))
    }
}

impl Examination for ClippedRange {
    const SCOPE: Scope = Scope::Every;

    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let looks = subject.case().inputs().looks();
        let found =
            subject.columns().filter_map(|column| Some((column, Self::of(&column, looks)?)));
        let (column, limit) = found.reduce(|best, next| match next.1.share > best.1.share {
            true => next,
            false => best,
        })?;
        let Limit { limit, upper, share, beyond } = limit;
        let fault = Self { column: column.name().map(str::to_owned), limit, upper, share, beyond };
        let rows = subject.numbered(&column.places(|v| v == limit));
        Some(Finding::new(fault, share / beyond).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        let mut words = its_targets_or(self.column.as_deref(), "Its targets end", " ends");
        words.extend([
            Word::Text(" at "),
            Word::Number(self.limit),
            Word::Text(", where "),
            Word::Share(self.share),
            Word::Text(" of its rows lie; "),
            Word::Share(self.beyond),
            Word::Text(if self.upper {
                " of the others' are above"
            } else {
                " of the others' are below"
            }),
            Word::Text(": look for a limit of the device, or of the field that it was written to."),
        ]);
        words
    }
}
