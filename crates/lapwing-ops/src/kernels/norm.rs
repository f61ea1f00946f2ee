//! Batch normalisation over rows of channels, fused with the residual sum and the ReLU behind it.
#![allow(unsafe_code, reason = "vector instructions, and buffers that are not cleared first")]

use rayon::prelude::*;

use super::columns::{BLOCK, rows_near, rows_per_task, total};
use super::fresh::{Fresh, filled};
use super::level::vectorised;

/// Mean and biased variance of each channel.
#[derive(Clone, Debug)]
pub(crate) struct Statistics {
    pub(crate) mean: Vec<f32>,
    pub(crate) variance: Vec<f32>,
}

impl Statistics {
    /// Those of the rows of `x`.
    pub(crate) fn of(x: &[f32], channels: usize) -> Self {
        if x.is_empty() {
            return Self { mean: vec![0.0; channels], variance: vec![0.0; channels] };
        }
        // Sums of distances from the first row, so that nothing cancels when the mean is far from zero.
        let origin = &x[..channels];
        let parts: Vec<Vec<f64>> = x
            .par_chunks(rows_per_task(channels) * channels)
            .map(|x| {
                let mut sums = vec![0.0; 2 * channels];
                add_moments(x, origin, &mut sums);
                sums
            })
            .collect();
        let sums = total(parts, 2 * channels);
        let rows = (x.len() / channels) as f64;
        let (first, second) = sums.split_at(channels);
        let mean =
            origin.iter().zip(first).map(|(o, s)| (f64::from(*o) + s / rows) as f32).collect();
        let variance = first
            .iter()
            .zip(second)
            .map(|(s, q)| (q / rows - (s / rows) * (s / rows)).max(0.0) as f32)
            .collect();
        Self { mean, variance }
    }

    fn inverse_deviation(&self, epsilon: f32) -> Vec<f32> {
        self.variance.iter().map(|v| 1.0 / (v + epsilon).sqrt()).collect()
    }

    /// Normalisation, scale and shift in one: `y = scale · x + shift`.
    pub(crate) fn line(&self, gamma: &[f32], beta: &[f32], epsilon: f32) -> Line {
        let channels = self.mean.len();
        // A line shorter than its rows would leave the rest of them unwritten.
        assert_eq!(self.variance.len(), channels, "a variance for each channel");
        assert!(gamma.len() == channels && beta.len() == channels, "one of each per channel");
        let scale: Vec<f32> =
            self.inverse_deviation(epsilon).iter().zip(gamma).map(|(d, g)| d * g).collect();
        let shift = beta.iter().zip(&self.mean).zip(&scale).map(|((b, m), s)| b - m * s).collect();
        Line { scale, shift }
    }
}

vectorised! {
    /// Adds Σ (x - origin) and Σ (x - origin)² of each channel to the halves of `sums`.
    fn add_moments(x: &[f32], origin: &[f32], sums: &mut [f64]) {
        let channels = origin.len();
        let (first, second) = sums.split_at_mut(channels);
        for near in x.chunks(rows_near(channels) * channels) {
            let sums = first.chunks_mut(BLOCK).zip(second.chunks_mut(BLOCK));
            for ((from, origin), (first, second)) in
                (0..channels).step_by(BLOCK).zip(origin.chunks(BLOCK)).zip(sums)
            {
                let (mut s, mut q) = ([0.0f32; BLOCK], [0.0f32; BLOCK]);
                if let Ok(origin) = <&[f32; BLOCK]>::try_from(origin) {
                    for row in near.chunks_exact(channels) {
                        let row = &row[from..from + BLOCK];
                        for i in 0..BLOCK {
                            let distance = row[i] - origin[i];
                            s[i] += distance;
                            q[i] += distance * distance;
                        }
                    }
                } else {
                    for row in near.chunks_exact(channels) {
                        for (i, (x, origin)) in row[from..].iter().zip(origin).enumerate() {
                            let distance = x - origin;
                            s[i] += distance;
                            q[i] += distance * distance;
                        }
                    }
                }
                for (sum, s) in first.iter_mut().zip(s) {
                    *sum += f64::from(s);
                }
                for (sum, q) in second.iter_mut().zip(q) {
                    *sum += f64::from(q);
                }
            }
        }
    }
}

