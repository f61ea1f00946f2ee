//! What an experiment would cost here: a few steps of its network, timed, and the rest reckoned from them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use lapwing_sample::{Data, Draws, InputSpec, Targets, Values};
use lapwing_train::{DeviceName, MethodConfig, Observer, Step, TrainConfig, Trainer};

use crate::cell::{Cell, Form, Selection};
use crate::data::{DataSet, Sequences};
use crate::error::PaperError;
use crate::plan::Plan;
use crate::recipe::{Kind, Recipe};
use crate::sequence_store::SequenceStore;

/// Steps that are made; the first warms up.
const STEPS: usize = 3;
/// Thousands of multiplications of a forward pass that a timed step may have: large batches are timed in part.
const THOUSANDS: u64 = 16_000_000;

/// What an experiment costs, about, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// One step of plain training on a whole batch.
    pub step: f64,
    /// One run of plain training, tests after each epoch included.
    pub run: f64,
    /// All runs of the experiment.
    pub all: f64,
}

/// Times a few steps of an experiment on made-up data of its form; nothing where nothing is trained. Testing is reckoned
/// with a third of what training on as many rows takes.
pub fn cost(recipe: &Recipe) -> Result<Option<Cost>, PaperError> {
    let (Kind::Training, Some(set)) = (recipe.kind, recipe.data) else { return Ok(None) };
    let size = Size::of(set);
    let cells = Selection::default().cells(recipe)?;
    let Some(first) = cells.first() else { return Ok(None) };
    let plan = Plan::new(recipe, first, Form::FULL)?;
    let each = seconds_per_row(&plan, &size, first)?;
    // Rows of an epoch: those that are trained on, and those that are measured.
    let rows = |plan: &Plan| {
        let kept = size.train as f64 * plan.keep;
        let held = kept * plan.hold_out;
        (kept - held, (size.test as f64 + held) / 3.0)
    };
    let run = |cell: &Cell| -> Result<f64, PaperError> {
        let plan = Plan::new(recipe, cell, Form::FULL)?;
        let (trained, tested) = rows(&plan);
        let trained = trained * plan.epochs() as f64 * plan.method.kind().networks() as f64;
        Ok(each * (trained + tested * plan.training.epochs as f64))
    };
    let all = cells.iter().map(run).sum::<Result<f64, _>>()?;
    let (trained, tested) = rows(&plan);
    let run = each * (trained + tested) * plan.training.epochs as f64;
    Ok(Some(Cost { step: each * plan.training.batch as f64, run, all }))
}

/// How large a data set is: rows to train and to test on, their form, and the outputs of a network for it.
struct Size {
    train: usize,
    test: usize,
    input: InputSpec,
    outputs: usize,
}

impl Size {
    /// As it is handed out. Vocabularies are about as large as those of the texts.
    fn of(set: DataSet) -> Self {
        let image = |side, channels| InputSpec::Image { height: side, width: side, channels };
        let vector = |width| InputSpec::Vector { width };
        let tokens = |longest, vocabulary| InputSpec::Tokens { longest, vocabulary };
        let (train, test, input, outputs) = match set {
            DataSet::Cifar10 | DataSet::Cifar10n => (50_000, 10_000, image(32, 3), 10),
            DataSet::Cifar100 => (50_000, 10_000, image(32, 3), 100),
            DataSet::FashionMnist => (60_000, 10_000, vector(784), 10),
            DataSet::MnistAndCifar => (70_000, 12_000, image(28, 1), 12),
            DataSet::California => (16_512, 4_128, vector(8), 1),
            DataSet::Imdb => (25_000, 25_000, tokens(256, 100_000), 2),
            DataSet::Goemotions => (137_456, 34_364, tokens(128, 30_000), 28),
            DataSet::PtbXl => {
                (18_300, 2_030, InputSpec::Series { longest: 1_000, channels: 12 }, 2)
            }
            DataSet::TinyImagenet => (100_000, 10_000, image(64, 3), 200),
            DataSet::Imagenet64 => (1_281_167, 50_000, image(64, 3), 1_000),
            DataSet::TwoMoons => (8_000, 2_000, vector(2), 2),
        };
        Self { train, test, input, outputs }
    }

