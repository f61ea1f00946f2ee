//! What random numbers are for.
//!
//! They are a pure function of the seed, the purpose and an index: nothing carries state from one step to the next. A
//! checkpoint therefore needs the seed, the epoch and the step, and no position inside a generator.

/// What a stream of numbers is for; each purpose has streams of its own, and several networks of a run have theirs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// First parameters of the network (index 0).
    Parameters = 1,
    /// Order of the training rows (index: epoch).
    Order = 2,
    /// Dropout masks (index: step).
    Dropout = 3,
    /// Rows that are drawn with replacement (index: epoch).
    Sample = 4,
    /// Order of the rows before the first epoch (index 0).
    WarmUp = 5,
    /// How samples of a batch are mixed (index: step).
    Mixture = 6,
}

impl From<Purpose> for u64 {
    fn from(purpose: Purpose) -> Self {
        purpose as Self
    }
}
