//! Planning and training: from a table in parts to a model and what was seen of every source.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use lapwing_core::{Alone, Peers};
use lapwing_data::{Dataset, Input, InputKind, Split};
use lapwing_judge::{Ruling, SourceRow, TrajectoryPoint};
use lapwing_sample::{Augmented, Change, Data, InputSpec, Samples};
use lapwing_train::{
    CheckpointDir, DataShape, DeviceName, Epoch, Finish, Guards, MethodConfig, Model, Observer,
    OptimiserConfig, Plan, PlanError, Resumed, Step, TrainConfig, Trainer, Wishes, Workers, plan,
};
use lapwing_trees::TreesConfig;

use crate::recorder::{MOST_POINTS, Recorder};
use crate::settings::LossName;
use crate::standings::Standings;
use crate::{
    Choice, JudgedLabels, Learnt, Metrics, ModelKind, Prepared, RunError, Settings, Unjudged,
    model_file,
};

mod judging;

/// Fewest rows that can be called a training set.
const FEWEST_ROWS: usize = 4;
/// Names suggested for one that is not known.
const SUGGESTIONS: usize = 3;

/// A run that is planned and not yet started.
#[derive(Debug)]
pub struct Job<'a> {
    dataset: &'a Dataset,
    split: &'a Split,
    /// The settings with a value for every key the run depends on.
    pub settings: Settings,
    /// What they would be had nothing been chosen but table, target and source.
    pub(crate) usual: Settings,
    /// What suits the table.
    pub plan: Plan,
    /// Preprocessing, fitted on the training rows.
    pub input: Input,
    /// The trees that are grown, where no network is trained; plan and configuration are then those of networks that
    /// judge labels, and so is this preprocessing.
    trees: Option<(TreesConfig, Input)>,
    config: TrainConfig,
    method: MethodConfig,
    device: DeviceName,
    workers: Workers<'a>,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Steps done.
    pub step: u64,
    /// Steps planned.
    pub steps: u64,
    /// Epochs before this one.
    pub epoch: usize,
    /// Epochs planned.
    pub epochs: usize,
    /// Which of the networks that judge labels is trained, from 0; `None` while it is the one that is kept.
    pub fold: Option<usize>,
    /// Mean training loss of the steps of late, every row counting the same.
    pub loss: f64,
    /// The last epoch that is complete.
    pub last_epoch: Option<&'a Epoch>,
    /// Sources below half weight.
    pub lowered: usize,
}

/// Somebody who looks on.
pub trait Watch {
    /// After each step; breaking ends the run with a checkpoint.
    fn step(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        let _ = progress;
        ControlFlow::Continue(())
    }

    /// Before labels are judged, where that comes before training.
    fn judging(&mut self, job: &Job<'_>) {
        let _ = job;
    }

    /// Before each training, where there are several, or where labels were judged.
    fn training(&mut self, job: &Job<'_>) {
        let _ = job;
    }

    /// Once, before the first step of a run that goes on from a checkpoint.
    fn resumed(&mut self, resumed: &Resumed) {
        let _ = resumed;
    }
}

impl Watch for () {}

/// Where and how often a run saves its state.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    /// The directory.
    pub directory: CheckpointDir,
    /// Time between two.
    pub interval: Duration,
    /// Whether to go on from the last one.
    pub resume: bool,
    /// Whether more follows when training is over, so that its end is saved, too.
    pub last: bool,
}

/// A trained model and what was seen on the way.
#[derive(Debug)]
pub struct Fit {
    /// The model.
    pub model: Learnt,
    /// All epochs.
    pub history: Vec<Epoch>,
    /// Steps done.
    pub steps: u64,
    /// What the rule knows of every source, in the order of the table; not yet judged.
    pub sources: Vec<SourceRow>,
    /// Loss, unreliability and weight step by step, thinned.
    pub trajectory: Vec<TrajectoryPoint>,
    /// What networks that have not seen the labels say of them, once [`Job::judge`] has asked them.
    pub labels: Result<JudgedLabels, Unjudged>,
}

impl<'a> Job<'a> {
    /// Plans a run of one process; nothing is written and nothing is trained. Where no model is asked for it is the
    /// network that suits the data: [`Candidates`](crate::Candidates) compare it with trees.
    pub fn new(
        dataset: &'a Dataset,
        split: &'a Split,
        settings: &Settings,
    ) -> Result<Self, RunError> {
        Self::among(&Alone, dataset, split, settings)
    }

