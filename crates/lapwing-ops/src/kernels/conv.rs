//! Convolution, channels last: forward, and the gradients of its input and its kernel.
//!
//! Nothing is copied to a padded buffer: results are grouped into runs that see the same part of the kernel, and each run
//! is a strip of tiles over that part alone.
#![allow(unsafe_code, reason = "tiles work on pointers")]

use rayon::prelude::*;

use super::fresh::{Fresh, filled};
use super::lanes::Lanes;
use super::level::Level;
use super::tile::{Operands, strip, wide};

/// One axis of a convolution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) taps: usize,
    pub(crate) stride: usize,
    pub(crate) padding: usize,
}

impl Axis {
    pub(crate) fn new(input: usize, taps: usize, stride: usize, padding: usize) -> Self {
        assert!(stride > 0, "a stride of 0");
        assert!(taps > 0, "a window of 0");
        let padded = input + 2 * padding;
        assert!(padded >= taps, "a window of {taps} over {input} with a padding of {padding}");
        Self { input, output: (padded - taps) / stride + 1, taps, stride, padding }
    }

    /// Outputs that see `tap` inside the input.
    fn seeing(&self, tap: usize) -> std::ops::Range<usize> {
        let from = self.padding.saturating_sub(tap).div_ceil(self.stride);
        let end = (self.input + self.padding).saturating_sub(tap).div_ceil(self.stride);
        let end = end.min(self.output);
        from.min(end)..end
    }

    /// The slide from inputs to outputs.
    fn forward(&self) -> Slide {
        Slide::new(self.output, self.input, self.taps, self.stride, -(self.padding as isize), 0, 1)
    }

    /// The slides from gradients of outputs to those of inputs, one for each class of inputs that sees the same taps, with
    /// those taps in the order in which the slide meets them.
    fn backward(&self) -> Vec<(Slide, Vec<usize>)> {
        let s = self.stride;
        (0..s)
            .map(|class| {
                let first = (class + s - self.padding % s) % s;
                let inputs = self.input.saturating_sub(first).div_ceil(s);
                let taps: Vec<usize> = (class..self.taps).step_by(s).rev().collect();
                let origin =
                    ((first + self.padding - class) / s) as isize + 1 - taps.len() as isize;
                (Slide::new(inputs, self.output, taps.len(), 1, origin, first, s), taps)
            })
            .collect()
    }
}

/// A window that slides over `source` elements; result `t` sees elements `origin + t·step ..` through its taps and is
/// element `first + t·every` of the destination.
#[derive(Clone, Debug)]
struct Slide {
    source: usize,
    taps: usize,
    step: usize,
    origin: isize,
    first: usize,
    every: usize,
    runs: Vec<Run>,
}

/// Results `from..to` that see the same taps, `low..high`, inside the source.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: usize,
    to: usize,
    low: usize,
    high: usize,
}

impl Slide {
    fn new(
        results: usize,
        source: usize,
        taps: usize,
        step: usize,
        origin: isize,
        first: usize,
        every: usize,
    ) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for t in 0..results {
            let start = origin + (t * step) as isize;
            let low = (-start).clamp(0, taps as isize) as usize;
            let high = (source as isize - start).clamp(low as isize, taps as isize) as usize;
            match runs.last_mut() {
                Some(run) if (run.low, run.high) == (low, high) => run.to = t + 1,
                _ => runs.push(Run { from: t, to: t + 1, low, high }),
            }
        }
        Self { source, taps, step, origin, first, every, runs }
    }

    /// The source element under tap `tap` of result `t`.
    fn under(&self, t: usize, tap: usize) -> usize {
        (self.origin + (t * self.step + tap) as isize) as usize
    }
}

/// A convolution's sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conv {
    pub(crate) images: usize,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) rows: Axis,
    pub(crate) columns: Axis,
}

impl Conv {
    pub(crate) fn input_len(&self) -> usize {
        self.rows.input * self.columns.input * self.inputs
    }

    pub(crate) fn output_len(&self) -> usize {
        self.rows.output * self.columns.output * self.outputs
    }

    pub(crate) fn weight_len(&self) -> usize {
        self.rows.taps * self.columns.taps * self.inputs * self.outputs
    }

