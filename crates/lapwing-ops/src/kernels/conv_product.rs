//! Convolutions of many channels as products of matrices.
//!
//! Deep in a residual network images are a few pixels and kernels are millions of numbers: tiles over one image would read
//! all of the kernel for a handful of results. Here what the kernel sees is copied out, pixel by pixel, so that one product
//! serves many images.

use rayon::prelude::*;

use super::conv::{Axis, Conv};
use super::product::{Matrix, add_bias, add_product, product};

/// Products of channels from which on this is the faster way.
const MANY: usize = 1 << 13;
/// Numbers that are copied out at a time, about: a few dozen megabytes whatever the batch.
const PATCHES: usize = 1 << 22;

/// Whether a convolution is one for this.
pub(crate) fn suits(conv: &Conv) -> bool {
    conv.inputs * conv.outputs >= MANY && conv.input_len() > 0 && conv.output_len() > 0
}

/// Whether a pixel of the result sees one pixel, in the same place: nothing need be copied out.
fn is_plain(conv: &Conv) -> bool {
    let plain = |axis: &Axis| (axis.taps, axis.stride, axis.padding) == (1, 1, 0);
    plain(&conv.rows) && plain(&conv.columns)
}

/// Numbers that a pixel of the result sees.
fn seen(conv: &Conv) -> usize {
    conv.rows.taps * conv.columns.taps * conv.inputs
}

/// Pixels of the result of an image.
fn pixels(conv: &Conv) -> usize {
    conv.rows.output * conv.columns.output
}

/// Images whose patches are copied out at a time: the same for any number of threads, since sums depend on it.
fn at_a_time(conv: &Conv) -> usize {
    (PATCHES / (pixels(conv) * seen(conv)).max(1)).max(1)
}

/// `x` convolved with `weight`, plus `bias`.
pub(crate) fn forward(conv: Conv, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let kernel = Matrix::new(weight, conv.outputs);
    let multiply = |patches: &[f32]| {
        let rows = patches.len() / seen(&conv);
        product([rows, conv.outputs, seen(&conv)], Matrix::new(patches, seen(&conv)), kernel)
    };
    let mut y = if is_plain(&conv) {
        multiply(x)
    } else {
        let mut y = Vec::with_capacity(conv.images * conv.output_len());
        for x in x.chunks(at_a_time(&conv) * conv.input_len()) {
            y.extend(multiply(&patches(&conv, x)));
        }
        y
    };
    if let Some(bias) = bias {
        add_bias(&mut y, bias, false);
    }
    y
}

/// The gradient of the input.
pub(crate) fn backward_input(conv: Conv, dy: &[f32], weight: &[f32]) -> Vec<f32> {
    let kernel = Matrix::new(weight, conv.outputs).transposed();
    let multiply = |dy: &[f32]| {
        let rows = dy.len() / conv.outputs;
        product([rows, seen(&conv), conv.outputs], Matrix::new(dy, conv.outputs), kernel)
    };
    if is_plain(&conv) {
        return multiply(dy);
    }
    let mut dx = vec![0.0; conv.images * conv.input_len()];
    let images = at_a_time(&conv);
    let parts = dx.chunks_mut(images * conv.input_len()).zip(dy.chunks(images * conv.output_len()));
    for (dx, dy) in parts {
        let patches = multiply(dy);
        let of_image = pixels(&conv) * seen(&conv);
        let images = dx.par_chunks_mut(conv.input_len()).zip(patches.par_chunks(of_image));
        images.for_each(|(dx, patches)| {
            for_each_row_of_taps(&conv, |patch, image| {
                for (dx, patch) in dx[image].iter_mut().zip(&patches[patch]) {
                    *dx += patch;
                }
            });
        });
    }
    dx
}

/// The gradient of the kernel.
pub(crate) fn backward_weight(conv: Conv, x: &[f32], dy: &[f32]) -> Vec<f32> {
    let sizes = |pixels: usize| [seen(&conv), conv.outputs, pixels];
    if is_plain(&conv) {
        return product(
            sizes(conv.images * pixels(&conv)),
            across(&conv, x),
            Matrix::new(dy, conv.outputs),
        );
    }
    let mut total = vec![0.0; conv.weight_len()];
    let images = at_a_time(&conv);
    let parts = x.chunks(images * conv.input_len()).zip(dy.chunks(images * conv.output_len()));
    for (x, dy) in parts {
        let (patches, rows) = (patches(&conv, x), dy.len() / conv.outputs);
        add_product(
            &mut total,
            sizes(rows),
            across(&conv, &patches),
            Matrix::new(dy, conv.outputs),
        );
    }
    total
}