/// A line for each channel.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    scale: Vec<f32>,
    shift: Vec<f32>,
}

/// `line(x) + residual`, negative results cut off with `relu`.
pub(crate) fn apply(x: &[f32], line: &Line, residual: Option<&[f32]>, relu: bool) -> Vec<f32> {
    let channels = line.scale.len();
    assert_eq!(line.shift.len(), channels, "a shift for each scale");
    assert!(x.len().is_multiple_of(channels.max(1)), "whole rows of {channels} channels");
    assert!(channels > 0 || x.is_empty(), "values of no channel");
    assert!(
        residual.is_none_or(|residual| residual.len() == x.len()),
        "a residual of the same shape"
    );
    let floor = if relu { 0.0 } else { f32::NEG_INFINITY };
    let task = rows_per_task(channels) * channels;
    // SAFETY: tasks cover the buffer, and `write_line` writes every element of theirs.
    unsafe {
        filled(x.len(), |y| {
            if channels == 0 {
                return;
            }
            y.par_chunks_mut(task).zip(x.par_chunks(task)).enumerate().for_each(|(i, (y, x))| {
                let residual = residual.map(|residual| &residual[i * task..][..x.len()]);
                write_line(x, &line.scale, &line.shift, residual, floor, y);
            });
        })
    }
}

vectorised! {
    fn write_line(
        x: &[f32],
        scale: &[f32],
        shift: &[f32],
        residual: Option<&[f32]>,
        floor: f32,
        y: &mut Fresh,
    ) {
        let channels = scale.len();
        let shift = &shift[..channels];
        let rows = y.chunks_exact_mut(channels).zip(x.chunks_exact(channels));
        if let Some(residual) = residual {
            for ((y, x), residual) in rows.zip(residual.chunks_exact(channels)) {
                for i in 0..channels {
                    let value = x[i] * scale[i] + shift[i] + residual[i];
                    y[i].write(if value < floor { floor } else { value });
                }
            }
        } else {
            for (y, x) in rows {
                for i in 0..channels {
                    let value = x[i] * scale[i] + shift[i];
                    y[i].write(if value < floor { floor } else { value });
                }
            }
        }
    }
}

/// The gradient of a normalisation by the batch's own statistics (or, with `constant`, by given ones).
pub(crate) struct Gradient {
    pub(crate) x: Vec<f32>,
    pub(crate) gamma: Vec<f32>,
    pub(crate) beta: Vec<f32>,
}

/// What a gradient is computed from.
pub(crate) struct Backward<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) statistics: &'a Statistics,
    pub(crate) gamma: &'a [f32],
    pub(crate) epsilon: f32,
    /// The line, if results were cut off by a ReLU that saw nothing else.
    pub(crate) relu: Option<&'a Line>,
    /// Whether the statistics were given, and constant.
    pub(crate) constant: bool,
}

