//! The loop: shuffle, weigh, step, validate, keep the best.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, CheckpointDir, CheckpointError, State};
use crate::device::DeviceName;
use crate::error::TrainError;
use crate::loss::Loss;
use crate::method::{Method, MethodConfig};
use crate::model::{Model, Task, features, losses};
use crate::network::{Architecture, MlpConfig, Network};
use crate::observer::{Epoch, Observer, SourceStep, Step};
use crate::optimiser::{Optimiser, OptimiserConfig};
use crate::parameters::{Parameter, all_finite, gradients, host, read, write};
use crate::random::{Purpose, Stream};
use crate::rows::{Data, Targets};
use crate::schedule::Schedule;
use crate::validation::SourceLosses;

/// Everything about a run but the data, the method and the device. [`plan`](crate::plan) proposes one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Decides first parameters, order and dropout.
    pub seed: u64,
    /// Units of each hidden layer.
    pub hidden: Vec<usize>,
    /// Share of hidden units dropped at each step.
    pub dropout: f32,
    /// The loss.
    pub loss: Loss,
    /// The optimiser.
    pub optimiser: OptimiserConfig,
    /// The learning rate.
    pub schedule: Schedule,
    /// Rows per step; the last batch of an epoch may be smaller.
    pub batch_size: usize,
    /// Most epochs.
    pub epochs: usize,
    /// Epochs without a better validation loss after which the run ends.
    pub patience: usize,
}

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
    history: Vec<Epoch>,
}

/// How a call of [`Trainer::run`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// All epochs are done, or patience is over.
    Done,
    /// The observer broke off.
    Interrupted,
}

/// How a resumed run starts.
#[derive(Debug)]
pub enum Resumed {
    /// There was no checkpoint: from the beginning.
    Fresh,
    /// From the last checkpoint.
    At {
        /// Steps already done.
        step: u64,
    },
    /// From the checkpoint before the last, because the last is damaged.
    Fallback {
        /// Steps already done.
        step: u64,
        /// What is wrong with the last.
        damaged: CheckpointError,
    },
}

/// A run.
pub struct Trainer<'a> {
    config: TrainConfig,
    architecture: Architecture,
    data: Data<'a>,
    task: Task,
    device: Device,
    network: Network,
    optimiser: Optimiser,
    method: Box<dyn Method>,
    progress: Progress,
    best: Option<Vec<Parameter>>,
    fingerprint: String,
}

impl<'a> Trainer<'a> {
    /// Checks everything and draws the first parameters.
    pub fn new(
        config: TrainConfig,
        method: &MethodConfig,
        data: Data<'a>,
        device: DeviceName,
    ) -> Result<Self, TrainError> {
        data.check()?;
        config.check(data.targets)?;
        let task = Task::of(data.targets, data.train);
        let architecture = Architecture::Mlp(MlpConfig {
            inputs: data.rows.width(),
            hidden: config.hidden.clone(),
            outputs: task.outputs(),
            dropout: config.dropout,
        });
        let device = device.open()?.autodiff();
        let network = architecture.init(config.seed, &device)?;
        let optimiser = Optimiser::new(config.optimiser, &network, &device.clone().inner());
        let settings = serde_json::to_vec(&(&config, method)).map_err(TrainError::Settings)?;
        let fingerprint =
            blake3::hash(&[data.digest().as_bytes(), &settings[..]].concat()).to_hex().to_string();
        let (method, progress, best) = (method.start()?, Progress::default(), None);
        Ok(Self {
            config,
            architecture,
            data,
            task,
            device,
            network,
            optimiser,
            method,
            progress,
            best,
            fingerprint,
        })
    }

    /// Trains until all epochs are done, patience is over or the observer breaks off. With `checkpoints`, the state is
    /// saved about every `interval` and when the observer breaks off.
    pub fn run(
        &mut self,
        observer: &mut dyn Observer,
        checkpoints: Option<(&CheckpointDir, Duration)>,
    ) -> Result<Finish, TrainError> {
        let mut saved = Instant::now();
        while !self.finished() {
            let mut order = self.data.train.to_vec();
            Stream::new(self.config.seed, Purpose::Order, self.progress.epoch as u64)
                .shuffle(&mut order);
            for rows in order.chunks(self.config.batch_size).skip(self.progress.batch) {
                let flow = self.step(rows, observer)?;
                if self.progress.batch == self.batches() {
                    self.end_epoch(observer)?;
                }
                if let Some((directory, interval)) = checkpoints
                    && (flow.is_break() || saved.elapsed() >= interval)
                {
                    directory.save(&self.checkpoint(observer)?)?;
                    saved = Instant::now();
                }
                if flow.is_break() {
                    return Ok(Finish::Interrupted);
                }
            }
        }
        Ok(Finish::Done)
    }

