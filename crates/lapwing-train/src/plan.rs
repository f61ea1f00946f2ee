//! Settings that suit data nobody has tuned for: pure functions of its shape, and of what somebody wants otherwise.

use lapwing_sample::{Data, InputSpec, Loss, Task};

use crate::config::TrainConfig;
use crate::network::{Architecture, NetworkKind, PlanError, Refusal};
use crate::optimiser::OptimiserConfig;
use crate::schedule::Schedule;

/// The shape of data, as far as planning goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataShape {
    /// Training rows.
    pub rows: usize,
    /// What a sample looks like.
    pub input: InputSpec,
    /// What is learnt.
    pub task: Task,
    /// Classes, or 1 for a value.
    pub outputs: usize,
    /// Sources.
    pub sources: usize,
}

impl DataShape {
    /// Of data from so many sources.
    pub fn of(data: &Data<'_>, sources: usize) -> Self {
        Self {
            rows: data.train.len(),
            input: data.samples.spec(),
            task: data.targets.task(),
            outputs: data.targets.outputs(),
            sources,
        }
    }
}

/// What somebody wants; the rest is planned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wishes {
    /// Which network.
    pub network: Option<NetworkKind>,
    /// Units of the hidden layers, in a network that has such.
    pub hidden: Option<Vec<usize>>,
    /// Share of hidden units dropped at each step, in a network that has such.
    pub dropout: Option<f32>,
    /// Which loss.
    pub loss: Option<Loss>,
    /// Stochastic gradient descent with this momentum, instead of Adam.
    pub sgd_momentum: Option<f64>,
    /// How strongly parameters are drawn to zero.
    pub weight_decay: Option<f64>,
    /// Highest learning rate.
    pub learning_rate: Option<f64>,
    /// Rows per step.
    pub batch_size: Option<usize>,
    /// Most epochs.
    pub epochs: Option<usize>,
    /// Epochs without improvement before stopping.
    pub patience: Option<usize>,
    /// How fast weight falls.
    pub depression_strength: Option<f64>,
}

impl Wishes {
    /// That nothing is wished of hidden layers: for networks whose layers are what they are.
    pub(crate) fn no_layers(&self) -> Result<(), Refusal> {
        match (&self.hidden, self.dropout) {
            (None, None) => Ok(()),
            (Some(_), _) => Err(Refusal("has no hidden layers whose units could be chosen")),
            (None, Some(_)) => Err(Refusal("has no dropout that could be chosen")),
        }
    }
}

/// Settings for data.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The network.
    pub architecture: Architecture,
    /// The loss.
    pub loss: Loss,
    /// The optimiser.
    pub optimiser: OptimiserConfig,
    /// Highest learning rate.
    pub learning_rate: f64,
    /// Rows per step.
    pub batch_size: usize,
    /// Epochs.
    pub epochs: usize,
    /// Epochs without improvement before stopping.
    pub patience: usize,
    /// Steps: batches per epoch times epochs.
    pub steps: u64,
    /// Expected step at which a source of average size has its history complete.
    pub window_steps: u64,
    /// δ; where nothing is wished, so that half weight comes after a tenth of the steps at the earliest.
    pub depression_strength: f64,
}

/// Fewest steps worth planning: a network that starts from nothing and a rule that needs histories both need some.
const FEWEST_STEPS: usize = 3_000;
/// Most steps worth planning, but for an epoch of a table that is longer.
const MOST_STEPS: usize = 100_000;
/// Fewest steps and epochs for a bag of words, which has a parameter for every word: after a few epochs more it knows
/// texts, and their wrong labels, by heart.
const BAG: (usize, usize) = (500, 6);
/// Fewest epochs, and fewest for a table so long that an epoch is a run by itself.
const FEWEST_EPOCHS: (usize, usize) = (20, 10);
/// Rows of such a table.
pub(crate) const LONG: usize = 200_000;
const SMALLEST_BATCH: usize = 16;
const LARGEST_BATCH: usize = 1_024;
/// Weight decay for texts: words that are rare for the rows are many in every text, and are better not drawn to zero.
const TEXT_DECAY: f64 = 0.0;
/// Highest learning rates of Adam and of SGD.
const RATES: (f64, f64) = (2e-3, 0.05);
/// That of Adam for networks that read texts word by word, which is the paper's.
const READING_RATE: f64 = 1e-3;

