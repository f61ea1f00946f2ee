//! A network and its optimiser: everything a method does with them.

use std::ops::Range;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use lapwing_core::{BatchSums, PeerError, Peers, gather_messages};
use lapwing_sample::{Data, Draws, Loss, Matrix, TargetSpec, Task, View};

use crate::agreement::BatchFacts;
use crate::batch::{Batch, Part};
use crate::config::TrainConfig;
use crate::error::TrainError;
use crate::loss::per_sample;
use crate::method::{MethodError, Observed};
use crate::model::{BATCH, Model, losses, outputs};
use crate::moments::{self, Moments};
use crate::network::{Architecture, Forward, Input, Network, Outputs, Touched, Training};
use crate::optimiser::{Optimiser, Pace};
use crate::parameters::{Gradient, absorb, all_finite, gradients, read, to_vec, write};
use crate::random::Purpose;
use crate::saved::Saved;
use crate::shards::Workers;

/// A network that learns, with its optimiser and the data it learns from.
pub struct Learner<'a> {
    pub(crate) data: Data<'a>,
    /// The rows that are trained on: those of the data but for blocked sources.
    pub(crate) train: Arc<[u32]>,
    pub(crate) target: TargetSpec,
    pub(crate) network: Network,
    pub(crate) optimiser: Optimiser,
    architecture: Architecture,
    loss: Loss,
    seed: u64,
    /// Tells the networks of one run apart.
    number: u64,
    pub(crate) device: Device,
    /// This worker and those that train the same network on other parts of each batch.
    pub(crate) workers: Workers<'a>,
    /// What the whole batch of the last pass says of each source; `None` where this worker had all of it.
    pub(crate) sums: Option<Arc<BatchSums<u32>>>,
}

/// A batch on its way through the network, or the part of it that is this worker's.
#[derive(Debug)]
pub struct Pass {
    /// The loss of each row; may be NaN or infinite.
    pub seen: Vec<f32>,
    /// Its shards that have rows; one, unless there are several of a batch.
    pub shards: Vec<ShardPass>,
    /// Rows of the whole batch, of which other workers may have parts: what a mean is divided by.
    pub rows: usize,
    /// Whether any row of the whole batch has a finite loss; otherwise there is nothing to learn.
    any_finite: bool,
    /// What the whole batch says of each source; `None` where this worker has all of it.
    sums: Option<Arc<BatchSums<u32>>>,
    /// Where the rows of each shard are.
    ranges: Vec<Range<usize>>,
}

/// A shard of a batch on its way through the network.
#[derive(Debug)]
pub struct ShardPass {
    /// Where its rows are among those of the batch.
    pub rows: Range<usize>,
    /// The loss of each row with gradients; rows whose loss is not finite are replaced by rows of zeros.
    pub losses: Tensor<1>,
    /// The outputs behind the losses.
    pub outputs: Tensor<2>,
    /// What the last layer saw, where the network has a layer before it.
    pub(crate) features: Option<Tensor<2>>,
    shard: usize,
    moments: Vec<Moments>,
    /// Those of further inputs that went through the network for this pass.
    further: Vec<Vec<Moments>>,
    touched: Vec<Touched>,
}

impl Pass {
    /// Σ weight · loss / divisor of each shard, with gradients. A row whose loss is not finite counts for nothing,
    /// whatever it weighs.
    pub fn sum(
        &self,
        mut losses: impl FnMut(&ShardPass) -> Tensor<1>,
        weights: &[f64],
        divisor: usize,
    ) -> Vec<Tensor<1>> {
        let sum = |shard: &ShardPass| {
            let (seen, weights) = (&self.seen[shard.rows.clone()], &weights[shard.rows.clone()]);
            let counted = seen.iter().zip(weights);
            let counted =
                counted.map(|(loss, &weight)| if loss.is_finite() { weight as f32 } else { 0.0 });
            let counted = TensorData::new(counted.collect::<Vec<f32>>(), [weights.len()]);
            let losses = losses(shard);
            (losses.clone() * Tensor::from_data(counted, &losses.device())).sum() / divisor as f32
        };
        self.shards.iter().map(sum).collect()
    }

    /// The mean over the batch of weight · loss, as a sum over shards.
    pub fn mean(&self, weights: &[f64]) -> Vec<Tensor<1>> {
        self.sum(|shard| shard.losses.clone(), weights, self.rows)
    }

