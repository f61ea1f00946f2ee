//! Pooling, channels last.
#![allow(unsafe_code, reason = "vector instructions, and buffers that are not cleared first")]

use rayon::prelude::*;

use super::columns::{column_sums, total};
use super::conv::Axis;
use super::fresh::{Fresh, filled, written};
use super::level::vectorised;

/// Sizes of a pooling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    pub(crate) channels: usize,
    pub(crate) rows: Axis,
    pub(crate) columns: Axis,
}

/// Stands for a result that ReLU has cut off, or that has no input at all.
const NOWHERE: u8 = u8::MAX;

impl Pool {
    /// Positions of a window that can be told apart.
    pub(crate) const MOST: usize = NOWHERE as usize;

    fn input_len(&self) -> usize {
        self.rows.input * self.columns.input * self.channels
    }

    fn output_len(&self) -> usize {
        self.rows.output * self.columns.output * self.channels
    }

    /// Whether windows lie side by side, so that every input is in one at most.
    fn tiles(&self) -> bool {
        [self.rows, self.columns].iter().all(|axis| axis.stride == axis.taps && axis.padding == 0)
    }

    /// The largest value of each window, and where in the window it is. With `bias`, that of `relu(x + bias)`.
    ///
    /// An image has pixels: there is no largest of none.
    pub(crate) fn forward(&self, x: &[f32], bias: Option<&[f32]>) -> (Vec<f32>, Vec<u8>) {
        assert!(self.rows.taps * self.columns.taps <= Self::MOST);
        assert!(self.rows.input > 0 && self.columns.input > 0, "an image without pixels");
        assert!(bias.is_none_or(|bias| bias.len() == self.channels), "one bias for each channel");
        let (input, output) = (self.input_len(), self.output_len());
        let images = x.len().checked_div(input).unwrap_or(0);
        assert_eq!(images * input, x.len(), "whole images");
        let mut places = vec![NOWHERE; images * output];
        // SAFETY: images cover the buffer, and `pool_image` writes every pixel of theirs.
        let y = unsafe {
            filled(images * output, |y| {
                if output == 0 {
                    return;
                }
                y.par_chunks_mut(output)
                    .zip(places.par_chunks_mut(output))
                    .zip(x.par_chunks(input))
                    .for_each(|((y, places), x)| pool_image(self, x, bias, y, places));
            })
        };
        (y, places)
    }

    /// The gradient of the input, and of the bias if there was one.
    pub(crate) fn backward(
        &self,
        dy: &[f32],
        places: &[u8],
        bias: bool,
    ) -> (Vec<f32>, Option<Vec<f32>>) {
        let (input, output) = (self.input_len(), self.output_len());
        assert_eq!(dy.len(), places.len());
        let images = dy.len().checked_div(output).unwrap_or(0);
        assert_eq!(images * output, dy.len(), "whole images");
        // SAFETY: images cover the buffer, and `unpool_image` writes every pixel of theirs.
        let dx = unsafe {
            filled(images * input, |dx| {
                if input == 0 || output == 0 {
                    return;
                }
                dx.par_chunks_mut(input)
                    .zip(dy.par_chunks(output))
                    .zip(places.par_chunks(output))
                    .for_each(|((dx, dy), places)| unpool_image(self, dy, places, dx));
            })
        };
        let bias = bias.then(|| {
            let parts = dy
                .par_chunks(output.max(1))
                .zip(places.par_chunks(output.max(1)))
                .map(|(dy, places)| {
                    let mut sums = vec![0.0; self.channels];
                    add_placed(dy, places, &mut sums);
                    sums
                })
                .collect();
            total(parts, self.channels).into_iter().map(|sum| sum as f32).collect()
        });
        (dx, bias)
    }
}

vectorised! {
    fn pool_image(pool: &Pool, x: &[f32], bias: Option<&[f32]>, y: &mut Fresh, places: &mut [u8]) {
        let (rows, columns, channels) = (&pool.rows, &pool.columns, pool.channels);
        let at = |row: usize, column: usize| (row * columns.input + column) * channels;
        // What most networks have: windows of 2 × 2, side by side.
        if pool.tiles() && rows.taps == 2 && columns.taps == 2 {
            for row in 0..rows.output {
                for column in 0..columns.output {
                    let to = (row * columns.output + column) * channels;
                    let (y, places) = (&mut y[to..to + channels], &mut places[to..to + channels]);
                    let a = &x[at(2 * row, 2 * column)..][..channels];
                    let b = &x[at(2 * row, 2 * column + 1)..][..channels];
                    let c = &x[at(2 * row + 1, 2 * column)..][..channels];
                    let d = &x[at(2 * row + 1, 2 * column + 1)..][..channels];
                    for i in 0..channels {
                        let (mut best, mut place) = (a[i], 0u8);
                        // Not a number stays, as it would anywhere else.
                        (best, place) = if b[i] <= best || best.is_nan() { (best, place) } else { (b[i], 1) };
                        (best, place) = if c[i] <= best || best.is_nan() { (best, place) } else { (c[i], 2) };
                        (best, place) = if d[i] <= best || best.is_nan() { (best, place) } else { (d[i], 3) };
                        y[i].write(best);
                        places[i] = place;
                    }
                }
            }
        } else {
            for row in 0..rows.output {
                for column in 0..columns.output {
                    let to = (row * columns.output + column) * channels;
                    let (y, places) = (&mut y[to..to + channels], &mut places[to..to + channels]);
                    for y in y.iter_mut() {
                        y.write(f32::NEG_INFINITY);
                    }
                    // SAFETY: all of it was, just now.
                    let y = unsafe { written(y) };
                    for place in 0..rows.taps * columns.taps {
                        let down = row * rows.stride + place / columns.taps;
                        let across = column * columns.stride + place % columns.taps;
                        let inside = (rows.padding..rows.padding + rows.input).contains(&down)
                            && (columns.padding..columns.padding + columns.input).contains(&across);
                        if !inside {
                            continue;
                        }
                        let x = &x[at(down - rows.padding, across - columns.padding)..][..channels];
                        for i in 0..channels {
                            let seen = places[i] != NOWHERE;
                            if seen && (x[i] <= y[i] || y[i].is_nan()) {
                                continue;
                            }
                            y[i] = x[i];
                            places[i] = place as u8;
                        }
                    }
                }
            }
        }
        if let Some(bias) = bias {
            // SAFETY: every result of the image was, by either of the loops above.
            let y = unsafe { written(y) };
            for (y, places) in y.chunks_exact_mut(channels).zip(places.chunks_exact_mut(channels)) {
                for i in 0..channels {
                    let value = y[i] + bias[i];
                    // `NOWHERE` has all bits, and a store without a condition is vectorised.
                    places[i] |= if value <= 0.0 { NOWHERE } else { 0 };
                    y[i] = if value <= 0.0 { 0.0 } else { value };
                }
            }
        }
    }
}

