//! Labels judged by networks that have not seen them.
//!
//! A network believes the labels it was trained on, so those who judge are others than the one that is kept: rows are
//! dealt out to a few folds, and each fold is judged by a network that was trained on everything else, with noise rates.
//! Rows for validation are judged like those for training. What a network costs is bounded, however long the table:
//! [`MOST_STEPS`] steps each, and at most [`MOST_ROWS`] rows are judged, drawn at random.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

use lapwing_core::NoiseRateConfig;
use lapwing_judge::{JudgedSource, LabelNoise, Unseen, Verdict, unseen};
use lapwing_sample::{Data, Draws, Targets};
use lapwing_train::{
    CheckpointDir, DeviceName, Finish, Guards, MethodConfig, MethodError, Observer, Predictions,
    Resumed, Step, TrainConfig, TrainError, Trainer, Workers,
};

use crate::{Checkpoints, Progress, RunError, Watch};

/// Networks that judge, unless others are asked for.
pub const FOLDS: usize = 3;
/// Most networks.
pub const MOST_FOLDS: usize = 20;
/// Most steps of each.
pub const MOST_STEPS: u64 = 3_000;
/// Most rows that are judged, and most probabilities (rows × classes) kept for it.
pub const MOST_ROWS: usize = 1 << 19;
const MOST_PROBABILITIES: usize = 1 << 23;
/// Fewest rows: with fewer a network learns nothing that could judge the rest.
const FEWEST_ROWS: usize = 30;
/// Steps in which a network learns from everybody before it doubts anyone, or half of them where there are fewer. With a
/// hundred, a rule that is right in 94 of 100 cases was taken for noise.
const WARMUP_STEPS: f64 = 300.0;
const LONGEST_WARMUP: f64 = 0.5;
/// What random numbers are drawn for: the order in which rows are dealt out, and the seed of each network.
const PURPOSE: u64 = 16;

/// Who judges which labels.
#[derive(Clone, Debug)]
pub struct Folds {
    networks: usize,
    steps: u64,
    /// Rows by fold.
    judged: Vec<Vec<u32>>,
    /// Rows that could be judged.
    rows: usize,
    seed: u64,
}

/// Rows that have labels.
#[derive(Clone, Copy, Debug)]
pub struct LabelledRows<'a> {
    /// The labels, of all rows of the table.
    pub targets: &'a Targets,
    /// The source of each row of the table.
    pub sources: &'a [u32],
    /// Rows to train on.
    pub train: &'a [u32],
    /// Rows to validate on.
    pub valid: &'a [u32],
}

/// Why labels are not judged by networks that have not seen them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unjudged {
    /// Nobody asked yet, or it was not wanted.
    NotAsked,
    /// Targets are values.
    Values,
    /// So few rows.
    FewRows(usize),
    /// A network that was to judge diverged.
    Diverged,
}

impl fmt::Display for Unjudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked => f.write_str("it was not asked for"),
            Self::Values => f.write_str("targets are values, not classes"),
            Self::FewRows(rows) => {
                write!(
                    f,
                    "{rows} rows are too few to judge one by the others, {FEWEST_ROWS} are needed"
                )
            }
            Self::Diverged => f.write_str("a network that was to judge them diverged"),
        }
    }
}

/// Labels that were judged.
#[derive(Clone, Debug)]
pub struct JudgedLabels {
    /// How many networks judged.
    pub networks: usize,
    /// The rows of the table that were judged, ascending.
    pub rows: Vec<u32>,
    /// The probability of every class of each, by a network that has not seen it; NaN where it cannot judge.
    pub probabilities: Vec<f32>,
    /// What is known of them, in the same order, and of their sources.
    pub noise: LabelNoise,
}

impl JudgedLabels {
    /// What networks say of some rows of the table that have not seen them; NaN where none was asked.
    pub fn said_of(&self, rows: &[u32]) -> Vec<f64> {
        let classes = self.probabilities.len() / self.rows.len().max(1);
        let mut said = Vec::with_capacity(rows.len() * classes);
        for row in rows {
            match self.rows.binary_search(row) {
                Ok(at) => {
                    let own = &self.probabilities[at * classes..(at + 1) * classes];
                    said.extend(own.iter().map(|&p| f64::from(p)));
                }
                Err(_) => said.extend(std::iter::repeat_n(f64::NAN, classes)),
            }
        }
        said
    }