    /// So many rows of that form, and targets for them.
    fn rows(&self, count: usize) -> (SequenceStore, Targets) {
        let (mut draws, numbers) = (Draws::free(0, 0), count * self.input.size());
        let values = match self.input {
            InputSpec::Tokens { vocabulary, .. } => {
                Values::Tokens((0..numbers).map(|_| draws.below(vocabulary as u32)).collect())
            }
            _ => Values::Floats((0..numbers).map(|_| draws.unit() as f32).collect()),
        };
        let labels: Vec<u32> = (0..count).map(|row| (row % self.outputs) as u32).collect();
        let targets = match self.outputs {
            1 => Targets::Values((0..count).map(|row| row as f64).collect()),
            classes => Targets::Classes { labels: labels.clone(), classes },
        };
        let sequences = Sequences { values, spec: self.input, labels, sources: None };
        (SequenceStore::all(Arc::new(sequences)), targets)
    }
}

/// Seconds of a step for each of its rows.
fn seconds_per_row(plan: &Plan, size: &Size, cell: &Cell) -> Result<f64, PaperError> {
    let work = plan.work(size.input.size()).max(1);
    let batch = plan.training.batch.min(((THOUSANDS / work) as usize).max(4));
    let count = STEPS * batch;
    let (samples, targets) = size.rows(count);
    let (sources, train) = (vec![0; count], (0..count as u32).collect::<Vec<_>>());
    let data = Data {
        samples: &samples,
        targets: &targets,
        sources: &sources,
        train: &train,
        valid: &[],
        relabel: None,
        items: None,
    };
    let whole = plan.config(0, size.train, size.input, size.outputs)?;
    let config = TrainConfig { batch_size: batch, epochs: 1, ..whole };
    let failed = |error| PaperError::Train { cell: cell.to_string(), error };
    let standard = MethodConfig::named("standard");
    let standard = standard.map_err(|error| PaperError::Usage(error.to_string()))?;
    let mut trainer = Trainer::new(config, &standard, data, DeviceName::Cpu).map_err(failed)?;
    let mut clock = Clock { ends: Vec::new() };
    trainer.run(&mut clock, None).map_err(failed)?;
    let steps = clock.ends.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64());
    Ok(steps.fold(f64::INFINITY, f64::min) / batch as f64)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{Version, recipe, recipes};

    #[test]
    fn networks_take_what_their_data_set_is_said_to_be() {
        for recipe in recipes(Version::Code).unwrap() {
            let (Kind::Training, Some(set)) = (recipe.kind, recipe.data) else { continue };
            let cells = Selection::default().cells(&recipe).unwrap();
            let plan = Plan::new(&recipe, &cells[0], Form::FULL).unwrap();
            let size = Size::of(set);
            let config = plan.config(0, size.train, size.input, size.outputs).unwrap();
            assert_eq!(config.architecture.input(), size.input, "{}", recipe.id);
            assert_eq!(config.architecture.outputs(), size.outputs, "{}", recipe.id);
        }
    }

    #[test]
    fn a_run_costs_its_steps_and_an_experiment_its_runs() {
        let found = cost(&recipe("california", Version::Code).unwrap()).unwrap().unwrap();
        // 16,512 rows to train and a third of 4,128 to test, 200 times; 20 such runs.
        let steps = 200.0 * (16_512.0 + 1_376.0) / 128.0;
        assert!((found.run / found.step / steps - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.all / found.run - 20.0).abs() < 1e-9, "{found:?}");
        assert_eq!(cost(&recipe("figure-3", Version::Code).unwrap()).unwrap(), None);
    }
}
