//! Running cells: the ones that are not done yet, several at a time.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use lapwing_sample::{Augmented, Data, Relabel, Targets};
use lapwing_train::{DeviceName, Epoch, Observer, Predictions, Sampling, Step, Trainer};
use serde_json::Value;

use crate::cell::{Cell, Form, Selection};
use crate::data::{DataDir, Loaded};
use crate::demonstration;
use crate::error::PaperError;
use crate::estimation;
use crate::measure::{EpochLoss, accuracy, of_classes, of_values};
use crate::plan::Plan;
use crate::prepare::{Prepared, prepare};
use crate::recipe::{FigureKind, Kind, ModelKind, Recipe, Version};
use crate::record::{Record, Records};
use crate::timing;

/// What is to be run, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which cells.
    pub selection: Selection,
    /// As the paper has it, or smaller.
    pub form: Form,
    /// Whom to follow where text and code differ.
    pub version: Version,
    /// Cells at a time; each has its share of the processors. Without a number: one per processor for small networks,
    /// which gain nothing from several, and one for large ones.
    pub jobs: Option<usize>,
}

/// Looks on while cells are run, from several threads.
pub trait Watch: Sync {
    /// The work ahead is known: cells that are done already, cells to do, and their work in some unit.
    fn planned(&self, done: usize, to_do: usize, work: u64) {
        let _ = (done, to_do, work);
    }

    /// Some work is done, on this cell.
    fn advanced(&self, cell: &Cell, work: u64) {
        let _ = (cell, work);
    }

    /// A cell is finished and its record is on disk.
    fn finished(&self, record: &Record) {
        let _ = record;
    }
}

/// Nobody looks on.
impl Watch for () {}

/// Runs the cells of an experiment that have no record yet. A cell leaves its record when it is finished, so that
/// whoever is interrupted loses at most the cells in progress.
pub fn run(
    recipe: &Recipe,
    request: &Request,
    data: &DataDir,
    out: &Path,
    watch: &dyn Watch,
) -> Result<(), PaperError> {
    let records = Records::new(out);
    let (mut to_do, mut done) = (Vec::new(), 0);
    for cell in request.selection.cells(recipe)? {
        let job = Job::new(recipe, cell, request.form)?;
        let record = records.of(&job.cell, request.form, request.version, &job.settings)?;
        if record.is_some() { done += 1 } else { to_do.push(job) }
    }
    let loaded = match (recipe.data, request.form.length) {
        (None, _) => Loaded::Moons,
        _ if to_do.is_empty() => Loaded::Moons,
        (Some(set), None) => set.load(data)?,
        (Some(set), Some(length)) => set.load(data)?.cut(length).ok_or_else(|| {
            PaperError::Usage(format!(
                "{} has no sequences whose length could be chosen",
                recipe.id
            ))
        })?,
    };
    let work = to_do.iter().map(|job| job.work(&loaded)).sum();
    watch.planned(done, to_do.len(), work);

    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let small = recipe.kind == Kind::Training
        && recipe.model.as_ref().is_some_and(|model| model.kind == ModelKind::Mlp);
    let jobs = match request.jobs {
        // What is timed must not share the machine.
        _ if recipe.kind == Kind::Timing => 1,
        Some(jobs) => jobs.max(1),
        None => {
            if small {
                processors
            } else {
                1
            }
        }
    };
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failed = Mutex::new(None);
    let threads = (processors / jobs).max(1);
    let worker = || {
        let result = pool(threads).and_then(|pool| {
            while !stop.load(Ordering::Relaxed) {
                let Some(job) = to_do.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let record = pool.install(|| job.run(recipe, request, &loaded, watch))?;
                records.write(&record, request.version)?;
                watch.finished(&record);
            }
            Ok(())
        });
        if let Err(error) = result {
            stop.store(true, Ordering::Relaxed);
            if let Ok(mut failed) = failed.lock() {
                failed.get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(to_do.len()) {
            scope.spawn(worker);
        }
    });
    match failed.into_inner() {
        Ok(None) => Ok(()),
        Ok(Some(error)) => Err(error),
        Err(_) => Err(PaperError::Usage("a worker broke off".to_owned())),
    }
}

/// Threads of their own, so that cells do not wait for each other's.
fn pool(threads: usize) -> Result<rayon::ThreadPool, PaperError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| PaperError::Usage(error.to_string()))
}

