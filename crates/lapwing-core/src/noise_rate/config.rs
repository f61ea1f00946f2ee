//! The parameters of noise rates.

use serde::{Deserialize, Serialize};

use crate::LapError;

/// The parameters of [`NoiseRate`](crate::NoiseRate).
///
/// ```
/// use lapwing_core::NoiseRateConfig;
/// let config = NoiseRateConfig { warmup: 300, ..NoiseRateConfig::default() };
/// assert_eq!(config.prior, 0.1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NoiseRateConfig {
    /// What is left, one step later, of the evidence on a source: 0.98 remembers about 50 steps, so
    /// that what an untrained network thought of a label is forgotten. From 0 to 1; default 0.98.
    pub decay: f64,
    /// The noise rate of a source of which nothing is known. From 0 to 1; default 0.1.
    pub prior: f64,
    /// How many rows the prior counts for: a source with fewer keeps close to it. Finite and above
    /// 0; default 10.
    pub prior_strength: f64,
    /// The highest noise rate, so that a source can always come back. From 0 to below 1; default
    /// 0.99.
    pub cap: f64,
    /// How many steps every source keeps the prior, while evidence is gathered. A tenth of all steps
    /// is a good choice; with a twentieth, networks have been seen to condemn a good source that
    /// they had not learnt yet. Default 0.
    pub warmup: u64,
}

impl Default for NoiseRateConfig {
    fn default() -> Self {
        Self { decay: 0.98, prior: 0.1, prior_strength: 10.0, cap: 0.99, warmup: 0 }
    }
}

impl NoiseRateConfig {
    pub(crate) fn check(&self) -> Result<(), LapError> {
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let parameters = [
            ("decay", self.decay, share(self.decay), "from 0 to 1"),
            ("prior", self.prior, share(self.prior), "from 0 to 1"),
            (
                "prior_strength",
                self.prior_strength,
                self.prior_strength > 0.0 && self.prior_strength.is_finite(),
                "finite and above 0",
            ),
            ("cap", self.cap, (0.0..1.0).contains(&self.cap), "from 0 to below 1"),
        ];
        for (parameter, value, within, expected) in parameters {
            if !within {
                return Err(LapError::Parameter { parameter, value, expected });
            }
        }
        Ok(())
    }

    /// The noise rate of a source with so much evidence: `noise` of `rows` rows were noise.
    pub(crate) fn rate(&self, noise: f64, rows: f64) -> f64 {
        let strength = self.prior_strength;
        ((noise + self.prior * strength) / (rows + strength)).min(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_outside_their_range_are_refused_by_name() {
        let config = NoiseRateConfig::default();
        let bad = [
            (NoiseRateConfig { decay: 1.1, ..config }, "decay"),
            (NoiseRateConfig { decay: f64::NAN, ..config }, "decay"),
            (NoiseRateConfig { prior: -0.1, ..config }, "prior"),
            (NoiseRateConfig { prior_strength: 0.0, ..config }, "prior_strength"),
            (NoiseRateConfig { prior_strength: f64::INFINITY, ..config }, "prior_strength"),
            (NoiseRateConfig { cap: 1.0, ..config }, "cap"),
        ];
        for (config, name) in bad {
            match config.check() {
                Err(LapError::Parameter { parameter, .. }) => assert_eq!(parameter, name),
                other => panic!("{config:?} gave {other:?}"),
            }
        }
        for decay in [0.0, 1.0] {
            assert_eq!(NoiseRateConfig { decay, ..config }.check(), Ok(()));
        }
    }

    #[test]
    fn a_rate_starts_at_the_prior_follows_the_evidence_and_stops_at_the_cap() {
        let config = NoiseRateConfig::default();
        assert_eq!(config.rate(0.0, 0.0), 0.1);
        assert_eq!(config.rate(9.0, 10.0), 0.5);
        assert_eq!(config.rate(1e9, 1e9), 0.99);
    }
}
