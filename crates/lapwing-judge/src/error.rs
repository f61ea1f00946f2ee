//! What can be wrong with what is to be judged.

/// Why there can be no judgement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JudgeError {
    /// Lists that belong together differ in length.
    #[error("expected {expected} {what}, found {found}")]
    Lengths {
        /// What was counted.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// A row has a number for which there is no name.
    #[error("row {row} has {what} {code}, expected one below {count}")]
    Code {
        /// Its place in the lists.
        row: usize,
        /// `source` or `class`.
        what: &'static str,
        /// The number.
        code: u32,
        /// How many there are.
        count: usize,
    },
}
