//! Optimiser steps with PyTorch's arithmetic.

use burn::tensor::Tensor;

use crate::kernels::step::{Adam, Sgd, adam, sgd};
use crate::operation::{Dense, accelerated, plain};

/// One step of stochastic gradient descent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SgdStep {
    /// Learning rate.
    pub rate: f64,
    /// Share of the last step carried into this one; 0 for none.
    pub momentum: f64,
    /// Added to the gradient, times the parameter.
    pub weight_decay: f64,
}

/// One step of Adam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamStep {
    /// Learning rate.
    pub rate: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Added to the gradient, times the parameter (as PyTorch's `Adam`, not `AdamW`).
    pub weight_decay: f64,
    /// Counts from 1.
    pub step: u64,
}

impl AdamStep {
    /// What is left of 1 after the decay of both moments over the steps so far, the second one's root.
    // In f64, and powf because a step may pass i32::MAX.
    fn corrections(&self) -> (f64, f64) {
        let step = self.step as f64;
        (1.0 - self.beta1.powf(step), (1.0 - self.beta2.powf(step)).sqrt())
    }
}

/// Moves a parameter against its gradient. Works in place where nobody else holds the buffers.
///
/// Without a velocity (the first step) the gradient becomes the velocity; with a momentum of 0 there is none.
/// Tensors must be on a device without automatic differentiation.
pub fn sgd_step<const D: usize>(
    theta: Tensor<D>,
    gradient: Tensor<D>,
    velocity: Option<Tensor<D>>,
    step: SgdStep,
) -> (Tensor<D>, Option<Tensor<D>>) {
    if accelerated(&theta) && !theta.is_autodiff() {
        let [mut theta, gradient] = [theta, gradient].map(dense);
        let mut velocity = match velocity {
            Some(velocity) if step.momentum != 0.0 => dense(velocity),
            _ => gradient.zeros(),
        };
        let numbers = Sgd {
            rate: step.rate as f32,
            momentum: step.momentum as f32,
            weight_decay: step.weight_decay as f32,
        };
        sgd(theta.make_mut(), &gradient, velocity.make_mut(), numbers);
        return (theta.into_tensor(), (step.momentum != 0.0).then(|| velocity.into_tensor()));
    }
    let gradient = decayed(gradient, &theta, step.weight_decay);
    if step.momentum == 0.0 {
        return (theta - gradient.mul_scalar(step.rate), None);
    }
    let velocity = match velocity {
        Some(velocity) => velocity.mul_scalar(step.momentum) + gradient,
        None => gradient,
    };
    (theta - velocity.clone().mul_scalar(step.rate), Some(velocity))
}

/// Moves a parameter by Adam's rule; returns it with its first and second moment, which begin at zero. Works in place
/// where nobody else holds the buffers.
///
/// Tensors must be on a device without automatic differentiation.
pub fn adam_step<const D: usize>(
    theta: Tensor<D>,
    gradient: Tensor<D>,
    first: Tensor<D>,
    second: Tensor<D>,
    step: AdamStep,
) -> (Tensor<D>, Tensor<D>, Tensor<D>) {
    let corrections = step.corrections();
    if accelerated(&theta) && !theta.is_autodiff() {
        let [mut theta, gradient, mut first, mut second] =
            [theta, gradient, first, second].map(dense);
        let numbers = Adam {
            rate: (step.rate / corrections.0) as f32,
            root: corrections.1 as f32,
            beta1: step.beta1 as f32,
            beta2: step.beta2 as f32,
            rest1: (1.0 - step.beta1) as f32,
            rest2: (1.0 - step.beta2) as f32,
            epsilon: step.epsilon as f32,
            weight_decay: step.weight_decay as f32,
        };
        adam(theta.make_mut(), &gradient, first.make_mut(), second.make_mut(), numbers);
        return (theta.into_tensor(), first.into_tensor(), second.into_tensor());
    }
    let gradient = decayed(gradient, &theta, step.weight_decay);
    let first = first.mul_scalar(step.beta1) + gradient.clone().mul_scalar(1.0 - step.beta1);
    let second = second.mul_scalar(step.beta2) + gradient.square().mul_scalar(1.0 - step.beta2);
    let scale = second.clone().sqrt().div_scalar(corrections.1).add_scalar(step.epsilon);
    let theta = theta - (first.clone() / scale).mul_scalar(step.rate / corrections.0);
    (theta, first, second)
}

fn dense<const D: usize>(tensor: Tensor<D>) -> Dense {
    Dense::new(plain(tensor.into_dispatch()))
}

fn decayed<const D: usize>(gradient: Tensor<D>, theta: &Tensor<D>, weight_decay: f64) -> Tensor<D> {
    if weight_decay == 0.0 { gradient } else { gradient + theta.clone().mul_scalar(weight_decay) }
}