    /// Plans a run of several workers, each of which has read the table. Nobody waits for anybody here.
    pub fn among(
        peers: &'a dyn Peers,
        dataset: &'a Dataset,
        split: &'a Split,
        settings: &Settings,
    ) -> Result<Self, RunError> {
        let count = peers.count();
        let shards = settings.shards.unwrap_or_else(|| count.next_power_of_two());
        if shards == 0 {
            return Err(RunError::NoShards);
        }
        let workers = Workers { peers, shards };
        if split.train.len() < FEWEST_ROWS {
            return Err(RunError::TooFewRows { rows: split.train.len(), least: FEWEST_ROWS });
        }
        let device: DeviceName = settings.device.as_deref().unwrap_or("cpu").parse()?;
        let guards = guards(dataset, split, settings)?;
        let kind = match InputKind::of(&dataset.schema) {
            InputKind::Text if settings.reads_words() => InputKind::Tokens,
            kind => kind,
        };
        let input = kind.fit(dataset, dataset.held(&split.train))?;
        let sources = sources_in(dataset, &split.train).len();
        let wants_trees = settings.wants_trees();
        if wants_trees && count > 1 {
            return Err(RunError::TreesAmong(count));
        }
        if wants_trees && dataset.is_on_disk() {
            return Err(RunError::TreesOnDisk);
        }
        if wants_trees && input.kind() != InputKind::Table {
            let (network, takes) = ("trees", "numbers and categories");
            return Err(PlanError::Input { network, takes, found: input.spec() }.into());
        }
        let settings = if wants_trees { settings.for_trees()? } else { settings.clone() };
        let settings = &settings.with_leniency(sources)?;
        let rule = settings.rule();
        let shape = DataShape {
            rows: split.train.len(),
            input: input.spec(),
            task: dataset.target.task(),
            outputs: dataset.target.outputs(),
            sources,
        };
        // Before a network is planned that only the method asks for.
        settings.method_config(rule, &guards)?.kind().check(shape.task, shape.input)?;
        let usual = plan(&shape, rule.history_length, &Wishes::default())?;
        let usual = filled(&Settings::default(), dataset, &usual)?;
        let wishes = if wants_trees { Wishes::default() } else { settings.wishes()? };
        let mut plan = plan(&shape, rule.history_length, &wishes)?;
        let (trees, settings, usual) = match wants_trees {
            false => (None, filled(settings, dataset, &plan)?, usual),
            true => {
                let columns = InputKind::Columns.fit(dataset, &split.train)?;
                let trees = settings.trees(dataset, &columns, &guards)?;
                trees.check(&data(dataset, split, &*columns.bind(&dataset.table)?))?;
                plan.depression_strength = trees.rule.depression_strength;
                let settings = settings.filled_for_trees(dataset, &trees)?;
                // What is usual for trees is nobody's choice, but for the trees themselves.
                let usual_trees = Settings::default().for_trees()?;
                let config = usual_trees.trees(dataset, &columns, &guards)?;
                let usual_trees = usual_trees.filled_for_trees(dataset, &config)?;
                (Some((trees, columns)), settings, Settings { model: usual.model, ..usual_trees })
            }
        };
        let changes = settings.augment.clone().unwrap_or_default();
        if !changes.is_empty() && !matches!(input.spec(), InputSpec::Image { .. }) {
            return Err(RunError::Augment(input.spec()));
        }
        let bound = dataset.bind(&input)?;
        let augmented = Augmented::new(&*bound, &changes);
        let data = data(dataset, split, &augmented);
        let config = plan.config(settings.seed());
        let rule =
            lapwing_core::LapConfig { depression_strength: plan.depression_strength, ..rule };
        let method = settings.method_config(rule, &guards)?;
        // Refused here rather than after the first file is written.
        let trainer = Trainer::among(workers, config.clone(), &method, data, device)?;
        plan.steps = trainer.steps();
        drop(trainer);
        drop(bound);
        let (trees, input) = match trees {
            Some((trees, columns)) => (Some((trees, input)), columns),
            None => (None, input),
        };
        // One shard is what everybody has who did not ask for more.
        let settings = Settings { shards: (shards > 1).then_some(shards), ..settings };
        Ok(Self {
            dataset,
            split,
            settings,
            usual,
            plan,
            input,
            trees,
            config,
            method,
            device,
            workers,
        })
    }

