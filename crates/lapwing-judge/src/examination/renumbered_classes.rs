//! Classes counted from another end.

use serde::{Deserialize, Serialize};

use super::{Examination, varied};
use crate::confusion::share;
use crate::{Finding, Subject, Word};

/// Moves shown in the sentence.
const SHOWN: usize = 4;

/// Three classes or more each look like another one. The strength is the share of their rows that do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RenumberedClasses {
    /// Labels, and what they are to the model.
    pub moves: Vec<(String, String)>,
}

impl Examination for RenumberedClasses {
    fn examine(subject: &Subject<'_>) -> Option<Finding<Self>> {
        let tally = varied(subject)?;
        let moved = Some(tally.moved()).filter(|moved| moved.len() >= 3)?;
        let away: u64 = moved.iter().map(|&(i, j)| tally.cells[i][j]).sum();
        let all: u64 = moved.iter().map(|&(i, _)| tally.given[i]).sum();
        let rows = subject.examples_of(|given, said| moved.contains(&(given, said)));
        let name = |&(i, j): &(usize, usize)| (subject.class(i), subject.class(j));
        let fault = Self { moves: moved.iter().map(name).collect() };
        Some(Finding::new(fault, share(away, all)).shown_by(rows))
    }

    fn words<'a>(&'a self, _: &'a [u64]) -> Vec<Word<'a>> {
        let mut words = vec![Word::Text("Its labels look renumbered (it gives ")];
        for (at, (from, to)) in self.moves.iter().take(SHOWN).enumerate() {
            words.push(Word::Text(if at > 0 { ", " } else { "" }));
            words.extend([Word::Name(from), Word::Text(" for "), Word::Name(to)]);
        }
        words.push(Word::Text(if self.moves.len() > SHOWN { ", …" } else { "" }));
        words.push(Word::Text(
            "): check the order of the classes and whether they count from 0 or from 1.",
        ));
        words
    }
}