    /// Multiplications per image.
    fn work(&self) -> usize {
        self.rows.output * self.columns.output * self.weight_len()
    }

    /// Images that are worth a task of their own.
    fn images_per_task(&self) -> usize {
        (1 << 18) / self.work().max(1) + 1
    }
}

/// A matrix cut into panels of columns, each [`wide`] (the last one half as wide if that is enough), filled up with zeros.
pub(crate) struct Panels {
    values: Vec<f32>,
    depth: usize,
    columns: usize,
    lanes: usize,
}

/// One of [`Panels`].
#[derive(Clone, Copy)]
pub(crate) struct Panel<'a> {
    pub(crate) values: &'a [f32],
    /// The first column.
    pub(crate) from: usize,
    /// Columns that are no filling.
    pub(crate) columns: usize,
    /// Columns with filling.
    pub(crate) width: usize,
}

impl Panels {
    /// The matrix with `depth` rows and `columns` columns and `value(row, column)` in it, for registers of `lanes`.
    pub(crate) fn new(
        depth: usize,
        columns: usize,
        lanes: usize,
        value: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let mut values = vec![0.0; depth * columns.next_multiple_of(lanes)];
        for from in (0..columns).step_by(2 * lanes) {
            let width = (columns - from).next_multiple_of(lanes).min(2 * lanes);
            let panel = &mut values[from * depth..][..width * depth];
            for (row, panel) in panel.chunks_exact_mut(width).enumerate() {
                for (column, cell) in (from..columns).zip(panel) {
                    *cell = value(row, column);
                }
            }
        }
        Self { values, depth, columns, lanes }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Panel<'_>> {
        (0..self.columns).step_by(2 * self.lanes).map(|from| {
            let left = self.columns - from;
            let width = left.next_multiple_of(self.lanes).min(2 * self.lanes);
            let values = &self.values[from * self.depth..][..width * self.depth];
            Panel { values, from, columns: left.min(width), width }
        })
    }
}

/// Lanes of the current level's registers.
pub(crate) fn lanes(level: Level) -> usize {
    match level {
        Level::Avx512 => 16,
        Level::Avx2 => 8,
        Level::Portable | Level::Neon => 4,
    }
}

/// `x` convolved with `weight`, plus `bias`.
pub(crate) fn forward(conv: Conv, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    assert_eq!(x.len(), conv.images * conv.input_len());
    assert_eq!(weight.len(), conv.weight_len());
    let level = Level::current();
    let depth = conv.rows.taps * conv.columns.taps * conv.inputs;
    let sweep = Sweep {
        rows: conv.rows.forward(),
        columns: conv.columns.forward(),
        source_channels: conv.inputs,
        destination_width: conv.columns.output,
        destination_channels: conv.outputs,
        panels: Panels::new(depth, conv.outputs, lanes(level), |row, column| {
            weight[row * conv.outputs + column]
        }),
        init: init(bias, conv.outputs, lanes(level)),
    };
    // SAFETY: a slide over every result of both axes writes every pixel.
    unsafe {
        filled(conv.images * conv.output_len(), |y| {
            images(y, conv.output_len(), x, conv.input_len(), conv.images_per_task(), |x, y| {
                sweep.run(level, x, y);
            });
        })
    }
}

/// The gradient of the input: `dy` against `weight`.
pub(crate) fn backward_input(conv: Conv, dy: &[f32], weight: &[f32]) -> Vec<f32> {
    assert_eq!(dy.len(), conv.images * conv.output_len());
    assert_eq!(weight.len(), conv.weight_len());
    let level = Level::current();
    let mut sweeps = Vec::new();
    for (rows, row_taps) in conv.rows.backward() {
        for (columns, column_taps) in conv.columns.backward() {
            let depth = row_taps.len() * column_taps.len() * conv.outputs;
            let panels = Panels::new(depth, conv.inputs, lanes(level), |row, column| {
                let (tap, channel) = (row / conv.outputs, row % conv.outputs);
                let row = row_taps[tap / column_taps.len()];
                let tap = row * conv.columns.taps + column_taps[tap % column_taps.len()];
                weight[(tap * conv.inputs + column) * conv.outputs + channel]
            });
            sweeps.push(Sweep {
                rows: rows.clone(),
                columns,
                source_channels: conv.outputs,
                destination_width: conv.columns.input,
                destination_channels: conv.inputs,
                panels,
                init: init(None, conv.inputs, lanes(level)),
            });
        }
    }
    // SAFETY: every input belongs to one class of each axis, so the sweeps together write every pixel.
    unsafe {
        filled(conv.images * conv.input_len(), |dx| {
            images(
                dx,
                conv.input_len(),
                dy,
                conv.output_len(),
                conv.images_per_task(),
                |dy, dx| {
                    for sweep in &sweeps {
                        sweep.run(level, dy, dx);
                    }
                },
            );
        })
    }
}