    /// The batch as plain numbers; `outputs` fetches [those of the network](Self::outputs_on_host).
    pub fn observed<'b>(
        &'b self,
        batch: &'b Batch,
        outputs: &'b dyn Fn() -> Vec<f32>,
    ) -> Observed<'b> {
        let Batch { step, epoch, rows, sources, labels, .. } = batch;
        let plain = Observed::new(&self.seen, sources).with_outputs(outputs);
        let (sums, shards) = (self.sums.as_deref(), &self.ranges[..]);
        Observed { step: *step, epoch: *epoch, rows, labels, sums, shards, ..plain }
    }

    /// The outputs behind the losses, row after row.
    pub fn outputs_on_host(&self) -> Vec<f32> {
        self.shards.iter().flat_map(|shard| to_vec(shard.outputs.clone().inner())).collect()
    }
}

impl<'a> Learner<'a> {
    pub(crate) fn new(
        config: &TrainConfig,
        data: Data<'a>,
        train: Arc<[u32]>,
        device: &Device,
        workers: Workers<'a>,
    ) -> Result<Self, TrainError> {
        let target = data.targets.spec(&train);
        Self::numbered(config, (data, train, target), 0, device, workers)
    }

    /// Another network of the same kind on the same data, with other first parameters.
    pub(crate) fn another(&self, config: &TrainConfig, number: u64) -> Result<Self, TrainError> {
        let data = (self.data, self.train.clone(), self.target);
        Self::numbered(config, data, number, &self.device, self.workers)
    }

    fn numbered(
        config: &TrainConfig,
        (data, train, target): (Data<'a>, Arc<[u32]>, TargetSpec),
        number: u64,
        device: &Device,
        workers: Workers<'a>,
    ) -> Result<Self, TrainError> {
        let network = config.architecture.init(config.seed, number, device)?;
        let optimiser = Optimiser::new(config.optimiser, &network);
        Ok(Self {
            data,
            train,
            target,
            network,
            optimiser,
            architecture: config.architecture.clone(),
            loss: config.loss,
            seed: config.seed,
            number,
            device: device.clone(),
            workers,
            sums: None,
        })
    }

    /// The rows that are trained on, those of blocked sources left out.
    pub fn train(&self) -> &[u32] {
        &self.train
    }

    /// The source of each row of the data.
    pub fn sources(&self) -> &'a [u32] {
        self.data.sources
    }