/// Patches, one a column.
fn across<'a>(conv: &Conv, patches: &'a [f32]) -> Matrix<'a> {
    Matrix::new(patches, seen(conv)).transposed()
}

/// What each pixel of the results of some images sees, row by row of taps, zero beyond the border.
fn patches(conv: &Conv, x: &[f32]) -> Vec<f32> {
    let of_image = pixels(conv) * seen(conv);
    let mut patches = vec![0.0; x.len() / conv.input_len() * of_image];
    let images = patches.par_chunks_mut(of_image).zip(x.par_chunks(conv.input_len()));
    images.for_each(|(patches, x)| {
        for_each_row_of_taps(conv, |patch, image| {
            patches[patch].copy_from_slice(&x[image]);
        });
    });
    patches
}

/// Calls `each` with every row of taps of every pixel of an image's result, as far as it lies inside the image: where it is
/// among the patches, and where in the image.
fn for_each_row_of_taps(
    conv: &Conv,
    mut each: impl FnMut(std::ops::Range<usize>, std::ops::Range<usize>),
) {
    let Conv { inputs, rows, columns, .. } = *conv;
    for row in 0..rows.output {
        for column in 0..columns.output {
            let pixel = (row * columns.output + column) * seen(conv);
            // Taps of this column that are inside.
            let start = column * columns.stride;
            let low = columns.padding.saturating_sub(start).min(columns.taps);
            let high = (columns.input + columns.padding).saturating_sub(start).min(columns.taps);
            if low >= high {
                continue;
            }
            for tap in 0..rows.taps {
                let Some(image_row) = (row * rows.stride + tap).checked_sub(rows.padding) else {
                    continue;
                };
                if image_row >= rows.input {
                    continue;
                }
                let from = pixel + (tap * columns.taps + low) * inputs;
                let image = (image_row * columns.input + start + low - columns.padding) * inputs;
                let len = (high - low) * inputs;
                each(from..from + len, image..image + len);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::conv::{self, Axis};
    use super::super::conv_weight;
    use super::*;

    fn numbers(len: usize, scale: f32) -> Vec<f32> {
        (0..len).map(|i| scale * ((i as f32 * 0.37).sin() + (i % 7) as f32 * 0.1)).collect()
    }

    fn near(ours: &[f32], theirs: &[f32], what: &str) {
        assert_eq!(ours.len(), theirs.len(), "{what}");
        let scale = theirs.iter().fold(1.0_f32, |most, value| most.max(value.abs()));
        for (a, b) in ours.iter().zip(theirs) {
            assert!((a - b).abs() < 2e-5 * scale, "{what}: {a} against {b}");
        }
    }

    #[test]
    fn products_are_what_tiles_are() {
        // Side, taps, stride, padding.
        for (side, taps, stride, padding) in [
            (5, 3, 1, 1),
            (5, 3, 2, 1),
            (4, 1, 1, 0),
            (5, 1, 2, 0),
            (9, 7, 2, 3),
            (2, 3, 1, 1),
            (3, 2, 3, 2),
        ] {
            let what = format!("{side} {taps} {stride} {padding}");
            let rows = Axis::new(side, taps, stride, padding);
            let columns = Axis::new(side + 1, taps, stride, padding);
            let conv = Conv::new(3, [5, 6], rows, columns);
            let (x, weight) = (numbers(3 * conv.input_len(), 1.0), numbers(conv.weight_len(), 0.3));
            let (dy, bias) = (numbers(3 * conv.output_len(), 0.7), numbers(6, 1.0));
            let tiles = conv::forward(conv, &x, &weight, Some(&bias));
            near(&forward(conv, &x, &weight, Some(&bias)), &tiles, &what);
            let tiles = conv::backward_input(conv, &dy, &weight);
            near(&backward_input(conv, &dy, &weight), &tiles, &what);
            let tiles = conv_weight::backward_weight(conv, &x, &dy);
            near(&backward_weight(conv, &x, &dy), &tiles, &what);
            assert!(!suits(&conv));
        }
    }
}