    /// One batch: losses, weights, gradients, update.
    fn step(
        &mut self,
        rows: &[u32],
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<()>, TrainError> {
        let step = self.progress.step;
        let learning_rate = self.config.schedule.rate(step, self.steps());
        let sources: Vec<u32> = rows.iter().map(|&row| self.data.sources[row as usize]).collect();
        let mut losses = self.forward(rows);
        let seen = host(losses.clone().inner());
        let weights = self.method.weigh(&seen, &sources)?.to_vec();
        let mut counted: Vec<f32> = weights.iter().map(|&weight| weight as f32).collect();

        let finite: Vec<usize> = (0..rows.len()).filter(|&i| seen[i].is_finite()).collect();
        if finite.len() < rows.len() {
            if !all_finite(&self.network) {
                return Err(TrainError::Diverged { step, epoch: self.progress.epoch });
            }
            // A weight of zero does not silence a loss that is NaN: neither 0 · NaN nor its gradient is zero. The rows
            // must go; the mean is still over the whole batch.
            counted = finite.iter().map(|&i| counted[i]).collect();
            losses = self.forward(&finite.iter().map(|&i| rows[i]).collect::<Vec<_>>());
        }
        if !finite.is_empty() {
            let counted = Tensor::from_data(TensorData::new(counted, [finite.len()]), &self.device);
            let loss = (losses * counted).sum() / rows.len() as f32;
            let gradients = gradients(&self.network, &mut loss.backward());
            self.network =
                self.optimiser.step(self.network.clone(), gradients, learning_rate, step + 1);
        }

        for &i in &finite {
            self.progress.tally.0 += f64::from(seen[i]);
        }
        self.progress.tally.1 += finite.len() as u64;
        self.progress.tally.2 += (rows.len() - finite.len()) as u64;
        self.progress.step += 1;
        self.progress.batch += 1;
        Ok(observer.on_step(&Step {
            step,
            steps: self.steps(),
            epoch: self.progress.epoch,
            learning_rate,
            rows,
            losses: &seen,
            weights: &weights,
            sources: &self.sources_of(&seen, &sources),
        }))
    }

    /// Losses of a batch, with gradients and dropout. No row, no losses.
    fn forward(&self, rows: &[u32]) -> Tensor<1> {
        if rows.is_empty() {
            return Tensor::zeros([0], &self.device);
        }
        let mut masks = Stream::new(self.config.seed, Purpose::Dropout, self.progress.step);
        let outputs =
            self.network.forward(features(self.data.rows, rows, &self.device), Some(&mut masks));
        self.config
            .loss
            .per_sample(outputs, self.task.targets(self.data.targets, rows, &self.device))
    }

    /// Validates, and keeps the parameters if they are the best so far.
    fn end_epoch(&mut self, observer: &mut dyn Observer) -> Result<(), TrainError> {
        let (epoch, step) = (self.progress.epoch, self.progress.step);
        let (sum, rows, nonfinite) = std::mem::take(&mut self.progress.tally);
        let valid = self.validate();
        let weight = |source| self.method.standing(source).weight;
        let score = valid.score(weight);
        let lost = rows == 0 || (!self.data.valid.is_empty() && score.is_infinite());
        if lost || !all_finite(&self.network) {
            return Err(TrainError::Diverged { step, epoch });
        }
        let best = match &self.progress.best {
            Some(best) => score < best.score(weight),
            None => score.is_finite(),
        };
        let report = Epoch {
            epoch,
            step,
            train_loss: sum / rows as f64,
            nonfinite,
            valid_loss: Some(score).filter(|score| score.is_finite()),
            valid_loss_unweighted: Some(valid.score(|_| 1.0)).filter(|score| score.is_finite()),
            valid_loss_by_source: valid.means().collect(),
            best,
        };
        if best {
            self.best = Some(read(&self.network));
            self.progress.best = Some(valid);
        }
        self.progress.stale = if best { 0 } else { self.progress.stale + 1 };
        self.progress.epoch += 1;
        self.progress.batch = 0;
        observer.on_epoch(&report);
        self.progress.history.push(report);
        Ok(())
    }

    fn validate(&self) -> SourceLosses {
        let (network, device) = (self.network.valid(), self.device.clone().inner());
        let Data { rows, targets, sources, valid, .. } = self.data;
        let mut found = SourceLosses::default();
        for (&row, loss) in valid.iter().zip(losses(
            &network,
            rows,
            targets,
            &self.task,
            &self.config.loss,
            valid,
            &device,
        )) {
            found.add(sources[row as usize], loss);
        }
        found
    }

    /// Whether there is nothing left to do.
    pub fn finished(&self) -> bool {
        let impatient = !self.data.valid.is_empty() && self.progress.stale >= self.config.patience;
        self.progress.epoch >= self.config.epochs || impatient
    }

    fn batches(&self) -> usize {
        self.data.train.len().div_ceil(self.config.batch_size)
    }

    /// Steps planned.
    pub fn steps(&self) -> u64 {
        (self.batches() * self.config.epochs) as u64
    }

    /// The epochs so far.
    pub fn history(&self) -> &[Epoch] {
        &self.progress.history
    }

    /// The method as it stands.
    pub fn method(&self) -> &dyn Method {
        &*self.method
    }

    /// The model: parameters of the best epoch, or the last ones where nothing was validated.
    pub fn model(&self) -> Result<Model, TrainError> {
        let network = match &self.best {
            Some(best) => write(self.network.clone(), best)?,
            None => self.network.clone(),
        };
        let (architecture, device) = (self.architecture.clone(), self.device.clone().inner());
        Ok(Model::new(architecture, self.task, self.config.loss, network.valid(), device))
    }

    /// Goes on from the last checkpoint in `directory`, if there is one and it is of the same data and configuration.
    pub fn resume(
        &mut self,
        directory: &CheckpointDir,
        observer: &mut dyn Observer,
    ) -> Result<Resumed, TrainError> {
        let Some(found) = directory.load()? else {
            return Ok(Resumed::Fresh);
        };
        let Checkpoint { state, network, optimiser, best, observer: gathered } = found.checkpoint;
        if state.fingerprint != self.fingerprint {
            return Err(TrainError::OtherRun);
        }
        self.network = write(self.network.clone(), &network)?;
        self.optimiser.load(&optimiser, &self.device.clone().inner())?;
        self.method.load(state.method)?;
        if let Some(best) = &best {
            write(self.network.clone(), best)?;
        }
        self.best = best;
        self.progress = state.progress;
        observer.load(&gathered).map_err(TrainError::Observer)?;
        let step = self.progress.step;
        Ok(match found.damaged {
            None => Resumed::At { step },
            Some(damaged) => Resumed::Fallback { step, damaged },
        })
    }

    fn checkpoint(&self, observer: &dyn Observer) -> Result<Checkpoint, TrainError> {
        Ok(Checkpoint {
            state: State::new(self.fingerprint.clone(), self.progress.clone(), self.method.save()?),
            network: read(&self.network),
            optimiser: self.optimiser.save(),
            best: self.best.clone(),
            observer: observer.save(),
        })
    }

    /// Loss and standing of each source of a batch, in order of first appearance.
    fn sources_of(&self, losses: &[f32], sources: &[u32]) -> Vec<SourceStep> {
        let mut place = std::collections::HashMap::new();
        let mut tallies: Vec<(u32, f64, u32)> = Vec::new();
        for (&source, &loss) in sources.iter().zip(losses) {
            let at = *place.entry(source).or_insert_with(|| {
                tallies.push((source, 0.0, 0));
                tallies.len() - 1
            });
            if loss.is_finite() {
                tallies[at].1 += f64::from(loss);
                tallies[at].2 += 1;
            }
        }
        let step = |(source, sum, rows): (u32, f64, u32)| SourceStep {
            source,
            loss: (rows > 0).then(|| sum / f64::from(rows)),
            standing: self.method.standing(source),
        };
        tallies.into_iter().map(step).collect()
    }
}

impl TrainConfig {
    fn check(&self, targets: &Targets) -> Result<(), TrainError> {
        let refuse = |what| Err(TrainError::Config(what));
        let (Schedule::Constant { learning_rate } | Schedule::Cosine { learning_rate }) =
            self.schedule;
        if !(learning_rate > 0.0 && learning_rate.is_finite()) {
            return refuse("the learning rate must be a number above 0");
        }
        if self.batch_size == 0 || self.epochs == 0 || self.patience == 0 {
            return refuse("batch size, epochs and patience must be at least 1");
        }
        let classification = matches!(targets, Targets::Classes { .. });
        if classification != (self.loss == Loss::CrossEntropy) {
            return refuse(
                "cross-entropy goes with classes, squared error and Huber's loss with values",
            );
        }
        if matches!(self.loss, Loss::Huber { delta } if !(delta > 0.0 && delta.is_finite())) {
            return refuse("Huber's delta must be a number above 0");
        }
        let (OptimiserConfig::Sgd { weight_decay, .. } | OptimiserConfig::Adam { weight_decay }) =
            self.optimiser;
        if !(weight_decay >= 0.0 && weight_decay.is_finite()) {
            return refuse("the weight decay must be a number from 0");
        }
        if matches!(self.optimiser, OptimiserConfig::Sgd { momentum, .. } if !(0.0..1.0).contains(&momentum))
        {
            return refuse("the momentum must be from 0 to below 1");
        }
        Ok(())
    }
}
