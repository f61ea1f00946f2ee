//! The gradient of a convolution's kernel.
#![allow(unsafe_code, reason = "tiles work on pointers")]

use rayon::prelude::*;

use super::conv::Conv;
use super::lanes::Lanes;
use super::level::{Level, with_lanes};
use super::tile::{Operands, strip, wide};

/// Groups of images whose sums are kept apart, so that they can be made at once.
const GROUPS: usize = 8;

/// The gradient of the kernel.
pub(crate) fn backward_weight(conv: Conv, x: &[f32], dy: &[f32]) -> Vec<f32> {
    assert_eq!(x.len(), conv.images * conv.input_len());
    assert_eq!(dy.len(), conv.images * conv.output_len());
    let level = Level::current();
    let width = conv.outputs.next_multiple_of(level.lanes());
    let padded;
    let dy = if width == conv.outputs {
        dy
    } else {
        padded = widened(dy, conv.outputs, width);
        &padded
    };
    // A task has the images of one group and one row of taps.
    let per_group = conv.images.div_ceil(GROUPS).max(1);
    let groups = conv.images.div_ceil(per_group);
    let task_len = conv.columns.taps * conv.inputs * width;
    let mut sums = vec![0.0; groups * conv.rows.taps * task_len];
    if task_len > 0 {
        sums.par_chunks_mut(task_len).enumerate().for_each(|(task, sums)| {
            let (group, tap) = (task / conv.rows.taps, task % conv.rows.taps);
            for image in group * per_group..((group + 1) * per_group).min(conv.images) {
                let x = &x[image * conv.input_len()..][..conv.input_len()];
                let len = conv.rows.output * conv.columns.output * width;
                let dy = &dy[image * len..][..len];
                let (conv, sums) = (&conv, &mut *sums);
                with_lanes!(
                    level,
                    add_image(
                        conv: &Conv,
                        tap: usize,
                        x: &[f32],
                        dy: &[f32],
                        width: usize,
                        sums: &mut [f32],
                    )
                );
            }
        });
    }
    let group_len = conv.rows.taps * task_len;
    let mut total = vec![0.0; conv.weight_len()];
    if conv.outputs > 0 && group_len > 0 {
        total.par_chunks_mut(conv.outputs).enumerate().with_min_len(64).for_each(|(row, total)| {
            for group in sums.chunks_exact(group_len) {
                for (total, sum) in total.iter_mut().zip(&group[row * width..]) {
                    *total += sum;
                }
            }
        });
    }
    total
}

/// Rows of `columns` values with zeros behind them.
fn widened(values: &[f32], columns: usize, width: usize) -> Vec<f32> {
    let mut wide = vec![0.0; values.len() / columns.max(1) * width];
    if columns > 0 {
        for (to, from) in wide.chunks_exact_mut(width).zip(values.chunks_exact(columns)) {
            to[..columns].copy_from_slice(from);
        }
    }
    wide
}

/// Bytes of images that stay in the nearest cache while all taps pass over them.
const NEAR: usize = 24 << 10;

/// Adds one image's part of the gradient of one row of taps to `sums`, `[column taps, inputs, width]`.
///
/// # Safety
/// The instructions of `L` must be there.
#[inline(always)]
unsafe fn add_image<L: Lanes>(
    conv: &Conv,
    tap: usize,
    x: &[f32],
    dy: &[f32],
    width: usize,
    sums: &mut [f32],
) {
    let (rows, columns, inputs) = (&conv.rows, &conv.columns, conv.inputs);
    let (x_row, dy_row) = (columns.input * inputs, columns.output * width);
    assert_eq!(x.len(), rows.input * x_row);
    assert_eq!(dy.len(), rows.output * dy_row);
    assert_eq!(sums.len(), columns.taps * inputs * width);
    let seeing = rows.seeing(tap);
    let block = (NEAR / 4 / (rows.stride * x_row + dy_row).max(1)).max(1);
    for from in seeing.clone().step_by(block) {
        let count = block.min(seeing.end - from);
        for column_tap in 0..columns.taps {
            let across = columns.seeing(column_tap);
            if across.is_empty() || inputs == 0 {
                continue;
            }
            let x_row_from = from * rows.stride + tap - rows.padding;
            let x_column_from = across.start * columns.stride + column_tap - columns.padding;
            let mut at = Operands {
                a: x.as_ptr().wrapping_add(x_row_from * x_row + x_column_from * inputs),
                a_m: 1,
                a_r: rows.stride * x_row,
                a_k: columns.stride * inputs,
                b: std::ptr::null(),
                b_r: dy_row,
                b_k: width,
                rows: count,
                depth: across.len(),
                init: std::ptr::null(),
                init_m: width,
                c: std::ptr::null_mut(),
                c_m: width,
                columns: wide::<L>(),
                floor: f32::NEG_INFINITY,
            };
            let mut column = 0;
            while column < width {
                at.b = dy.as_ptr().wrapping_add(from * dy_row + across.start * width + column);
                at.c = sums.as_mut_ptr().wrapping_add(column_tap * inputs * width + column);
                at.init = at.c;
                // SAFETY: `seeing` has only outputs that see the tap inside `x`; `dy` and `sums` have `width` columns, a
                // multiple of a register's.
                unsafe {
                    if width - column >= wide::<L>() {
                        strip::<L, 2>(inputs, at);
                        column += wide::<L>();
                    } else {
                        strip::<L, 1>(inputs, at);
                        column += L::COUNT;
                    }
                }
            }
        }
    }
}
