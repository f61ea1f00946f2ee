//! Two classes that stand for each other.

use serde::{Deserialize, Serialize};

use super::{Examination, varied};
use crate::confusion::share;
use crate::{Finding, Subject, Word};

/// Two classes look exchanged, and no other. The strength is the share of their rows that are the other to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExchangedClasses {
    /// One of them.
    pub first: String,
    /// The other.
    pub second: String,
    /// Share of the rows given as one of them that are the other to the model.
    pub share: f64,
}

impl Examination for ExchangedClasses {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let tally = varied(subject)?;
        let moved = tally.moved();
        let pair = moved.iter().find(|(i, j)| i < j && moved.contains(&(*j, *i)));
        let &(i, j) = pair.filter(|_| moved.len() == 2)?;
        let share = share(tally.cells[i][j] + tally.cells[j][i], tally.given[i] + tally.given[j]);
        let fault = Self { first: subject.class(i), second: subject.class(j), share };
        let rows =
            subject.examples_of(|given, said| (given, said) == (i, j) || (given, said) == (j, i));
        Some(Finding::new(fault, share).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        vec![
            Word::Name(&self.first),
            Word::Text(" and "),
            Word::Name(&self.second),
            Word::Text(" look exchanged: "),
            Word::Share(self.share),
            Word::Text(
                " of the rows given as one of them are the other to the model. Check how the labels of this source \
                 were coded.",
            ),
        ]
    }
}
