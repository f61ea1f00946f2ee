//! Label smoothing: part of every label goes to all classes alike, so that no row can ask for certainty.

use burn::tensor::activation::log_softmax;
use lapwing_sample::Task;

use super::{Method, MethodError, Seen};
use crate::batch::Batch;
use crate::error::TrainError;
use crate::learner::Learner;

#[derive(Debug)]
pub(crate) struct LabelSmoothing {
    rate: f64,
}

impl LabelSmoothing {
    pub(crate) fn new(rate: f64, task: Task) -> Result<Self, MethodError> {
        if task != Task::Classification {
            return Err(MethodError::NeedsClasses("label smoothing"));
        }
        if !(0.0..=1.0).contains(&rate) {
            return Err(MethodError::Parameter("the smoothing rate must be from 0 to 1"));
        }
        Ok(Self { rate })
    }
}

impl Method for LabelSmoothing {
    /// The loss is (1 − rate) · cross-entropy + rate · the mean cross-entropy over all classes.
    fn step(&mut self, learner: &mut Learner<'_>, batch: &Batch) -> Result<Seen, TrainError> {
        let pass = learner.forward(batch)?;
        let (seen, weights) = (pass.seen.clone(), vec![1.0; batch.len()]);
        let over_classes = log_softmax(pass.outputs.clone(), 1).mean_dim(1).reshape([-1]).neg();
        let losses =
            pass.losses.clone().mul_scalar(1.0 - self.rate) + over_classes.mul_scalar(self.rate);
        let loss = pass.sum(losses, &weights, batch.len());
        learner.descend(pass, loss, batch.pace);
        Ok(Seen { losses: seen, weights })
    }
}