    /// That every worker has the same table and settings, before anything is written. All of them must ask.
    pub fn check_workers(&self) -> Result<(), RunError> {
        if self.workers.peers.count() == 1 {
            return Ok(());
        }
        let bound = self.dataset.bind(&self.input)?;
        let data = data(self.dataset, self.split, &*bound);
        let config = self.config.clone();
        let trainer = Trainer::among(self.workers, config, &self.method, data, self.device)?;
        Ok(trainer.check_that_workers_agree()?)
    }

    /// Trains.
    pub fn run(
        &self,
        checkpoints: Option<&Checkpoints>,
        watch: &mut dyn Watch,
    ) -> Result<Option<Fit>, RunError> {
        if let Some((trees, _)) = &self.trees {
            return self.grow(trees, checkpoints, watch);
        }
        // What reading and planning have left behind.
        lapwing_ops::release_memory();
        let (mut labels, mut method) = (Err(Unjudged::NotAsked), self.method.clone());
        if self.judges_first() {
            watch.judging(self);
            let Some(judged) = self.judge_labels(checkpoints, watch)? else { return Ok(None) };
            if let Ok(judged) = &judged {
                method = method.knowing(judged.noise_rates());
            }
            labels = judged;
            watch.training(self);
        }
        let bound = self.dataset.bind(&self.input)?;
        let bound = Augmented::new(&*bound, self.changes());
        let data = data(self.dataset, self.split, &bound);
        let mut trainer =
            Trainer::among(self.workers, self.config.clone(), &method, data, self.device)?;
        let epochs = (self.plan.steps / trainer.batches().max(1) as u64) as usize;
        let mut witness = Witness::new(self.dataset.sources.names.len(), epochs, watch);
        if let Some(saved) = checkpoints.filter(|checkpoints| checkpoints.resume) {
            let resumed = trainer.resume(&saved.directory, &mut witness)?;
            witness.last_epoch = trainer.history().last().cloned();
            for (source, lowered) in witness.lowered.iter_mut().enumerate() {
                *lowered = trainer.standing(source as u32).weight < 0.5;
            }
            witness.watch.resumed(&resumed);
        }
        let place = checkpoints.map(|saved| (&saved.directory, saved.interval));
        if trainer.run(&mut witness, place)? == Finish::Interrupted {
            return Ok(None);
        }
        if let Some(saved) = checkpoints
            && (saved.last || self.folds().is_ok())
        {
            // Whoever stops while labels are judged shall find the network as it is.
            trainer.save(&saved.directory, &witness)?;
        }
        let (model, history) = (Learnt::Network(trainer.model()?), trainer.history().to_vec());
        let weights = (0..self.dataset.sources.names.len() as u32)
            .map(|source| trainer.standing(source).weight)
            .collect();
        let standings = Standings::new(weights, trainer.method().lap());
        // Histories go before the facts come: of a million sources, both fill half a gigabyte.
        drop(trainer);
        lapwing_ops::release_memory();
        Ok(Some(Fit {
            model,
            steps: history.last().map_or(0, |epoch| epoch.step),
            history,
            sources: self.facts(standings),
            trajectory: witness.recorder.into_points(),
            labels,
        }))
    }

    /// What becomes of pictures while training.
    fn changes(&self) -> &[Change] {
        self.settings.augment.as_deref().unwrap_or_default()
    }

    /// Metrics of a model on what there is to test on; `None` where there is no row.
    pub fn test(&self, model: &Learnt, prepared: &Prepared) -> Result<Option<Metrics>, RunError> {
        if let Some(data) = &prepared.test {
            let (target, predictions) = model_file::test(model, &self.input, data)?;
            return Ok(Metrics::of(&target, &predictions));
        }
        let rows = &self.split.test;
        let bound = self.dataset.bind(&self.input)?;
        let predictions = model.predict(&*bound, rows)?;
        Ok(Metrics::of(&self.dataset.target.select(rows), &predictions))
    }

    /// The trees that are grown, where no network is trained.
    pub fn trees(&self) -> Option<&TreesConfig> {
        self.trees.as_ref().map(|(trees, _)| trees)
    }

