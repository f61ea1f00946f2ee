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
    /// What a history is read as. Default: its mean. What is written of a rule leaves the default
    /// out, so that it is what it was before there was a choice.
    #[serde(skip_serializing_if = "HistoryReading::is_mean")]
    pub reading: HistoryReading,
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
            reading: HistoryReading::default(),
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

/// What the history of a source is read as, for the source itself and where others are compared with
/// it. The spread of a history is that of its losses either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryReading {
    /// The mean of its losses, as in Algorithm 1 of the paper.
    #[default]
    Mean,
    /// −log of the mean of e^−loss: where losses are negative log-likelihoods, an estimate of the
    /// model evidence of the source's data along the trajectory of training, which the paper's
    /// appendix offers as another interpretation. It is never above the mean, and listens to the low
    /// losses of a history: a spike hardly raises it. It costs O(H) per source and step.
    Evidence,
}

impl HistoryReading {
    fn is_mean(&self) -> bool {
        *self == Self::Mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_reads_means_is_written_as_before_there_was_a_choice() {
        let written = |reading| {
            let config = LapConfig { reading, ..LapConfig::default() };
            serde_json::to_value(config).unwrap()
        };
        assert_eq!(written(HistoryReading::Mean).get("reading"), None);
        let evidence = written(HistoryReading::Evidence);
        assert_eq!(evidence["reading"], "evidence");
        let read: LapConfig = serde_json::from_value(evidence).unwrap();
        assert_eq!(read.reading, HistoryReading::Evidence);
        let old: LapConfig = serde_json::from_str(r#"{"ties": "package"}"#).unwrap();
        assert_eq!((old.reading, old.ties), (HistoryReading::Mean, Ties::Package));
    }

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
