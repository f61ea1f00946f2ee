//! Functions of single numbers, and of rows of them.

use burn::tensor::{Tensor, activation};

use crate::kernels::elementwise as kernels;
use crate::kernels::product::cut;
use crate::operation::{Dense, Operation, accelerated, run};

/// Bends numbers smoothly into ±`bound`: `x / √(1 + (x / bound)²)`.
pub fn squash<const D: usize>(x: Tensor<D>, bound: f32) -> Tensor<D> {
    if accelerated(&x) {
        return run(Squash { bound }, [x.into_dispatch()]);
    }
    let bend = x.clone().div_scalar(bound).square().add_scalar(1.0).sqrt();
    x / bend
}

/// Multiplies each number by a factor of its own, through which no gradient flows: what dropout does.
///
/// # Panics
/// When shapes differ.
pub fn scale<const D: usize>(x: Tensor<D>, factors: Tensor<D>) -> Tensor<D> {
    assert_eq!(x.dims(), factors.dims(), "a factor for each number");
    if accelerated(&x) {
        return run(Scale, [x.into_dispatch(), factors.detach().into_dispatch()]);
    }
    x * factors.detach()
}

/// The larger of a number and zero.
pub fn relu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    if accelerated(&x) { run(Relu, [x.into_dispatch()]) } else { activation::relu(x) }
}

/// The softmax of each row.
pub fn softmax(rows: Tensor<2>) -> Tensor<2> {
    if accelerated(&rows) {
        return run(Softmax, [rows.into_dispatch()]);
    }
    activation::softmax(rows, 1)
}

#[derive(Debug)]
struct Squash {
    bound: f32,
}

impl Operation<1> for Squash {
    /// The input.
    type Saved = Dense;

    fn forward(&self, [x]: [Dense; 1]) -> (Dense, Dense) {
        let mut y = x.clone();
        kernels::squash(y.make_mut(), self.bound);
        (y, x)
    }

    fn backward(&self, x: Dense, mut dy: Dense, _: [bool; 1]) -> [Option<Dense>; 1] {
        kernels::squash_backward(dy.make_mut(), &x, self.bound);
        [Some(dy)]
    }
}

#[derive(Debug)]
struct Scale;

impl Operation<2> for Scale {
    /// The factors.
    type Saved = Dense;

    fn forward(&self, [mut x, factors]: [Dense; 2]) -> (Dense, Dense) {
        kernels::scale(x.make_mut(), &factors);
        (x, factors)
    }

    fn backward(&self, factors: Dense, mut dy: Dense, _: [bool; 2]) -> [Option<Dense>; 2] {
        kernels::scale(dy.make_mut(), &factors);
        [Some(dy), None]
    }
}

#[derive(Debug)]
struct Relu;

impl Operation<1> for Relu {
    /// The result.
    type Saved = Dense;

    fn forward(&self, [mut x]: [Dense; 1]) -> (Dense, Dense) {
        // What is not a number stays so.
        x.make_mut().iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x });
        (x.clone(), x)
    }

    fn backward(&self, y: Dense, mut dy: Dense, _: [bool; 1]) -> [Option<Dense>; 1] {
        cut(dy.make_mut(), &y);
        [Some(dy)]
    }
}

#[derive(Debug)]
struct Softmax;

impl Operation<1> for Softmax {
    /// The result.
    type Saved = Dense;

    fn forward(&self, [mut x]: [Dense; 1]) -> (Dense, Dense) {
        let [_, columns] = x.shape();
        kernels::softmax(x.make_mut(), columns);
        (x.clone(), x)
    }

    fn backward(&self, y: Dense, mut dy: Dense, _: [bool; 1]) -> [Option<Dense>; 1] {
        let [_, columns] = y.shape();
        kernels::softmax_backward(dy.make_mut(), &y, columns);
        [Some(dy)]
    }
}
