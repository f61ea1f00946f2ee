//! Inputs that scatter.

use serde::{Deserialize, Serialize};

use super::{ClassMix, Examination, Scope, named};
use crate::chance::is_beyond_chance;
use crate::inputs::middle;
use crate::{Finding, Subject, Verdict, Word};

/// The share of what is not explained that is larger than nine in ten elsewhere, from which on inputs are called noisy.
const LARGE: f64 = 0.2;
/// How many times as wide as elsewhere a column is at least: noise is added to what was there.
const WIDER: f64 = 1.1;
/// How many times as far as elsewhere it is from what the rest of a row says, at least.
const FARTHER: f64 = 1.3;

/// Columns follow from the rest of a row less closely than elsewhere, and are wider. The strength is the part of the
/// scatter that other sources do not have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputNoise {
    /// The columns, the noisiest first.
    pub columns: Vec<String>,
    /// How many times as far as elsewhere the first is from what the rest of the row says.
    pub ratio: f64,
}

impl Examination for InputNoise {
    const SCOPE: Scope = Scope::Every;

    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        // Rows of other classes hang together otherwise.
        let other_rows = subject.row().verdict == Verdict::Different;
        if other_rows || ClassMix::examine(subject).is_some() {
            return None;
        }
        let (compared, names) = subject.structure()?;
        let looks = subject.case().inputs().looks();
        let wider = |name: &str| {
            let column = subject.columns().find(|column| column.name() == Some(name))?;
            Some(middle(column.own()).1 >= WIDER * middle(column.all()).1)
        };
        let mut noisy: Vec<(&str, &crate::structure::Unexplained)> = names
            .into_iter()
            .zip(&compared.columns)
            .filter(|(name, column)| {
                column.large as f64 >= LARGE * column.of as f64
                    && column.ratio.is_finite()
                    && column.ratio >= FARTHER
                    && is_beyond_chance(column.ln_chance, looks)
                    && wider(name) == Some(true)
            })
            .collect();
        noisy.sort_by(|a, b| b.1.ratio.total_cmp(&a.1.ratio));
        let (_, first) = noisy.first()?;
        let places: Vec<u32> =
            first.largest.iter().filter_map(|&at| subject.looked_at(at)).take(10).collect();
        let columns = noisy.iter().map(|(name, _)| (*name).to_owned()).collect();
        let fault = Self { columns, ratio: first.ratio };
        Some(Finding::new(fault, 1.0 - 1.0 / first.ratio).shown_by(subject.numbered(&places)))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        let mut words = named(&self.columns);
        words.extend([
            Word::Text(if self.columns.len() == 1 { " scatters " } else { " scatter, the first " }),
            Word::Fixed(self.ratio, 1),
            Word::Text(
                " times as far as elsewhere around what the rest of a row says: look for a device that measures less \
                 exactly, or rounding.",
            ),
        ]);
        words
    }
}
