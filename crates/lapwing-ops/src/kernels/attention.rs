//! Attention: for each sample and head, softmax(q · kᵀ / √width) · v, and its gradient. A task has a sample.
#![allow(unsafe_code, reason = "vector instructions")]

use rayon::prelude::*;

use super::chance::Chance;
use super::curves::exp;
use super::level::vectorised;
use super::product::{Matrix, multiply};

/// Sizes of attention.
#[derive(Clone, Debug)]
pub(crate) struct Attention {
    pub(crate) moments: usize,
    pub(crate) heads: usize,
    /// Of all heads together.
    pub(crate) width: usize,
    /// Moments of each sample that are looked at, at least one.
    pub(crate) lengths: Vec<u32>,
    pub(crate) chance: Option<Chance>,
}

impl Attention {
    fn of_head(&self) -> usize {
        self.width / self.heads
    }

    fn scale(&self) -> f32 {
        1.0 / (self.of_head() as f32).sqrt()
    }

    /// Chances of the weights of a sample and head, and the place of its first weight.
    fn chance(&self, sample: usize, head: usize) -> Option<(Chance, u32)> {
        let square = self.moments * self.moments;
        self.chance.map(|chance| (chance, ((sample * self.heads + head) * square) as u32))
    }

    /// `q`, `k` and `v` side by side for each moment of each sample, to the result and to the weights before chance.
    pub(crate) fn forward(&self, qkv: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let (moments, width, of_head) = (self.moments, self.width, self.of_head());
        let samples = self.lengths.len();
        assert_eq!(qkv.len(), samples * moments * 3 * width);
        let square = moments * moments;
        let mut y = vec![0.0; samples * moments * width];
        let mut weights = vec![0.0; samples * self.heads * square];
        if y.is_empty() {
            return (y, weights);
        }
        y.par_chunks_mut(moments * width)
            .zip(weights.par_chunks_mut(self.heads * square))
            .zip(qkv.par_chunks(moments * 3 * width))
            .enumerate()
            .for_each(|(sample, ((y, weights), qkv))| {
                let mut drawn = Vec::new();
                for (head, weights) in weights.chunks_exact_mut(square).enumerate() {
                    let [q, k, v] = self.parts(qkv, head);
                    multiply([moments, moments, of_head], q, k.transposed(), weights, moments);
                    let length = self.lengths[sample] as usize;
                    soften(weights, moments, length, self.scale());
                    let seen = match self.chance(sample, head) {
                        Some((chance, from)) => {
                            drawn.resize(square, 0.0);
                            draw(&mut drawn, weights, chance, from);
                            &drawn[..]
                        }
                        None => &*weights,
                    };
                    let seen = Matrix::new(seen, moments);
                    multiply([moments, of_head, moments], seen, v, &mut y[head * of_head..], width);
                }
            });
        (y, weights)
    }

    /// The gradient of `qkv`.
    pub(crate) fn backward(&self, qkv: &[f32], weights: &[f32], dy: &[f32]) -> Vec<f32> {
        let (moments, width, of_head) = (self.moments, self.width, self.of_head());
        let square = moments * moments;
        let mut slopes = vec![0.0; qkv.len()];
        if slopes.is_empty() {
            return slopes;
        }
        slopes
            .par_chunks_mut(moments * 3 * width)
            .zip(weights.par_chunks(self.heads * square))
            .zip(qkv.par_chunks(moments * 3 * width))
            .zip(dy.par_chunks(moments * width))
            .enumerate()
            .for_each(|(sample, (((slopes, weights), qkv), dy))| {
                let mut drawn = vec![0.0; square];
                let mut of_weights = vec![0.0; square];
                for (head, weights) in weights.chunks_exact(square).enumerate() {
                    let [q, k, v] = self.parts(qkv, head);
                    let dy = Matrix::new(&dy[head * of_head..], width);
                    multiply(
                        [moments, moments, of_head],
                        dy,
                        v.transposed(),
                        &mut of_weights,
                        moments,
                    );
                    let seen = match self.chance(sample, head) {
                        Some((chance, from)) => {
                            draw(&mut drawn, weights, chance, from);
                            draw_in_place(&mut of_weights, chance, from);
                            &drawn[..]
                        }
                        None => weights,
                    };
                    let across = 3 * width;
                    let place = |part: usize| part * width + head * of_head;
                    let sizes = [moments, of_head, moments];
                    let seen = Matrix::new(seen, moments).transposed();
                    multiply(sizes, seen, dy, &mut slopes[place(2)..], across);
                    harden(&mut of_weights, weights, moments, self.scale());
                    let of_weights = Matrix::new(&of_weights, moments);
                    multiply(sizes, of_weights, k, &mut slopes[place(0)..], across);
                    multiply(sizes, of_weights.transposed(), q, &mut slopes[place(1)..], across);
                }
            });
        slopes
    }

