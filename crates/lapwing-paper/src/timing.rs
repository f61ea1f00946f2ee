//! What weighing costs beside a training step.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use lapwing_core::{Lap, LapConfig};
use lapwing_sample::Draws;
use lapwing_train::{
    Architecture, Data, DeviceName, Init, Loss, Matrix, MethodConfig, MlpConfig, Observer,
    OptimiserConfig, Schedule, Step, Targets, TrainConfig, Trainer,
};
use serde::Serialize;

use crate::cell::Cell;
use crate::error::PaperError;
use crate::recipe::Recipe;
use crate::record::Record;

const FEATURES: usize = 20;
const CLASSES: usize = 5;
/// Calls before the first that counts: histories are full.
const WARM_CALLS: usize = 1_000;
const CALLS: usize = 2_000;
/// Steps before the first that counts, and steps that count.
const WARM_STEPS: usize = 2;
const STEPS: usize = 10;

/// What is timed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Settings {
    batch: usize,
    hidden: Vec<usize>,
    learning_rate: f64,
    sources: usize,
    /// The rule, where weighing is timed; nothing, where a step is.
    rule: Option<LapConfig>,
}

/// The settings of a cell.
pub(crate) fn settings(recipe: &Recipe, cell: &Cell) -> Result<Settings, PaperError> {
    let refuse = |problem: &str| PaperError::Recipe {
        id: recipe.id.clone(),
        problem: format!("{cell}: {problem}"),
    };
    let condition = recipe.condition(&cell.condition).ok_or_else(|| refuse("no such condition"))?;
    let method = recipe.method(&cell.method).ok_or_else(|| refuse("no such method"))?;
    let weighs = method.kind().map_err(|problem| refuse(&problem))?.runs_rule();
    let (Some(model), Some(training)) = (&recipe.model, &recipe.training) else {
        return Err(refuse("no model or no training"));
    };
    Ok(Settings {
        batch: condition.batch.unwrap_or(training.batch),
        hidden: model.hidden.clone(),
        learning_rate: training.learning_rate,
        sources: method.sources.unwrap_or(1),
        rule: weighs.then(|| recipe.rule(condition, method)),
    })
}

/// Times a cell.
pub(crate) fn run(recipe: &Recipe, cell: &Cell, record: &mut Record) -> Result<(), PaperError> {
    let settings = settings(recipe, cell)?;
    let seed = cell.data_seed();
    let time = match settings.rule {
        Some(rule) => weighing(&settings, rule, seed)?,
        None => step(&settings, seed)
            .map_err(|error| PaperError::Train { cell: cell.to_string(), error })?,
    };
    record.rows = [settings.batch, 0];
    record.values.insert("microseconds".to_owned(), time.as_secs_f64() * 1e6);
    Ok(())
}

/// The time of one call of the rule, histories full.
fn weighing(settings: &Settings, rule: LapConfig, seed: u64) -> Result<Duration, PaperError> {
    let refuse = |error: lapwing_core::LapError| PaperError::Usage(error.to_string());
    let mut lap = Lap::new(rule).map_err(refuse)?;
    let mut draws = Draws::free(seed, 0);
    let batches: Vec<(Vec<f64>, Vec<u32>)> = (0..64)
        .map(|_| {
            let losses = (0..settings.batch).map(|_| draws.unit()).collect();
            let source = |_| draws.below(settings.sources as u32);
            (losses, (0..settings.batch).map(source).collect())
        })
        .collect();
    let mut started = Instant::now();
    for call in 0..WARM_CALLS + CALLS {
        if call == WARM_CALLS {
            started = Instant::now();
        }
        let (losses, sources) = &batches[call % batches.len()];
        black_box(lap.weigh(losses, sources).map_err(refuse)?);
    }
    Ok(started.elapsed() / CALLS as u32)
}

/// The time of one training step: forward, backward and the optimiser's.
fn step(settings: &Settings, seed: u64) -> Result<Duration, lapwing_train::TrainError> {
    let rows = settings.batch * (WARM_STEPS + STEPS);
    let mut draws = Draws::free(seed, 0);
    let values: Vec<f32> = (0..rows * FEATURES).map(|_| draws.unit() as f32).collect();
    let labels = (0..rows).map(|_| draws.below(CLASSES as u32)).collect();
    let matrix = Matrix::new(values, FEATURES)?;
    let (targets, sources) = (Targets::Classes { labels, classes: CLASSES }, vec![0; rows]);
    let train: Vec<u32> = (0..rows as u32).collect();
    let config = TrainConfig {
        seed,
        architecture: Architecture::Mlp(MlpConfig {
            inputs: FEATURES,
            hidden: settings.hidden.clone(),
            outputs: CLASSES,
            dropout: 0.0,
            squash: None,
            softmax: false,
            init: Init::Torch,
        }),
        loss: Loss::CrossEntropy,
        optimiser: OptimiserConfig::Adam { weight_decay: 0.0 },
        schedule: Schedule::Constant { learning_rate: settings.learning_rate },
        batch_size: settings.batch,
        epochs: 1,
        patience: usize::MAX,
    };
    let data = Data {
        samples: &matrix,
        targets: &targets,
        sources: &sources,
        train: &train,
        valid: &[],
        relabel: None,
        items: None,
    };
    let mut clock = Clock { ends: Vec::new() };
    let standard = MethodConfig::named("standard")?;
    Trainer::new(config, &standard, data, DeviceName::Cpu)?.run(&mut clock, None)?;
    let (first, last) = (clock.ends[WARM_STEPS - 1], clock.ends[clock.ends.len() - 1]);
    Ok((last - first) / (clock.ends.len() - WARM_STEPS) as u32)
}

/// When each step ended.
struct Clock {
    ends: Vec<Instant>,
}

impl Observer for Clock {
    fn on_step(&mut self, _: &Step<'_>) -> ControlFlow<()> {
        self.ends.push(Instant::now());
        ControlFlow::Continue(())
    }
}
