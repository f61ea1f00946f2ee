//! What can be wrong with a request for noise.

/// Why noise cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoiseError {
    /// A level is a share.
    #[error("the level {0} is not between 0 and 1")]
    Level(f64),
    /// There is no other class to take.
    #[error("this noise needs at least {needed} classes, found {found}")]
    TooFewClasses {
        /// At least so many.
        needed: u32,
        /// So many there are.
        found: u32,
    },
    /// A label is not one of the classes.
    #[error("sample {sample} has label {label}, expected one below {classes}")]
    UnknownClass {
        /// Position of the sample.
        sample: usize,
        /// Its label.
        label: u32,
        /// Number of classes.
        classes: u32,
    },
    /// Two lists that belong together have different lengths.
    #[error("expected {expected} values, one per sample, found {found}")]
    Lengths {
        /// Samples.
        expected: usize,
        /// Values.
        found: usize,
    },
    /// The shape of an image does not match its values.
    #[error("an image of {channels} × {height} × {width} has {} values, found {found}", channels * height * width)]
    Shape {
        /// Channels.
        channels: usize,
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
        /// Values given.
        found: usize,
    },
    /// There is no range to draw from.
    #[error("targets must be finite numbers, at least one; the range found is {low} to {high}")]
    Range {
        /// Least target.
        low: f64,
        /// Greatest target.
        high: f64,
    },
    /// The levels ask for more wrong labels than there are.
    #[error("the levels ask for {needed} wrong labels, the human labels hold {available}")]
    TooFewWrongLabels {
        /// So many are asked for.
        needed: usize,
        /// So many there are.
        available: usize,
    },
    /// Sources must exist to get samples.
    #[error("cannot share {samples} samples among {sources} sources")]
    Sources {
        /// Samples.
        samples: usize,
        /// Sources.
        sources: usize,
    },
}
