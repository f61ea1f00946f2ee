//! Pixels, kernels and results as the planes of [`super::winograd`], and back.
#![allow(unsafe_code, reason = "vector instructions")]

use rayon::prelude::*;

use super::fresh::{Fresh, filled};
use super::lanes::Lanes;
use super::level::{Level, with_lanes};
use super::tile::{each, wide};

/// Planes of a tile, and the side of the square that they make.
pub(crate) const PLANES: usize = SIDE * SIDE;
pub(crate) const SIDE: usize = 4;
/// Results of a tile along one side.
pub(crate) const STEP: usize = 2;
/// Taps of a kernel along one side.
pub(crate) const TAPS: usize = 3;

/// Sums and differences of four pixels in a row.
///
/// # Safety
/// The instructions of `L` must be there, here and below.
#[inline(always)]
unsafe fn differences<L: Lanes>([a, b, c, d]: [L; SIDE]) -> [L; SIDE] {
    // SAFETY: the caller's.
    unsafe { [a.minus(c), b.plus(c), c.minus(b), b.minus(d)] }
}

/// The same of three taps of a kernel.
#[inline(always)]
unsafe fn halves<L: Lanes>([a, b, c]: [L; TAPS]) -> [L; SIDE] {
    // SAFETY: the caller's.
    unsafe {
        let (half, zero) = (L::spread(&0.5), L::spread(&0.0));
        let (outer, inner) = (half.fused(a.plus(c), zero), half.fused(b, zero));
        [a, outer.plus(inner), outer.minus(inner), c]
    }
}

/// Two results in a row out of the products of both.
#[inline(always)]
unsafe fn results<L: Lanes>([a, b, c, d]: [L; SIDE]) -> [L; STEP] {
    // SAFETY: the caller's.
    unsafe { [a.plus(b).plus(c), b.minus(c).minus(d)] }
}

/// The way back of [`results`], for gradients.
#[inline(always)]
unsafe fn results_back<L: Lanes>([a, b]: [L; STEP]) -> [L; SIDE] {
    // SAFETY: the caller's.
    unsafe { [a, a.plus(b), a.minus(b), L::spread(&0.0).minus(b)] }
}

/// The way back of [`halves`], for gradients.
#[inline(always)]
unsafe fn halves_back<L: Lanes>([a, b, c, d]: [L; SIDE]) -> [L; TAPS] {
    // SAFETY: the caller's.
    unsafe {
        let (half, zero) = (L::spread(&0.5), L::spread(&0.0));
        let outer = b.plus(c);
        [half.fused(outer, a), half.fused(b.minus(c), zero), half.fused(outer, d)]
    }
}

/// Writes the planes of a tile's pixels, `plane` apart.
///
/// # Safety
/// The instructions of `L` must be there; `channels`, a multiple of the lanes, must be behind every pixel and every plane.
#[inline(always)]
pub(crate) unsafe fn take_apart<L: Lanes>(
    pixels: [*const f32; PLANES],
    channels: usize,
    to: *mut f32,
    plane: usize,
) {
    for from in (0..channels).step_by(L::COUNT) {
        // SAFETY: the caller's.
        unsafe {
            let mut rows = [[L::load(pixels[0].add(from)); SIDE]; SIDE];
            each!(i < SIDE, {
                rows[i] = differences([
                    L::load(pixels[i * SIDE].add(from)),
                    L::load(pixels[i * SIDE + 1].add(from)),
                    L::load(pixels[i * SIDE + 2].add(from)),
                    L::load(pixels[i * SIDE + 3].add(from)),
                ]);
            });
            each!(j < SIDE, {
                let column = differences([rows[0][j], rows[1][j], rows[2][j], rows[3][j]]);
                each!(i < SIDE, {
                    column[i].store(to.add((i * SIDE + j) * plane + from));
                });
            });
        }
    }
}

/// Writes the results of a tile, as many as there are, out of its planes.
///
/// # Safety
/// As [`take_apart`], for planes, bias and results.
#[inline(always)]
pub(crate) unsafe fn put_together<L: Lanes>(
    made: *const f32,
    plane: usize,
    channels: usize,
    bias: &[f32],
    to: [Option<*mut f32>; STEP * STEP],
) {
    for from in (0..channels).step_by(L::COUNT) {
        // SAFETY: the caller's.
        unsafe {
            let bias = L::load(bias.as_ptr().add(from));
            let mut rows = [[bias; STEP]; SIDE];
            each!(i < SIDE, {
                let made = made.add(i * SIDE * plane + from);
                rows[i] = results([
                    L::load(made),
                    L::load(made.add(plane)),
                    L::load(made.add(2 * plane)),
                    L::load(made.add(3 * plane)),
                ]);
            });
            each!(j < STEP, {
                let column = results([rows[0][j], rows[1][j], rows[2][j], rows[3][j]]);
                each!(i < STEP, {
                    if let Some(to) = to[i * STEP + j] {
                        column[i].plus(bias).store(to.add(from));
                    }
                });
            });
        }
    }
}

