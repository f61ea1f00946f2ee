//! Normalisation of each row, of the sum of what went into a layer and what came out.
#![allow(unsafe_code, reason = "vector instructions")]

use rayon::prelude::*;

use super::chance::Chance;
use super::columns::{column_sums, rows_per_task, total};
use super::level::vectorised;

/// Lanes in which sums are kept.
const LANES: usize = 16;

/// What the way back needs.
#[derive(Clone, Debug)]
pub(crate) struct Normal {
    /// Rows with mean 0 and variance 1.
    pub(crate) rows: Vec<f32>,
    /// One over the deviation of each.
    pub(crate) scales: Vec<f32>,
}

/// Gradients of both summands (they are the same but for chance), of the scale and of the shift.
pub(crate) struct Slopes {
    pub(crate) sum: Vec<f32>,
    pub(crate) gamma: Vec<f32>,
    pub(crate) beta: Vec<f32>,
}

/// `(x + y − mean) / deviation · gamma + beta`, row by row; `y` by chance.
pub(crate) fn forward(
    x: &[f32],
    y: &[f32],
    chance: Option<Chance>,
    gamma: &[f32],
    beta: &[f32],
    epsilon: f32,
) -> (Vec<f32>, Normal) {
    let width = gamma.len();
    assert!(x.len() == y.len() && beta.len() == width && x.len().is_multiple_of(width.max(1)));
    let mut out = vec![0.0; x.len()];
    let mut rows = vec![0.0; x.len()];
    let mut scales = vec![0.0; x.len() / width.max(1)];
    if width > 0 {
        let per_task = rows_per_task(width);
        let task = per_task * width;
        out.par_chunks_mut(task)
            .zip(rows.par_chunks_mut(task))
            .zip(scales.par_chunks_mut(per_task))
            .zip(x.par_chunks(task))
            .zip(y.par_chunks(task))
            .enumerate()
            .for_each(|(at, ((((out, rows), scales), x), y))| {
                match chance {
                    Some(chance) => add_by_chance(rows, x, y, chance, (at * task) as u32),
                    None => add(rows, x, y),
                }
                normalise(out, rows, scales, gamma, beta, epsilon);
            });
    }
    (out, Normal { rows, scales })
}

/// Gradients, given that of the result.
pub(crate) fn backward(dy: &[f32], normal: &Normal, gamma: &[f32]) -> Slopes {
    let width = gamma.len();
    assert_eq!(dy.len(), normal.rows.len());
    let mut sum = vec![0.0; dy.len()];
    if width == 0 {
        return Slopes { sum, gamma: Vec::new(), beta: Vec::new() };
    }
    let per_task = rows_per_task(width);
    let task = per_task * width;
    let parts: Vec<Vec<f64>> = sum
        .par_chunks_mut(task)
        .zip(dy.par_chunks(task))
        .zip(normal.rows.par_chunks(task))
        .zip(normal.scales.par_chunks(per_task))
        .map(|(((sum, dy), rows), scales)| {
            let mut of_gamma = vec![0.0; width];
            unnormalise(sum, dy, rows, scales, gamma, &mut of_gamma);
            of_gamma.into_iter().map(f64::from).collect()
        })
        .collect();
    let of_gamma = total(parts, width).into_iter().map(|sum| sum as f32).collect();
    Slopes { sum, gamma: of_gamma, beta: column_sums(dy, width) }
}

#[inline(always)]
fn sum_of(row: &[f32], of: impl Fn(usize, f32) -> f32) -> f32 {
    let mut sums = [0.0; LANES];
    let (blocks, tail) = row.as_chunks::<LANES>();
    for (block, values) in blocks.iter().enumerate() {
        for lane in 0..LANES {
            sums[lane] += of(block * LANES + lane, values[lane]);
        }
    }
    let mut sum = 0.0;
    for of_lane in sums {
        sum += of_lane;
    }
    for (at, value) in tail.iter().enumerate() {
        sum += of(blocks.len() * LANES + at, *value);
    }
    sum
}

vectorised! {
    fn add(sum: &mut [f32], x: &[f32], y: &[f32]) {
        for ((sum, x), y) in sum.iter_mut().zip(x).zip(y) {
            *sum = x + y;
        }
    }
}

vectorised! {
    fn add_by_chance(sum: &mut [f32], x: &[f32], y: &[f32], chance: Chance, from: u32) {
        for (place, ((sum, x), y)) in sum.iter_mut().zip(x).zip(y).enumerate() {
            *sum = x + y * chance.factor(from.wrapping_add(place as u32));
        }
    }
}

vectorised! {
    fn normalise(out: &mut [f32], rows: &mut [f32], scales: &mut [f32], gamma: &[f32], beta: &[f32], epsilon: f32) {
        let width = gamma.len();
        let count = width as f32;
        for ((out, row), scale) in
            out.chunks_exact_mut(width).zip(rows.chunks_exact_mut(width)).zip(scales)
        {
            let mean = sum_of(row, |_, value| value) / count;
            let variance = sum_of(row, |_, value| (value - mean) * (value - mean)) / count;
            *scale = 1.0 / (variance + epsilon).sqrt();
            for (value, (out, (gamma, beta))) in
                row.iter_mut().zip(out.iter_mut().zip(gamma.iter().zip(beta)))
            {
                *value = (*value - mean) * *scale;
                *out = *value * gamma + beta;
            }
        }
    }
}

vectorised! {
    fn unnormalise(sum: &mut [f32], dy: &[f32], rows: &[f32], scales: &[f32], gamma: &[f32], of_gamma: &mut [f32]) {
        let width = gamma.len();
        let count = width as f32;
        for (((sum, dy), row), scale) in sum
            .chunks_exact_mut(width)
            .zip(dy.chunks_exact(width))
            .zip(rows.chunks_exact(width))
            .zip(scales)
        {
            let (row, gamma) = (&row[..width], &gamma[..width]);
            let mean = sum_of(dy, |at, dy| dy * gamma[at]) / count;
            let along = sum_of(dy, |at, dy| dy * gamma[at] * row[at]) / count;
            for at in 0..width {
                sum[at] = (dy[at] * gamma[at] - mean - row[at] * along) * scale;
                of_gamma[at] += dy[at] * row[at];
            }
        }
    }
}
