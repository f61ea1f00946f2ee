//! The learning rate as a pure function of the step, so that a resumed run needs no state for it.

use serde::{Deserialize, Serialize};

/// How the learning rate moves over the planned steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Schedule {
    /// The same rate at every step.
    Constant {
        /// The rate.
        learning_rate: f64,
    },
    /// Rises over the first fiftieth of the steps, stays until half of them, then follows a cosine to zero: LAP learns
    /// whom to trust at a steady rate, and what is left anneals without the noise.
    Cosine {
        /// The highest rate.
        learning_rate: f64,
    },
}

impl Schedule {
    /// The rate of `step` (from 0) of `steps`.
    pub fn rate(&self, step: u64, steps: u64) -> f64 {
        match *self {
            Schedule::Constant { learning_rate } => learning_rate,
            Schedule::Cosine { learning_rate } => {
                let done = step as f64 / steps.max(1) as f64;
                let rise = ((step + 1) as f64 / (0.02 * steps as f64).max(1.0)).min(1.0);
                let fall = ((done - 0.5) / 0.5).clamp(0.0, 1.0);
                learning_rate * rise * 0.5 * (1.0 + (std::f64::consts::PI * fall).cos())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cosine_rises_stays_and_falls_to_nothing() {
        let rate = |step| Schedule::Cosine { learning_rate: 0.01 }.rate(step, 1_000);
        assert!(rate(0) > 0.0 && rate(0) < rate(5) && rate(5) < rate(30));
        assert_eq!(rate(30), 0.01);
        assert_eq!(rate(500), 0.01);
        assert!((rate(750) - 0.005).abs() < 1e-12);
        assert!(rate(999) < 1e-6 && rate(999) > 0.0);
        assert!((0..1_000).all(|step| rate(step) > 0.0 && rate(step) <= 0.01));
    }

    #[test]
    fn runs_of_a_few_steps_do_not_break_it() {
        for steps in 0..5 {
            for step in 0..=steps {
                let rate = Schedule::Cosine { learning_rate: 1.0 }.rate(step, steps);
                assert!(rate.is_finite() && rate >= 0.0, "{step} of {steps}: {rate}");
            }
        }
    }
}
