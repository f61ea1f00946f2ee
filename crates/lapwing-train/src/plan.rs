//! Settings that suit a table nobody has tuned for: pure functions of its shape.

use lapwing_sample::{Data, Targets};

use crate::config::TrainConfig;
use crate::loss::Loss;
use crate::network::{Architecture, MlpConfig};
use crate::optimiser::OptimiserConfig;
use crate::schedule::Schedule;

/// The shape of a table, as far as planning goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableShape {
    /// Training rows.
    pub rows: usize,
    /// Features.
    pub width: usize,
    /// Sources.
    pub sources: usize,
}

/// Settings for a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Rows per step.
    pub batch_size: usize,
    /// Epochs.
    pub epochs: usize,
    /// Epochs without improvement before stopping.
    pub patience: usize,
    /// Units of the hidden layers.
    pub hidden: Vec<usize>,
    /// Share of hidden units dropped at each step.
    pub dropout: f32,
    /// Adam's weight decay.
    pub weight_decay: f64,
    /// Highest learning rate.
    pub learning_rate: f64,
    /// Steps: batches per epoch times epochs.
    pub steps: u64,
    /// Expected step at which a source of average size has its history complete.
    pub window_steps: u64,
    /// δ, so that half weight comes after a tenth of the steps at the earliest.
    pub depression_strength: f64,
}

/// Fewest steps worth planning: a network that starts from nothing and a rule that needs histories both need some.
const FEWEST_STEPS: usize = 3_000;
/// Fewest epochs, and fewest for a table so long that an epoch is a run by itself.
const FEWEST_EPOCHS: (usize, usize) = (20, 10);
const LONG: usize = 200_000;
const SMALLEST_BATCH: usize = 16;
const LARGEST_BATCH: usize = 1_024;

/// Plans for a table and a history length.
pub fn plan(shape: TableShape, history_length: usize) -> Plan {
    let TableShape { rows, width, sources } = shape;
    let batch_size = batch_size(rows, sources);
    let batches = rows.div_ceil(batch_size).max(1);
    let window_steps = window_steps(sources, batch_size, history_length);
    // Histories should be complete within the first tenth of the run; more than three times the work is not worth it.
    let wanted = (10 * window_steps as usize).clamp(FEWEST_STEPS, 3 * FEWEST_STEPS);
    let fewest = if rows < LONG { FEWEST_EPOCHS.0 } else { FEWEST_EPOCHS.1 };
    let epochs = wanted.div_ceil(batches).max(fewest);
    let steps = (batches * epochs) as u64;
    let (dropout, weight_decay) = regularisation(rows, width);
    Plan {
        batch_size,
        epochs,
        patience: epochs.div_ceil(2).max(FEWEST_EPOCHS.1),
        hidden: hidden(rows, width),
        dropout,
        weight_decay,
        learning_rate: 2e-3,
        steps,
        window_steps,
        depression_strength: auto_strength(steps),
    }
}

/// Four rows of every source in an average batch, so that most sources are in most batches; but at least eight batches
/// per epoch, and larger batches for tables so long that single steps stop mattering.
fn batch_size(rows: usize, sources: usize) -> usize {
    let for_sources = sources.saturating_mul(4).clamp(64, LARGEST_BATCH).next_power_of_two();
    let for_length = (rows / 2_000).min(LARGEST_BATCH).next_power_of_two();
    let most = (rows / 8).max(SMALLEST_BATCH);
    for_sources.max(for_length).min(LARGEST_BATCH).min(most)
}

/// Expected number of steps until a source with an average share of the rows has been in `history_length` batches.
pub fn window_steps(sources: usize, batch_size: usize, history_length: usize) -> u64 {
    let absent = (1.0 - 1.0 / sources.max(1) as f64).powf(batch_size as f64);
    (history_length as f64 / (1.0 - absent).max(f64::MIN_POSITIVE)).ceil() as u64
}

/// Two equal layers, larger for tables with more rows (which can fill them) or more features (which need them).
fn hidden(rows: usize, width: usize) -> Vec<usize> {
    let units = match rows {
        0..2_000 => 64,
        2_000..LONG => 128,
        _ => 256,
    };
    vec![units.max(width.min(512).next_power_of_two().min(256)); 2]
}