impl Backward<'_> {
    /// Gradients of `gamma` and `beta`; `dy` becomes that of `x`.
    pub(crate) fn in_place(&self, dy: &mut [f32]) -> (Vec<f32>, Vec<f32>) {
        let (weights, gamma, beta) = self.weights(dy);
        let channels = self.gamma.len();
        let task = rows_per_task(channels) * channels;
        if channels > 0 {
            dy.par_chunks_mut(task).zip(self.x.par_chunks(task)).for_each(|(dy, x)| {
                self.rewrite(&weights, x, dy);
            });
        }
        (gamma, beta)
    }

    /// All gradients, `dy` kept.
    pub(crate) fn kept(&self, dy: &[f32]) -> Gradient {
        let (weights, gamma, beta) = self.weights(dy);
        let channels = self.gamma.len();
        let task = rows_per_task(channels) * channels;
        // SAFETY: tasks cover the buffer; each copies `dy` into its part before anything else.
        let x = unsafe {
            filled(dy.len(), |dx| {
                if channels == 0 {
                    return;
                }
                let parts = dx.par_chunks_mut(task).zip(dy.par_chunks(task));
                parts.zip(self.x.par_chunks(task)).for_each(|((dx, dy), x)| {
                    write_gradient(x, dy, &weights[0], &weights[1], &weights[2], dx);
                });
            })
        };
        Gradient { x, gamma, beta }
    }

    fn rewrite(&self, weights: &[Vec<f32>; 3], x: &[f32], dy: &mut [f32]) {
        let none = Line { scale: Vec::new(), shift: Vec::new() };
        let line = self.relu.unwrap_or(&none);
        rewrite_gradient(x, &weights[0], &weights[1], &weights[2], &line.scale, &line.shift, dy);
    }

    /// `dx = weights[0]·dy + weights[1]·x + weights[2]`, and the gradients of `gamma` and `beta`.
    fn weights(&self, dy: &[f32]) -> ([Vec<f32>; 3], Vec<f32>, Vec<f32>) {
        let channels = self.gamma.len();
        assert_eq!(self.x.len(), dy.len());
        assert!(self.x.len().is_multiple_of(channels.max(1)), "whole rows of {channels} channels");
        assert!(channels > 0 || self.x.is_empty(), "values of no channel");
        assert_eq!(self.statistics.mean.len(), channels, "a mean for each channel");
        assert_eq!(self.statistics.variance.len(), channels, "a variance for each channel");
        let (scale, shift) = match self.relu {
            Some(line) => (&line.scale[..], &line.shift[..]),
            None => (&[][..], &[][..]),
        };
        let parts: Vec<Vec<f64>> = if channels == 0 {
            Vec::new()
        } else {
            let task = rows_per_task(channels) * channels;
            self.x
                .par_chunks(task)
                .zip(dy.par_chunks(task))
                .map(|(x, dy)| {
                    let mut sums = vec![0.0; 2 * channels];
                    add_gradients(x, dy, &self.statistics.mean, scale, shift, &mut sums);
                    sums
                })
                .collect()
        };
        let sums = total(parts, 2 * channels);
        let (beta, gamma) = sums.split_at(channels);
        let rows = (self.x.len() / channels.max(1)) as f64;
        let inverse = self.statistics.inverse_deviation(self.epsilon);
        let mut weights = [vec![0.0; channels], vec![0.0; channels], vec![0.0; channels]];
        for c in 0..channels {
            let inverse = f64::from(inverse[c]);
            let of_dy = f64::from(self.gamma[c]) * inverse;
            weights[0][c] = of_dy as f32;
            if !self.constant {
                let of_x = -of_dy * inverse * inverse * gamma[c] / rows;
                weights[1][c] = of_x as f32;
                weights[2][c] =
                    (-of_dy * beta[c] / rows - of_x * f64::from(self.statistics.mean[c])) as f32;
            }
        }
        let gamma = gamma.iter().zip(&inverse).map(|(g, inverse)| (g * f64::from(*inverse)) as f32);
        (weights, gamma.collect(), beta.iter().map(|b| *b as f32).collect())
    }
}

