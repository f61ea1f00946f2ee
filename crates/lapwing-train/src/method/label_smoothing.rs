//! Label smoothing: part of every label goes to all classes alike, so that no row can ask for certainty.

use burn::tensor::activation::log_softmax;

use super::{Audience, Method, MethodConfig, MethodKind, Parameter, Range, Seen, Start};
use crate::batch::Batch;
use crate::error::TrainError;
use crate::learner::{Learner, ShardPass};

const SMOOTHING: Parameter = Parameter {
    name: "smoothing",
    value_name: "PART",
    about: "part of every label that goes to all classes alike",
    default: Some(0.1),
    range: Range::Within(0.0, 1.0),
    audience: Audience::Everybody,
};

#[derive(Debug)]
pub(super) struct Kind;

impl MethodKind for Kind {
    fn name(&self) -> &'static str {
        "label-smoothing"
    }

    fn about(&self) -> &'static str {
        "Part of every label goes to all classes alike (classification)"
    }

    fn sentence(&self, method: &MethodConfig) -> String {
        let rate = method.number(&SMOOTHING);
        format!("{rate} of every label goes to all classes; all sources count the same")
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[SMOOTHING]
    }

    fn needs_classes(&self) -> bool {
        true
    }

    fn runs_in_shards(&self) -> bool {
        true
    }

    fn start<'a>(&self, start: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError> {
        Ok(Box::new(LabelSmoothing { rate: start.method.number(&SMOOTHING) }))
    }
}

#[derive(Debug)]
pub(super) struct LabelSmoothing {
    pub(super) rate: f64,
}

impl Method for LabelSmoothing {
    /// The loss is (1 − rate) · cross-entropy + rate · the mean cross-entropy over all classes.
    fn step(&mut self, learner: &mut Learner<'_>, batch: &Batch) -> Result<Seen, TrainError> {
        let pass = learner.forward(batch)?;
        let (seen, weights) = (pass.seen.clone(), vec![1.0; batch.len()]);
        let smoothed = |shard: &ShardPass| {
            let over_classes =
                log_softmax(shard.outputs.clone(), 1).mean_dim(1).reshape([-1]).neg();
            let given = shard.losses.clone().mul_scalar(1.0 - self.rate);
            given + over_classes.mul_scalar(self.rate)
        };
        let loss = pass.sum(smoothed, &weights, pass.rows);
        learner.descend(pass, loss, batch.pace)?;
        Ok(Seen { losses: seen, weights })
    }
}
