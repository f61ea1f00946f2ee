//! One number at a time, in one pass.
#![allow(unsafe_code, reason = "vector instructions")]

use rayon::prelude::*;

use super::level::vectorised;

/// Numbers of a task.
const TASK: usize = 1 << 15;

/// `x / √(1 + (x / bound)²)` in place.
pub(crate) fn squash(x: &mut [f32], bound: f32) {
    x.par_chunks_mut(TASK).for_each(|x| squash_part(x, bound));
}

vectorised! {
    fn squash_part(x: &mut [f32], bound: f32) {
        for x in x {
            let share = *x / bound;
            *x /= (share * share + 1.0).sqrt();
        }
    }
}

/// Turns the gradient of `squash(x)` into that of `x`: times `(1 + (x / bound)²)^(-3/2)`.
pub(crate) fn squash_backward(gradient: &mut [f32], x: &[f32], bound: f32) {
    assert_eq!(gradient.len(), x.len(), "a gradient for each number");
    gradient
        .par_chunks_mut(TASK)
        .zip(x.par_chunks(TASK))
        .for_each(|(gradient, x)| squash_backward_part(gradient, x, bound));
}

vectorised! {
    fn squash_backward_part(gradient: &mut [f32], x: &[f32], bound: f32) {
        for (gradient, x) in gradient.iter_mut().zip(x) {
            let share = x / bound;
            let bend = share * share + 1.0;
            *gradient /= bend * bend.sqrt();
        }
    }
}

/// `x · factor`, number by number, in place.
pub(crate) fn scale(x: &mut [f32], factors: &[f32]) {
    assert_eq!(x.len(), factors.len(), "a factor for each number");
    x.par_chunks_mut(TASK)
        .zip(factors.par_chunks(TASK))
        .for_each(|(x, factors)| scale_part(x, factors));
}

vectorised! {
    fn scale_part(x: &mut [f32], factors: &[f32]) {
        for (x, factor) in x.iter_mut().zip(factors) {
            *x *= factor;
        }
    }
}

/// The softmax of each row of `columns` numbers, in place.
pub(crate) fn softmax(rows: &mut [f32], columns: usize) {
    for row in rows.chunks_exact_mut(columns.max(1)) {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sum = 0.0;
        for value in row.iter_mut() {
            *value = (*value - largest).exp();
            sum += *value;
        }
        for value in row {
            *value /= sum;
        }
    }
}

/// Turns the gradient of `softmax(x)` into that of `x`, given the softmax: y · (dy − Σ dy · y).
pub(crate) fn softmax_backward(gradient: &mut [f32], softmax: &[f32], columns: usize) {
    assert_eq!(gradient.len(), softmax.len(), "a gradient for each number");
    let columns = columns.max(1);
    for (gradient, row) in gradient.chunks_exact_mut(columns).zip(softmax.chunks_exact(columns)) {
        let along: f32 = gradient.iter().zip(row).map(|(dy, y)| dy * y).sum();
        for (dy, y) in gradient.iter_mut().zip(row) {
            *dy = y * (*dy - along);
        }
    }
}