    /// The noise rate of every source, as training should go by it: not a number where nothing could be judged, and no more
    /// than that of a source of which nothing is known where nothing speaks against its labels.
    pub fn noise_rates(&self) -> Vec<f64> {
        let unknown = NoiseRateConfig::default().prior;
        let rate = |source: &JudgedSource| match (source.noise.rows, source.verdict) {
            (0, _) => f64::NAN,
            (_, Verdict::Reliable | Verdict::Hard | Verdict::Different) => {
                source.noise.noise_rate.estimate.min(unknown)
            }
            _ => source.noise.noise_rate.estimate,
        };
        self.noise.sources.iter().map(rate).collect()
    }

    /// Places in the lists, those first whose labels are most likely wrong; at the end those of which nothing can be said.
    pub fn worst_first(&self) -> Vec<u32> {
        let wrong = |place: u32| self.noise.rows[place as usize].wrong.unwrap_or(-1.0);
        let mut order: Vec<u32> = (0..self.rows.len() as u32).collect();
        order.sort_by(|&a, &b| wrong(b).total_cmp(&wrong(a)).then(a.cmp(&b)));
        order
    }
}

impl Folds {
    /// Deals rows for training and validation out to `networks` folds, for a run of so many steps.
    ///
    /// # Errors
    /// Where nothing is to be judged.
    pub fn new(
        networks: usize,
        run_steps: u64,
        labelled: &LabelledRows<'_>,
        guards: &Guards,
        seed: u64,
    ) -> Result<Self, Unjudged> {
        let LabelledRows { targets, sources, train, valid } = *labelled;
        let Targets::Classes { labels, classes } = targets else { return Err(Unjudged::Values) };
        if networks < 2 {
            return Err(Unjudged::NotAsked);
        }
        let mut rows = [train, valid].concat();
        rows.sort_unstable();
        let learnt_from = rows.iter().filter(|&&row| guards.admits(sources[row as usize]));
        let learnt_from = learnt_from.count();
        if learnt_from < FEWEST_ROWS {
            return Err(Unjudged::FewRows(learnt_from));
        }
        let count = rows.len();
        Draws::of(seed, PURPOSE, 0, 0).shuffle_wide(&mut rows);
        rows.truncate(MOST_ROWS.min(MOST_PROBABILITIES / classes.max(&1)).max(1));
        // Neighbours are of one class, and within it of one source: dealt out in turn, every fold gets its share.
        rows.sort_by_key(|&row| (labels[row as usize], sources[row as usize]));
        let deal = |fold| rows.iter().skip(fold).step_by(networks).copied().collect();
        let judged = (0..networks).map(deal).collect();
        let steps = run_steps.clamp(1, MOST_STEPS);
        Ok(Self { networks, steps, judged, rows: count, seed })
    }

    /// How many networks judge.
    pub fn networks(&self) -> usize {
        self.networks
    }

    /// Steps of each network, or a few more, as epochs are whole.
    pub fn steps_each(&self) -> u64 {
        self.steps
    }

    /// Steps of all networks together.
    pub fn steps(&self) -> u64 {
        self.steps * self.networks as u64
    }

    /// Rows that are judged.
    pub fn judged(&self) -> usize {
        self.judged.iter().map(Vec::len).sum()
    }

    /// Rows for training and validation, from which those to be judged are drawn.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Trains the networks, as the run was trained, and judges the labels. `None` where the one who looks on broke off.
    ///
    /// # Errors
    /// Where training fails, or a checkpoint cannot be written or read.
    pub fn run(
        &self,
        run: &FoldRun<'_>,
        checkpoints: Option<&Checkpoints>,
        watch: &mut dyn Watch,
    ) -> Result<Option<Result<JudgedLabels, Unjudged>>, RunError> {
        let Targets::Classes { labels, classes } = run.data.targets else {
            return Ok(Some(Err(Unjudged::Values)));
        };
        let mut rows: Vec<u32> = self.judged.concat();
        rows.sort_unstable();
        let mut probabilities = vec![f32::NAN; rows.len() * classes];
        for (fold, judged) in self.judged.iter().enumerate() {
            let said = match self.train(run, fold, checkpoints, watch) {
                Err(RunError::Train(TrainError::Diverged { .. })) => {
                    return Ok(Some(Err(Unjudged::Diverged)));
                }
                said => said?,
            };
            let Some(Said { probabilities: said, met }) = said else { return Ok(None) };
            for (row, said) in judged.iter().zip(said.chunks_exact(*classes)) {
                // A network cannot judge a class that it has never met.
                if let Ok(place) = rows.binary_search(row)
                    && met[labels[*row as usize] as usize]
                {
                    probabilities[place * classes..(place + 1) * classes].copy_from_slice(said);
                }
            }
        }
        let of_rows =
            |values: &[u32]| -> Vec<u32> { rows.iter().map(|&row| values[row as usize]).collect() };
        let noise = unseen(&Unseen {
            sources: &of_rows(run.data.sources),
            source_count: run.sources,
            labels: &of_rows(labels),
            classes: *classes,
            probabilities: &probabilities,
        })?;
        Ok(Some(Ok(JudgedLabels { networks: self.networks, rows, probabilities, noise })))
    }

