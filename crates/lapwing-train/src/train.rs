//! The loop: shuffle, weigh, step, validate, keep the best.

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use burn::module::Module;
use lapwing_core::Peers;
use lapwing_sample::{Data, DataError, Draws, InputSpec, Scale, SourceLosses, TargetSpec, Task};
use serde::{Deserialize, Serialize};

use crate::agreement::After;
use crate::batch::{Batch, feed};
use crate::checkpoint::{CheckpointDir, Fingerprint};
use crate::config::TrainConfig;
use crate::device::DeviceName;
use crate::digest;
use crate::error::TrainError;
use crate::learner::Learner;
use crate::method::{Guards, Method, MethodConfig, MethodError, MethodKind, Seen, Standing};
use crate::model::Model;
use crate::observer::{Epoch, Observer, SourceStep, Step};
use crate::optimiser::Pace;
use crate::order::mixed;
use crate::parameters::{Parameter, read, write};
use crate::random::Purpose;
use crate::sampling::Sampling;
use crate::shards::Workers;

/// How far a run has come; the part of its state that is neither parameters nor method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Progress {
    pub(crate) step: u64,
    pub(crate) epoch: usize,
    /// Batches of this epoch already done: the data cursor.
    pub(crate) batch: usize,
    /// Sum and number of this epoch's finite losses, and how many were not finite.
    tally: (f64, u64, u64),
    /// Epochs since the best one, and its validation losses.
    stale: usize,
    best: Option<SourceLosses>,
    pub(crate) history: Vec<Epoch>,
}

impl Progress {
    /// Every source that is named in it.
    pub(crate) fn sources(&self) -> impl Iterator<Item = u32> {
        let epochs = self.history.iter().flat_map(|epoch| &epoch.valid_loss_by_source);
        let best = self.best.iter().flat_map(SourceLosses::means);
        epochs.map(|&(source, _)| source).chain(best.map(|(source, _)| source))
    }
}

/// How a call of [`Trainer::run`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// All epochs are done, or patience is over.
    Done,
    /// The observer broke off.
    Interrupted,
}

/// A run.
pub struct Trainer<'a> {
    config: TrainConfig,
    settings: Vec<u8>,
    fingerprint: OnceCell<Fingerprint>,
    pub(crate) learner: Learner<'a>,
    pub(crate) method: Box<dyn Method + 'a>,
    kind: &'static dyn MethodKind,
    guards: Guards,
    pub(crate) progress: Progress,
    pub(crate) best: Option<Vec<Parameter>>,
    /// Batches per epoch.
    batches: usize,
    sampling: Sampling,
    /// Whether the best epoch is chosen by the loss itself.
    by_loss: bool,
}

impl<'a> Trainer<'a> {
    /// A run of one process. Checks everything and draws the first parameters.
    pub fn new(
        config: TrainConfig,
        method: &MethodConfig,
        data: Data<'a>,
        device: DeviceName,
    ) -> Result<Self, TrainError> {
        Self::among(Workers::alone(), config, method, data, device)
    }

