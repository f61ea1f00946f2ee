//! What the user knows better than any method: whom to trust, whom to leave out, how little a source may count.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{MethodError, MethodKind};

/// What the user knows better than the method. They hold with every method, or are refused.
///
/// The loop sees to it that blocked sources are neither trained on nor asked which epoch is the best. A method that
/// [weighs](Weighs) rows or sources is given the guards and sees to the rest; [`weight`](Self::weight) says how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Guards {
    /// Least weight of a source that is not blocked.
    pub floor: f64,
    /// Sources that always weigh 1. Their losses are judged and shown all the same.
    pub trusted: BTreeSet<u32>,
    /// Sources that always weigh 0. The rule does not see them, so that nobody is compared with them.
    pub blocked: BTreeSet<u32>,
}

/// What a method decides on, as far as guards go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighs {
    /// Nothing: every row counts, and all count the same. Trust is kept as it is; there is no weight for a floor.
    Nothing,
    /// Rows: some count less than others, whatever their source. Those of trusted sources must not; there is no weight
    /// of a source for a floor.
    Rows,
    /// Sources: each has a weight, which trust and floor overrule.
    Sources,
}

impl Guards {
    /// Refuses what contradicts itself, and what a method cannot hold.
    pub(crate) fn check(&self, kind: &dyn MethodKind) -> Result<(), MethodError> {
        if !(0.0..=1.0).contains(&self.floor) {
            return Err(MethodError::Floor(self.floor));
        }
        if let Some(&both) = self.trusted.intersection(&self.blocked).next() {
            return Err(MethodError::Both(both));
        }
        if self.floor > 0.0 && kind.weighs() != Weighs::Sources {
            return Err(MethodError::FloorWithoutWeights(kind.name()));
        }
        Ok(())
    }

    /// What a source weighs whose weight would be `weight`.
    pub fn weight(&self, source: u32, weight: f64) -> f64 {
        if self.blocked.contains(&source) {
            0.0
        } else if self.trusted.contains(&source) {
            1.0
        } else {
            weight.max(self.floor)
        }
    }

    /// Whether a row of this source may never count less than others.
    pub fn trusts(&self, source: u32) -> bool {
        self.trusted.contains(&source)
    }

    /// Whether a source counts at all.
    pub fn admits(&self, source: u32) -> bool {
        !self.blocked.contains(&source)
    }
}
