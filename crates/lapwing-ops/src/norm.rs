//! Batch normalisation, with the sum and the ReLU that follow it in a residual network.

use burn::tensor::{Tensor, activation};

/// Normalises each channel of `x` by the batch's own statistics, scales by `gamma`, shifts by `beta`, adds `residual` if
/// there is one, and applies ReLU if asked.
///
/// Also returns the batch's mean and (biased) variance per channel, without gradient, for running averages.
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
    let rows = x.clone().reshape([-1, channels as i32]);
    let mean = rows.clone().mean_dim(0);
    let variance = (rows - mean.clone()).square().mean_dim(0);
    let (mean, variance) = (mean.reshape([channels]), variance.reshape([channels]));
    let y = stock(x, gamma, beta, mean.clone(), variance.clone(), epsilon, residual, relu);
    (y, mean.detach(), variance.detach())
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
    stock(x, gamma, beta, mean.detach(), variance.detach(), epsilon, residual, relu)
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
