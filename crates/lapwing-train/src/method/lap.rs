//! Loss Adapted Plasticity within the user's guards.

use lapwing_core::{BatchSums, Lap, LapConfig, LapError};

use super::{
    Guards, Method, MethodConfig, MethodError, MethodKind, Observed, Standing, Start, Weighs,
    lap_state,
};
use crate::error::TrainError;
use crate::saved::Saved;

#[derive(Debug)]
pub(super) struct Kind;

impl MethodKind for Kind {
    fn name(&self) -> &'static str {
        "lap"
    }

    fn about(&self) -> &'static str {
        "Loss Adapted Plasticity: sources with high losses lose weight"
    }

    fn sentence(&self, method: &MethodConfig) -> String {
        let LapConfig { history_length, leniency, depression_strength, .. } = method.rule();
        // 1 − tanh²(0.005·δ·C) = ½
        let half = 0.5f64.sqrt().atanh() / (lapwing_core::DISCRETE_AMOUNT * depression_strength);
        let strength = match half.is_finite() {
            true => format!("{depression_strength:.4} (half weight at C = {half:.0})"),
            false => format!("{depression_strength} (everybody keeps the full weight)"),
        };
        format!("history {history_length}, leniency {leniency}, strength {strength}")
    }

    fn weighs(&self) -> Weighs {
        Weighs::Sources
    }

    fn runs_rule(&self) -> bool {
        true
    }

    fn runs_in_shards(&self) -> bool {
        true
    }

    /// So that batches, and what is learnt from the others, stay as they are when somebody is blocked.
    fn keeps_blocked_rows(&self) -> bool {
        true
    }

    fn start<'a>(&self, start: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError> {
        let (rule, guards) = (start.method.rule(), start.method.guards().clone());
        Ok(Box::new(GuardedLap::new(rule, guards)?))
    }
}

/// Loss Adapted Plasticity within the user's guards.
#[derive(Debug)]
pub(super) struct GuardedLap {
    lap: Lap<u32>,
    guards: Guards,
    sums: BatchSums<u32>,
}

impl GuardedLap {
    pub(super) fn new(rule: LapConfig, guards: Guards) -> Result<Self, MethodError> {
        Ok(Self { lap: Lap::new(rule)?, guards, sums: BatchSums::new() })
    }
}

impl Method for GuardedLap {
    fn weigh(&mut self, observed: &Observed<'_>) -> Result<Vec<f64>, MethodError> {
        let Observed { losses, sources, .. } = *observed;
        if losses.len() != sources.len() {
            return Err(LapError::Unpaired { losses: losses.len(), sources: sources.len() }.into());
        }
        observed.sum_up(&mut self.sums, |source| self.guards.admits(source));
        self.lap.update(&self.sums)?;
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
        lap_state::save(&self.lap)
    }

    fn load(&mut self, saved: &Saved) -> Result<(), TrainError> {
        Ok(lap_state::load(&mut self.lap, saved)?)
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
            let losses = [0.2 + jitter, 0.25 - jitter, 2.0, 2.0];
            weights = method.weigh(&Observed::new(&losses, &[0, 1, 2, 3])).unwrap();
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
            let losses = [loss, 5.0, f32::NAN, 1.0];
            let a = with.weigh(&Observed::new(&losses, &[0, 9, 9, 1])).unwrap();
            let b = without.weigh(&Observed::new(&[loss, 1.0], &[0, 1])).unwrap();
            assert_eq!([a[0], a[3]], [b[0], b[1]]);
            assert_eq!([a[1], a[2]], [0.0, 0.0]);
        }
    }

    #[test]
    fn guards_that_contradict_are_refused() {
        let check = |guards: Guards| guards.check(&Kind);
        let floor = |floor| Guards { floor, ..Guards::default() };
        assert!(matches!(check(floor(1.5)), Err(MethodError::Floor(_))));
        assert!(matches!(check(floor(f64::NAN)), Err(MethodError::Floor(_))));
        let both = Guards { trusted: [1, 2].into(), blocked: [2].into(), ..Guards::default() };
        assert!(matches!(check(both), Err(MethodError::Both(2))));
    }

    #[test]
    fn a_loss_that_is_not_finite_weighs_nothing_even_from_a_trusted_source() {
        let mut method = lap(Guards { trusted: [1].into(), ..Guards::default() });
        let observed = Observed::new(&[f32::NAN, 0.5], &[1, 1]);
        assert_eq!(method.weigh(&observed).unwrap(), [0.0, 1.0]);
    }

    #[test]
    fn a_saved_method_goes_on_to_the_last_bit() {
        let mut one = lap(Guards::default());
        feed(&mut one, 37);
        let mut two = lap(Guards::default());
        two.load(&one.save().unwrap()).unwrap();
        for _ in 0..20 {
            assert_eq!(feed(&mut one, 1), feed(&mut two, 1));
        }
        assert!(two.load(&Saved::of(serde_json::json!({"version": 99}))).is_err());
    }
}
