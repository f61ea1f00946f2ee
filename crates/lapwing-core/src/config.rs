//! The parameters of the method.

use serde::{Deserialize, Serialize};

use crate::{LapError, Weighting};

/// The factor that lets the depression strength be of the order of 1: f is a function of
/// `DISCRETE_AMOUNT · depression_strength · C`.
pub const DISCRETE_AMOUNT: f64 = 0.005;

/// The parameters of LAP. The defaults are the paper's.
///
/// ```
/// use lapwing_core::LapConfig;
/// let config = LapConfig { leniency: 1.5, ..LapConfig::default() };
/// assert_eq!(config.history_length, 25);
/// ```
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LapConfig {
    /// H: how many batch-mean losses of a source are remembered. A source is judged, and counts
    /// when others are judged, once it has that many. At least 1; default 25.
    pub history_length: usize,
    /// λ: how many standard deviations above the others' mean loss a source may lie. At least 0;
    /// infinity never accuses anybody, which is plain training. Default 0.8.
    pub leniency: f64,
    /// δ: how fast weight falls as unreliability rises; tanh² reaches one half at C = 176/δ.
    /// Finite and at least 0; default 1.
    pub depression_strength: f64,
    /// How many steps pass before the first judgement. Histories fill meanwhile. Default 0.
    pub warmup: u64,
    /// What happens when a source lies exactly on the threshold. Default: as the paper has it.
    pub ties: Ties,
    /// The function from unreliability to weight. Default: 1 − tanh².
    pub weighting: Weighting,
}

impl Default for LapConfig {
    fn default() -> Self {
        Self {
            history_length: 25,
            leniency: 0.8,
            depression_strength: 1.0,
            warmup: 0,
            ties: Ties::default(),
            weighting: Weighting::default(),
        }
    }
}

impl LapConfig {
    pub(crate) fn check(&self) -> Result<(), LapError> {
        let refuse =
            |parameter, value, expected| Err(LapError::Parameter { parameter, value, expected });
        if self.history_length == 0 {
            return refuse("history_length", 0.0, "at least 1");
        }
        if self.leniency.is_nan() || self.leniency < 0.0 {
            return refuse("leniency", self.leniency, "at least 0");
        }
        if !self.depression_strength.is_finite() || self.depression_strength < 0.0 {
            return refuse(
                "depression_strength",
                self.depression_strength,
                "finite and at least 0",
            );
        }
        Ok(())
    }
}

/// What happens to a source whose mean loss lies exactly on the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// Algorithm 1 of the paper: equality lowers C.
    #[default]
    Paper,
    /// The authors' package: equality raises C, and where the others spread by at most 1e−8 C is
    /// left alone.
    Package,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_outside_their_range_are_refused_by_name() {
        let bad = [
            (LapConfig { history_length: 0, ..LapConfig::default() }, "history_length"),
            (LapConfig { leniency: -0.1, ..LapConfig::default() }, "leniency"),
            (LapConfig { leniency: f64::NAN, ..LapConfig::default() }, "leniency"),
            (
                LapConfig { depression_strength: -1.0, ..LapConfig::default() },
                "depression_strength",
            ),
            (
                LapConfig { depression_strength: f64::INFINITY, ..LapConfig::default() },
                "depression_strength",
            ),
        ];
        for (config, name) in bad {
            match config.check() {
                Err(LapError::Parameter { parameter, .. }) => assert_eq!(parameter, name),
                other => panic!("{config:?} gave {other:?}"),
            }
        }
        for leniency in [0.0, f64::INFINITY] {
            assert_eq!(LapConfig { leniency, ..LapConfig::default() }.check(), Ok(()));
        }
    }
}
