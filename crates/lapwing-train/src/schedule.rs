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
    /// The same within an epoch, and from one to the next along half a cosine, which would reach `least` after the last.
    EpochCosine {
        /// The rate of the first epoch.
        learning_rate: f64,
        /// What the cosine ends at.
        least: f64,
        /// Epochs planned.
        epochs: usize,
        /// Whether each epoch has the rate of the one behind it, so that the last has `least`: the cosine moves before
        /// an epoch rather than after it.
        #[serde(default, skip_serializing_if = "is_false")]
        ahead: bool,
    },
    /// Multiplied by `factor` after every so many epochs.
    Stairs {
        /// The rate of the first epochs.
        learning_rate: f64,
        /// What each stair leaves of it.
        factor: f64,
        /// Epochs of a stair.
        every: usize,
        /// Epochs planned.
        epochs: usize,
    },
}

impl Schedule {
    /// The highest rate.
    pub fn highest(&self) -> f64 {
        let (Schedule::Constant { learning_rate }
        | Schedule::Cosine { learning_rate }
        | Schedule::EpochCosine { learning_rate, .. }
        | Schedule::Stairs { learning_rate, .. }) = *self;
        learning_rate
    }

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
            Schedule::EpochCosine { learning_rate, least, epochs, ahead } => {
                let epoch = epoch(step, steps, epochs) + u64::from(ahead);
                let done = epoch as f64 / epochs.max(1) as f64;
                let share = 0.5 * (1.0 + (std::f64::consts::PI * done).cos());
                least + (learning_rate - least) * share
            }
            Schedule::Stairs { learning_rate, factor, every, epochs } => {
                let stairs = epoch(step, steps, epochs) / every.max(1) as u64;
                learning_rate * factor.powi(i32::try_from(stairs).unwrap_or(i32::MAX))
            }
        }
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The epoch of a step: all epochs have equally many.
fn epoch(step: u64, steps: u64, epochs: usize) -> u64 {
    step / (steps / epochs.max(1) as u64).max(1)
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
    fn rates_by_epoch_are_pytorchs() {
        // CosineAnnealingLR(T_max=40, eta_min=2e-4) from 1e-3, stepped after each epoch: 1e-3, 9.9877e-4, … 6e-4 at 20.
        let (learning_rate, least) = (1e-3, 2e-4);
        let cosine = Schedule::EpochCosine { learning_rate, least, epochs: 40, ahead: false };
        let rate = |epoch: u64| cosine.rate(epoch * 7, 280);
        assert_eq!((rate(0), cosine.rate(6, 280)), (1e-3, 1e-3));
        assert!((rate(1) - 9.987_669_4e-4).abs() < 1e-10, "{}", rate(1));
        assert!((rate(20) - 6e-4).abs() < 1e-15);
        assert!(rate(39) > 2e-4 && rate(39) < 2.02e-4);
        // The same with a step before each epoch.
        let cosine = Schedule::EpochCosine { learning_rate, least, epochs: 40, ahead: true };
        let ahead = |epoch: u64| cosine.rate(epoch * 7, 280);
        assert!((ahead(0) - rate(1)).abs() < 1e-18 && (ahead(39) - 2e-4).abs() < 1e-18);
        // StepLR(step_size=30, gamma=0.1) from 0.1.
        let stairs = Schedule::Stairs { learning_rate: 0.1, factor: 0.1, every: 30, epochs: 90 };
        let rate = |epoch: u64| stairs.rate(epoch * 5 + 4, 450);
        let rates = [0, 29, 30, 59, 60, 89].map(rate);
        let expected: [f64; 6] = [0.1, 0.1, 0.01, 0.01, 0.001, 0.001];
        assert!(rates.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{rates:?}");
        assert_eq!((stairs.highest(), cosine.highest()), (0.1, 1e-3));
        assert!(cosine.rate(3, 0).is_finite() && stairs.rate(0, 0) == 0.1);
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
