//! A method decides how much each sample of a batch counts.

use std::collections::BTreeSet;

use lapwing_core::{Lap, LapConfig, LapError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A rule from the losses of a batch to the weights of its samples.
///
/// The training loss is the mean over the batch of weight · loss; no gradient flows through the weights, and they are
/// not divided by their sum. A sample whose loss is not finite counts for nothing, whatever it weighs.
pub trait Method {
    /// One weight per sample. Called once per step, in the order of the steps.
    fn weigh(&mut self, losses: &[f32], sources: &[u32]) -> Result<&[f64], MethodError>;

    /// Where a source stands after the last step.
    fn standing(&self, source: u32) -> Standing;

    /// Everything it must know to go on after a pause.
    fn save(&self) -> Result<serde_json::Value, MethodError>;

    /// Goes on from what [`save`](Self::save) gave.
    fn load(&mut self, saved: serde_json::Value) -> Result<(), MethodError>;

    /// The weighting rule behind it, for verdicts, if there is one.
    fn lap(&self) -> Option<&Lap<u32>> {
        None
    }
}

/// Unreliability and weight of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// C.
    pub unreliability: u64,
    /// What its samples count for.
    pub weight: f64,
}

/// Why a method refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MethodError {
    /// The weighting rule refused.
    #[error(transparent)]
    Lap(#[from] LapError),
    /// A floor outside [0, 1].
    #[error("the floor is {0}, but must be a weight from 0 to 1")]
    Floor(f64),
    /// A source both trusted and blocked.
    #[error("source {0} is both trusted and blocked")]
    Both(u32),
    /// A saved state that cannot be read or written.
    #[error("the saved state of the method cannot be used: {0}")]
    State(#[from] serde_json::Error),
}

/// Which method, with its parameters.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum MethodConfig {
    /// Every sample counts the same.
    Standard,
    /// Loss Adapted Plasticity.
    Lap {
        /// The rule.
        rule: LapConfig,
        /// What the user knows better.
        guards: Guards,
    },
}

/// What the user knows better than the rule.
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

impl MethodConfig {
    /// The method, at its first step.
    pub fn start(&self) -> Result<Box<dyn Method>, MethodError> {
        match self {
            MethodConfig::Standard => Ok(Box::new(Standard::default())),
            MethodConfig::Lap { rule, guards } => {
                Ok(Box::new(GuardedLap::new(*rule, guards.clone())?))
            }
        }
    }
}

/// Every sample counts the same.
#[derive(Debug, Default)]
struct Standard {
    ones: Vec<f64>,
}

impl Method for Standard {
    fn weigh(&mut self, losses: &[f32], _: &[u32]) -> Result<&[f64], MethodError> {
        self.ones.resize(losses.len(), 1.0);
        Ok(&self.ones)
    }
    fn standing(&self, _: u32) -> Standing {
        Standing { unreliability: 0, weight: 1.0 }
    }
    fn save(&self) -> Result<serde_json::Value, MethodError> {
        Ok(serde_json::Value::Null)
    }
    fn load(&mut self, saved: serde_json::Value) -> Result<(), MethodError> {
        Ok(serde_json::from_value(saved)?)
    }
}

/// Loss Adapted Plasticity within the user's guards.
#[derive(Debug)]
struct GuardedLap {
    lap: Lap<u32>,
    guards: Guards,
    weights: Vec<f64>,
    seen_losses: Vec<f32>,
    seen_sources: Vec<u32>,
}

impl GuardedLap {
    fn new(rule: LapConfig, guards: Guards) -> Result<Self, MethodError> {
        if !(0.0..=1.0).contains(&guards.floor) {
            return Err(MethodError::Floor(guards.floor));
        }
        if let Some(&both) = guards.trusted.intersection(&guards.blocked).next() {
            return Err(MethodError::Both(both));
        }
        let (weights, seen_losses, seen_sources) = Default::default();
        Ok(Self { lap: Lap::new(rule)?, guards, weights, seen_losses, seen_sources })
    }
}

impl Guards {
    fn weight(&self, source: u32, weight: f64) -> f64 {
        if self.blocked.contains(&source) {
            0.0
        } else if self.trusted.contains(&source) {
            1.0
        } else {
            weight.max(self.floor)
        }
    }
}

impl Method for GuardedLap {
    fn weigh(&mut self, losses: &[f32], sources: &[u32]) -> Result<&[f64], MethodError> {
        if losses.len() != sources.len() {
            return Err(LapError::Unpaired { losses: losses.len(), sources: sources.len() }.into());
        }
        self.seen_losses.clear();
        self.seen_sources.clear();
        for (&loss, &source) in losses.iter().zip(sources) {
            if !self.guards.blocked.contains(&source) {
                self.seen_losses.push(loss);
                self.seen_sources.push(source);
            }
        }
        self.lap.weigh(&self.seen_losses, &self.seen_sources)?;
        self.weights.clear();
        for (loss, source) in losses.iter().zip(sources) {
            let weight = self.guards.weight(*source, self.lap.weight(source));
            self.weights.push(if loss.is_finite() { weight } else { 0.0 });
        }
        Ok(&self.weights)
    }