    /// Trains one network, and asks it of the rows that it has not seen.
    fn train(
        &self,
        run: &FoldRun<'_>,
        fold: usize,
        checkpoints: Option<&Checkpoints>,
        watch: &mut dyn Watch,
    ) -> Result<Option<Said>, RunError> {
        let (train, valid) = self.parts(run, fold);
        let data = Data { train: &train, valid: &valid, ..run.data };
        let config = self.config(run.config, fold, train.len());
        let method = self.method(run.method)?;
        let trainer = Trainer::among(run.workers, config, &method, data, run.device)?;
        // A network that has learnt wrong labels by heart is as sure where it is wrong as where it is right, and takes clean
        // labels for noise.
        let mut trainer = trainer.choosing_by_loss();
        let total = trainer.steps().max(1);
        let before = fold as u64 * self.steps;
        let scale = |step: u64| before + step * self.steps / total;
        let mut witness = Witness { scale: &scale, steps: self.steps(), fold, loss: None, watch };
        let place = checkpoints.map(|saved| {
            let directory = fold_checkpoints(&saved.directory, fold);
            (directory, saved.interval, saved.resume)
        });
        if let Some((directory, _, true)) = &place {
            let resumed = trainer.resume(directory, &mut witness)?;
            if matches!(resumed, Resumed::Fallback { .. }) {
                witness.watch.resumed(&resumed);
            }
        }
        let saving = place.as_ref().map(|(directory, interval, _)| (directory, *interval));
        if trainer.run(&mut witness, saving)? == Finish::Interrupted {
            return Ok(None);
        }
        if let Some((directory, ..)) = &place {
            trainer.save(directory, &witness)?;
        }
        let said = match trainer.model()?.predict(data.samples, &self.judged[fold])? {
            Predictions::Classes { probabilities, .. } => probabilities,
            Predictions::Values(_) => Vec::new(),
        };
        Ok(Some(Said { probabilities: said, met: met(&data, method.guards()) }))
    }

    /// What a network trains on, and what chooses its best epoch: the same share of its rows as in the run, evenly over
    /// the classes. No more rows than it has steps for.
    fn parts(&self, run: &FoldRun<'_>, fold: usize) -> (Vec<u32>, Vec<u32>) {
        let data = &run.data;
        let mut judged = vec![false; data.sources.len()];
        self.judged[fold].iter().for_each(|&row| judged[row as usize] = true);
        let mut rows = [data.train, data.valid].concat();
        rows.retain(|&row| !judged[row as usize]);
        rows.sort_unstable();
        Draws::of(self.seed, PURPOSE, 1 + fold as u64, 0).shuffle_wide(&mut rows);
        rows.truncate((self.steps as usize).saturating_mul(run.config.batch_size));
        let Targets::Classes { labels, .. } = data.targets else { return (rows, Vec::new()) };
        rows.sort_by_key(|&row| labels[row as usize]);
        let answers = run.data.items.map(|items| (items, counts(items, &rows)));
        // Whole items, where there are items: whether they validate is settled at their first row.
        let mut settled: BTreeMap<u32, bool> = BTreeMap::new();
        let mut owed = 0.0;
        let mut before = None;
        let (mut train, mut valid) = (Vec::with_capacity(rows.len()), Vec::new());
        for row in rows {
            // The first row of a class is for training: a class has to be seen to be learnt.
            let first = before.replace(labels[row as usize]) != Some(labels[row as usize]);
            let mut validates = |rows: f64| {
                owed += run.validation * rows;
                let enough = owed >= rows && !first;
                owed -= if enough { rows } else { 0.0 };
                enough
            };
            let validates = match &answers {
                None => validates(1.0),
                Some((items, counts)) => {
                    let item = items[row as usize];
                    *settled.entry(item).or_insert_with(|| validates(f64::from(counts[&item])))
                }
            };
            if validates { valid.push(row) } else { train.push(row) }
        }
        train.sort_unstable();
        valid.sort_unstable();
        (train, valid)
    }

