//! Convolutions with kernels of 3 × 3 pixels, step by step, in fewer multiplications: Winograd's F(2 × 2, 3 × 3).
//!
//! Results are made in tiles of 2 × 2 out of the 4 × 4 pixels that they see. Sums and differences of the pixels, and of the
//! kernel, are 16 planes; the products of two planes, added up over channels, are 16 numbers whose sums and differences are
//! the four results: 16 multiplications where there were 36. The factors are 1 and ½, so little is lost in rounding.
//! The gradient of the input is such a convolution itself; that of the kernel goes the same way backwards.
#![allow(unsafe_code, reason = "vector instructions and tiles work on pointers")]

use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use super::conv::{Axis, Conv};
use super::fresh::{Fresh, filled};
use super::lanes::Lanes;
use super::level::{Level, with_lanes};
use super::tile::{Operands, strip, wide};
use super::winograd_planes::{PLANES, SIDE, STEP, TAPS, kernel_planes, put_together, take_apart};

/// Channels come in multiples of this, the widest strip.
const WIDEST: usize = 32;
/// Tiles that are multiplied at a time, at most: their planes stay in the second cache.
const TOGETHER: usize = 64;

/// Whether a convolution is one for this.
pub(crate) fn suits(conv: &Conv) -> bool {
    let fits = |axis: &Axis| (axis.taps, axis.stride) == (TAPS, 1) && axis.padding < TAPS;
    let many = |channels: usize| channels > 0 && channels.is_multiple_of(WIDEST);
    fits(&conv.rows)
        && fits(&conv.columns)
        && many(conv.inputs)
        && many(conv.outputs)
        && conv.input_len() > 0
        && conv.output_len() > 0
}

/// Tiles over images.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    /// Rows and columns of what is seen.
    seen: [usize; 2],
    /// Rows and columns of what is made.
    made: [usize; 2],
    padding: [usize; 2],
}

/// A tile: its image, and its first result's row and column.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    image: usize,
    row: usize,
    column: usize,
}

impl Grid {
    pub(crate) fn forward(conv: &Conv) -> Self {
        let Conv { rows, columns, .. } = conv;
        Self {
            seen: [rows.input, columns.input],
            made: [rows.output, columns.output],
            padding: [rows.padding, columns.padding],
        }
    }

    /// From gradients of results to those of the input.
    fn backward(conv: &Conv) -> Self {
        let Self { seen, made, padding } = Self::forward(conv);
        Self { seen: made, made: seen, padding: padding.map(|padding| TAPS - 1 - padding) }
    }

    /// Tiles of an image.
    pub(crate) fn tiles(&self) -> usize {
        self.made[0].div_ceil(STEP) * self.made[1].div_ceil(STEP)
    }

    pub(crate) fn place(&self, tile: usize) -> Place {
        let (image, tile) = (tile / self.tiles(), tile % self.tiles());
        let across = self.made[1].div_ceil(STEP);
        Place { image, row: tile / across * STEP, column: tile % across * STEP }
    }

    /// The pixels of `x` that a tile sees, `nothing` beyond the border.
    pub(crate) fn pixels(&self, x: &[f32], nothing: &[f32], place: Place) -> [*const f32; PLANES] {
        let channels = nothing.len();
        let mut pixels = [nothing.as_ptr(); PLANES];
        for (at, pixel) in pixels.iter_mut().enumerate() {
            let row = (place.row + at / SIDE).wrapping_sub(self.padding[0]);
            let column = (place.column + at % SIDE).wrapping_sub(self.padding[1]);
            if row < self.seen[0] && column < self.seen[1] {
                let at = (place.image * self.seen[0] + row) * self.seen[1] + column;
                *pixel = x[at * channels..][..channels].as_ptr();
            }
        }
        pixels
    }

    /// Where the results of a tile are among those of all images, in pixels, if there are so many.
    pub(crate) fn results(&self, place: Place) -> [Option<usize>; STEP * STEP] {
        std::array::from_fn(|at| {
            let (row, column) = (place.row + at / STEP, place.column + at % STEP);
            let there = row < self.made[0] && column < self.made[1];
            there.then(|| (place.image * self.made[0] + row) * self.made[1] + column)
        })
    }
}

/// `x` convolved with `weight`, plus `bias`.
pub(crate) fn forward(conv: Conv, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let Conv { images, inputs, outputs, .. } = conv;
    convolve(Grid::forward(&conv), images, [inputs, outputs], x, weight, bias)
}

/// The gradient of the input.
pub(crate) fn backward_input(conv: Conv, dy: &[f32], weight: &[f32]) -> Vec<f32> {
    let Conv { images, inputs, outputs, .. } = conv;
    let turned = turned(weight, inputs, outputs);
    convolve(Grid::backward(&conv), images, [outputs, inputs], dy, &turned, None)
}

/// The kernel seen from its results: taps in reverse order, channels exchanged.
fn turned(weight: &[f32], inputs: usize, outputs: usize) -> Vec<f32> {
    let mut turned = vec![0.0; weight.len()];
    let taps = weight.len() / (inputs * outputs);
    let rows = WIDEST * inputs;
    turned.par_chunks_mut(rows).enumerate().for_each(|(chunk, turned)| {
        let (tap, from) = (chunk / (outputs / WIDEST), chunk % (outputs / WIDEST) * WIDEST);
        let weight = &weight[(taps - 1 - tap) * inputs * outputs..];
        for inputs_from in (0..inputs).step_by(WIDEST) {
            for (output, turned) in turned.chunks_exact_mut(inputs).enumerate() {
                let turned = turned[inputs_from..][..WIDEST].iter_mut().enumerate();
                for (input, turned) in turned {
                    *turned = weight[(inputs_from + input) * outputs + from + output];
                }
            }
        }
    });
    turned
}