    /// A run of several workers, each of which has all of the data. Nobody waits for anybody here.
    pub fn among(
        workers: Workers<'a>,
        config: TrainConfig,
        method: &MethodConfig,
        data: Data<'a>,
        device: DeviceName,
    ) -> Result<Self, TrainError> {
        data.check()?;
        config.check(&data)?;
        let mut settings = serde_json::to_vec(&(&config, method)).map_err(TrainError::Settings)?;
        let (shards, count) = (workers.shards, workers.peers.count());
        if shards < count {
            return Err(TrainError::Shards { shards, workers: count });
        }
        if shards > 1 {
            if matches!(data.samples.spec(), InputSpec::Text { .. } | InputSpec::Tokens { .. }) {
                return Err(TrainError::TextInShards);
            }
            settings.extend(format!("{shards} shards").into_bytes());
        }
        let trained_on = |row: &u32| method.trains_on(data.sources[*row as usize]);
        let train: Vec<u32> = data.train.iter().copied().filter(trained_on).collect();
        if !train.iter().any(|&row| method.guards().admits(data.sources[row as usize])) {
            return Err(DataError::NoRows.into());
        }
        let device = device.open()?.autodiff();
        let learner = Learner::new(&config, data, train.into(), &device, workers)?;
        let (kind, guards) = (method.kind(), method.guards().clone());
        let method = method.start(&config, &learner)?;
        let batches = method.batches(&learner.train, config.batch_size, data.sources).len();
        let trainer = Self {
            config,
            settings,
            fingerprint: OnceCell::new(),
            learner,
            method,
            kind,
            guards,
            progress: Progress::default(),
            best: None,
            batches,
            sampling: Sampling::default(),
            by_loss: false,
        };
        // A bag of words is soon as sure of the texts it gets wrong as of the others, which the bounded score rewards.
        Ok(match data.samples.spec() {
            InputSpec::Text { .. } => trainer.choosing_by_loss(),
            _ => trainer,
        })
    }

    /// Chooses the best epoch by the validation loss itself, without the bound that keeps wrong targets from having too much
    /// of a say: it punishes a network for being sure where it is wrong, so that what it is sure of can be relied on.
    #[must_use]
    pub fn choosing_by_loss(mut self) -> Self {
        if !self.by_loss {
            self.settings.extend(b"best by loss");
            self.by_loss = true;
        }
        self
    }

    /// With other rows in an epoch; a run goes on only with those it began with.
    #[must_use]
    pub fn with_sampling(mut self, sampling: Sampling) -> Self {
        if sampling != self.sampling {
            self.settings.extend(format!("{sampling:?}").bytes());
            self.sampling = sampling;
        }
        self
    }

    /// With values as they are, instead of standardised: a network then learns them in their own unit. For methods of one
    /// network; classes have no unit. A run goes on only with the values it began with.
    #[must_use]
    pub fn with_raw_values(mut self) -> Self {
        if self.learner.task() == Task::Regression {
            self.settings.extend(b"raw values");
            self.learner.target = TargetSpec::Values(Scale { mean: 0.0, std: 1.0 });
        }
        self
    }

    /// Trains until all epochs are done, patience is over or the observer breaks off. With `checkpoints`, the state is
    /// saved about every `interval` and when the observer breaks off.
    pub fn run(
        &mut self,
        observer: &mut dyn Observer,
        checkpoints: Option<(&CheckpointDir, Duration)>,
    ) -> Result<Finish, TrainError> {
        self.check_that_workers_agree()?;
        let mut saved = Instant::now();
        while !self.finished() {
            if self.progress.batch == 0 {
                self.method.begin_epoch(&mut self.learner, self.progress.epoch)?;
            }
            let (batches, numbers) = self.remaining_batches();
            let flow = feed(batches, numbers, self.gather(), |batch| {
                let flow = self.step(&batch, observer)?;
                if self.progress.batch == self.batches {
                    self.end_epoch(observer)?;
                }
                let due = checkpoints.is_some_and(|(_, interval)| saved.elapsed() >= interval);
                let wish = After { stop: flow.is_break(), save: due };
                let After { stop, save } = wish.among(self.peers()).map_err(MethodError::from)?;
                if let Some((directory, _)) = checkpoints
                    && (stop || save)
                {
                    self.save(directory, observer)?;
                    saved = Instant::now();
                }
                Ok::<_, TrainError>(match stop {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                })
            })?;
            if flow.is_break() {
                return Ok(Finish::Interrupted);
            }
        }
        Ok(Finish::Done)
    }