/// Writes the planes of the gradients of a tile's results, in panels of `2` registers, `panel` apart.
///
/// # Safety
/// As [`take_apart`]; `channels` must be a multiple of a panel's.
#[inline(always)]
pub(crate) unsafe fn take_back<L: Lanes>(
    results: [*const f32; STEP * STEP],
    channels: usize,
    to: *mut f32,
    panel: usize,
    plane: usize,
) {
    for from in (0..channels).step_by(L::COUNT) {
        let place = from / wide::<L>() * panel + from % wide::<L>();
        // SAFETY: the caller's.
        unsafe {
            let mut rows = [[L::load(results[0].add(from)); SIDE]; STEP];
            each!(i < STEP, {
                rows[i] = results_back([
                    L::load(results[i * STEP].add(from)),
                    L::load(results[i * STEP + 1].add(from)),
                ]);
            });
            each!(j < SIDE, {
                let column = results_back([rows[0][j], rows[1][j]]);
                each!(i < SIDE, {
                    column[i].store(to.add((i * SIDE + j) * plane + place));
                });
            });
        }
    }
}

/// The planes of a kernel: panel by panel of outputs, in each plane by plane, inputs × the panel's width.
pub(crate) fn kernel_planes(
    level: Level,
    weight: &[f32],
    inputs: usize,
    outputs: usize,
) -> Vec<f32> {
    let width = 2 * level.lanes();
    let fill = |planes: &mut Fresh| {
        let panels = planes.par_chunks_mut(PLANES * inputs * width).enumerate();
        panels.for_each(|(panel, planes)| {
            let (from, channels) = (panel * width, [inputs, outputs]);
            with_lanes!(
                level,
                kernel_panel(
                    weight: &[f32],
                    channels: [usize; 2],
                    from: usize,
                    planes: &mut Fresh,
                )
            );
        });
    };
    // SAFETY: every plane is written for every input and every column of a panel.
    unsafe { filled(PLANES * inputs * outputs, fill) }
}

/// # Safety
/// The instructions of `L` must be there.
#[inline(always)]
unsafe fn kernel_panel<L: Lanes>(
    weight: &[f32],
    [inputs, outputs]: [usize; 2],
    from: usize,
    planes: &mut Fresh,
) {
    let tap = inputs * outputs;
    let plane = inputs * wide::<L>();
    assert!(weight.len() == TAPS * TAPS * tap && planes.len() == PLANES * plane);
    assert!(from + wide::<L>() <= outputs);
    for input in 0..inputs {
        for column in (0..wide::<L>()).step_by(L::COUNT) {
            let weight = weight[input * outputs + from + column..].as_ptr();
            let planes = planes[input * wide::<L>() + column..].as_mut_ptr().cast::<f32>();
            // SAFETY: nine taps and sixteen planes are there, so far apart.
            unsafe {
                let mut rows = [[L::load(weight); SIDE]; TAPS];
                each!(i < TAPS, {
                    let weight = weight.add(i * TAPS * tap);
                    rows[i] = halves([
                        L::load(weight),
                        L::load(weight.add(tap)),
                        L::load(weight.add(2 * tap)),
                    ]);
                });
                each!(j < SIDE, {
                    let column = halves([rows[0][j], rows[1][j], rows[2][j]]);
                    each!(i < SIDE, {
                        column[i].store(planes.add((i * SIDE + j) * plane));
                    });
                });
            }
        }
    }
}

/// The kernel of such planes, when both are gradients.
pub(crate) fn kernel_back(level: Level, planes: &[f32], inputs: usize, outputs: usize) -> Vec<f32> {
    let fill = |weight: &mut Fresh| {
        // The rows of an input, one for each tap.
        let mut rows: Vec<Vec<&mut Fresh>> = (0..inputs).map(|_| Vec::new()).collect();
        for (at, row) in weight.chunks_exact_mut(outputs).enumerate() {
            rows[at % inputs].push(row);
        }
        rows.into_par_iter().enumerate().for_each(|(input, mut taps)| {
            let (taps, channels) = (&mut taps[..], [inputs, outputs]);
            with_lanes!(
                level,
                kernel_row(
                    planes: &[f32],
                    channels: [usize; 2],
                    input: usize,
                    taps: &mut [&mut Fresh],
                )
            );
        });
    };
    // SAFETY: every tap of every input is written, register by register of outputs.
    unsafe { filled(TAPS * TAPS * inputs * outputs, fill) }
}

/// # Safety
/// The instructions of `L` must be there.
#[inline(always)]
unsafe fn kernel_row<L: Lanes>(
    planes: &[f32],
    [inputs, outputs]: [usize; 2],
    input: usize,
    taps: &mut [&mut Fresh],
) {
    let plane = inputs * wide::<L>();
    assert!(planes.len() == PLANES * inputs * outputs && input < inputs);
    assert!(taps.len() == TAPS * TAPS && taps.iter().all(|tap| tap.len() == outputs));
    for from in (0..outputs).step_by(L::COUNT) {
        let (panel, column) = (from / wide::<L>(), from % wide::<L>());
        let planes = planes[panel * PLANES * plane + input * wide::<L>() + column..].as_ptr();
        // SAFETY: sixteen planes are there, so far apart, and nine rows of `outputs`, a multiple of the lanes.
        unsafe {
            let mut rows = [[L::load(planes); TAPS]; SIDE];
            each!(i < SIDE, {
                let planes = planes.add(i * SIDE * plane);
                rows[i] = halves_back([
                    L::load(planes),
                    L::load(planes.add(plane)),
                    L::load(planes.add(2 * plane)),
                    L::load(planes.add(3 * plane)),
                ]);
            });
            each!(j < TAPS, {
                let column = halves_back([rows[0][j], rows[1][j], rows[2][j], rows[3][j]]);
                each!(i < TAPS, {
                    column[i].store(taps[i * TAPS + j].as_mut_ptr().cast::<f32>().add(from));
                });
            });
        }
    }
}