vectorised! {
    fn unpool_image(pool: &Pool, dy: &[f32], places: &[u8], dx: &mut Fresh) {
        let (rows, columns, channels) = (&pool.rows, &pool.columns, pool.channels);
        let at = |row: usize, column: usize| (row * columns.input + column) * channels;
        let positions = rows.taps * columns.taps;
        if pool.tiles() {
            // Every pixel is written once: by its window, or as one left over.
            for row in 0..rows.input {
                let left = if row < rows.output * rows.taps { columns.output * columns.taps } else { 0 };
                for dx in &mut dx[at(row, left)..at(row + 1, 0)] {
                    dx.write(0.0);
                }
            }
            for row in 0..rows.output {
                for column in 0..columns.output {
                    let from = (row * columns.output + column) * channels;
                    let (dy, places) = (&dy[from..from + channels], &places[from..from + channels]);
                    for place in 0..positions {
                        let down = row * rows.taps + place / columns.taps;
                        let across = column * columns.taps + place % columns.taps;
                        let dx = &mut dx[at(down, across)..][..channels];
                        for i in 0..channels {
                            dx[i].write(if places[i] == place as u8 { dy[i] } else { 0.0 });
                        }
                    }
                }
            }
        } else {
            for dx in dx.iter_mut() {
                dx.write(0.0);
            }
            // SAFETY: all of it was, just now.
            let dx = unsafe { written(dx) };
            for row in 0..rows.output {
                for column in 0..columns.output {
                    let from = (row * columns.output + column) * channels;
                    for i in from..from + channels {
                        let place = usize::from(places[i]);
                        if place < positions {
                            let down = row * rows.stride + place / columns.taps - rows.padding;
                            let across =
                                column * columns.stride + place % columns.taps - columns.padding;
                            dx[at(down, across) + i - from] += dy[i];
                        }
                    }
                }
            }
        }
    }
}

vectorised! {
    /// Adds each channel's gradients to `sums`, but for those of results that were cut off.
    fn add_placed(dy: &[f32], places: &[u8], sums: &mut [f64]) {
        let channels = sums.len();
        let mut found = vec![0.0f32; channels];
        for (dy, places) in dy.chunks_exact(channels).zip(places.chunks_exact(channels)) {
            for i in 0..channels {
                found[i] += if places[i] == NOWHERE { 0.0 } else { dy[i] };
            }
        }
        for (sum, found) in sums.iter_mut().zip(found) {
            *sum += f64::from(found);
        }
    }
}

/// The mean of each channel over the `pixels` of each image.
pub(crate) fn average(x: &[f32], pixels: usize, channels: usize) -> Vec<f32> {
    let image = pixels * channels;
    if image == 0 {
        return Vec::new();
    }
    x.par_chunks(image)
        .with_min_len((1 << 14) / image + 1)
        .flat_map_iter(|x| column_sums(x, channels).into_iter().map(|sum| sum / pixels as f32))
        .collect()
}

/// Spreads the gradient of [`average`] over all pixels.
pub(crate) fn spread(dy: &[f32], pixels: usize, channels: usize) -> Vec<f32> {
    let image = pixels * channels;
    assert!(dy.len().is_multiple_of(channels.max(1)), "whole rows of {channels} channels");
    // SAFETY: images cover the buffer, and every pixel of theirs is written.
    unsafe {
        filled(if channels == 0 { 0 } else { dy.len() * pixels }, |dx| {
            if image == 0 {
                return;
            }
            dx.par_chunks_mut(image)
                .zip(dy.par_chunks(channels))
                .with_min_len((1 << 14) / image + 1)
                .for_each(|(dx, dy)| spread_image(dy, pixels as f32, dx));
        })
    }
}

vectorised! {
    fn spread_image(dy: &[f32], pixels: f32, dx: &mut Fresh) {
        for dx in dx.chunks_exact_mut(dy.len()) {
            for (dx, dy) in dx.iter_mut().zip(dy) {
                dx.write(dy / pixels);
            }
        }
    }
}
