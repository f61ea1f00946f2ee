//! Labels in other proportions than elsewhere.

use serde::{Deserialize, Serialize};

use super::{ENOUGH, Examination, Scope};
use crate::chance::{is_beyond_chance, ln_squares_at_least};
use crate::confusion::share;
use crate::{Finding, Subject, Word};

/// How far apart class mixes are at least, and how that widens with classes over rows.
const APART: (f64, f64) = (0.3, 0.4);

/// It gives its labels in other proportions than the other sources. It says nothing against them: it may see other rows. The
/// strength is how far the proportions are apart, the total variation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassMix {
    /// The label that stands out most.
    pub label: String,
    /// Share of its rows that have it.
    pub share: f64,
    /// Share of the rows of the other sources that have it, those left out whose labels are in doubt.
    pub others: f64,
    /// How far the proportions are apart: 0 alike, 1 entirely other.
    pub distance: f64,
}

impl Examination for ClassMix {
    const SCOPE: Scope = Scope::Every;

    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let (own, others) = (subject.given(), subject.given_by_sound_others());
        let (rows, others_rows) = (own.iter().sum::<u64>(), others.iter().sum::<u64>());
        // One label for all is a finding of its own.
        let one = own.iter().filter(|count| **count > 0).count() < 2;
        if rows < ENOUGH || others_rows < ENOUGH || one {
            return None;
        }
        let shares = |class: usize| (share(own[class], rows), share(others[class], others_rows));
        let apart = |class: usize| {
            let (own, others) = shares(class);
            own - others
        };
        let distance = 0.5 * (0..own.len()).map(|class| apart(class).abs()).sum::<f64>();
        let used = (0..own.len()).filter(|&class| own[class] + others[class] > 0);
        let all_rows = (rows + others_rows) as f64;
        let squares: f64 = used
            .clone()
            .map(|class| {
                let expected = (own[class] + others[class]) as f64 * rows as f64 / all_rows;
                (own[class] as f64 - expected).powi(2) / expected * all_rows / others_rows as f64
            })
            .sum();
        let classes = used.clone().count() as f64;
        let ln_chance = ln_squares_at_least(squares, classes - 1.0);
        let (limit, widening) = APART;
        let least = limit + widening * (classes / rows as f64).sqrt();
        let looks = subject.case().sources().len();
        if distance < least || !is_beyond_chance(ln_chance, looks) {
            return None;
        }
        let most = used.max_by(|&a, &b| apart(a).total_cmp(&apart(b)).then(b.cmp(&a)))?;
        let (share, others) = shares(most);
        let fault = Self { label: subject.class(most), share, others, distance };
        let rows = subject.examples(|place| subject.given_label(place) == Some(most as u32));
        Some(Finding::new(fault, distance).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Text("It gives labels in other proportions than the others: "),
            Word::Name(&self.label),
            Word::Text(" to "),
            Word::Share(self.share),
            Word::Text(" of its rows, they to "),
            Word::Share(self.others),
            Word::Text(" of theirs. That is no fault where it sees other rows."),
        ]
    }
}