/// Dropout and weight decay: strong where features are many for the rows, since such a network learns single rows (and
/// their noise) by heart before the rule has found out whom not to believe; none where rows are plenty.
fn regularisation(rows: usize, width: usize) -> (f32, f64) {
    match rows / width.max(1) {
        0..100 => (0.5, 1e-3),
        100..500 => (0.25, 1e-4),
        _ => (0.0, 0.0),
    }
}

/// δ such that a source above the threshold at every step falls to half weight, 1 − tanh²(0.005·δ·C) = ½, after a tenth
/// of the planned steps.
pub fn auto_strength(planned_steps: u64) -> f64 {
    let tenth = (planned_steps as f64 / 10.0).max(1.0);
    0.5f64.sqrt().atanh() / (lapwing_core::DISCRETE_AMOUNT * tenth)
}

impl Plan {
    /// The settings as a configuration for this data.
    pub fn config(&self, data: &Data<'_>, seed: u64) -> TrainConfig {
        TrainConfig {
            seed,
            architecture: Architecture::Mlp(MlpConfig {
                inputs: data.samples.spec().size(),
                hidden: self.hidden.clone(),
                outputs: data.targets.outputs(),
                dropout: self.dropout,
                clip: Some(3.0),
                softmax: false,
            }),
            loss: match data.targets {
                Targets::Classes { .. } => Loss::CrossEntropy,
                Targets::Values(_) => Loss::SquaredError,
            },
            optimiser: OptimiserConfig::Adam { weight_decay: self.weight_decay },
            schedule: Schedule::Cosine { learning_rate: self.learning_rate },
            batch_size: self.batch_size,
            epochs: self.epochs,
            patience: self.patience,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan_of(rows: usize, width: usize, sources: usize) -> Plan {
        plan(TableShape { rows, width, sources }, 25)
    }

    #[test]
    fn auto_strength_halves_the_weight_after_a_tenth_of_the_steps() {
        for steps in [100, 1_500, 4_000, 1_000_000] {
            let weight = |c: f64| 1.0 - (0.005 * auto_strength(steps) * c).tanh().powi(2);
            assert!((weight(steps as f64 / 10.0) - 0.5).abs() < 1e-12);
        }
        assert!((auto_strength(1_762) - 1.000_4).abs() < 1e-3, "about 176 steps at strength 1");
        assert!(auto_strength(0).is_finite());
    }

    #[test]
    fn windows_fill_within_a_tenth_of_the_steps_unless_sources_are_too_many() {
        for (rows, sources) in [
            (300, 3),
            (2_945, 44),
            (16_512, 10),
            (20_000, 500),
            (50_000, 2_000),
            (1_000_000, 5_000),
        ] {
            let plan = plan_of(rows, 8, sources);
            assert!(
                plan.window_steps * 10 <= plan.steps,
                "{rows} rows, {sources} sources: {plan:?}"
            );
        }
    }

    #[test]
    fn window_steps_is_the_average_of_what_a_shuffled_epoch_gives() {
        // Slow oracle: 600 rows of 30 sources, batches of 16, drawn with another generator.
        let mut state = 1u64;
        let mut total = 0;
        for _ in 0..400 {
            let (mut seen, mut step) = (0, 0);
            while seen < 10 {
                step += 1;
                let hit = (0..16).any(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    (state >> 33).is_multiple_of(30)
                });
                seen += u64::from(hit);
            }
            total += step;
        }
        let mean = f64::from(total) / 400.0;
        let expected = window_steps(30, 16, 10) as f64;
        assert!((mean - expected).abs() < 1.5, "{mean} against {expected}");
    }

    proptest! {
        #[test]
        fn every_plan_is_usable(rows in 1usize..5_000_000, width in 1usize..100_000, sources in 1usize..1_000_000) {
            let plan = plan_of(rows, width, sources);
            prop_assert!(plan.batch_size >= 1 && plan.batch_size <= LARGEST_BATCH);
            prop_assert!(plan.steps >= 1_500);
            prop_assert!(plan.epochs >= FEWEST_EPOCHS.1 && plan.patience <= plan.epochs);
            prop_assert!(plan.hidden.iter().all(|units| (64..=256).contains(units)));
            prop_assert!(plan.depression_strength > 0.0 && plan.depression_strength.is_finite());
        }
    }
}
