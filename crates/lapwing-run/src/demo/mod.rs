//! Data with faults that are known: what `lapwing demo` trains on.

mod digits;
mod moons;

use crate::RunError;

pub use moons::{DEMO_LEVELS, Moon, two_moons};

/// A table to train on, one to test on, and what was done to whom.
#[derive(Clone, Debug, PartialEq)]
pub struct Demonstration {
    /// What it is about, in a word; files are called after it.
    pub name: &'static str,
    /// The column to predict.
    pub target: &'static str,
    /// The column that says where a row came from.
    pub source: &'static str,
    /// Rows of all sources, as CSV.
    pub train: String,
    /// Rows with the right labels, as CSV.
    pub test: String,
    /// Where the data is from, and what was done to it.
    pub origin: &'static str,
    /// Every source, and what is wrong with its rows; nothing where nothing is.
    pub sources: Vec<(String, Option<String>)>,
}

impl Demonstration {
    /// Handwritten digits from ten hospitals, of which six are bad in different ways.
    pub fn digits(seed: u64) -> Result<Self, RunError> {
        digits::demonstration(seed)
    }

    /// The paper's two moons, with five sources.
    pub fn moons(seed: u64) -> Self {
        moons::demonstration(seed)
    }
}
