//! Optimiser steps.

use burn::tensor::{Device, Tensor, TensorData};
use lapwing_ops::{AdamStep, Level, SgdStep, adam_step, sgd_step, use_stock};

use crate::judge::{alone, numbers, read};

const LEN: usize = 70_001;

fn tensor(seed: u64) -> Tensor<1> {
    Tensor::from_data(TensorData::new(numbers(LEN, seed), [LEN]), &Device::flex())
}

/// Three steps by a rule, and the same in f64.
fn judge(ours: &(dyn Fn() -> Vec<f32> + Sync), reference: &dyn Fn(f64, [f64; 3]) -> f64) {
    let _guard = alone();
    let theta = numbers(LEN, 1);
    let gradients = [numbers(LEN, 2), numbers(LEN, 3), numbers(LEN, 4)];
    let expected: Vec<f64> = (0..LEN)
        .map(|i| reference(f64::from(theta[i]), [0, 1, 2].map(|g| f64::from(gradients[g][i]))))
        .collect();
    let close = |found: Vec<f32>, what: &str| {
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert!(
                (f64::from(*found) - expected).abs() < 2e-5,
                "{what}, {i}: {found}, {expected}"
            );
        }
    };
    for level in Level::available() {
        Level::force(Some(level)).unwrap();
        close(ours(), &format!("{level:?}"));
    }
    Level::force(None).unwrap();
    use_stock(true);
    close(ours(), "Burn");
    use_stock(false);
    let expected: Vec<u32> = ours().iter().map(|x| x.to_bits()).collect();
    for threads in [1, 2, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let found: Vec<u32> = pool.install(|| ours().iter().map(|x| x.to_bits()).collect());
        assert!(found == expected, "other bits with {threads} threads");
    }
}

#[test]
fn descent_with_and_without_momentum() {
    for momentum in [0.0, 0.9] {
        let step = SgdStep { rate: 0.1, momentum, weight_decay: 1e-2 };
        let ours = || {
            let (mut theta, mut velocity) = (tensor(1), None);
            for gradient in [2, 3, 4] {
                (theta, velocity) = sgd_step(theta, tensor(gradient), velocity, step);
            }
            assert_eq!(velocity.is_some(), momentum != 0.0);
            read(theta)
        };
        judge(&ours, &|mut theta, gradients| {
            let mut velocity = 0.0;
            for gradient in gradients {
                velocity = momentum * velocity + gradient + step.weight_decay * theta;
                theta -= step.rate * velocity;
            }
            theta
        });
    }
}

#[test]
fn adam() {
    let numbers = |step| AdamStep {
        rate: 0.01,
        beta1: 0.9,
        beta2: 0.99,
        epsilon: 1e-5,
        weight_decay: 0.1,
        step,
    };
    let ours = || {
        let mut theta = tensor(1);
        let (mut first, mut second) = (theta.zeros_like(), theta.zeros_like());
        for step in 1..=3 {
            (theta, first, second) =
                adam_step(theta, tensor(step + 1), first, second, numbers(step));
        }
        read(theta)
    };
    judge(&ours, &|mut theta, gradients| {
        let (mut first, mut second) = (0.0, 0.0);
        for (step, gradient) in (1..).zip(gradients) {
            let n = numbers(step as u64);
            let gradient = gradient + n.weight_decay * theta;
            first = n.beta1 * first + (1.0 - n.beta1) * gradient;
            second = n.beta2 * second + (1.0 - n.beta2) * gradient * gradient;
            let root = (second / (1.0 - n.beta2.powi(step))).sqrt();
            theta -= n.rate * first / (1.0 - n.beta1.powi(step)) / (root + n.epsilon);
        }
        theta
    });
}

#[test]
fn a_step_leaves_tensors_that_others_hold_alone() {
    let _guard = alone();
    let (theta, gradient, velocity) = (tensor(1), tensor(2), tensor(3));
    let step = SgdStep { rate: 0.1, momentum: 0.9, weight_decay: 0.0 };
    let moved = sgd_step(theta.clone(), gradient.clone(), Some(velocity.clone()), step);
    assert!(read(moved.0) != read(theta.clone()));
    let kept = [read(theta), read(gradient), read(velocity)];
    assert!(kept == [numbers(LEN, 1), numbers(LEN, 2), numbers(LEN, 3)]);
}
