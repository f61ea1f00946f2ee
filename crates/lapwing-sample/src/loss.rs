//! Losses that keep one number per sample, which is what a method weighs.

use serde::{Deserialize, Serialize};

use crate::Task;

/// Which loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Loss {
    /// Minus the logarithm of the probability given to the row's class.
    CrossEntropy,
    /// Square of the difference.
    SquaredError,
    /// Half the square of the difference up to `delta`, linear beyond.
    Huber {
        /// Where the linear part begins, in standard deviations of the target.
        delta: f64,
    },
}

impl Loss {
    /// What it is for.
    pub fn task(&self) -> Task {
        match self {
            Loss::CrossEntropy => Task::Classification,
            Loss::SquaredError | Loss::Huber { .. } => Task::Regression,
        }
    }

    /// The loss of a row as a score that a wrong target can spoil only so much: one minus the probability given to the
    /// label, or the absolute error. Cross-entropy and squared error punish a model without bound for being right where
    /// the target is wrong, and so choose models that hedge; under label noise that is symmetric the ranking of models by
    /// the bounded score is that without noise.
    pub fn bounded(&self, loss: f32) -> f32 {
        match self {
            Loss::CrossEntropy => 1.0 - (-loss).exp(),
            Loss::SquaredError => loss.sqrt(),
            Loss::Huber { .. } => loss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounded_score_keeps_the_order_of_losses_and_is_bounded_for_classes() {
        assert_eq!(Loss::CrossEntropy.bounded(0.0), 0.0);
        assert!((Loss::CrossEntropy.bounded(-(0.25f32.ln())) - 0.75).abs() < 1e-6);
        assert_eq!(Loss::CrossEntropy.bounded(1e30), 1.0);
        assert_eq!(Loss::SquaredError.bounded(9.0), 3.0);
        assert_eq!(Loss::Huber { delta: 1.0 }.bounded(9.0), 9.0);
        assert!(Loss::CrossEntropy.bounded(f32::NAN).is_nan());
    }
}
