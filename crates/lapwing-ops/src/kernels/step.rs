//! Optimiser steps in one pass over the parameters.
#![allow(unsafe_code, reason = "vector instructions")]

use rayon::prelude::*;

use super::level::vectorised;

/// Parameters of a task.
const TASK: usize = 1 << 15;

/// Numbers of a step of stochastic gradient descent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sgd {
    pub(crate) rate: f32,
    pub(crate) momentum: f32,
    pub(crate) weight_decay: f32,
}

/// `velocity = momentum·velocity + gradient + weight_decay·theta`, `theta -= rate·velocity`.
pub(crate) fn sgd(theta: &mut [f32], gradient: &[f32], velocity: &mut [f32], step: Sgd) {
    assert!(theta.len() == gradient.len() && theta.len() == velocity.len());
    theta
        .par_chunks_mut(TASK)
        .zip(gradient.par_chunks(TASK))
        .zip(velocity.par_chunks_mut(TASK))
        .for_each(|((theta, gradient), velocity)| sgd_part(theta, gradient, velocity, step));
}

vectorised! {
    fn sgd_part(theta: &mut [f32], gradient: &[f32], velocity: &mut [f32], step: Sgd) {
        for ((theta, gradient), velocity) in theta.iter_mut().zip(gradient).zip(velocity) {
            let gradient = gradient + step.weight_decay * *theta;
            *velocity = step.momentum * *velocity + gradient;
            *theta -= step.rate * *velocity;
        }
    }
}

/// Numbers of a step of Adam, bias corrections applied: `rate` to the first moment, `root` to the second's root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adam {
    pub(crate) rate: f32,
    pub(crate) root: f32,
    pub(crate) beta1: f32,
    pub(crate) beta2: f32,
    /// `1 - beta1`, `1 - beta2`, rounded once.
    pub(crate) rest1: f32,
    pub(crate) rest2: f32,
    pub(crate) epsilon: f32,
    pub(crate) weight_decay: f32,
}

/// Adam's rule, coupled weight decay.
pub(crate) fn adam(
    theta: &mut [f32],
    gradient: &[f32],
    first: &mut [f32],
    second: &mut [f32],
    step: Adam,
) {
    assert!(theta.len() == gradient.len());
    assert!(theta.len() == first.len() && theta.len() == second.len());
    theta
        .par_chunks_mut(TASK)
        .zip(gradient.par_chunks(TASK))
        .zip(first.par_chunks_mut(TASK).zip(second.par_chunks_mut(TASK)))
        .for_each(|((theta, gradient), (first, second))| {
            adam_part(theta, gradient, first, second, step);
        });
}

vectorised! {
    fn adam_part(
        theta: &mut [f32],
        gradient: &[f32],
        first: &mut [f32],
        second: &mut [f32],
        step: Adam,
    ) {
        let moments = first.iter_mut().zip(second);
        for ((theta, gradient), (first, second)) in theta.iter_mut().zip(gradient).zip(moments) {
            let gradient = gradient + step.weight_decay * *theta;
            *first = step.beta1 * *first + step.rest1 * gradient;
            *second = step.beta2 * *second + step.rest2 * (gradient * gradient);
            *theta -= step.rate * (*first / (second.sqrt() / step.root + step.epsilon));
        }
    }
}

/// [`sgd`] of some rows of `width` numbers, with a gradient for each of them.
pub(crate) fn sgd_rows(
    theta: &mut [f32],
    rows: &[u32],
    gradient: &[f32],
    velocity: &mut [f32],
    step: Sgd,
) {
    let width = gradient.len() / rows.len().max(1);
    for (&row, gradient) in rows.iter().zip(gradient.chunks_exact(width.max(1))) {
        let own = row as usize * width..(row as usize + 1) * width;
        sgd_part(&mut theta[own.clone()], gradient, &mut velocity[own], step);
    }
}

/// [`adam`] of some rows of `width` numbers, with a gradient for each of them.
pub(crate) fn adam_rows(
    theta: &mut [f32],
    rows: &[u32],
    gradient: &[f32],
    first: &mut [f32],
    second: &mut [f32],
    step: Adam,
) {
    let width = gradient.len() / rows.len().max(1);
    for (&row, gradient) in rows.iter().zip(gradient.chunks_exact(width.max(1))) {
        let own = row as usize * width..(row as usize + 1) * width;
        let (first, second) = (&mut first[own.clone()], &mut second[own.clone()]);
        adam_part(&mut theta[own], gradient, first, second, step);
    }
}