/// The settings of a cell, by which its record is known.
pub(crate) fn settings(recipe: &Recipe, cell: &Cell, form: Form) -> Result<Value, PaperError> {
    Ok(Job::new(recipe, cell.clone(), form)?.settings)
}

/// A cell that is to be run.
struct Job {
    cell: Cell,
    settings: Value,
    /// For cells that train.
    plan: Option<Plan>,
}

impl Job {
    fn new(recipe: &Recipe, cell: Cell, form: Form) -> Result<Self, PaperError> {
        let (plan, settings) = match recipe.kind {
            Kind::Training => {
                let plan = Plan::new(recipe, &cell, form)?;
                let settings = serde_json::to_value(&plan);
                (Some(plan), settings)
            }
            Kind::Timing => (None, serde_json::to_value(timing::settings(recipe, &cell)?)),
            Kind::Estimation => (None, serde_json::to_value(estimation::settings(recipe, &cell)?)),
            Kind::Demonstration | Kind::Derived => {
                (None, serde_json::to_value(demonstration::settings(recipe, &cell)?))
            }
        };
        let settings = settings.map_err(|error| PaperError::Recipe {
            id: recipe.id.clone(),
            problem: error.to_string(),
        })?;
        Ok(Self { cell, settings, plan })
    }

    /// How much there is to do, in the unit of [`Watch::advanced`].
    fn work(&self, loaded: &Loaded) -> u64 {
        let Some(plan) = &self.plan else { return 1 };
        let (rows, inputs) = match loaded {
            Loaded::Images { train, .. } => (train.len(), train.width()),
            Loaded::Sequences { train, .. } => (train.len(), train.spec.size()),
            Loaded::Mixed { .. } => (70_000, 784),
            Loaded::Houses(houses) => (houses.values.len() * 4 / 5, 8),
            Loaded::Moons => (8_000, 2),
        };
        let rows = ((rows as f64 * plan.keep) as usize).min(plan.limit.unwrap_or(usize::MAX));
        let trained = rows - (rows as f64 * plan.hold_out) as usize;
        trained as u64 * plan.epochs() * plan.work(inputs)
    }

