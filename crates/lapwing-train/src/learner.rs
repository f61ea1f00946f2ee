//! A network and its optimiser: everything a method does with them.

use std::sync::Arc;

use burn::module::{Module, ParamId};
use burn::tensor::{Device, Tensor, TensorData};
use lapwing_core::Peers;
use lapwing_sample::{Data, Draws, Loss, Matrix, TargetSpec, Task};

use crate::agreement::BatchFacts;
use crate::batch::Batch;
use crate::config::TrainConfig;
use crate::error::TrainError;
use crate::loss::per_sample;
use crate::method::{MethodError, Observed};
use crate::model::{Model, losses, outputs};
use crate::network::{Architecture, Forward, Input, Network, Outputs, Touched, Training};
use crate::optimiser::{Optimiser, Pace};
use crate::parameters::{Gradient, absorb, all_finite, gradients, read, to_vec, write};
use crate::random::Purpose;
use crate::saved::Saved;

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
    /// The workers that train the same network on other parts of each batch.
    pub(crate) peers: &'a dyn Peers,
}

/// A batch on its way through the network.
#[derive(Debug)]
pub struct Pass {
    /// The loss of each row; may be NaN or infinite.
    pub seen: Vec<f32>,
    /// The same with gradients; rows whose loss is not finite are replaced by rows of zeros.
    pub losses: Tensor<1>,
    /// The outputs behind the losses.
    pub outputs: Tensor<2>,
    /// Rows of the whole batch, of which other workers may have parts: what a mean is divided by.
    pub rows: usize,
    /// Whether any row of the whole batch has a finite loss; otherwise there is nothing to learn.
    any_finite: bool,
    statistics: Vec<(ParamId, Tensor<1>)>,
    touched: Vec<Touched>,
}

impl Pass {
    /// Σ weight · loss / divisor, with gradients. A row whose loss is not finite counts for nothing, whatever it weighs.
    pub fn sum(&self, losses: Tensor<1>, weights: &[f64], divisor: usize) -> Tensor<1> {
        let counted = self.seen.iter().zip(weights);
        let counted =
            counted.map(|(loss, &weight)| if loss.is_finite() { weight as f32 } else { 0.0 });
        let counted = TensorData::new(counted.collect::<Vec<f32>>(), [weights.len()]);
        (losses.clone() * Tensor::from_data(counted, &losses.device())).sum() / divisor as f32
    }

    /// The mean over the batch of weight · loss.
    pub fn mean(&self, weights: &[f64]) -> Tensor<1> {
        self.sum(self.losses.clone(), weights, self.rows)
    }

    /// The batch as plain numbers; `outputs` fetches [those of the network](Self::outputs_on_host).
    pub fn observed<'b>(
        &'b self,
        batch: &'b Batch,
        outputs: &'b dyn Fn() -> Vec<f32>,
    ) -> Observed<'b> {
        let Batch { step, epoch, rows, sources, labels, .. } = batch;
        let plain = Observed::new(&self.seen, sources).with_outputs(outputs);
        Observed { step: *step, epoch: *epoch, rows, labels, ..plain }
    }

    /// The outputs behind the losses, row after row.
    pub fn outputs_on_host(&self) -> Vec<f32> {
        to_vec(self.outputs.clone().inner())
    }
}

impl<'a> Learner<'a> {
    pub(crate) fn new(
        config: &TrainConfig,
        data: Data<'a>,
        train: Arc<[u32]>,
        device: &Device,
        peers: &'a dyn Peers,
    ) -> Result<Self, TrainError> {
        let target = data.targets.spec(&train);
        Self::numbered(config, (data, train, target), 0, device, peers)
    }

    /// Another network of the same kind on the same data, with other first parameters.
    pub(crate) fn another(&self, config: &TrainConfig, number: u64) -> Result<Self, TrainError> {
        let data = (self.data, self.train.clone(), self.target);
        Self::numbered(config, data, number, &self.device, self.peers)
    }

    fn numbered(
        config: &TrainConfig,
        (data, train, target): (Data<'a>, Arc<[u32]>, TargetSpec),
        number: u64,
        device: &Device,
        peers: &'a dyn Peers,
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
            peers,
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
        self.peers
    }

    /// What is learnt.
    pub fn task(&self) -> Task {
        self.target.task()
    }

    /// Sends a batch through the network, with dropout and what else training does.
    pub fn forward(&self, batch: &Batch) -> Result<Pass, TrainError> {
        let mut pass = self.pass(batch, &batch.input);
        let poisoned = pass.seen.iter().any(|loss| !loss.is_finite());
        let facts = BatchFacts {
            rows: batch.len() as u64,
            any_finite: pass.seen.iter().any(|loss| loss.is_finite()),
            diverged: poisoned && !all_finite(&self.network),
        };
        let whole = facts.among(self.peers).map_err(MethodError::from)?;
        if whole.diverged {
            return Err(TrainError::Diverged { step: batch.step, epoch: batch.epoch });
        }
        if poisoned {
            // A weight of zero does not silence a loss that is NaN: neither 0 · NaN nor its gradient is zero. The rows
            // must go; the mean is still over the whole batch.
            let kept: Vec<bool> = pass.seen.iter().map(|loss| loss.is_finite()).collect();
            pass = Pass { seen: pass.seen, ..self.pass(batch, &batch.input.only(&kept)) };
        }
        (pass.rows, pass.any_finite) = (whole.rows as usize, whole.any_finite);
        Ok(pass)
    }

    fn pass(&self, batch: &Batch, input: &Input) -> Pass {
        let masks = Draws::of(self.seed, Purpose::Dropout, self.number, batch.step);
        let mut training = Training::new(masks);
        let Outputs { logits: outputs, .. } = self.network.forward(input, Some(&mut training));
        let losses = per_sample(&self.loss, outputs.clone(), batch.targets.clone());
        let seen = to_vec(losses.clone().inner());
        let (rows, any_finite) = (batch.len(), true);
        let Training { statistics, touched, .. } = training;
        Pass { seen, losses, outputs, rows, any_finite, statistics, touched }
    }

    /// The gradient of a loss of the pass for every parameter that is learnt, in the network's order.
    pub fn gradients(&self, pass: &Pass, loss: Tensor<1>) -> Vec<Gradient> {
        gradients(&self.network, &pass.touched, &mut loss.backward())
    }

    /// Moves the parameters against these gradients of the pass; not where no row of it had a finite loss.
    pub fn update(&mut self, pass: Pass, gradients: Vec<Gradient>, pace: Pace) {
        if pass.any_finite {
            let Pass { losses, outputs, statistics, touched, .. } = pass;
            drop((losses, outputs, touched));
            let network = std::mem::replace(&mut self.network, Network::none());
            self.network = absorb(self.optimiser.step(network, gradients, pace), statistics);
        }
    }

    /// Moves the parameters against the gradient of a loss of the pass.
    pub fn descend(&mut self, pass: Pass, loss: Tensor<1>, pace: Pace) {
        let gradients = self.gradients(&pass, loss);
        self.update(pass, gradients, pace);
    }

    /// The loss of each row, as in validation.
    pub fn losses(&self, rows: &[u32]) -> Result<Vec<f32>, TrainError> {
        let (network, device) = (self.network.valid(), self.device.clone().inner());
        let Data { samples, targets, .. } = self.data;
        Ok(losses(&network, (samples, targets), (&self.target, &self.loss), rows, &device)?)
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
