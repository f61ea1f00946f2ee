//! What a model says of rows.

/// Predictions for rows, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Predictions {
    /// Probabilities, row after row.
    Classes {
        /// `rows · classes` numbers.
        probabilities: Vec<f32>,
        /// Number of classes.
        classes: usize,
    },
    /// A value per row, in the user's units.
    Values(Vec<f64>),
}

impl Predictions {
    /// The most probable class of each row (the first of equals), or nothing for values.
    pub fn labels(&self) -> Vec<u32> {
        let best = |row: &[f32]| {
            let better = |best: usize, next: usize| if row[next] > row[best] { next } else { best };
            (0..row.len()).reduce(better).unwrap_or(0) as u32
        };
        match self {
            Predictions::Classes { probabilities, classes } => {
                probabilities.chunks_exact(*classes).map(best).collect()
            }
            Predictions::Values(_) => Vec::new(),
        }
    }
}
