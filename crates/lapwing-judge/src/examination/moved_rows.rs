//! Labels that belong to the next row.

use serde::{Deserialize, Serialize};

use super::{ENOUGH, Examination, varied};
use crate::chance::{is_beyond_chance, ln_at_least};
use crate::{Answers, Finding, Subject, Word};

/// How far labels may have moved.
const MOVES: [i64; 4] = [-1, 1, -2, 2];
/// How closely they fit the row they have come from: agreement beyond chance, or correlation.
const FIT: f64 = 0.3;

/// Its labels or targets fit the row before or behind, and not their own. The strength is how much better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MovedRows {
    /// How many of its rows further down the row is that a label fits; negative where it is further up.
    pub by: i64,
    /// How well labels fit their own rows: agreement beyond chance, or correlation.
    pub here: f64,
    /// How well they fit those.
    pub there: f64,
}

impl Examination for MovedRows {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let rows = subject.rows()?;
        let mut order = subject.places().to_vec();
        order.sort_by_key(|&place| rows.numbers[place as usize]);
        if (order.len() as u64) < ENOUGH {
            return None;
        }
        let fit = |by: i64| {
            let pairs = (0..order.len()).filter_map(|at| {
                let there = at.checked_add_signed(isize::try_from(by).ok()?)?;
                Some((order[at] as usize, *order.get(there)? as usize))
            });
            match rows.answered.answers {
                Answers::Classes { .. } => {
                    varied(subject)?;
                    let pairs = pairs.filter_map(|(own, other)| {
                        Some((subject.given_label(own as u32)?, subject.word(other as u32)?.0))
                    });
                    agreement(&pairs.collect::<Vec<_>>())
                }
                Answers::Values { given, predicted } => correlation(
                    &pairs.map(|(own, other)| (given[own], predicted[other])).collect::<Vec<_>>(),
                ),
            }
        };
        let (here, _) = fit(0)?;
        let fits = MOVES.into_iter().filter_map(|by| Some((by, fit(by)?)));
        let (by, (there, ln_chance)) =
            fits.reduce(|best, next| if next.1.0 > best.1.0 { next } else { best })?;
        let looks = MOVES.len() * subject.case().sources().len();
        let moved =
            there >= FIT && there >= 2.0 * here.max(0.05) && is_beyond_chance(ln_chance, looks);
        let fault = Self { by, here, there };
        moved.then(|| {
            Finding::new(fault, there - here.max(0.0)).shown_by(subject.examples(|_| true))
        })
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Text("Its labels do not fit their own rows ("),
            Word::Fixed(self.here.max(0.0), 2),
            Word::Text(" on a scale from 0 to 1) but those "),
            Word::Count(self.by.unsigned_abs()),
            Word::Text(if self.by > 0 { " further down (" } else { " further up (" }),
            Word::Fixed(self.there, 2),
            Word::Text("): look for a column that slipped when files were joined."),
        ]
    }
}

/// Agreement beyond what the frequencies alone give (Cohen's κ), and how probable it is by chance.
fn agreement(pairs: &[(u32, u32)]) -> Option<(f64, f64)> {
    let classes = pairs.iter().map(|(a, b)| 1 + *a.max(b) as usize).max()?;
    let (mut given, mut said) = (vec![0.0; classes], vec![0.0; classes]);
    for &(a, b) in pairs {
        given[a as usize] += 1.0;
        said[b as usize] += 1.0;
    }
    let rows = pairs.len() as f64;
    let expected = given.iter().zip(&said).map(|(a, b)| a * b).sum::<f64>() / (rows * rows);
    let agreed = pairs.iter().filter(|(a, b)| a == b).count() as f64;
    (expected < 1.0).then(|| {
        let beyond = (agreed / rows - expected) / (1.0 - expected);
        (beyond, ln_at_least(agreed, rows, expected))
    })
}

/// Pearson's correlation, and how probable it is by chance where numbers are normal.
fn correlation(pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (correlation, _) = crate::residuals::line(pairs)?;
    let rows = pairs.len() as f64;
    Some((correlation, 0.5 * rows * (1.0 - correlation * correlation).max(0.0).ln()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_cohens_kappa() {
        // 20 and 15 agree of 50, of which 25 and 30 are of the first class: 0.7 where 0.5 is expected.
        let cells = [(0, 0, 20), (0, 1, 5), (1, 0, 10), (1, 1, 15)];
        let pairs: Vec<(u32, u32)> = cells.iter().flat_map(|&(a, b, n)| vec![(a, b); n]).collect();
        let (kappa, _) = agreement(&pairs).unwrap();
        assert!((kappa - 0.4).abs() < 1e-12);
        assert!(agreement(&[]).is_none());
    }
}
