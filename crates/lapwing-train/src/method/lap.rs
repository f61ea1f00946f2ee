//! Loss Adapted Plasticity within the user's guards.

use std::collections::BTreeSet;

use lapwing_core::{Lap, LapConfig, LapError, State};
use serde::{Deserialize, Serialize};

use super::{Method, MethodError, Standing};
use crate::error::TrainError;
use crate::saved::Saved;

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

/// Loss Adapted Plasticity within the user's guards.
#[derive(Debug)]
pub(crate) struct GuardedLap {
    lap: Lap<u32>,
    guards: Guards,
    seen_losses: Vec<f32>,
    seen_sources: Vec<u32>,
}

impl GuardedLap {
    pub(crate) fn new(rule: LapConfig, guards: Guards) -> Result<Self, MethodError> {
        if !(0.0..=1.0).contains(&guards.floor) {
            return Err(MethodError::Floor(guards.floor));
        }
        if let Some(&both) = guards.trusted.intersection(&guards.blocked).next() {
            return Err(MethodError::Both(both));
        }
        let (seen_losses, seen_sources) = Default::default();
        Ok(Self { lap: Lap::new(rule)?, guards, seen_losses, seen_sources })
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
    fn weigh(&mut self, losses: &[f32], sources: &[u32]) -> Result<Vec<f64>, MethodError> {
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
        let weigh = |(loss, source): (&f32, &u32)| {
            let weight = self.guards.weight(*source, self.lap.weight(source));
            if loss.is_finite() { weight } else { 0.0 }
        };
        Ok(losses.iter().zip(sources).map(weigh).collect())
    }

    fn standing(&self, source: u32) -> Standing {
        Standing {
            unreliability: self.lap.unreliability(&source),
            weight: self.guards.weight(source, self.lap.weight(&source)),
        }
    }

    fn save(&self) -> Result<Saved, MethodError> {
        Ok(Saved::of(serde_json::to_value(self.lap.state())?))
    }

    fn load(&mut self, saved: &Saved) -> Result<(), TrainError> {
        let state = State::deserialize(&saved.state).map_err(MethodError::from)?;
        Ok(self.lap.load(state).map_err(MethodError::from)?)
    }

    fn lap(&self) -> Option<&Lap<u32>> {
        Some(&self.lap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lap(guards: Guards) -> GuardedLap {
        let rule =
            LapConfig { history_length: 3, depression_strength: 5.0, ..LapConfig::default() };
        GuardedLap::new(rule, guards).unwrap()
    }

    /// Sources 0 and 1 good, 2 and 3 bad, for `steps` steps.
    fn feed(method: &mut dyn Method, steps: usize) -> Vec<f64> {
        let mut weights = Vec::new();
        for step in 0..steps {
            let jitter = 0.01 * (step % 5) as f32;
            weights =
                method.weigh(&[0.2 + jitter, 0.25 - jitter, 2.0, 2.0], &[0, 1, 2, 3]).unwrap();
        }
        weights
    }

    #[test]
    fn guards_hold_floor_trust_and_block() {
        let plain = feed(&mut lap(Guards::default()), 200);
        assert!(plain[0] > 0.9 && plain[2] < 0.1 && plain[3] < 0.1, "{plain:?}");
        let floored = feed(&mut lap(Guards { floor: 0.3, ..Guards::default() }), 200);
        assert_eq!(floored[2..], [0.3, 0.3]);
        let guards = Guards { floor: 0.3, trusted: [2].into(), blocked: [0].into() };
        let mut method = lap(guards);
        let guarded = feed(&mut method, 200);
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
            let a = with.weigh(&[loss, 5.0, f32::NAN, 1.0], &[0, 9, 9, 1]).unwrap();
            let b = without.weigh(&[loss, 1.0], &[0, 1]).unwrap();
            assert_eq!([a[0], a[3]], [b[0], b[1]]);
            assert_eq!([a[1], a[2]], [0.0, 0.0]);
        }
    }

    #[test]
    fn guards_that_contradict_are_refused() {
        let start = |guards| GuardedLap::new(LapConfig::default(), guards);
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
        feed(&mut one, 37);
        let text = serde_json::to_string(&one.save().unwrap().state).unwrap();
        let mut two = lap(Guards::default());
        two.load(&Saved::of(serde_json::from_str(&text).unwrap())).unwrap();
        for _ in 0..20 {
            assert_eq!(feed(&mut one, 1), feed(&mut two, 1));
        }
        assert!(two.load(&Saved::of(serde_json::json!({"version": 99}))).is_err());
    }
}
