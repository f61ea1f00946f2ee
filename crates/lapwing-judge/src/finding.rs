//! What an examination finds, and how it is put into words.

use serde::{Deserialize, Serialize};

use crate::Fault;

/// A fault of a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding<F = Fault> {
    /// What is wrong, with the numbers that show it.
    #[serde(flatten)]
    pub fault: F,
    /// How plainly it shows, from 0 to 1; each examination says by what.
    pub strength: f64,
    /// Rows that show it, most telling first, by the numbers under which a person finds them.
    pub rows: Vec<u64>,
}

impl<F> Finding<F> {
    /// A fault without rows that would show it.
    pub fn new(fault: F, strength: f64) -> Self {
        Self { fault, strength: strength.clamp(0.0, 1.0), rows: Vec::new() }
    }

    /// With rows that show it.
    #[must_use]
    pub fn shown_by(self, rows: Vec<u64>) -> Self {
        Self { rows, ..self }
    }

    pub(crate) fn map<G>(self, into: impl FnOnce(F) -> G) -> Finding<G> {
        Finding { fault: into(self.fault), strength: self.strength, rows: self.rows }
    }
}

impl Finding {
    /// The finding in whole sentences, to be written down by whoever shows it.
    pub fn words(&self) -> Vec<Word<'_>> {
        self.fault.words(&self.rows)
    }
}

/// A piece of a sentence. What it says is decided here, how it looks by whoever shows it: a page isolates names and
/// groups digits, a terminal does so in its own way.
#[derive(Clone, Debug, PartialEq)]
pub enum Word<'a> {
    /// As it is.
    Text(&'a str),
    /// A name from the data, any text at all.
    Name(&'a str),
    /// A count.
    Count(u64),
    /// A step of training.
    Step(i64),
    /// A share from 0 to 1.
    Share(f64),
    /// A measured number.
    Number(f64),
    /// A number to so many decimals.
    Fixed(f64, usize),
    /// Numbers of rows.
    Rows(&'a [u64]),
}