vectorised! {
    /// Adds Σ dy and Σ dy·(x - mean) of each channel to the halves of `sums`, leaving out where the line was cut off (if
    /// there is one).
    fn add_gradients(
        x: &[f32],
        dy: &[f32],
        mean: &[f32],
        scale: &[f32],
        shift: &[f32],
        sums: &mut [f64],
    ) {
        let channels = mean.len();
        let (first, second) = sums.split_at_mut(channels);
        let near = rows_near(channels) * channels;
        for (x, dy) in x.chunks(near).zip(dy.chunks(near)) {
            for from in (0..channels).step_by(BLOCK) {
                let width = BLOCK.min(channels - from);
                let (mut s, mut q) = ([0.0f32; BLOCK], [0.0f32; BLOCK]);
                let (mut m, mut a, mut b) = ([0.0f32; BLOCK], [0.0f32; BLOCK], [0.0f32; BLOCK]);
                m[..width].copy_from_slice(&mean[from..from + width]);
                let rows = x.chunks_exact(channels).zip(dy.chunks_exact(channels));
                if !scale.is_empty() {
                    a[..width].copy_from_slice(&scale[from..from + width]);
                    b[..width].copy_from_slice(&shift[from..from + width]);
                    if width == BLOCK {
                        for (x, dy) in rows {
                            let (x, dy) = (&x[from..from + BLOCK], &dy[from..from + BLOCK]);
                            for i in 0..BLOCK {
                                let d = if x[i] * a[i] + b[i] <= 0.0 { 0.0 } else { dy[i] };
                                s[i] += d;
                                q[i] += d * (x[i] - m[i]);
                            }
                        }
                    } else {
                        for (x, dy) in rows {
                            let (x, dy) = (&x[from..from + width], &dy[from..from + width]);
                            for i in 0..width {
                                let d = if x[i] * a[i] + b[i] <= 0.0 { 0.0 } else { dy[i] };
                                s[i] += d;
                                q[i] += d * (x[i] - m[i]);
                            }
                        }
                    }
                } else if width == BLOCK {
                    for (x, dy) in rows {
                        let (x, dy) = (&x[from..from + BLOCK], &dy[from..from + BLOCK]);
                        for i in 0..BLOCK {
                            s[i] += dy[i];
                            q[i] += dy[i] * (x[i] - m[i]);
                        }
                    }
                } else {
                    for (x, dy) in rows {
                        let (x, dy) = (&x[from..from + width], &dy[from..from + width]);
                        for i in 0..width {
                            s[i] += dy[i];
                            q[i] += dy[i] * (x[i] - m[i]);
                        }
                    }
                }
                for i in 0..width {
                    first[from + i] += f64::from(s[i]);
                    second[from + i] += f64::from(q[i]);
                }
            }
        }
    }
}

vectorised! {
    fn write_gradient(
        x: &[f32],
        dy: &[f32],
        of_dy: &[f32],
        of_x: &[f32],
        constant: &[f32],
        dx: &mut Fresh,
    ) {
        let channels = of_dy.len();
        let (of_x, constant) = (&of_x[..channels], &constant[..channels]);
        let rows = dx.chunks_exact_mut(channels).zip(dy.chunks_exact(channels));
        for ((dx, dy), x) in rows.zip(x.chunks_exact(channels)) {
            for i in 0..channels {
                dx[i].write(of_dy[i] * dy[i] + (of_x[i] * x[i] + constant[i]));
            }
        }
    }
}

vectorised! {
    /// As [`write_gradient`], over `dy`, after cutting it off where the line was (if there is one).
    fn rewrite_gradient(
        x: &[f32],
        of_dy: &[f32],
        of_x: &[f32],
        constant: &[f32],
        scale: &[f32],
        shift: &[f32],
        dy: &mut [f32],
    ) {
        let channels = of_dy.len();
        let (of_x, constant) = (&of_x[..channels], &constant[..channels]);
        let rows = dy.chunks_exact_mut(channels).zip(x.chunks_exact(channels));
        if scale.is_empty() {
            for (dy, x) in rows {
                for i in 0..channels {
                    dy[i] = of_dy[i] * dy[i] + (of_x[i] * x[i] + constant[i]);
                }
            }
        } else {
            let (scale, shift) = (&scale[..channels], &shift[..channels]);
            for (dy, x) in rows {
                for i in 0..channels {
                    let d = if x[i] * scale[i] + shift[i] <= 0.0 { 0.0 } else { dy[i] };
                    dy[i] = of_dy[i] * d + (of_x[i] * x[i] + constant[i]);
                }
            }
        }
    }
}