    fn run(
        &self,
        recipe: &Recipe,
        request: &Request,
        loaded: &Loaded,
        watch: &dyn Watch,
    ) -> Result<Record, PaperError> {
        let started = Instant::now();
        let mut record =
            Record::new(self.cell.clone(), request.version, request.form, self.settings.clone());
        match (&self.plan, recipe.kind) {
            (Some(plan), _) => self.train(recipe, plan, loaded, watch, &mut record)?,
            (None, Kind::Timing) => timing::run(recipe, &self.cell, &mut record)?,
            (None, Kind::Estimation) => estimation::run(recipe, &self.cell, &mut record)?,
            (None, _) => demonstration::run(recipe, &self.cell, &mut record)?,
        }
        if self.plan.is_none() {
            watch.advanced(&self.cell, 1);
        }
        record.seconds = (started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        Ok(record)
    }

    fn train(
        &self,
        recipe: &Recipe,
        plan: &Plan,
        loaded: &Loaded,
        watch: &dyn Watch,
        record: &mut Record,
    ) -> Result<(), PaperError> {
        let drawn = self.cell.drawn(plan.paired);
        let prepared = prepare(loaded, plan, &drawn)?;
        // Rows are in random order, but for the moons, which are drawn in one.
        let rows = prepared.train.len();
        let held = (rows as f64 * plan.hold_out) as usize;
        let (train, held) = (0..(rows - held) as u32, (rows - held) as u32..rows as u32);
        let (train, held): (Vec<u32>, Vec<u32>) = (train.collect(), held.collect());
        record.rows = [train.len(), prepared.test.len()];
        record.noisy_sources.clone_from(&prepared.noisy_sources);
        let (input, outputs) = (prepared.train.spec(), prepared.targets.outputs());
        let samples = Augmented::new(&*prepared.train, &plan.training.augment);
        let data = Data {
            samples: &samples,
            targets: &prepared.targets,
            sources: &prepared.sources,
            train: &train,
            valid: &[],
            relabel: prepared.batch_noise.as_ref().map(|noise| noise as _),
            items: None,
        };
        let config = plan.config(drawn.training_seed(), train.len(), input, outputs)?;
        let failed = |error| PaperError::Train { cell: self.cell.to_string(), error };
        let mut trainer =
            Trainer::new(config, &plan.method, data, DeviceName::Cpu).map_err(failed)?;
        if plan.training.source_balanced {
            trainer = trainer.with_sampling(Sampling::SourceBalanced);
        }
        if plan.training.raw_values {
            trainer = trainer.with_raw_values();
        }
        if recipe.figure == Some(FigureKind::Sizes) {
            record.histogram = vec![sizes(&prepared.sources)];
            if let Loaded::Sequences { train, .. } = loaded {
                record.histogram.push(train.classes_by_source());
            }
        }
        let traced = match recipe.figure {
            Some(FigureKind::Weights) => plan.sources.count,
            _ => 0,
        };
        let mut tester = Tester {
            cell: &self.cell,
            prepared: &prepared,
            which: (0..prepared.test.len() as u32).collect(),
            held: HeldOut::new(&prepared, held, plan),
            loss: (recipe.figure == Some(FigureKind::Epochs)).then(EpochLoss::default),
            recalls: recalls(recipe),
            area: recipe.metrics().any(|metric| metric.ends_with("auc-pr")),
            work: plan.work(input.size()),
            watch,
            unreliability: vec![Vec::new(); traced],
            record,
            failure: None,
        };
        let trained = trainer.run(&mut tester, None);
        let Tester { failure, unreliability, .. } = tester;
        record.unreliability = unreliability;
        for source in 0..traced {
            let standing = trainer.standing(source as u32);
            let name = format!("unreliability-{source}");
            record.values.insert(name, standing.unreliability as f64);
            record.values.insert(format!("weight-{source}"), standing.weight);
        }
        if recipe.metrics().any(|metric| metric == CLEAN) {
            let clean = (0..plan.sources.count as u32)
                .filter(|source| !prepared.noisy_sources.contains(source))
                .map(|source| trainer.standing(source).unreliability);
            let greatest = clean.max().unwrap_or(0);
            record.values.insert(CLEAN.to_owned(), greatest as f64);
        }
        match trained {
            // A training that fails is a result, not a reason to stop the others.
            Err(error) => record.failure = Some(error.to_string()),
            Ok(_) => record.failure = failure,
        }
        Ok(())
    }
}

/// The metric that tells whether somebody was accused wrongly.
const CLEAN: &str = "unreliability-clean";

/// How many samples each source has.
fn sizes(sources: &[u32]) -> Vec<u32> {
    let count = sources.iter().max().map_or(0, |last| *last as usize + 1);
    let mut sizes = vec![0; count];
    sources.iter().for_each(|&source| sizes[source as usize] += 1);
    sizes
}

/// The classes whose recall is wanted.
fn recalls(recipe: &Recipe) -> Vec<u32> {
    let class = |name: &str| name.strip_prefix("max-recall-")?.parse().ok();
    recipe.metrics().filter_map(class).collect()
}

/// Rows that are not trained on, as noisy as the others.
struct HeldOut {
    rows: Vec<u32>,
    labels: Vec<u32>,
    sources: Vec<u32>,
    /// What each source weighs, by its number.
    weights: Vec<f64>,
}

impl HeldOut {
    fn new(prepared: &Prepared, rows: Vec<u32>, plan: &Plan) -> Self {
        let of_rows = |all: &[u32]| rows.iter().map(|&row| all[row as usize]).collect();
        let mut labels: Vec<u32> = match &prepared.targets {
            Targets::Classes { labels, .. } => of_rows(labels),
            Targets::Values(_) => Vec::new(),
        };
        if let Some(noise) = &prepared.batch_noise {
            // As batches that no step of the training has.
            let size = plan.training.batch.max(1);
            for (number, batch) in rows.chunks(size).enumerate() {
                let from = number * size;
                let step = u64::MAX - number as u64;
                noise.relabel(step, batch, &mut labels[from..from + batch.len()]);
            }
        }
        let sources: Vec<u32> = of_rows(&prepared.sources);
        let count = sources.iter().max().map_or(0, |last| *last as usize + 1);
        Self { rows, labels, sources, weights: vec![1.0; count] }
    }