/// Plans for data, a history length and wishes.
pub fn plan(shape: &DataShape, history_length: usize, wishes: &Wishes) -> Result<Plan, PlanError> {
    let DataShape { rows, input, task, sources, .. } = *shape;
    let usual_batch = batch_size(rows, sources);
    let usual_batches = rows.div_ceil(usual_batch).max(1);
    // Histories should be complete within the first tenth of the run; more than three times the work is not worth it.
    let window = window_steps(sources, usual_batch, history_length);
    let (fewest_steps, fewest) = match input {
        InputSpec::Text { .. } => BAG,
        _ if rows < LONG => (FEWEST_STEPS, FEWEST_EPOCHS.0),
        _ => (FEWEST_STEPS, FEWEST_EPOCHS.1),
    };
    let wanted = (10 * window as usize).clamp(fewest_steps, 3 * FEWEST_STEPS);
    let most = (MOST_STEPS / usual_batches).max(1);
    let usual_epochs = wanted.div_ceil(usual_batches).max(fewest).min(most);
    let usual_patience = usual_epochs.div_ceil(2).max(FEWEST_EPOCHS.1);

    let batch_size = wishes.batch_size.unwrap_or(usual_batch);
    let batches = rows.div_ceil(batch_size.max(1)).max(1);
    // With other batches the same number of steps, not of epochs: that is what the plan is made for.
    let epochs = wishes.epochs.unwrap_or_else(|| match wishes.batch_size {
        Some(_) => (usual_batches * usual_epochs).div_ceil(batches).max(1),
        None => usual_epochs,
    });
    let steps = (batches * epochs) as u64;
    let usual_decay = match input {
        InputSpec::Text { .. } | InputSpec::Tokens { .. } => TEXT_DECAY,
        input => regularisation(rows, input.size()).1,
    };
    let weight_decay = wishes.weight_decay.unwrap_or(usual_decay);
    let (optimiser, usual_rate) = match wishes.sgd_momentum {
        None if matches!(input, InputSpec::Tokens { .. }) => {
            (OptimiserConfig::Adam { weight_decay }, READING_RATE)
        }
        None => (OptimiserConfig::Adam { weight_decay }, RATES.0),
        Some(momentum) => (OptimiserConfig::Sgd { momentum, weight_decay }, RATES.1),
    };
    Ok(Plan {
        architecture: Architecture::plan(shape, wishes)?,
        loss: wishes.loss.unwrap_or(match task {
            Task::Classification => Loss::CrossEntropy,
            Task::Regression => Loss::SquaredError,
        }),
        optimiser,
        learning_rate: wishes.learning_rate.unwrap_or(usual_rate),
        batch_size,
        epochs,
        patience: wishes.patience.unwrap_or_else(|| usual_patience.min(epochs)),
        steps,
        window_steps: window_steps(sources, batch_size, history_length),
        depression_strength: wishes.depression_strength.unwrap_or_else(|| auto_strength(steps)),
    })
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

/// Dropout and weight decay: strong where features are many for the rows, since such a network learns single rows (and
/// their noise) by heart before the rule has found out whom not to believe; none where rows are plenty.
pub(crate) fn regularisation(rows: usize, width: usize) -> (f32, f64) {
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
    /// The settings as a configuration.
    pub fn config(&self, seed: u64) -> TrainConfig {
        TrainConfig {
            seed,
            architecture: self.architecture.clone(),
            loss: self.loss,
            optimiser: self.optimiser,
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

    fn shape(rows: usize, width: usize, sources: usize) -> DataShape {
        let input = InputSpec::Vector { width };
        DataShape { rows, input, task: Task::Classification, outputs: 2, sources }
    }

    fn plan_of(rows: usize, width: usize, sources: usize) -> Plan {
        plan(&shape(rows, width, sources), 25, &Wishes::default()).unwrap()
    }

    #[test]
    fn wishes_hold_and_other_batches_keep_the_number_of_steps() {
        let (shape, usual) = (shape(4_000, 8, 10), plan_of(4_000, 8, 10));
        let wished = |wishes: Wishes| plan(&shape, 25, &wishes).unwrap();
        let nothing = Wishes::default;
        let small = wished(Wishes { batch_size: Some(10), ..nothing() });
        assert_eq!(small.batch_size, 10);
        assert!(small.steps.abs_diff(usual.steps) < 400, "{} {}", small.steps, usual.steps);
        assert!(small.patience <= small.epochs);
        let short = wished(Wishes { epochs: Some(3), ..nothing() });
        assert_eq!((short.epochs, short.patience, short.batch_size), (3, 3, usual.batch_size));
        assert_eq!(short.depression_strength, auto_strength(short.steps));
        let sgd = wished(Wishes { sgd_momentum: Some(0.9), ..nothing() });
        assert_eq!(sgd.learning_rate, RATES.1);
        assert!(matches!(sgd.optimiser, OptimiserConfig::Sgd { momentum: 0.9, .. }));
        let slow = Wishes { sgd_momentum: Some(0.5), learning_rate: Some(1e-4), ..nothing() };
        assert_eq!(wished(slow).learning_rate, 1e-4);
        let layers = Wishes { hidden: Some(vec![5]), dropout: Some(0.3), ..nothing() };
        let Architecture::Mlp(mlp) = wished(layers.clone()).architecture else { unreachable!() };
        assert_eq!((mlp.hidden, mlp.dropout), (vec![5], 0.3));
        // What was planned can be wished for.
        let again = Wishes { ..usual.architecture.wishes() };
        assert_eq!(wished(again).architecture, usual.architecture);
    }

    #[test]
    fn bags_of_words_have_fewer_epochs_than_rows_of_numbers() {
        let input = InputSpec::Text { longest: 100, vocabulary: 20_000, width: 0 };
        let of = |rows, sources| {
            plan(&DataShape { input, ..shape(rows, 1, sources) }, 25, &Wishes::default()).unwrap()
        };
        let (few, many) = (of(1_360, 10), of(20_000, 10));
        assert_eq!((few.steps, few.epochs, many.epochs), (506, 23, 6));
        assert!(few.patience <= few.epochs && many.patience <= many.epochs);
        // Histories are complete within a tenth of the steps here, too.
        let crowd = of(20_000, 500);
        assert!(crowd.window_steps * 10 <= crowd.steps, "{crowd:?}");
    }

    #[test]
    fn a_very_long_table_is_not_planned_for_ever() {
        assert_eq!(plan_of(10_000_000, 20, 10).epochs, 10);
        assert_eq!(plan_of(20_000_000, 20, 10).epochs, 5);
        let endless = plan_of(1_000_000_000, 20, 10);
        assert_eq!((endless.epochs, endless.patience, endless.steps), (1, 1, 976_563));
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
            let Architecture::Mlp(mlp) = &plan.architecture else { unreachable!() };
            prop_assert!(mlp.hidden.iter().all(|units| (64..=256).contains(units)));
            prop_assert!(plan.depression_strength > 0.0 && plan.depression_strength.is_finite());
        }
    }
}
