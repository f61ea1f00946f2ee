//! Batch normalisation, with the sum and the ReLU that follow it in a residual network.

use std::sync::{Arc, OnceLock};

use burn::tensor::{Tensor, activation};

use crate::kernels::norm::{Backward, Line, Statistics, apply};
use crate::kernels::product::cut;
use crate::operation::{Dense, Operation, accelerated, plain, run};

const FOUND: &str = "statistics are found on the way forward";

/// Normalises each channel of `x` by the batch's own statistics, scales by `gamma`, shifts by `beta`, adds `residual` if
/// there is one, and applies ReLU if asked.
///
/// Also returns the batch's mean and (biased) variance per channel for running averages: on the device without automatic
/// differentiation.
///
/// # Panics
/// When shapes do not fit.
pub fn batch_norm(
    x: Tensor<4>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    epsilon: f32,
    residual: Option<Tensor<4>>,
    relu: bool,
) -> (Tensor<4>, Tensor<1>, Tensor<1>) {
    let [.., channels] = x.dims();
    if accelerated(&x) {
        let statistics = Arc::default();
        let operation = Norm { relu, epsilon, given: None, found: Arc::clone(&statistics) };
        let y = operation.run(x, gamma, beta, residual);
        let found: &Statistics = statistics.get().expect(FOUND);
        let tensor = |values: &[f32]| Dense::from_vec(values.to_vec(), &[channels]).into_tensor();
        return (y, tensor(&found.mean), tensor(&found.variance));
    }
    let rows = x.clone().reshape([-1, channels as i32]);
    let mean = rows.clone().mean_dim(0);
    let variance = (rows - mean.clone()).square().mean_dim(0);
    let (mean, variance) = (mean.reshape([channels]), variance.reshape([channels]));
    let y = stock(x, gamma, beta, mean.clone(), variance.clone(), epsilon, residual, relu);
    (y, mean.inner(), variance.inner())
}

/// As [`batch_norm`], by statistics that are given and constant: for evaluation.
///
/// # Panics
/// When shapes do not fit.
#[allow(clippy::too_many_arguments, reason = "the parameters of the formula")]
pub fn batch_norm_with(
    x: Tensor<4>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    mean: Tensor<1>,
    variance: Tensor<1>,
    epsilon: f32,
    residual: Option<Tensor<4>>,
    relu: bool,
) -> Tensor<4> {
    let (mean, variance) = (mean.inner(), variance.inner());
    if accelerated(&x) {
        let values = |tensor: Tensor<1>| Dense::new(plain(tensor.into_dispatch())).to_vec();
        let given = Statistics { mean: values(mean), variance: values(variance) };
        let operation = Norm { relu, epsilon, given: Some(given), found: Arc::default() };
        return operation.run(x, gamma, beta, residual);
    }
    stock(x, gamma, beta, mean, variance, epsilon, residual, relu)
}

#[allow(clippy::too_many_arguments, reason = "the parameters of the formula")]
fn stock(
    x: Tensor<4>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    mean: Tensor<1>,
    variance: Tensor<1>,
    epsilon: f32,
    residual: Option<Tensor<4>>,
    relu: bool,
) -> Tensor<4> {
    let scale = gamma / variance.add_scalar(epsilon).sqrt();
    let mut y = (x - mean.unsqueeze()) * scale.unsqueeze() + beta.unsqueeze();
    if let Some(residual) = residual {
        y = y + residual;
    }
    if relu { activation::relu(y) } else { y }
}

#[derive(Debug)]
struct Norm {
    relu: bool,
    epsilon: f32,
    /// Statistics to use instead of the batch's.
    given: Option<Statistics>,
    /// The statistics that were used.
    found: Arc<OnceLock<Statistics>>,
}

/// What the gradient needs.
#[derive(Clone, Debug)]
struct Saved {
    x: Dense,
    gamma: Dense,
    line: Line,
    /// The result, if a ReLU came after a residual sum.
    cut: Option<Dense>,
}

impl Norm {
    fn run(
        self,
        x: Tensor<4>,
        gamma: Tensor<1>,
        beta: Tensor<1>,
        residual: Option<Tensor<4>>,
    ) -> Tensor<4> {
        let (x, gamma, beta) = (x.into_dispatch(), gamma.into_dispatch(), beta.into_dispatch());
        match residual {
            Some(residual) => run(self, [x, gamma, beta, residual.into_dispatch()]),
            None => run(self, [x, gamma, beta]),
        }
    }

    fn normalise(
        &self,
        x: Dense,
        gamma: Dense,
        beta: &Dense,
        residual: Option<&Dense>,
    ) -> (Dense, Saved) {
        let shape @ [.., channels] = x.shape::<4>();
        let statistics = self.found.get_or_init(|| match &self.given {
            Some(given) => given.clone(),
            None => Statistics::of(&x, channels),
        });
        assert_eq!(statistics.mean.len(), channels, "statistics for each channel");
        let line = statistics.line(&gamma, beta, self.epsilon);
        let y = apply(&x, &line, residual.map(|residual| &residual[..]), self.relu);
        let y = Dense::from_vec(y, &shape);
        let cut = (self.relu && residual.is_some()).then(|| y.clone());
        (y, Saved { x, gamma, line, cut })
    }

    /// Gradients of `x`, `gamma`, `beta` and, if there was one, the residual.
    fn gradients(&self, saved: Saved, mut dy: Dense, residual: bool) -> [Option<Dense>; 4] {
        let shape @ [.., channels] = saved.x.shape::<4>();
        let statistics = self.found.get().expect(FOUND);
        if let Some(y) = saved.cut {
            cut(dy.make_mut(), &y);
        }
        let backward = Backward {
            x: &saved.x,
            statistics,
            gamma: &saved.gamma,
            epsilon: self.epsilon,
            relu: (self.relu && !residual).then_some(&saved.line),
            constant: self.given.is_some(),
        };
        let channel = |values| Some(Dense::from_vec(values, &[channels]));
        if residual {
            let gradient = backward.kept(&dy);
            let dx = Dense::from_vec(gradient.x, &shape);
            [Some(dx), channel(gradient.gamma), channel(gradient.beta), Some(dy)]
        } else {
            let (gamma, beta) = backward.in_place(dy.make_mut());
            [Some(dy), channel(gamma), channel(beta), None]
        }
    }
}

impl Operation<3> for Norm {
    type Saved = Saved;

    fn forward(&self, [x, gamma, beta]: [Dense; 3]) -> (Dense, Saved) {
        self.normalise(x, gamma, &beta, None)
    }

    fn backward(&self, saved: Saved, dy: Dense, _: [bool; 3]) -> [Option<Dense>; 3] {
        let [x, gamma, beta, _] = self.gradients(saved, dy, false);
        [x, gamma, beta]
    }
}

impl Operation<4> for Norm {
    type Saved = Saved;

    fn forward(&self, [x, gamma, beta, residual]: [Dense; 4]) -> (Dense, Saved) {
        self.normalise(x, gamma, &beta, Some(&residual))
    }

    fn backward(&self, saved: Saved, dy: Dense, _: [bool; 4]) -> [Option<Dense>; 4] {
        self.gradients(saved, dy, true)
    }
}