    /// The batches of this epoch that are still to come, and how many numbers a batch holds.
    fn remaining_batches(&self) -> (Vec<Vec<u32>>, usize) {
        let TrainConfig { seed, batch_size, .. } = self.config;
        let Data { sources, samples, .. } = self.learner.data;
        let epoch = self.progress.epoch as u64;
        let order = match (self.sampling, samples.blocks()) {
            (Sampling::Shuffled, Some(blocks)) => {
                let mut draws = Draws::of(seed, Purpose::Order, 0, epoch);
                mixed(&self.learner.train, blocks, &mut draws)
            }
            (sampling, _) => sampling.order(&self.learner.train, sources, seed, epoch),
        };
        let mut batches = self.method.batches(&order, batch_size, sources);
        batches.drain(..self.progress.batch.min(batches.len()));
        let rows_at_once = batch_size.min(self.learner.train.len());
        (batches, rows_at_once.saturating_mul(samples.spec().size()))
    }

    /// How the batches of this epoch are gathered, by their place among those still to come.
    fn gather(&self) -> impl Fn(usize, Vec<u32>) -> Result<Batch, TrainError> + Send + use<'a> {
        let Learner { data, target, ref device, workers, .. } = self.learner;
        let (schedule, steps, device) = (self.config.schedule, self.steps(), device.clone());
        let views = (self.config.seed, self.kind.views());
        let Progress { step: first, epoch, .. } = self.progress;
        move |place, rows| {
            let step = first + place as u64;
            let pace = Pace::new(schedule.rate(step, steps));
            Batch::gather(&data, &target, rows, (step, epoch, pace), workers, views, &device)
        }
    }

    /// One batch: the method learns from it, and the observer hears of it.
    fn step(
        &mut self,
        batch: &Batch,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<()>, TrainError> {
        let Seen { losses, weights } = self.method.step(&mut self.learner, batch)?;
        let (sum, rows, nonfinite) = &mut self.progress.tally;
        let sources = match self.learner.sums.as_deref() {
            None => {
                for &loss in &losses {
                    match loss.is_finite() {
                        true => (*sum, *rows) = (*sum + f64::from(loss), *rows + 1),
                        false => *nonfinite += 1,
                    }
                }
                SourceStep::of_batch(&losses, &batch.sources, &*self.method)
            }
            Some(sums) => {
                for (_, source) in sums.iter() {
                    *sum += source.total();
                    *rows += source.finite();
                    *nonfinite += source.nonfinite();
                }
                SourceStep::of_sums(sums, &*self.method)
            }
        };
        self.progress.step += 1;
        self.progress.batch += 1;
        Ok(observer.on_step(&Step {
            step: batch.step,
            steps: self.steps(),
            epoch: batch.epoch,
            learning_rate: batch.pace.rate,
            rows: &batch.rows,
            losses: &losses,
            weights: &weights,
            sources: &sources,
        }))
    }

    /// Validates, and keeps the parameters if they are the best so far.
    fn end_epoch(&mut self, observer: &mut dyn Observer) -> Result<(), TrainError> {
        let (epoch, step) = (self.progress.epoch, self.progress.step);
        self.method.end_epoch(&mut self.learner, epoch)?;
        let (sum, rows, nonfinite) = std::mem::take(&mut self.progress.tally);
        let (valid, scores) = self.validate()?;
        let weight = |source| self.standing(source).weight;
        let score = scores.mean(weight);
        let lost = rows == 0 || (self.validates() && score.is_infinite());
        if lost || !self.learner.is_finite() {
            return Err(TrainError::Diverged { step, epoch });
        }
        let candidate = self.method.is_candidate(epoch);
        let better = match &self.progress.best {
            Some(best) => score < best.mean(weight),
            None => score.is_finite(),
        };
        let best = candidate && better;
        let report = Epoch {
            epoch,
            step,
            train_loss: sum / rows as f64,
            nonfinite,
            valid_loss: Some(valid.mean(weight)).filter(|loss| loss.is_finite()),
            valid_score: Some(score).filter(|score| score.is_finite()),
            valid_loss_unweighted: Some(valid.mean(|_| 1.0)).filter(|score| score.is_finite()),
            valid_loss_by_source: valid.means().collect(),
            candidate,
            best,
        };
        if best {
            self.best = Some(read(&self.learner.network));
            self.progress.best = Some(scores);
        }
        if candidate {
            self.progress.stale = if best { 0 } else { self.progress.stale + 1 };
        }
        self.progress.epoch += 1;
        self.progress.batch = 0;
        observer.on_epoch(&report, &self.learner.model());
        self.progress.history.push(report);
        Ok(())
    }

    /// Whether any row has a say in which epoch is the best. Those of blocked sources have none.
    fn validates(&self) -> bool {
        let Data { sources, valid, .. } = self.learner.data;
        valid.iter().any(|&row| self.guards.admits(sources[row as usize]))
    }

    /// Losses of the validation part per source, and what chooses the best epoch: the same, bounded, without blocked
    /// sources.
    fn validate(&self) -> Result<(SourceLosses, SourceLosses), TrainError> {
        let Data { sources, valid, .. } = self.learner.data;
        let (mut plain, mut bounded) = (SourceLosses::default(), SourceLosses::default());
        for (&row, loss) in valid.iter().zip(self.learner.losses(valid)?) {
            let source = sources[row as usize];
            plain.add(source, loss);
            if self.guards.admits(source) {
                let score = if self.by_loss { loss } else { self.config.loss.bounded(loss) };
                bounded.add(source, score);
            }
        }
        Ok((plain, bounded))
    }

    /// What data and settings the run is of. Reads all features, so only runs with checkpoints pay for it.
    pub(crate) fn fingerprint(&self) -> Result<&Fingerprint, TrainError> {
        if let Some(known) = self.fingerprint.get() {
            return Ok(known);
        }
        let data = &self.learner.data;
        let run = [digest::of_the_rest(data).as_bytes(), &self.settings[..]].concat();
        let run = blake3::hash(&run).to_hex().to_string();
        let features = digest::of_samples(data)?.to_hex().to_string();
        Ok(self.fingerprint.get_or_init(|| Fingerprint { run, features }))
    }

    fn peers(&self) -> &'a dyn Peers {
        self.learner.workers.peers
    }

    /// That every worker has the data and the settings of the first. All of them must ask.
    ///
    /// # Errors
    /// Where one of them has not, or does not answer.
    pub fn check_that_workers_agree(&self) -> Result<(), TrainError> {
        if self.peers().count() == 1 {
            return Ok(());
        }
        let Fingerprint { run, features } = self.fingerprint()?;
        let own = [run.as_bytes(), features.as_bytes()].concat();
        let all = self.peers().gather(&own).map_err(MethodError::from)?;
        match all.iter().position(|other| *other != all[0]) {
            None => Ok(()),
            Some(rank) => Err(TrainError::OtherWorker { rank }),
        }
    }

    /// Whether there is nothing left to do.
    pub fn finished(&self) -> bool {
        let impatient = self.progress.stale >= self.config.patience && self.validates();
        self.progress.epoch >= self.kind.epochs(self.config.epochs) || impatient
    }

    /// Batches per epoch.
    pub fn batches(&self) -> usize {
        self.batches
    }

    /// Steps planned.
    pub fn steps(&self) -> u64 {
        (self.batches * self.kind.epochs(self.config.epochs)) as u64
    }

    /// The epochs so far.
    pub fn history(&self) -> &[Epoch] {
        &self.progress.history
    }

    /// Where a source stands after the last step. Blocked ones weigh nothing, whatever the method.
    pub fn standing(&self, source: u32) -> Standing {
        let standing = self.method.standing(source);
        let weight = if self.guards.admits(source) { standing.weight } else { 0.0 };
        Standing { weight, ..standing }
    }

    /// The method as it stands.
    pub fn method(&self) -> &dyn Method {
        &*self.method
    }

    /// The model: parameters of the best epoch, or the last ones where nothing was validated.
    pub fn model(&self) -> Result<Model, TrainError> {
        match &self.best {
            Some(best) => {
                Ok(self.learner.model_of(write(self.learner.network.clone(), best)?.valid()))
            }
            None => Ok(self.learner.model()),
        }
    }
}
