//! The gradient of a kernel of 3 × 3, by way of the planes of [`super::winograd`].
#![allow(unsafe_code, reason = "tiles work on pointers")]

use std::ops::Range;

use rayon::prelude::*;

use super::conv::Conv;
use super::lanes::Lanes;
use super::level::{Level, with_lanes};
use super::tile::{Operands, strip, wide};
use super::winograd::Grid;
use super::winograd_planes::{PLANES, kernel_back, take_apart, take_back};

/// Tiles whose planes lie side by side.
const BLOCK: usize = 16;
/// Tiles times channels whose planes are made before they are multiplied: a few megabytes. The same for any number of
/// threads, since sums depend on it.
const CHUNK: usize = 1 << 17;

/// The gradient of the kernel.
pub(crate) fn backward_weight(conv: Conv, x: &[f32], dy: &[f32]) -> Vec<f32> {
    assert_eq!(x.len(), conv.images * conv.input_len());
    assert_eq!(dy.len(), conv.images * conv.output_len());
    let Conv { images, inputs, outputs, .. } = conv;
    let level = Level::current();
    let work = Work {
        grid: Grid::forward(&conv),
        channels: [inputs, outputs],
        x,
        dy,
        nothing: vec![0.0; inputs.max(outputs)],
    };
    let tiles = images * work.grid.tiles();
    let chunk = (CHUNK / (inputs + outputs)).clamp(1, tiles.max(1)).next_multiple_of(BLOCK);
    let mut seen = vec![0.0; chunk * PLANES * inputs];
    let mut made = vec![0.0; chunk * PLANES * outputs];
    // Panel by panel of outputs, in each plane by plane, inputs × the panel's width.
    let mut sums = vec![0.0; PLANES * inputs * outputs];
    for from in (0..tiles).step_by(chunk) {
        let blocks = chunk.min(tiles - from).div_ceil(BLOCK);
        let seen = &mut seen[..blocks * BLOCK * PLANES * inputs];
        let made = &mut made[..blocks * BLOCK * PLANES * outputs];
        let planes = seen.par_chunks_mut(BLOCK * PLANES * inputs);
        let planes = planes.zip(made.par_chunks_mut(BLOCK * PLANES * outputs));
        planes.enumerate().for_each(|(block, (seen, made))| {
            let from = from + block * BLOCK;
            let (work, tiles) = (&work, from..(from + BLOCK).min(tiles));
            with_lanes!(
                level,
                make_block(
                    work: &Work<'_>,
                    tiles: Range<usize>,
                    seen: &mut [f32],
                    made: &mut [f32],
                )
            );
        });
        let (seen, made) = (&*seen, &*made);
        sums.par_chunks_mut(inputs * 2 * level.lanes()).enumerate().for_each(|(at, sums)| {
            let (channels, place) = (work.channels, [at / PLANES, at % PLANES]);
            with_lanes!(
                level,
                add_plane(
                    channels: [usize; 2],
                    place: [usize; 2],
                    seen: &[f32],
                    made: &[f32],
                    sums: &mut [f32],
                )
            );
        });
    }
    kernel_back(level, &sums, inputs, outputs)
}

/// A convolution, and the gradient of its results.
struct Work<'a> {
    grid: Grid,
    channels: [usize; 2],
    x: &'a [f32],
    dy: &'a [f32],
    nothing: Vec<f32>,
}

/// Writes the planes of a block of tiles, of which there may be too few: those of pixels plane by plane, tiles × inputs;
/// those of gradients plane by plane, panel by panel, tiles × the panel's width.
///
/// # Safety
/// The instructions of `L` must be there.
#[inline(always)]
unsafe fn make_block<L: Lanes>(
    work: &Work<'_>,
    tiles: Range<usize>,
    seen: &mut [f32],
    made: &mut [f32],
) {
    let [inputs, outputs] = work.channels;
    assert_eq!(seen.len(), PLANES * BLOCK * inputs);
    assert_eq!(made.len(), PLANES * BLOCK * outputs);
    assert!(tiles.len() <= BLOCK && outputs.is_multiple_of(wide::<L>()));
    if tiles.len() < BLOCK {
        seen.fill(0.0);
        made.fill(0.0);
    }
    for (at, tile) in tiles.enumerate() {
        let place = work.grid.place(tile);
        let pixels = work.grid.pixels(work.x, &work.nothing[..inputs], place);
        let gradients = work.grid.results(place).map(|pixel| {
            pixel.map_or(&work.nothing[..outputs], |pixel| &work.dy[pixel * outputs..][..outputs])
        });
        let seen = seen[at * inputs..].as_mut_ptr();
        let made = made[at * wide::<L>()..].as_mut_ptr();
        // SAFETY: pixels and gradients have as many channels, multiples of a panel's; every plane has a row for each tile.
        unsafe {
            take_apart::<L>(pixels, inputs, seen, BLOCK * inputs);
            take_back::<L>(
                gradients.map(<[f32]>::as_ptr),
                outputs,
                made,
                BLOCK * wide::<L>(),
                BLOCK * outputs,
            );
        }
    }
}

/// Adds what some blocks give to one panel of one plane.
///
/// # Safety
/// The instructions of `L` must be there.
#[inline(always)]
unsafe fn add_plane<L: Lanes>(
    [inputs, outputs]: [usize; 2],
    [panel, plane]: [usize; 2],
    seen: &[f32],
    made: &[f32],
    sums: &mut [f32],
) {
    let blocks = seen.len() / (PLANES * BLOCK * inputs);
    assert!(plane < PLANES && (panel + 1) * wide::<L>() <= outputs);
    assert_eq!(made.len(), blocks * PLANES * BLOCK * outputs);
    assert_eq!(sums.len(), inputs * wide::<L>());
    let at = Operands {
        a: seen[plane * BLOCK * inputs..].as_ptr(),
        a_m: 1,
        a_r: PLANES * BLOCK * inputs,
        a_k: inputs,
        b: made[plane * BLOCK * outputs + panel * BLOCK * wide::<L>()..].as_ptr(),
        b_r: PLANES * BLOCK * outputs,
        b_k: wide::<L>(),
        rows: blocks,
        depth: BLOCK,
        init: sums.as_ptr(),
        init_m: wide::<L>(),
        c: sums.as_mut_ptr(),
        c_m: wide::<L>(),
        columns: wide::<L>(),
        floor: f32::NEG_INFINITY,
    };
    // SAFETY: every block has this panel of this plane, with a row for each of its tiles, and the sums have one for each
    // input.
    unsafe { strip::<L, 2>(inputs, at) };
}