    fn parts<'a>(&self, qkv: &'a [f32], head: usize) -> [Matrix<'a>; 3] {
        let from = |part: usize| part * self.width + head * self.of_head();
        [0, 1, 2].map(|part| Matrix::new(&qkv[from(part)..], 3 * self.width))
    }
}

vectorised! {
    /// The softmax of the first `length` of each row times `scale`; the rest is zero.
    fn soften(rows: &mut [f32], columns: usize, length: usize, scale: f32) {
        for row in rows.chunks_exact_mut(columns) {
            let (seen, rest) = row.split_at_mut(length);
            rest.fill(0.0);
            let mut largest = [f32::NEG_INFINITY; 16];
            let (blocks, tail) = seen.as_chunks::<16>();
            for block in blocks {
                for (largest, value) in largest.iter_mut().zip(block) {
                    *largest = if *value > *largest { *value } else { *largest };
                }
            }
            let mut top = f32::NEG_INFINITY;
            for value in largest.iter().chain(tail) {
                top = if *value > top { *value } else { top };
            }
            for value in seen.iter_mut() {
                *value = exp((*value - top) * scale);
            }
            let mut sums = [0.0; 16];
            let (blocks, tail) = seen.as_chunks::<16>();
            for block in blocks {
                for (sum, value) in sums.iter_mut().zip(block) {
                    *sum += value;
                }
            }
            let mut sum = 0.0;
            for value in sums.iter().chain(tail) {
                sum += value;
            }
            let share = 1.0 / sum;
            for value in seen {
                *value *= share;
            }
        }
    }
}

vectorised! {
    /// The gradient before the softmax, in place of that behind it.
    fn harden(slopes: &mut [f32], weights: &[f32], columns: usize, scale: f32) {
        for (slopes, weights) in slopes.chunks_exact_mut(columns).zip(weights.chunks_exact(columns)) {
            let mut sums = [0.0; 16];
            let (blocks, tail) = slopes.as_chunks::<16>();
            let (of_blocks, of_tail) = weights.as_chunks::<16>();
            for (block, of_block) in blocks.iter().zip(of_blocks) {
                for ((sum, slope), weight) in sums.iter_mut().zip(block).zip(of_block) {
                    *sum += slope * weight;
                }
            }
            let mut along = 0.0;
            for sum in sums {
                along += sum;
            }
            for (slope, weight) in tail.iter().zip(of_tail) {
                along += slope * weight;
            }
            for (slope, weight) in slopes.iter_mut().zip(weights) {
                *slope = weight * (*slope - along) * scale;
            }
        }
    }
}

vectorised! {
    fn draw(drawn: &mut [f32], weights: &[f32], chance: Chance, from: u32) {
        for (place, (drawn, weight)) in drawn.iter_mut().zip(weights).enumerate() {
            *drawn = weight * chance.factor(from.wrapping_add(place as u32));
        }
    }
}

vectorised! {
    fn draw_in_place(x: &mut [f32], chance: Chance, from: u32) {
        for (place, x) in x.iter_mut().enumerate() {
            *x *= chance.factor(from.wrapping_add(place as u32));
        }
    }
}