    /// What is trained.
    pub fn model(&self) -> ModelKind {
        match &self.trees {
            Some(_) => ModelKind::Trees,
            None => ModelKind::Network(self.plan.architecture.kind()),
        }
    }

    /// Steps planned: batches, or rounds.
    pub fn steps(&self) -> u64 {
        self.trees().map_or(self.plan.steps, |trees| (trees.rehearsal + trees.rounds) as u64)
    }

    /// Shards of each batch.
    pub fn shards(&self) -> usize {
        self.workers.shards
    }

    /// The method with its parameters.
    pub fn method(&self) -> &MethodConfig {
        &self.method
    }

    /// The table.
    pub fn dataset(&self) -> &'a Dataset {
        self.dataset
    }

    /// Its parts.
    pub fn split(&self) -> &'a Split {
        self.split
    }
}

/// Records, counts, and passes on what happens.
pub(crate) struct Witness<'w> {
    pub(crate) recorder: Recorder,
    lowered: Vec<bool>,
    loss: Option<f64>,
    pub(crate) last_epoch: Option<Epoch>,
    epochs: usize,
    watch: &'w mut dyn Watch,
}

impl<'w> Witness<'w> {
    pub(crate) fn new(sources: usize, epochs: usize, watch: &'w mut dyn Watch) -> Self {
        let recorder = Recorder::new(MOST_POINTS);
        let lowered = vec![false; sources];
        Self { recorder, lowered, loss: None, last_epoch: None, epochs, watch }
    }
}

impl Observer for Witness<'_> {
    fn on_step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.recorder.record(step);
        for source in step.sources {
            self.lowered[source.source as usize] = source.standing.weight < 0.5;
        }
        let finite = step.losses.iter().filter(|loss| loss.is_finite());
        let (sum, rows) =
            finite.fold((0.0, 0.0), |(sum, rows), &loss| (sum + f64::from(loss), rows + 1.0));
        if rows > 0.0 {
            let mean = sum / rows;
            self.loss = Some(self.loss.map_or(mean, |loss| 0.98 * loss + 0.02 * mean));
        }
        self.watch.step(&Progress {
            step: step.step + 1,
            steps: step.steps,
            epoch: step.epoch,
            epochs: self.epochs,
            fold: None,
            loss: self.loss.unwrap_or(f64::NAN),
            last_epoch: self.last_epoch.as_ref(),
            lowered: self.lowered.iter().filter(|lowered| **lowered).count(),
        })
    }

    fn on_epoch(&mut self, epoch: &Epoch, _: &Model) {
        self.last_epoch = Some(epoch.clone());
    }

    fn save(&self) -> Vec<u8> {
        self.recorder.save()
    }

    fn load(&mut self, saved: &[u8]) -> Result<(), String> {
        self.recorder.load(saved, self.lowered.len())
    }
}

/// The settings with a value for every key the run depends on.
fn filled(settings: &Settings, dataset: &Dataset, plan: &Plan) -> Result<Settings, RunError> {
    let settings = &settings.for_task(dataset.schema.task);
    let (rule, split) = (settings.rule(), settings.split()?);
    let network = plan.architecture.wishes();
    let (loss, huber_delta) = LossName::of(plan.loss);
    let (OptimiserConfig::Adam { weight_decay } | OptimiserConfig::Sgd { weight_decay, .. }) =
        plan.optimiser;
    Ok(Settings {
        task: Some(Choice::Is(dataset.schema.task)),
        ignore: Some(settings.ignore.clone().unwrap_or_default()),
        test_fraction: Some(split.test),
        validation_fraction: Some(split.validation),
        method: Some(settings.method()),
        parameters: settings.all_parameters(),
        model: Some(Choice::Is(ModelKind::Network(plan.architecture.kind()))),
        loss: Some(Choice::Is(loss)),
        huber_delta,
        hidden: network.hidden,
        // Through text, so that 0.3 stays 0.3 and does not become the double nearest to the single nearest to it.
        dropout: network.dropout.and_then(|dropout| dropout.to_string().parse().ok()),
        optimiser: Some(settings.optimiser.unwrap_or_default()),
        momentum: settings.used_momentum(),
        weight_decay: Some(weight_decay),
        epochs: Some(plan.epochs),
        patience: Some(plan.patience),
        batch_size: Some(plan.batch_size),
        learning_rate: Some(plan.learning_rate),
        history: Some(rule.history_length),
        leniency: Some(rule.leniency),
        strength: Some(Choice::Is(plan.depression_strength)),
        warmup: Some(rule.warmup),
        floor: Some(settings.floor.unwrap_or(0.0)),
        trust: Some(settings.trust.clone().unwrap_or_default()),
        block: Some(settings.block.clone().unwrap_or_default()),
        folds: settings.used_folds(dataset.schema.task)?,
        seed: Some(settings.seed()),
        device: Some(settings.device.clone().unwrap_or_else(|| "cpu".to_owned())),
        ..settings.clone()
    })
}