    /// Accuracy on them, every row alike and as their sources weigh.
    fn measure(&self, outputs: &[f32], classes: usize) -> Vec<(String, f64)> {
        let weight = |at: usize| self.weights[self.sources[at] as usize];
        let weighted = accuracy(outputs, &self.labels, classes, weight);
        let alike = of_classes(outputs, &self.labels, classes, &[], false).into_iter();
        // What they lose, nothing is drawn from.
        let alike = alike.filter(|(name, _)| name.starts_with("top-"));
        alike
            .map(|(name, share)| (format!("valid-{name}"), share))
            .chain([("weighted-valid-top-1".to_owned(), weighted)])
            .collect()
    }
}

/// Tests the network after each epoch.
struct Tester<'a> {
    cell: &'a Cell,
    prepared: &'a Prepared,
    which: Vec<u32>,
    held: HeldOut,
    /// What training loses, where the figure shows it.
    loss: Option<EpochLoss>,
    recalls: Vec<u32>,
    area: bool,
    work: u64,
    watch: &'a dyn Watch,
    unreliability: Vec<Vec<u64>>,
    record: &'a mut Record,
    failure: Option<String>,
}

impl Observer for Tester<'_> {
    fn on_step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        // A source that is missing from a batch stands where it stood.
        for line in &mut self.unreliability {
            line.push(line.last().copied().unwrap_or(0));
        }
        for source in step.sources {
            if let Some(last) =
                self.unreliability.get_mut(source.source as usize).and_then(|line| line.last_mut())
            {
                *last = source.standing.unreliability;
            }
            if let Some(weight) = self.held.weights.get_mut(source.source as usize) {
                *weight = source.standing.weight;
            }
        }
        if let Some(loss) = &mut self.loss {
            loss.add(step.losses, step.weights);
        }
        self.watch.advanced(self.cell, step.rows.len() as u64 * self.work);
        match self.failure {
            None => ControlFlow::Continue(()),
            Some(_) => ControlFlow::Break(()),
        }
    }

    fn on_epoch(&mut self, epoch: &Epoch, model: &lapwing_train::Model) {
        // Taken in epochs that do not count, too: the next one begins with nothing.
        let lost = self.loss.as_mut().and_then(EpochLoss::take);
        if !epoch.candidate {
            return;
        }
        let test = &*self.prepared.test;
        let held = &self.held;
        let measured = match &self.prepared.test_targets {
            Targets::Classes { labels, classes } => {
                model.outputs(test, &self.which).and_then(|outputs| {
                    let mut measured =
                        of_classes(&outputs, labels, *classes, &self.recalls, self.area);
                    if !held.rows.is_empty() {
                        let outputs = model.outputs(&*self.prepared.train, &held.rows)?;
                        measured.extend(held.measure(&outputs, *classes));
                    }
                    Ok(measured)
                })
            }
            Targets::Values(values) => {
                model.predict(test, &self.which).map(|predicted| match predicted {
                    Predictions::Values(predicted) => of_values(&predicted, values),
                    Predictions::Classes { .. } => Vec::new(),
                })
            }
        };
        match measured {
            Ok(measured) => {
                let lost = lost.map(|loss| ("train-loss".to_owned(), loss));
                for (name, value) in measured.into_iter().chain(lost) {
                    if !value.is_finite() {
                        let epoch = epoch.epoch + 1;
                        self.failure = Some(format!("{name} is not finite after epoch {epoch}"));
                        return;
                    }
                    self.record.series.entry(name).or_default().push(value);
                }
            }
            Err(error) => self.failure = Some(error.to_string()),
        }
    }
}