/// A convolution, and its kernel's planes.
struct Work<'a> {
    grid: Grid,
    channels: [usize; 2],
    /// Panel by panel of columns, plane by plane.
    kernel: Vec<f32>,
    bias: &'a [f32],
    nothing: &'a [f32],
}

fn convolve(
    grid: Grid,
    images: usize,
    channels: [usize; 2],
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
) -> Vec<f32> {
    let level = Level::current();
    let [inputs, outputs] = channels;
    let (seen, made) =
        (grid.seen[0] * grid.seen[1] * inputs, grid.made[0] * grid.made[1] * outputs);
    assert_eq!(x.len(), images * seen);
    assert_eq!(weight.len(), TAPS * TAPS * inputs * outputs);
    assert!(bias.is_none_or(|bias| bias.len() == outputs), "one bias for each channel");
    let nothing = vec![0.0; inputs.max(outputs)];
    let work = Work {
        grid,
        channels,
        kernel: kernel_planes(level, weight, inputs, outputs),
        bias: bias.unwrap_or(&nothing[..outputs]),
        nothing: &nothing[..inputs],
    };
    // A result is the same in whatever company it is made.
    let tiles = images * grid.tiles();
    let together = tiles.div_ceil(rayon::current_num_threads()).clamp(8, TOGETHER);
    let per_task = together.div_ceil(grid.tiles());
    let fill = |y: &mut Fresh| {
        let tasks = y.par_chunks_mut(per_task * made).zip(x.par_chunks(per_task * seen));
        tasks.for_each(|(y, x)| {
            let tiles = y.len() / made * grid.tiles();
            for from in (0..tiles).step_by(together) {
                work.run(level, from..tiles.min(from + together), x, y);
            }
        });
    };
    // SAFETY: every result belongs to a tile of its image.
    unsafe { filled(images * made, fill) }
}

thread_local! {
    /// Planes of the tiles that a thread works on.
    static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

impl Work<'_> {
    fn run(&self, level: Level, tiles: Range<usize>, x: &[f32], y: &mut Fresh) {
        let ([inputs, outputs], work) = (self.channels, self);
        let (seen, made) = (PLANES * tiles.len() * inputs, PLANES * tiles.len() * outputs);
        SCRATCH.with_borrow_mut(|scratch| {
            if scratch.len() < seen + made {
                scratch.resize(seen + made, 0.0);
            }
            let (seen, made) = scratch[..seen + made].split_at_mut(seen);
            with_lanes!(
                level,
                make(
                    work: &Work<'_>,
                    tiles: Range<usize>,
                    x: &[f32],
                    seen: &mut [f32],
                    made: &mut [f32],
                    y: &mut Fresh,
                )
            );
        });
    }
}

/// Makes the results of some tiles.
///
/// # Safety
/// The instructions of `L` must be there.
#[inline(always)]
unsafe fn make<L: Lanes>(
    work: &Work<'_>,
    tiles: Range<usize>,
    x: &[f32],
    seen: &mut [f32],
    made: &mut [f32],
    y: &mut Fresh,
) {
    let [inputs, outputs] = work.channels;
    let (count, panel) = (tiles.len(), PLANES * inputs * wide::<L>());
    assert_eq!(seen.len(), PLANES * count * inputs);
    assert_eq!(made.len(), PLANES * count * outputs);
    assert_eq!(work.kernel.len(), outputs / wide::<L>() * panel);
    assert!(work.bias.len() == outputs && work.nothing.len() == inputs);
    for (at, tile) in tiles.clone().enumerate() {
        let pixels = work.grid.pixels(x, work.nothing, work.grid.place(tile));
        let plane = &mut seen[at * inputs..];
        // SAFETY: pixels have `inputs` channels, a multiple of the lanes, and every plane has a row for each tile.
        unsafe { take_apart::<L>(pixels, inputs, plane.as_mut_ptr(), count * inputs) };
    }
    let zero = [0.0; WIDEST];
    for plane in 0..PLANES {
        for (from, kernel) in work.kernel.chunks_exact(panel).enumerate() {
            let at = Operands {
                a: seen[plane * count * inputs..].as_ptr(),
                a_m: inputs,
                a_r: 0,
                a_k: 1,
                b: kernel[plane * inputs * wide::<L>()..].as_ptr(),
                b_r: 0,
                b_k: wide::<L>(),
                rows: 1,
                depth: inputs,
                init: zero.as_ptr(),
                init_m: 0,
                c: made[plane * count * outputs + from * wide::<L>()..].as_mut_ptr(),
                c_m: outputs,
                columns: wide::<L>(),
                floor: f32::NEG_INFINITY,
            };
            // SAFETY: a plane of pixels is `count` × `inputs`, of a panel `inputs` × its width, of results `count` ×
            // `outputs`.
            unsafe { strip::<L, 2>(count, at) };
        }
    }
    for (at, tile) in tiles.enumerate() {
        let results = work.grid.results(work.grid.place(tile)).map(|pixel| {
            pixel.map(|pixel| y[pixel * outputs..][..outputs].as_mut_ptr().cast::<f32>())
        });
        let plane = &made[at * outputs..];
        // SAFETY: as above, and every pixel of the results has `outputs` channels, as the bias has.
        unsafe {
            put_together::<L>(plane.as_ptr(), count * outputs, outputs, work.bias, results);
        }
    }
}
