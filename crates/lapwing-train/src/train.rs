//! The loop: shuffle, weigh, step, validate, keep the best.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::checkpoint::CheckpointDir;
use crate::config::TrainConfig;
use crate::device::DeviceName;
use crate::error::TrainError;
use crate::method::{Method, MethodConfig};
use crate::model::{Model, Task, features, losses};
use crate::network::{Architecture, MlpConfig, Network};
use crate::observer::{Epoch, Observer, SourceStep, Step};
use crate::optimiser::Optimiser;
use crate::parameters::{Parameter, all_finite, gradients, host, read, write};
use crate::random::{Purpose, Stream};
use crate::rows::Data;
use crate::validation::SourceLosses;

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

/// A run.
pub struct Trainer<'a> {
    config: TrainConfig,
    architecture: Architecture,
    data: Data<'a>,
    task: Task,
    pub(crate) device: Device,
    pub(crate) network: Network,
    pub(crate) optimiser: Optimiser,
    pub(crate) method: Box<dyn Method>,
    pub(crate) progress: Progress,
    pub(crate) best: Option<Vec<Parameter>>,
    pub(crate) fingerprint: String,
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
            clip: config.clip,
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
            sources: &SourceStep::of_batch(&seen, &sources, &*self.method),
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
        let (valid, scores) = self.validate();
        let weight = |source| self.method.standing(source).weight;
        let score = scores.mean(weight);
        let lost = rows == 0 || (!self.data.valid.is_empty() && score.is_infinite());
        if lost || !all_finite(&self.network) {
            return Err(TrainError::Diverged { step, epoch });
        }
        let best = match &self.progress.best {
            Some(best) => score < best.mean(weight),
            None => score.is_finite(),
        };
        let report = Epoch {
            epoch,
            step,
            train_loss: sum / rows as f64,
            nonfinite,
            valid_loss: Some(valid.mean(weight)).filter(|loss| loss.is_finite()),
            valid_score: Some(score).filter(|score| score.is_finite()),
            valid_loss_unweighted: Some(valid.mean(|_| 1.0)).filter(|score| score.is_finite()),
            valid_loss_by_source: valid.means().collect(),
            best,
        };
        if best {
            self.best = Some(read(&self.network));
            self.progress.best = Some(scores);
        }
        self.progress.stale = if best { 0 } else { self.progress.stale + 1 };
        self.progress.epoch += 1;
        self.progress.batch = 0;
        observer.on_epoch(&report);
        self.progress.history.push(report);
        Ok(())
    }

    /// Losses of the validation part per source, and what chooses the best epoch: the same, bounded.
    fn validate(&self) -> (SourceLosses, SourceLosses) {
        let (network, device) = (self.network.valid(), self.device.clone().inner());
        let Data { rows, targets, sources, valid, .. } = self.data;
        let (mut plain, mut bounded) = (SourceLosses::default(), SourceLosses::default());
        for (&row, loss) in valid.iter().zip(losses(
            &network,
            rows,
            targets,
            &self.task,
            &self.config.loss,
            valid,
            &device,
        )) {
            plain.add(sources[row as usize], loss);
            bounded.add(sources[row as usize], self.config.loss.bounded(loss));
        }
        (plain, bounded)
    }

    /// Whether there is nothing left to do.
    pub fn finished(&self) -> bool {
        let impatient = !self.data.valid.is_empty() && self.progress.stale >= self.config.patience;
        self.progress.epoch >= self.config.epochs || impatient
    }

    /// Batches per epoch.
    pub(crate) fn batches(&self) -> usize {
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
}
