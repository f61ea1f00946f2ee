//! Optimiser steps with PyTorch's arithmetic.

use burn::tensor::{IndexingUpdateOp, Tensor};

use crate::bag::places;
use crate::kernels::step::{Adam, Sgd, adam, adam_rows, sgd, sgd_rows};
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

impl SgdStep {
    fn numbers(&self) -> Sgd {
        Sgd {
            rate: self.rate as f32,
            momentum: self.momentum as f32,
            weight_decay: self.weight_decay as f32,
        }
    }
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

    fn numbers(&self) -> Adam {
        let corrections = self.corrections();
        Adam {
            rate: (self.rate / corrections.0) as f32,
            root: corrections.1 as f32,
            beta1: self.beta1 as f32,
            beta2: self.beta2 as f32,
            rest1: (1.0 - self.beta1) as f32,
            rest2: (1.0 - self.beta2) as f32,
            epsilon: self.epsilon as f32,
            weight_decay: self.weight_decay as f32,
        }
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
        sgd(theta.make_mut(), &gradient, velocity.make_mut(), step.numbers());
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
    if accelerated(&theta) && !theta.is_autodiff() {
        let [mut theta, gradient, mut first, mut second] =
            [theta, gradient, first, second].map(dense);
        adam(theta.make_mut(), &gradient, first.make_mut(), second.make_mut(), step.numbers());
        return (theta.into_tensor(), first.into_tensor(), second.into_tensor());
    }
    let corrections = step.corrections();
    let gradient = decayed(gradient, &theta, step.weight_decay);
    let first = first.mul_scalar(step.beta1) + gradient.clone().mul_scalar(1.0 - step.beta1);
    let second = second.mul_scalar(step.beta2) + gradient.square().mul_scalar(1.0 - step.beta2);
    let scale = second.clone().sqrt().div_scalar(corrections.1).add_scalar(step.epsilon);
    let theta = theta - (first.clone() / scale).mul_scalar(step.rate / corrections.0);
    (theta, first, second)
}

/// [`sgd_step`] of some rows of a table, given their gradients. The other rows stay as they are, and so does what is
/// carried into their next step.
///
/// # Panics
/// When the table does not have one of the rows, or shapes do not fit. A row must not be named twice.
pub fn sgd_rows_step(
    theta: Tensor<2>,
    rows: &[u32],
    gradient: Tensor<2>,
    velocity: Option<Tensor<2>>,
    step: SgdStep,
) -> (Tensor<2>, Option<Tensor<2>>) {
    check_rows(&theta, rows, &gradient);
    let velocity = velocity.unwrap_or_else(|| theta.zeros_like());
    let carried = step.momentum != 0.0;
    if rows.is_empty() {
        return (theta, carried.then_some(velocity));
    }
    if accelerated(&theta) && !theta.is_autodiff() {
        let [mut theta, gradient, mut velocity] = [theta, gradient, velocity].map(dense);
        sgd_rows(theta.make_mut(), rows, &gradient, velocity.make_mut(), step.numbers());
        return (theta.into_tensor(), carried.then(|| velocity.into_tensor()));
    }
    let chosen = Chosen::new(rows, &theta);
    let (own, own_velocity) = (chosen.of(&theta), chosen.of(&velocity));
    let before = carried.then(|| own_velocity.clone());
    let (moved, after) = sgd_step(own.clone(), gradient, before, step);
    let velocity = after.map(|after| chosen.add(velocity, after - own_velocity));
    (chosen.add(theta, moved - own), velocity)
}

/// [`adam_step`] of some rows of a table, given their gradients. The other rows stay as they are, and so do their moments:
/// a table of a hundred thousand rows of which a batch touches a hundred costs a hundred. As PyTorch's `SparseAdam`, it
/// counts the steps of the table, not those of each row.
///
/// # Panics
/// When the table does not have one of the rows, or shapes do not fit. A row must not be named twice.
pub fn adam_rows_step(
    theta: Tensor<2>,
    rows: &[u32],
    gradient: Tensor<2>,
    first: Tensor<2>,
    second: Tensor<2>,
    step: AdamStep,
) -> (Tensor<2>, Tensor<2>, Tensor<2>) {
    check_rows(&theta, rows, &gradient);
    if rows.is_empty() {
        return (theta, first, second);
    }
    if accelerated(&theta) && !theta.is_autodiff() {
        let [mut theta, gradient, mut first, mut second] =
            [theta, gradient, first, second].map(dense);
        let moments = (first.make_mut(), second.make_mut());
        adam_rows(theta.make_mut(), rows, &gradient, moments.0, moments.1, step.numbers());
        return (theta.into_tensor(), first.into_tensor(), second.into_tensor());
    }
    let chosen = Chosen::new(rows, &theta);
    let [own, own_first, own_second] = [&theta, &first, &second].map(|table| chosen.of(table));
    let (moved, new_first, new_second) =
        adam_step(own.clone(), gradient, own_first.clone(), own_second.clone(), step);
    (
        chosen.add(theta, moved - own),
        chosen.add(first, new_first - own_first),
        chosen.add(second, new_second - own_second),
    )
}

fn check_rows(theta: &Tensor<2>, rows: &[u32], gradient: &Tensor<2>) {
    let [count, width] = theta.dims();
    assert!(rows.iter().all(|&row| (row as usize) < count), "rows of a table of {count} rows");
    assert_eq!(gradient.dims(), [rows.len(), width], "a gradient for each row");
}

/// Rows of a table, on backends without kernels.
struct Chosen(Tensor<1, burn::tensor::Int>);

impl Chosen {
    fn new(rows: &[u32], table: &Tensor<2>) -> Self {
        Self(places(rows, &table.device()))
    }

    fn of(&self, table: &Tensor<2>) -> Tensor<2> {
        table.clone().select(0, self.0.clone())
    }

    fn add(&self, table: Tensor<2>, change: Tensor<2>) -> Tensor<2> {
        table.select_assign(0, self.0.clone(), change, IndexingUpdateOp::Add)
    }
}

fn dense<const D: usize>(tensor: Tensor<D>) -> Dense {
    Dense::new(plain(tensor.into_dispatch()))
}

fn decayed<const D: usize>(gradient: Tensor<D>, theta: &Tensor<D>, weight_decay: f64) -> Tensor<D> {
    if weight_decay == 0.0 { gradient } else { gradient + theta.clone().mul_scalar(weight_decay) }
}