    /// The workers that train the same network on other parts of each batch.
    pub fn peers(&self) -> &'a dyn Peers {
        self.workers.peers
    }

    /// What is learnt.
    pub fn task(&self) -> Task {
        self.target.task()
    }

    /// Sends a batch through the network, with dropout and what else training does. All workers do so together.
    pub fn forward(&mut self, batch: &Batch) -> Result<Pass, TrainError> {
        let pass = |part: &Part| self.pass(batch.step, part, &part.input);
        let (seen, mut shards): (Vec<Vec<f32>>, Vec<ShardPass>) =
            batch.parts.iter().map(pass).unzip();
        let seen = seen.concat();
        let poisoned = seen.iter().any(|loss| !loss.is_finite());
        let facts = BatchFacts {
            rows: batch.len() as u64,
            any_finite: seen.iter().any(|loss| loss.is_finite()),
            diverged: poisoned && !all_finite(&self.network),
        };
        let (whole, sums) = self.agree(batch, facts, &seen).map_err(MethodError::from)?;
        if whole.diverged {
            return Err(TrainError::Diverged { step: batch.step, epoch: batch.epoch });
        }
        for (shard, part) in shards.iter_mut().zip(&batch.parts) {
            // A weight of zero does not silence a loss that is NaN: neither 0 · NaN nor its gradient is zero. The rows
            // must go; the mean is still over the whole batch.
            let kept: Vec<bool> =
                seen[part.rows.clone()].iter().map(|loss| loss.is_finite()).collect();
            if kept.contains(&false) {
                *shard = self.pass(batch.step, part, &part.input.only(&kept)).1;
            }
        }
        let ranges = batch.parts.iter().map(|part| part.rows.clone()).collect();
        let (rows, any_finite) = (whole.rows as usize, whole.any_finite);
        self.sums = sums.map(Arc::new);
        Ok(Pass { seen, shards, rows, any_finite, sums: self.sums.clone(), ranges })
    }

    /// What is known of the whole batch, and what it says of each source: summed up shard by shard and merged in their
    /// order, so that it leaves no trace who had which.
    fn agree(
        &self,
        batch: &Batch,
        own: BatchFacts,
        seen: &[f32],
    ) -> Result<(BatchFacts, Option<BatchSums<u32>>), PeerError> {
        if self.workers.is_one() {
            return Ok((own, None));
        }
        let peers = self.workers.peers;
        let sums = |part: &Part| {
            let mut sums = BatchSums::new();
            let rows = batch.sources[part.rows.clone()].iter().zip(&seen[part.rows.clone()]);
            rows.for_each(|(source, &loss)| sums.add(source, f64::from(loss)));
            sums
        };
        let parts = batch.parts.iter().map(sums).collect();
        let mut messages = vec![own.message()];
        messages.extend(BatchSums::messages(parts, batch.step, peers.rank())?);
        let (mut facts, mut sums, mut before) = (BatchFacts::none(), BatchSums::new(), None);
        for message in gather_messages(peers, &messages)? {
            // The first of every worker are the facts.
            match before.replace(message.0) == Some(message.0) {
                true => sums.merge_message(&message, batch.step)?,
                false => facts.merge(message.0, &message.1)?,
            }
        }
        Ok((facts, Some(sums)))
    }

    fn pass(&self, step: u64, part: &Part, input: &Input) -> (Vec<f32>, ShardPass) {
        // Networks of a run are few, so that the upper half of their number is free for that of the shard.
        let number = self.number | (part.shard as u64) << 32;
        let masks = Draws::of(self.seed, Purpose::Dropout, number, step);
        let mut training = Training::new(masks);
        let Outputs { logits: outputs, embedding: features } =
            self.network.forward(input, Some(&mut training));
        let losses = per_sample(&self.loss, outputs.clone(), part.targets.clone());
        let seen = to_vec(losses.clone().inner());
        let Training { moments, touched, .. } = training;
        let (rows, shard) = (part.rows.clone(), part.shard);
        let further = Vec::new();
        (seen, ShardPass { rows, losses, outputs, features, shard, moments, further, touched })
    }

    /// What the last layer sees of a further input of the same step, as in training; its statistics go into the running
    /// averages behind those of the pass when that is learnt from. Nothing where the network has but one layer.
    pub(crate) fn features(
        &self,
        shard: &mut ShardPass,
        step: u64,
        input: &Input,
    ) -> Option<Tensor<2>> {
        // Behind the numbers of shards, which are few.
        let number = self.number | (1 + shard.further.len() as u64) << 56;
        let masks = Draws::of(self.seed, Purpose::Dropout, number, step);
        let mut training = Training::new(masks);
        let Outputs { embedding, .. } = self.network.forward(input, Some(&mut training));
        shard.further.push(training.moments);
        embedding
    }

    /// Logits of rows, row after row, and their embeddings by the network's further head, as in validation.
    pub(crate) fn projections(&self, rows: &[u32]) -> Result<(Vec<f32>, Vec<f32>), TrainError> {
        let (network, device) = (self.network.valid(), self.device.clone().inner());
        let (mut logits, mut embeddings) = (Vec::new(), Vec::new());
        for rows in rows.chunks(BATCH) {
            let input = Input::gather(self.data.samples, rows, View::Plain, &device)?;
            let found = network.forward(&input, None);
            let projected = found.embedding.and_then(|features| network.project(features));
            logits.extend(to_vec(found.logits));
            embeddings.extend(projected.map(|p| to_vec(p.embedding)).unwrap_or_default());
        }
        Ok((logits, embeddings))
    }

    /// The gradient of a loss of the pass for every parameter that is learnt, in the network's order. The loss is a sum
    /// over shards, and so is the gradient; all workers add up theirs together.
    pub fn gradients(
        &self,
        pass: &Pass,
        loss: Vec<Tensor<1>>,
    ) -> Result<Vec<Gradient>, TrainError> {
        let mut backward = pass.shards.iter().zip(loss).map(|(shard, loss)| {
            let found = gradients(&self.network, &shard.touched, &mut loss.backward());
            (shard.shard, found)
        });
        if self.workers.is_one() {
            return Ok(backward.next().map_or_else(Vec::new, |(_, gradients)| gradients));
        }
        let sizes = self.optimiser.sizes();
        let length = sizes.iter().sum();
        let mut backward = backward.peekable();
        let sum = self.workers.sum(length, |shard| {
            // Shards are asked for from left to right; one without rows has nothing to say.
            match backward.next_if(|(own, _)| *own == shard) {
                Some((_, gradients)) => flat(gradients, length),
                None => vec![0.0; length],
            }
        });
        let sum = sum.map_err(MethodError::from)?;
        let device = self.device.clone().inner();
        let mut rest = &sum[..];
        let whole = |&size: &usize| {
            let (own, behind) = rest.split_at(size);
            rest = behind;
            Gradient::Whole(Tensor::from_data(TensorData::new(own.to_vec(), [size]), &device))
        };
        Ok(sizes.iter().map(whole).collect())
    }

    /// Moves the parameters against these gradients of the pass; not where no row of it had a finite loss.
    pub fn update(
        &mut self,
        pass: Pass,
        gradients: Vec<Gradient>,
        pace: Pace,
    ) -> Result<(), TrainError> {
        if !pass.any_finite {
            return Ok(());
        }
        // The pass goes, so that nobody else holds what the step changes in place.
        let (mut shards, further): (Vec<Vec<Moments>>, Vec<Vec<Vec<Moments>>>) =
            pass.shards.into_iter().map(|shard| (shard.moments, shard.further)).unzip();
        let moments = match self.workers.is_one() {
            true => shards.pop().unwrap_or_default(),
            false => {
                let shards: Vec<&[Moments]> = shards.iter().map(Vec::as_slice).collect();
                moments::merged(&self.network, &shards, self.workers, &self.device)
                    .map_err(MethodError::from)?
            }
        };
        let network = std::mem::replace(&mut self.network, Network::none());
        let network = absorb(self.optimiser.step(network, gradients, pace), moments);
        self.network = further.into_iter().flatten().fold(network, absorb);
        Ok(())
    }

    /// Moves the parameters against the gradient of a loss of the pass.
    pub fn descend(
        &mut self,
        pass: Pass,
        loss: Vec<Tensor<1>>,
        pace: Pace,
    ) -> Result<(), TrainError> {
        let gradients = self.gradients(&pass, loss)?;
        self.update(pass, gradients, pace)
    }

    /// The loss of each row, as in validation. Workers share the rows; all of them must ask.
    pub fn losses(&self, rows: &[u32]) -> Result<Vec<f32>, TrainError> {
        let (network, device) = (self.network.valid(), self.device.clone().inner());
        let Data { samples, targets, .. } = self.data;
        let losses = |rows: &[u32]| {
            losses(&network, (samples, targets), (&self.target, &self.loss), rows, &device)
        };
        if self.workers.peers.count() == 1 {
            return Ok(losses(rows)?);
        }
        // Whole passes through the network, so that each is what it would be without the others.
        let own = self.workers.share(rows.len().div_ceil(BATCH));
        let within = |batch: usize| (batch * BATCH).min(rows.len());
        let found = losses(&rows[within(own.start)..within(own.end)])?;
        let bytes: Vec<u8> = found.into_iter().flat_map(f32::to_le_bytes).collect();
        let all = self.workers.peers.gather(&bytes).map_err(MethodError::from)?.concat();
        let number = |bytes: &[u8]| bytes.try_into().map_or(f32::NAN, f32::from_le_bytes);
        let all: Vec<f32> = all.chunks_exact(4).map(number).collect();
        if all.len() != rows.len() {
            let (rank, found, expected) = (self.workers.peers.rank(), all.len(), rows.len());
            return Err(MethodError::from(PeerError::Length { rank, found, expected }).into());
        }
        Ok(all)
    }

    /// The outputs of each row, as in validation, row after row.
    pub fn outputs(&self, rows: &[u32]) -> Result<Vec<f32>, TrainError> {
        let device = self.device.clone().inner();
        Ok(outputs(&self.network.valid(), self.data.samples, rows, &device)?)
    }

    /// What the last layer sees of each row, as in validation; nothing where the network has but one layer.
    pub fn embeddings(&self, rows: &[u32]) -> Result<Option<Matrix>, TrainError> {
        let found = self.model().embeddings(self.data.samples, rows);
        Ok(found.map_err(|error| MethodError::Other(error.to_string()))?)
    }

    /// Whether every parameter is a finite number.
    pub(crate) fn is_finite(&self) -> bool {
        all_finite(&self.network)
    }

    /// The network as it stands, to predict with.
    pub(crate) fn model(&self) -> Model {
        self.model_of(self.network.valid())
    }

    /// A network of the same kind, to predict with.
    pub(crate) fn model_of(&self, network: Network) -> Model {
        let (architecture, device) = (self.architecture.clone(), self.device.clone().inner());
        Model::new(architecture, self.target, self.loss, network, device)
    }

    pub(crate) fn save(&self) -> Saved {
        let network = Saved { arrays: read(&self.network), ..Saved::default() };
        Saved::default().with("network", network).with("optimiser", self.optimiser.save())
    }

    pub(crate) fn load(&mut self, saved: &Saved) -> Result<(), TrainError> {
        self.network = write(self.network.clone(), &saved.part("network").arrays)?;
        self.optimiser.load(&saved.part("optimiser"), &self.device.clone().inner())?;
        Ok(())
    }
}

/// Gradients one behind the other.
fn flat(gradients: Vec<Gradient>, length: usize) -> Vec<f32> {
    let mut numbers = Vec::with_capacity(length);
    for gradient in gradients {
        match gradient {
            Gradient::Whole(gradient) => numbers.extend(to_vec(gradient)),
            Gradient::Rows { .. } => {
                unreachable!("texts in shards are refused before the first step")
            }
        }
    }
    numbers
}