    fn standing(&self, source: u32) -> Standing {
        Standing {
            unreliability: self.lap.unreliability(&source),
            weight: self.guards.weight(source, self.lap.weight(&source)),
        }
    }

    fn save(&self) -> Result<serde_json::Value, MethodError> {
        Ok(serde_json::to_value(self.lap.state())?)
    }

    fn load(&mut self, saved: serde_json::Value) -> Result<(), MethodError> {
        Ok(self.lap.load(serde_json::from_value(saved)?)?)
    }

    fn lap(&self) -> Option<&Lap<u32>> {
        Some(&self.lap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lap(guards: Guards) -> Box<dyn Method> {
        let rule =
            LapConfig { history_length: 3, depression_strength: 5.0, ..LapConfig::default() };
        MethodConfig::Lap { rule, guards }.start().unwrap()
    }

    /// Sources 0 and 1 good, 2 and 3 bad, for `steps` steps.
    fn feed(method: &mut dyn Method, steps: usize) -> Vec<f64> {
        let mut weights = Vec::new();
        for step in 0..steps {
            let jitter = 0.01 * (step % 5) as f32;
            weights = method
                .weigh(&[0.2 + jitter, 0.25 - jitter, 2.0, 2.0], &[0, 1, 2, 3])
                .unwrap()
                .to_vec();
        }
        weights
    }

    #[test]
    fn standard_weighs_everybody_the_same() {
        let mut method = MethodConfig::Standard.start().unwrap();
        assert_eq!(method.weigh(&[0.1, 9.0], &[0, 1]).unwrap(), [1.0, 1.0]);
        assert_eq!(method.weigh(&[9.0], &[1]).unwrap(), [1.0]);
        let saved = method.save().unwrap();
        method.load(saved).unwrap();
    }

    #[test]
    fn guards_hold_floor_trust_and_block() {
        let plain = feed(&mut *lap(Guards::default()), 200);
        assert!(plain[0] > 0.9 && plain[2] < 0.1 && plain[3] < 0.1, "{plain:?}");
        let floored = feed(&mut *lap(Guards { floor: 0.3, ..Guards::default() }), 200);
        assert_eq!(floored[2..], [0.3, 0.3]);
        let guards = Guards { floor: 0.3, trusted: [2].into(), blocked: [0].into() };
        let mut method = lap(guards);
        let guarded = feed(&mut *method, 200);
        assert_eq!((guarded[0], guarded[2]), (0.0, 1.0));
        assert_eq!(method.standing(0), Standing { unreliability: 0, weight: 0.0 });
        assert_eq!(method.standing(2).weight, 1.0);
        assert!(method.standing(2).unreliability > 0, "trusted sources are judged all the same");
    }

    #[test]
    fn a_blocked_source_is_as_good_as_absent() {
        let mut with = lap(Guards { blocked: [9].into(), ..Guards::default() });
        let mut without = lap(Guards::default());
        for step in 0..50 {
            let loss = 0.1 * (step % 3) as f32;
            let a = with.weigh(&[loss, 5.0, f32::NAN, 1.0], &[0, 9, 9, 1]).unwrap().to_vec();
            let b = without.weigh(&[loss, 1.0], &[0, 1]).unwrap();
            assert_eq!([a[0], a[3]], [b[0], b[1]]);
            assert_eq!([a[1], a[2]], [0.0, 0.0]);
        }
    }

    #[test]
    fn guards_that_contradict_are_refused() {
        let start =
            |guards| MethodConfig::Lap { rule: LapConfig::default(), guards }.start().map(|_| ());
        assert!(matches!(
            start(Guards { floor: 1.5, ..Guards::default() }),
            Err(MethodError::Floor(_))
        ));
        assert!(matches!(
            start(Guards { floor: f64::NAN, ..Guards::default() }),
            Err(MethodError::Floor(_))
        ));
        let both = Guards { trusted: [1, 2].into(), blocked: [2].into(), ..Guards::default() };
        assert!(matches!(start(both), Err(MethodError::Both(2))));
    }

    #[test]
    fn a_loss_that_is_not_finite_weighs_nothing_even_from_a_trusted_source() {
        let mut method = lap(Guards { trusted: [1].into(), ..Guards::default() });
        assert_eq!(method.weigh(&[f32::NAN, 0.5], &[1, 1]).unwrap(), [0.0, 1.0]);
    }

    #[test]
    fn a_saved_method_goes_on_to_the_last_bit() {
        let mut one = lap(Guards::default());
        feed(&mut *one, 37);
        let text = serde_json::to_string(&one.save().unwrap()).unwrap();
        let mut two = lap(Guards::default());
        two.load(serde_json::from_str(&text).unwrap()).unwrap();
        for _ in 0..20 {
            assert_eq!(feed(&mut *one, 1), feed(&mut *two, 1));
        }
        assert!(two.load(serde_json::json!({"version": 99})).is_err());
    }
}