    /// The settings of the run for fewer rows and steps, with a seed of the network's own.
    fn config(&self, run: &TrainConfig, fold: usize, rows: usize) -> TrainConfig {
        let batches = rows.div_ceil(run.batch_size.max(1)).max(1);
        let epochs = (self.steps as usize).div_ceil(batches).max(1);
        let patience = match run.patience {
            usize::MAX => usize::MAX,
            patience => (patience.min(run.epochs) * epochs).div_ceil(run.epochs.max(1)).max(1),
        };
        let drawn = Draws::of(self.seed, PURPOSE, 1 + fold as u64, 1).unit();
        let seed = (drawn * (1_u64 << 53) as f64) as u64;
        TrainConfig { seed, epochs, patience, ..run.clone() }
    }

    /// Noise rates, with the parameters of the run where it has such, within its guards.
    fn method(&self, run: &MethodConfig) -> Result<MethodConfig, MethodError> {
        let mut method = MethodConfig::named("noise-rate")?;
        if run.kind() == method.kind() {
            for parameter in run.kind().parameters() {
                method = method.with(parameter.name, run.number(parameter))?;
            }
        }
        let parameters = method.kind().parameters();
        let warmup = parameters.iter().find(|parameter| parameter.name == "noise-warmup");
        if let Some(warmup) = warmup {
            let least = (WARMUP_STEPS / self.steps as f64).min(LONGEST_WARMUP);
            let share = method.number(warmup).max(least);
            method = method.with(warmup.name, share)?;
        }
        Ok(method.within(run.guards().clone()))
    }
}

/// The run whose labels are judged.
pub struct FoldRun<'a> {
    /// What is trained and validated on.
    pub data: Data<'a>,
    /// How many sources there are.
    pub sources: usize,
    /// Its settings.
    pub config: &'a TrainConfig,
    /// Its method: guards hold for those who judge, too.
    pub method: &'a MethodConfig,
    /// Share of rows by which the best epoch is chosen.
    pub validation: f64,
    /// Where to compute.
    pub device: DeviceName,
    /// Who trains.
    pub workers: Workers<'a>,
}

/// Where the network of a fold saves its state.
pub(crate) fn fold_checkpoints(run: &CheckpointDir, fold: usize) -> CheckpointDir {
    CheckpointDir::new(run.path().join(format!("fold-{}", fold + 1)))
}

/// What a network says of the rows that it has not seen.
struct Said {
    /// The probability of every class, row after row.
    probabilities: Vec<f32>,
    /// The classes that it has met.
    met: Vec<bool>,
}

/// How many of the rows each item has.
fn counts(items: &[u32], rows: &[u32]) -> BTreeMap<u32, u32> {
    let mut counts = BTreeMap::new();
    rows.iter().for_each(|&row| *counts.entry(items[row as usize]).or_default() += 1);
    counts
}

/// Which classes a network meets in training.
fn met(data: &Data<'_>, guards: &Guards) -> Vec<bool> {
    let Targets::Classes { labels, classes } = data.targets else { return Vec::new() };
    let mut met = vec![false; *classes];
    let learnt = data.train.iter().filter(|&&row| guards.admits(data.sources[row as usize]));
    learnt.for_each(|&row| met[labels[row as usize] as usize] = true);
    met
}

/// Passes on how far the networks have come.
struct Witness<'w> {
    /// Steps of this network in steps of all.
    scale: &'w dyn Fn(u64) -> u64,
    steps: u64,
    fold: usize,
    loss: Option<f64>,
    watch: &'w mut dyn Watch,
}

