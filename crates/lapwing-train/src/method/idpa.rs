//! IDPA: labels that are wrong with a probability of their own. After ordinary training, as many epochs again learn from
//! labels mixed with what the network says, and the probability that a label is wrong follows.
//!
//! For a row with label y, ψ is the probability that the first training ended up giving to y, and η how probable it is
//! that y is wrong. Then r(c) = [c = y](1 − η) + ψη is how well class c explains the label, and the network learns
//! p(c) ∝ r(c) · its own probability of c.

use burn::tensor::activation::log_softmax;
use burn::tensor::{Tensor, TensorData};
use lapwing_sample::probability;

use super::{
    Audience, Guards, Method, MethodConfig, MethodError, MethodKind, Parameter, Range, Seen, Start,
    Weighs,
};
use crate::batch::Batch;
use crate::error::TrainError;
use crate::learner::{Learner, ShardPass};
use crate::parameters::{self, find, to_vec};
use crate::saved::Saved;

/// Least r(c), and least η that a step of η is divided by.
const LEAST: f64 = 1e-5;

const FIRST: Parameter = Parameter {
    name: "first",
    value_name: "P",
    about: "probability that a label is wrong, to begin with",
    default: Some(0.01),
    range: Range::Within(0.0, 1.0),
    audience: Audience::Recipes,
};
const STEP: Parameter = Parameter {
    name: "step",
    value_name: "RATE",
    about: "how fast the probability that a label is wrong moves",
    default: Some(0.05),
    range: Range::AtLeast(0.0),
    audience: Audience::Recipes,
};

#[derive(Debug)]
pub(super) struct Kind;

impl MethodKind for Kind {
    fn name(&self) -> &'static str {
        "idpa"
    }

    fn about(&self) -> &'static str {
        "As many epochs again, with labels corrected row by row (classification)"
    }

    fn sentence(&self, _: &MethodConfig) -> String {
        "as many epochs again, in which labels are corrected by what the network says".to_owned()
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[FIRST, STEP]
    }

    fn needs_classes(&self) -> bool {
        true
    }

    fn weighs(&self) -> Weighs {
        Weighs::Rows
    }

    fn epochs(&self, planned: usize) -> usize {
        planned.saturating_mul(2)
    }

    fn start<'a>(&self, start: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError> {
        Ok(Box::new(Idpa::new(start)))
    }
}

#[derive(Debug)]
pub(super) struct Idpa {
    rate: f64,
    /// Epochs of each of the two phases.
    epochs: usize,
    batch_size: usize,
    /// By row of the data; 0 for rows that do not train, and for all in the first phase.
    psi: Vec<f32>,
    /// By row of the data. Of a trusted source it is 0 and stays there: its labels are right.
    eta: Vec<f32>,
    guards: Guards,
}

impl Idpa {
    pub(super) fn new(start: Start<'_, '_>) -> Self {
        let (guards, data) = (start.method.guards().clone(), &start.learner.data);
        let first = start.method.number(&FIRST) as f32;
        let eta =
            data.sources.iter().map(|&source| if guards.trusts(source) { 0.0 } else { first });
        Self {
            rate: start.method.number(&STEP),
            epochs: start.config.epochs,
            batch_size: start.config.batch_size,
            psi: vec![0.0; data.sources.len()],
            eta: eta.collect(),
            guards,
        }
    }

    /// What the network learns for a row: p, from its own logarithms of probabilities.
    fn mixed(&self, row: usize, label: usize, log_probabilities: &[f32]) -> Vec<f64> {
        let (psi, eta) = (f64::from(self.psi[row]), f64::from(self.eta[row]));
        let weigh = |(class, &q): (usize, &f32)| {
            let given = if class == label { 1.0 - eta } else { 0.0 };
            (given + psi * eta).max(LEAST) * f64::from(q).exp()
        };
        let mut mixed: Vec<f64> = log_probabilities.iter().enumerate().map(weigh).collect();
        let sum: f64 = mixed.iter().sum();
        mixed.iter_mut().for_each(|p| *p /= sum);
        mixed
    }

    /// Moves η of a row towards what p says.
    fn doubt(&mut self, row: usize, label: usize, mixed: &[f64]) {
        let (psi, eta) = (f64::from(self.psi[row]), f64::from(self.eta[row]));
        let slope = 1.0 + mixed[label] * (psi * eta - eta - 1.0);
        self.eta[row] = (eta + self.rate * slope / eta.max(LEAST)).clamp(0.0, 1.0) as f32;
    }
}

impl Method for Idpa {
    fn step(&mut self, learner: &mut Learner<'_>, batch: &Batch) -> Result<Seen, TrainError> {
        let pass = learner.forward(batch)?;
        let (seen, weights) = (pass.seen.clone(), vec![1.0; batch.len()]);
        if batch.epoch < self.epochs {
            let loss = pass.mean(&weights);
            learner.descend(pass, loss, batch.pace)?;
            return Ok(Seen { losses: seen, weights });
        }
        let doubtful = |shard: &ShardPass| {
            let q = log_softmax(shard.outputs.clone(), 1);
            let [rows, classes] = q.dims();
            let said = to_vec(q.clone().inner());
            let mut learnt = Vec::with_capacity(rows * classes);
            for (place, said) in shard.rows.clone().zip(said.chunks_exact(classes)) {
                let (row, label) = (batch.rows[place] as usize, batch.labels[place] as usize);
                let mixed = self.mixed(row, label, said);
                let doubted = !self.guards.trusts(batch.sources[place]);
                if batch.epoch > self.epochs && seen[place].is_finite() && doubted {
                    self.doubt(row, label, &mixed);
                }
                learnt.extend(mixed.into_iter().map(|p| p as f32));
            }
            let learnt = Tensor::from_data(TensorData::new(learnt, [rows, classes]), &q.device());
            (learnt * q).sum_dim(1).reshape([-1]).neg()
        };
        let loss = pass.sum(doubtful, &weights, pass.rows);
        learner.descend(pass, loss, batch.pace)?;
        Ok(Seen { losses: seen, weights })
    }

    fn is_candidate(&self, epoch: usize) -> bool {
        epoch >= self.epochs
    }

    fn end_epoch(&mut self, learner: &mut Learner<'_>, epoch: usize) -> Result<(), TrainError> {
        if epoch + 1 == self.epochs {
            let data = learner.data;
            for (place, rows) in learner.train.chunks(self.batch_size).enumerate() {
                // Noise of a batch is drawn by its step: this one is of no step.
                let labels = data.labels(u64::MAX - place as u64, rows)?;
                let outputs = learner.outputs(rows)?;
                let classes = outputs.len() / rows.len();
                for ((&row, label), outputs) in
                    rows.iter().zip(labels).zip(outputs.chunks_exact(classes))
                {
                    let psi = probability(outputs, label as usize);
                    self.psi[row as usize] = if psi.is_finite() { psi as f32 } else { 0.0 };
                }
            }
        }
        Ok(())
    }

    fn save(&self) -> Result<Saved, MethodError> {
        let array = |name: &str, values: &Vec<f32>| parameters::Parameter {
            name: name.to_owned(),
            shape: vec![values.len()],
            values: values.clone(),
        };
        let arrays = vec![array("psi", &self.psi), array("eta", &self.eta)];
        Ok(Saved { arrays, ..Saved::default() })
    }

    fn load(&mut self, saved: &Saved) -> Result<(), TrainError> {
        let shape = [self.psi.len()];
        self.psi = find(&saved.arrays, "psi", &shape)?.values.clone();
        self.eta = find(&saved.arrays, "eta", &shape)?.values.clone();
        Ok(())
    }
}
