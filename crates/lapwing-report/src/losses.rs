//! Distributions: how often which loss, or which residual, was seen.

use serde::{Deserialize, Serialize};

/// Bins of a distribution; enough to show two peaks, few enough to be smooth with a few hundred values.
const BINS: usize = 48;

/// Counts in bins of equal width from `low` to `high`. The outermost bins hold what lies beyond as well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Histogram {
    /// Lower end of the first bin.
    pub low: f64,
    /// Upper end of the last bin.
    pub high: f64,
    /// Values per bin.
    pub counts: Vec<u64>,
}

impl Histogram {
    /// Counts the finite values.
    pub fn of(values: &[f64], low: f64, high: f64) -> Self {
        let mut counts = vec![0; BINS];
        for value in values.iter().filter(|v| v.is_finite()) {
            let share = (value - low) / (high - low);
            // A float beyond the range of an integer becomes its nearest end, and NaN becomes 0.
            counts[((share * BINS as f64) as usize).min(BINS - 1)] += 1;
        }
        Self { low, high, counts }
    }

    /// Number of values counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }
}

/// Range of the finite values but for the outermost thousandth on either side, which would flatten all the rest.
pub(crate) fn inner_range(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.retain(|v| v.is_finite());
    values.sort_by(f64::total_cmp);
    let left_out = if values.len() < 20 { 0 } else { values.len().div_ceil(1000) };
    Some((*values.get(left_out)?, *values.get(values.len() - 1 - left_out)?))
}

/// The losses of all sources in one stretch of training, such as its first third.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Phase {
    /// `early`, `middle`, `late`.
    pub name: String,
    /// First step of the stretch.
    pub first_step: u64,
    /// Last step of the stretch.
    pub last_step: u64,
    /// Mean loss of the sources, weighted by reliability, at the end of the stretch.
    pub reference_mean: Option<f64>,
    /// That mean plus λ standard deviations.
    pub threshold: Option<f64>,
    /// The sources seen in it.
    pub sources: Vec<SourceLosses>,
}

/// The losses of one source in one stretch of training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceLosses {
    /// Name of the source.
    pub source: String,
    /// Its weight at the end of the stretch.
    pub weight: f64,
    /// Its losses.
    pub losses: Histogram,
}

/// A phase before its losses are counted: what [`Phase::count`] takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseLosses {
    /// See [`Phase::name`].
    pub name: String,
    /// See [`Phase::first_step`].
    pub first_step: u64,
    /// See [`Phase::last_step`].
    pub last_step: u64,
    /// See [`Phase::reference_mean`].
    pub reference_mean: Option<f64>,
    /// See [`Phase::threshold`].
    pub threshold: Option<f64>,
    /// Source, its weight at the end, and its mean loss in each batch of the phase.
    pub sources: Vec<(String, f64, Vec<f64>)>,
}

impl Phase {
    /// Counts the losses of several phases over one range, so that they can be compared.
    pub fn count(phases: &[PhaseLosses]) -> Vec<Phase> {
        let lines = phases.iter().flat_map(|p| p.reference_mean.into_iter().chain(p.threshold));
        let losses = phases
            .iter()
            .flat_map(|p| p.sources.iter().flat_map(|(_, _, losses)| losses.iter().copied()));
        let (low, high) = inner_range(losses.collect()).unwrap_or((0.0, 1.0));
        let high = lines.filter(|v| v.is_finite()).fold(high, f64::max);
        phases
            .iter()
            .map(|phase| Phase {
                name: phase.name.clone(),
                first_step: phase.first_step,
                last_step: phase.last_step,
                reference_mean: phase.reference_mean,
                threshold: phase.threshold,
                sources: phase
                    .sources
                    .iter()
                    .map(|(source, weight, losses)| SourceLosses {
                        source: source.clone(),
                        weight: *weight,
                        losses: Histogram::of(losses, low, high),
                    })
                    .collect(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_fall_into_their_bins_and_strays_into_the_outermost() {
        let histogram =
            Histogram::of(&[0.0, 0.5, 1.0, -7.0, 7.0, f64::NAN, f64::INFINITY], 0.0, 1.0);
        assert_eq!(histogram.counts[0], 2);
        assert_eq!(histogram.counts[BINS / 2], 1);
        assert_eq!(histogram.counts[BINS - 1], 2);
        assert_eq!(histogram.total(), 5);
    }

    #[test]
    fn phases_share_a_range_that_ignores_a_wild_loss_and_holds_the_threshold() {
        let mut losses: Vec<f64> = (0..1000).map(|i| f64::from(i) / 1000.0).collect();
        losses[0] = 1e9;
        let phase = PhaseLosses {
            threshold: Some(1.5),
            sources: vec![("a".into(), 1.0, losses)],
            ..Default::default()
        };
        let counted = Phase::count(&[phase]);
        assert_eq!(counted[0].sources[0].losses.high, 1.5);
        assert_eq!(counted[0].sources[0].losses.total(), 1000);
    }

    proptest! {
        #[test]
        fn no_finite_value_is_lost(values: Vec<f64>, low: f64, high: f64) {
            let finite = values.iter().filter(|v| v.is_finite()).count() as u64;
            prop_assert_eq!(Histogram::of(&values, low, high).total(), finite);
        }
    }
}