impl Observer for Witness<'_> {
    fn on_step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        let finite = step.losses.iter().filter(|loss| loss.is_finite());
        let (sum, rows) =
            finite.fold((0.0, 0.0), |(sum, rows), &loss| (sum + f64::from(loss), rows + 1.0));
        if rows > 0.0 {
            let mean = sum / rows;
            self.loss = Some(self.loss.map_or(mean, |loss| 0.98 * loss + 0.02 * mean));
        }
        self.watch.step(&Progress {
            step: (self.scale)(step.step + 1),
            steps: self.steps,
            epoch: step.epoch,
            epochs: 0,
            fold: Some(self.fold),
            loss: self.loss.unwrap_or(f64::NAN),
            last_epoch: None,
            lowered: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_sample::Matrix;
    use lapwing_train::{Architecture, Init, Loss, MlpConfig, OptimiserConfig, Schedule};

    fn config(batch_size: usize) -> TrainConfig {
        let mlp = MlpConfig {
            inputs: 1,
            hidden: vec![2],
            outputs: 3,
            dropout: 0.0,
            squash: None,
            softmax: false,
            init: Init::Torch,
        };
        TrainConfig {
            seed: 0,
            architecture: Architecture::Mlp(mlp),
            loss: Loss::CrossEntropy,
            optimiser: OptimiserConfig::Adam { weight_decay: 0.0 },
            schedule: Schedule::Constant { learning_rate: 0.01 },
            batch_size,
            epochs: 40,
            patience: 20,
        }
    }

    /// Two classes in turn, and one row of a third; sources in turn; every fifth row is for testing.
    fn with_folds(check: impl Fn(&Folds, &FoldRun<'_>)) {
        let samples = Matrix::new((0..200).map(|row| row as f32).collect(), 1).unwrap();
        let labels = (0..200).map(|row| if row == 7 { 2 } else { row % 2 }).collect();
        let targets = Targets::Classes { labels, classes: 3 };
        let sources: Vec<u32> = (0..200).map(|row| row / 2 % 4).collect();
        let part = |of: fn(u32) -> bool| -> Vec<u32> { (0..200).filter(|&row| of(row)).collect() };
        let (train, valid) = (part(|row| row % 5 < 3), part(|row| row % 5 == 3));
        let data = Data {
            samples: &samples,
            targets: &targets,
            sources: &sources,
            train: &train,
            valid: &valid,
            relabel: None,
            items: None,
        };
        let method = MethodConfig::named("lap").unwrap();
        let config = config(16);
        let (validation, device) = (0.1, DeviceName::Cpu);
        let run = FoldRun {
            data,
            sources: 4,
            config: &config,
            method: &method,
            validation,
            device,
            workers: Workers::alone(),
        };
        let labelled =
            LabelledRows { targets: &targets, sources: &sources, train: &train, valid: &valid };
        for networks in [2, 3, 7] {
            let folds = Folds::new(networks, 300, &labelled, method.guards(), 5).unwrap();
            check(&folds, &run);
        }
        let few = |networks, rows| {
            let labelled = LabelledRows { train: &train[..rows], valid: &[], ..labelled };
            Folds::new(networks, 300, &labelled, method.guards(), 5).map(|_| ())
        };
        assert_eq!(few(3, 29), Err(Unjudged::FewRows(29)));
        assert_eq!(few(0, 40), Err(Unjudged::NotAsked));
        assert_eq!(few(3, 30), Ok(()));
        let values = Targets::Values(vec![0.0; 200]);
        let labelled = LabelledRows { targets: &values, ..labelled };
        let folds = Folds::new(3, 300, &labelled, method.guards(), 5);
        assert_eq!(folds.map(|_| ()), Err(Unjudged::Values));
    }

    #[test]
    fn a_network_neither_trains_nor_validates_on_what_it_judges_and_all_is_judged_once() {
        with_folds(|folds, run| {
            let mut all: Vec<u32> = folds.judged.concat();
            all.sort_unstable();
            let mut expected = [run.data.train, run.data.valid].concat();
            expected.sort_unstable();
            assert_eq!(all, expected);
            for (fold, judged) in folds.judged.iter().enumerate() {
                let (train, valid) = folds.parts(run, fold);
                let mut parts = [&train[..], &valid, judged].concat();
                parts.sort_unstable();
                assert_eq!(parts, expected, "fold {fold}");
                assert!(valid.len() * 9 <= train.len() && valid.len() * 12 >= train.len());
                // The only row of its class is judged, or trains.
                assert!(!valid.contains(&7));
                let of_source = |source| {
                    let own =
                        judged.iter().filter(|&&row| run.data.sources[row as usize] == source);
                    own.count() as i64 * folds.networks as i64
                };
                assert!((0..4).all(|source| (of_source(source) - 40).abs() < 25), "{judged:?}");
            }
        });
    }

    #[test]
    fn networks_have_seeds_of_their_own_the_steps_of_the_run_and_a_long_enough_warm_up() {
        with_folds(|folds, run| {
            let of = |fold| folds.config(run.config, fold, 100);
            assert_ne!(of(0).seed, of(1).seed);
            // 7 batches an epoch.
            assert_eq!((of(0).epochs, of(0).patience), (43, 22));
            let method = folds.method(run.method).unwrap();
            assert_eq!(method.kind().name(), "noise-rate");
            let warmup = &method.kind().parameters()[0];
            assert_eq!((warmup.name, method.number(warmup)), ("noise-warmup", 0.5));
            let long = Folds { steps: MOST_STEPS, ..folds.clone() };
            assert_eq!(long.method(run.method).unwrap().number(warmup), 0.1);
        });
    }
}
