//! What can go wrong.

use alloc::string::String;

/// Why a call was refused. A refused call changes nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LapError {
    /// A parameter outside its range.
    #[error("{parameter} is {value}, but must be {expected}")]
    Parameter {
        /// The parameter's name in [`LapConfig`](crate::LapConfig).
        parameter: &'static str,
        /// The value given.
        value: f64,
        /// The range it must lie in.
        expected: &'static str,
    },
    /// A batch whose losses and sources do not pair up.
    #[error(
        "a batch of {losses} losses came with {sources} sources: there must be one source per loss"
    )]
    Unpaired {
        /// How many losses were given.
        losses: usize,
        /// How many sources were given.
        sources: usize,
    },
    /// A label that is no class.
    #[error("label {label} is none of the {classes} classes, which count from 0")]
    Label {
        /// The label given.
        label: usize,
        /// How many classes there are.
        classes: usize,
    },
    /// More sources than can be told apart (2³¹).
    #[error("more than 2,147,483,648 sources")]
    TooManySources,
    /// A saved state that cannot be used.
    #[error("the saved state cannot be used: {0}")]
    State(String),
}
