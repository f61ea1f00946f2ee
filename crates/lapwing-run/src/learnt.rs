//! What came of training: a network, or trees.

use lapwing_sample::{Predictions, Samples, Targets};
use lapwing_train::Model;
use lapwing_trees::Forest;

use crate::RunError;

/// A model that predicts.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a run has one")]
pub enum Learnt {
    /// A network.
    Network(Model),
    /// Trees.
    Trees(Forest),
}

impl Learnt {
    /// Predicts the given rows.
    pub fn predict(&self, samples: &dyn Samples, rows: &[u32]) -> Result<Predictions, RunError> {
        Ok(match self {
            Self::Network(model) => model.predict(samples, rows)?,
            Self::Trees(forest) => forest.predict(samples, rows)?,
        })
    }

    /// The loss of each given row, in the units of training.
    pub fn losses(
        &self,
        samples: &dyn Samples,
        targets: &Targets,
        rows: &[u32],
    ) -> Result<Vec<f32>, RunError> {
        Ok(match self {
            Self::Network(model) => model.losses(samples, targets, rows)?,
            Self::Trees(forest) => forest.losses(samples, targets, rows)?,
        })
    }
}