/// The rows to train and to validate on.
pub(crate) fn data<'a>(
    dataset: &'a Dataset,
    split: &'a Split,
    samples: &'a dyn Samples,
) -> Data<'a> {
    Data {
        samples,
        targets: &dataset.target,
        sources: &dataset.sources.codes,
        train: &split.train,
        valid: &split.validation,
        relabel: None,
        // With one answer each there is nothing to agree on.
        items: dataset.items.as_ref().filter(|i| i.any_answered_twice()).map(|i| &i.codes[..]),
    }
}

fn sources_in(dataset: &Dataset, rows: &[u32]) -> BTreeSet<u32> {
    rows.iter().map(|&row| dataset.sources.codes[row as usize]).collect()
}

/// Names of sources become their numbers.
fn guards(dataset: &Dataset, split: &Split, settings: &Settings) -> Result<Guards, RunError> {
    let names = &dataset.sources.names;
    let number = |ruling: Ruling, name: &String| {
        let place = names.iter().position(|known| known == name);
        place.map(|place| place as u32).ok_or_else(|| RunError::UnknownSource {
            ruling,
            name: name.clone(),
            close: close_names(names, name),
        })
    };
    let numbers = |ruling, asked: &Option<Vec<String>>| {
        asked
            .iter()
            .flatten()
            .map(|name| number(ruling, name))
            .collect::<Result<BTreeSet<u32>, _>>()
    };
    let guards = Guards {
        floor: settings.floor.unwrap_or(0.0),
        trusted: numbers(Ruling::Trusted, &settings.trust)?,
        blocked: numbers(Ruling::Blocked, &settings.block)?,
    };
    if let Some(&both) = guards.trusted.intersection(&guards.blocked).next() {
        return Err(RunError::TrustedAndBlocked(names[both as usize].clone()));
    }
    if sources_in(dataset, &split.train).is_subset(&guards.blocked) {
        return Err(RunError::AllBlocked);
    }
    Ok(guards)
}

pub(crate) fn close_names(names: &[String], asked: &str) -> Vec<String> {
    let alike = |name: &str| strsim::jaro_winkler(&name.to_lowercase(), &asked.to_lowercase());
    let mut close: Vec<(f64, &String)> = names.iter().map(|name| (alike(name), name)).collect();
    close.retain(|(alike, _)| *alike >= 0.7);
    close.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    close.into_iter().take(SUGGESTIONS).map(|(_, name)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_names_a_source_that_does_not_exist_is_refused() {
        let observer = |sources| Witness {
            recorder: Recorder::new(10),
            lowered: vec![false; sources],
            loss: None,
            last_epoch: None,
            epochs: 1,
            watch: Box::leak(Box::new(())),
        };
        let standing = lapwing_train::Standing { unreliability: 0, weight: 1.0 };
        let mut one = observer(3);
        let _ = one.on_step(&Step {
            step: 0,
            steps: 1,
            epoch: 0,
            learning_rate: 0.1,
            rows: &[],
            losses: &[],
            weights: &[],
            sources: &[lapwing_train::SourceStep { source: 2, loss: None, standing }],
        });
        let saved = one.save();
        assert!(observer(3).load(&saved).is_ok());
        assert!(observer(2).load(&saved).unwrap_err().contains("source"));
    }

    #[test]
    fn names_that_look_alike_are_suggested() {
        let names = ["Ward 1", "Ward 12", "ambulance", "ward-1"].map(str::to_owned);
        assert_eq!(close_names(&names, "ward 1"), ["Ward 1", "Ward 12", "ward-1"]);
        assert!(close_names(&names, "zzz").is_empty());
    }
}
