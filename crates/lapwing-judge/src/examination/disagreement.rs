//! How far a source's labels are from what the model says.

use serde::{Deserialize, Serialize};

use super::Examination;
use crate::confusion::share;
use crate::{Finding, Subject, Word};

/// Its labels contradict the model, and by how much more than those of reliable sources. The strength is the share of
/// agreement that is lacking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disagreement {
    /// Share of its rows on which label and model agree.
    pub agreement: f64,
    /// How many rows it has.
    pub of: u64,
    /// The share on reliable sources.
    pub reliable: Option<f64>,
}

impl Examination for Disagreement {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let tally = subject.tally()?;
        let (agreement, reliable) =
            (share(tally.agreed, tally.total), subject.reliable_agreement());
        let usual = reliable.filter(|reliable| *reliable > 0.0).unwrap_or(1.0);
        let fault = Self { agreement, of: tally.total, reliable };
        let rows = subject.examples_of(|given, said| given != said);
        Some(Finding::new(fault, 1.0 - agreement / usual).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        let mut words = vec![
            Word::Text("Its labels agree with the model in "),
            Word::Share(self.agreement),
            Word::Text(" of "),
            Word::Count(self.of),
            Word::Text(" rows"),
        ];
        if let Some(reliable) = self.reliable {
            let further = [
                Word::Text(", against "),
                Word::Share(reliable),
                Word::Text(" on reliable sources"),
            ];
            words.extend(further);
        }
        words.push(Word::Text("."));
        words
    }
}
