//! Convolution, channels last: forward, and the gradients of its input and its kernel.
//!
//! Nothing is copied to a padded buffer: results are grouped into runs that see the same part of the kernel, and each run
//! is a strip of tiles over that part alone.
#![allow(unsafe_code, reason = "tiles work on pointers")]

use rayon::prelude::*;

use super::fresh::{Fresh, filled};
use super::lanes::Lanes;
use super::level::{Level, with_lanes};
use super::panels::Panels;
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
        // Distances are computed as signed numbers, which sizes beyond memory would wrap.
        assert!([input, taps, stride, padding].iter().all(|size| *size < 1 << 31), "sizes");
        let padded = input + 2 * padding;
        assert!(padded >= taps, "a window of {taps} over {input} with a padding of {padding}");
        Self { input, output: (padded - taps) / stride + 1, taps, stride, padding }
    }

    /// Outputs that see `tap` inside the input.
    pub(crate) fn seeing(&self, tap: usize) -> std::ops::Range<usize> {
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
    /// Refuses sizes whose products do not fit, before anything is computed from them.
    pub(crate) fn new(images: usize, channels: [usize; 2], rows: Axis, columns: Axis) -> Self {
        let [inputs, outputs] = channels;
        let fits = |sizes: [usize; 4]| sizes.iter().try_fold(4, |n: usize, s| n.checked_mul(*s));
        let sizes = [
            [images, rows.input, columns.input, inputs],
            [images, rows.output, columns.output, outputs],
            [rows.taps, columns.taps, inputs, outputs],
        ];
        assert!(sizes.into_iter().all(|sizes| fits(sizes).is_some()), "tensors beyond memory");
        Self { images, inputs, outputs, rows, columns }
    }

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
        (self.rows.output * self.columns.output).saturating_mul(self.weight_len())
    }

    /// Images that are worth a task of their own.
    fn images_per_task(&self) -> usize {
        (1 << 18) / self.work().max(1) + 1
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
        panels: Panels::new(depth, conv.outputs, level.lanes(), |row, column| {
            weight[row * conv.outputs + column]
        }),
        init: init(bias, conv.outputs, level.lanes()),
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
            let panels = Panels::new(depth, conv.inputs, level.lanes(), |row, column| {
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
                init: init(None, conv.inputs, level.lanes()),
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
    if destination_len == 0 {
        return;
    }
    // Images without pixels or channels: results are what they start from, and there must be some.
    if source_len == 0 {
        destination.par_chunks_mut(destination_len).for_each(|destination| each(&[], destination));
        return;
    }
    assert_eq!(destination.len() / destination_len, source.len() / source_len, "as many images");
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
        let sweep = self;
        with_lanes!(level, sweep_image(sweep: &Sweep, source: &[f32], destination: &mut Fresh));
    }
}

/// # Safety
/// The instructions of `L` must be there.
#[inline(always)]
unsafe fn sweep_image<L: Lanes>(sweep: &Sweep, source: &[f32], destination: &mut Fresh) {
    assert_eq!(source.len(), sweep.rows.source * sweep.columns.source * sweep.source_channels);
    let (rows, columns) = (&sweep.rows, &sweep.columns);
    let (from_channels, to_channels) = (sweep.source_channels, sweep.destination_channels);
    let source_row = columns.source * from_channels;
    let destination_row = sweep.destination_width * to_channels;
    let pixel = |row: usize, column: usize| {
        (rows.first + row * rows.every) * destination_row
            + (columns.first + column * columns.every) * to_channels
    };
    for panel in sweep.panels.iter() {
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
                    init: sweep.init.as_ptr().wrapping_add(panel.from),
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