/// Calls `each` with every image of `source` and of `destination`.
fn images(
    destination: &mut Fresh,
    destination_len: usize,
    source: &[f32],
    source_len: usize,
    per_task: usize,
    each: impl Fn(&[f32], &mut Fresh) + Sync,
) {
    if destination_len == 0 || source_len == 0 {
        return;
    }
    destination
        .par_chunks_mut(destination_len)
        .zip(source.par_chunks(source_len))
        .with_min_len(per_task)
        .for_each(|(destination, source)| each(source, destination));
}

/// What results start from: the bias or zeros, filled up to whole registers.
fn init(bias: Option<&[f32]>, channels: usize, lanes: usize) -> Vec<f32> {
    let mut init = bias.unwrap_or_default().to_vec();
    assert!(bias.is_none_or(|bias| bias.len() == channels), "one bias for each channel");
    init.resize(channels.next_multiple_of(lanes), 0.0);
    init
}

/// A slide over rows and one over columns of an image, and the matrix to multiply with what they see.
struct Sweep {
    rows: Slide,
    columns: Slide,
    source_channels: usize,
    destination_width: usize,
    destination_channels: usize,
    panels: Panels,
    init: Vec<f32>,
}

impl Sweep {
    fn run(&self, level: Level, source: &[f32], destination: &mut Fresh) {
        assert_eq!(source.len(), self.rows.source * self.columns.source * self.source_channels);
        match level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the machine has these instructions, or this would not be the current level.
            Level::Avx512 => unsafe { self.avx512(source, destination) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::Avx2 => unsafe { self.avx2(source, destination) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: every machine of this architecture has these instructions.
            Level::Neon => unsafe { self.with::<super::lanes::Neon>(source, destination) },
            // SAFETY: no special instructions.
            _ => unsafe { self.with::<super::lanes::Portable>(source, destination) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn avx2(&self, source: &[f32], destination: &mut Fresh) {
        // SAFETY: the instructions are enabled.
        unsafe { self.with::<super::lanes::Avx2>(source, destination) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn avx512(&self, source: &[f32], destination: &mut Fresh) {
        // SAFETY: the instructions are enabled.
        unsafe { self.with::<super::lanes::Avx512>(source, destination) }
    }

    /// # Safety
    /// The instructions of `L` must be there.
    #[inline(always)]
    unsafe fn with<L: Lanes>(&self, source: &[f32], destination: &mut Fresh) {
        let (rows, columns) = (&self.rows, &self.columns);
        let (from_channels, to_channels) = (self.source_channels, self.destination_channels);
        let source_row = columns.source * from_channels;
        let destination_row = self.destination_width * to_channels;
        let pixel = |row: usize, column: usize| {
            (rows.first + row * rows.every) * destination_row
                + (columns.first + column * columns.every) * to_channels
        };
        for panel in self.panels.iter() {
            for down in &rows.runs {
                for across in &columns.runs {
                    // The last pixel of the run is inside, so all are.
                    let end = pixel(down.to - 1, across.to - 1) + panel.from + panel.columns;
                    assert!(end <= destination.len());
                    let tap = (down.low * columns.taps + across.low) * from_channels;
                    let mut at = Operands {
                        a: source.as_ptr(),
                        a_m: 0,
                        a_r: source_row,
                        a_k: 1,
                        b: panel.values.as_ptr().wrapping_add(tap * panel.width),
                        b_r: columns.taps * from_channels * panel.width,
                        b_k: panel.width,
                        rows: down.high - down.low,
                        depth: (across.high - across.low) * from_channels,
                        init: self.init.as_ptr().wrapping_add(panel.from),
                        init_m: 0,
                        c: destination.as_mut_ptr().cast(),
                        c_m: 0,
                        columns: panel.columns,
                        floor: f32::NEG_INFINITY,
                    };
                    if at.rows == 0 || at.depth == 0 {
                        (at.rows, at.depth) = (0, 0);
                    }
                    let (source, destination) = (at.a, at.c);
                    let seen = |row, column| {
                        rows.under(row, down.low) * source_row
                            + columns.under(column, across.low) * from_channels
                    };
                    // Tiles along the longer side.
                    let (tall, m) = (
                        down.to - down.from > across.to - across.from,
                        (down.to - down.from).max(across.to - across.from),
                    );
                    if tall {
                        at.a_m = rows.step * source_row;
                        at.c_m = rows.every * destination_row;
                    } else {
                        at.a_m = columns.step * from_channels;
                        at.c_m = columns.every * to_channels;
                    }
                    let others = if tall { across.from..across.to } else { down.from..down.to };
                    for other in others {
                        let (row, column) =
                            if tall { (down.from, other) } else { (other, across.from) };
                        if at.rows > 0 {
                            at.a = source.wrapping_add(seen(row, column));
                        }
                        at.c = destination.wrapping_add(pixel(row, column) + panel.from);
                        // SAFETY: the taps of a run are inside the source for all its results, and the panel has a
                        // row for each; the run's last result was found inside the destination, which is ours alone.
                        unsafe {
                            if panel.width == wide::<L>() {
                                strip::<L, 2>(m, at);
                            } else {
                                strip::<L, 1>(m, at);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Groups of images whose sums are kept apart, so that they can be made at once.
const GROUPS: usize = 8;

/// The gradient of the kernel.
pub(crate) fn backward_weight(conv: Conv, x: &[f32], dy: &[f32]) -> Vec<f32> {
    assert_eq!(x.len(), conv.images * conv.input_len());
    assert_eq!(dy.len(), conv.images * conv.output_len());
    let level = Level::current();
    let width = conv.outputs.next_multiple_of(lanes(level));
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
                add_weight_gradient(level, &conv, tap, x, &dy[image * len..][..len], width, sums);
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

/// Adds one image's part of the gradient of one row of taps to `sums`, `[column taps, inputs, width]`.
fn add_weight_gradient(
    level: Level,
    conv: &Conv,
    tap: usize,
    x: &[f32],
    dy: &[f32],
    width: usize,
    sums: &mut [f32],
) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn avx2(conv: &Conv, tap: usize, x: &[f32], dy: &[f32], width: usize, sums: &mut [f32]) {
        // SAFETY: the instructions are enabled.
        unsafe { weight_gradient::<super::lanes::Avx2>(conv, tap, x, dy, width, sums) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn avx512(conv: &Conv, tap: usize, x: &[f32], dy: &[f32], width: usize, sums: &mut [f32]) {
        // SAFETY: the instructions are enabled.
        unsafe { weight_gradient::<super::lanes::Avx512>(conv, tap, x, dy, width, sums) }
    }

    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has these instructions, or this would not be the current level.
        Level::Avx512 => unsafe { avx512(conv, tap, x, dy, width, sums) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { avx2(conv, tap, x, dy, width, sums) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: every machine of this architecture has these instructions.
        Level::Neon => unsafe {
            weight_gradient::<super::lanes::Neon>(conv, tap, x, dy, width, sums);
        },
        // SAFETY: no special instructions.
        _ => unsafe {
            weight_gradient::<super::lanes::Portable>(conv, tap, x, dy, width, sums);
        },
    }
}

/// Bytes of images that stay in the nearest cache while all taps pass over them.
const NEAR: usize = 24 << 10;

/// # Safety
/// The instructions of `L` must be there.
#[inline(always)]
unsafe fn weight_gradient<L: Lanes>(
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
