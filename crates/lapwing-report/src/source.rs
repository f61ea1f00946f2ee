//! What is known of each source.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// One source at the end of training: a row of `sources.csv` with the evidence behind its verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceRow {
    /// Name as in the data; any text at all.
    pub source: String,
    /// The verdict.
    pub verdict: Verdict,
    /// What the user ruled about this source, if anything.
    pub ruling: Option<Ruling>,
    /// Training rows.
    pub rows: u64,
    /// Batches in which it appeared.
    pub batches: u64,
    /// C at the end of training.
    pub unreliability: f64,
    /// f(C) at the end of training.
    pub weight: f64,
    /// Mean loss over its window.
    pub mean_loss: Option<f64>,
    /// Mean loss of the other sources, weighted by their reliability.
    pub reference_loss: Option<f64>,
    /// Standard deviation that goes with it.
    pub reference_std: Option<f64>,
    /// Share of its steps at which its loss was above the threshold, 0 to 1.
    pub share_above: Option<f64>,
    /// Estimated share of wrong labels.
    pub label_error: Option<Interval>,
    /// Losses that were NaN or infinite.
    pub nonfinite: u64,
    /// First step at which it was counted as departed from the others.
    pub first_departure_step: Option<u64>,
}

/// The verdict on a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Its labels contradict the other sources.
    Unreliable,
    /// It may be unreliable.
    Suspect,
    /// Too little was seen of it.
    #[default]
    Insufficient,
    /// Nothing speaks against it.
    Reliable,
}

impl Verdict {
    /// The word as in `sources.csv`.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Unreliable => "unreliable",
            Verdict::Suspect => "suspect",
            Verdict::Insufficient => "insufficient",
            Verdict::Reliable => "reliable",
        }
    }

    /// Whether the source is to be looked at.
    pub fn is_flagged(self) -> bool {
        matches!(self, Verdict::Unreliable | Verdict::Suspect)
    }
}

/// What the user ruled about a source, whatever its losses say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ruling {
    /// Never down-weighted.
    Trusted,
    /// Weight 0.
    Blocked,
}

/// An estimate with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One source over the steps of training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trajectory {
    /// Name of the source.
    pub source: String,
    /// Its points, by rising step.
    pub points: Vec<Point>,
}

/// One source at one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Point {
    /// The step.
    pub step: u64,
    /// Mean loss of the source in the batch; `None` when no loss was finite.
    pub loss: Option<f64>,
    /// Weight after the step.
    pub weight: f64,
}

/// The order in which sources are read: worst verdict first, then smallest weight, then name.
pub(crate) fn worst_first(a: &SourceRow, b: &SourceRow) -> Ordering {
    a.verdict
        .cmp(&b.verdict)
        .then(a.weight.total_cmp(&b.weight))
        .then(b.unreliability.total_cmp(&a.unreliability))
        .then_with(|| a.source.cmp(&b.source))
}
