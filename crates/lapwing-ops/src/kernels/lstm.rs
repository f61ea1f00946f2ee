//! A layer of long short-term memory, forward and back through time.
//!
//! Samples do not see each other: a task has some of them for all moments, so threads meet only at the end. What comes in
//! is multiplied for all moments at once; what is remembered, moment by moment, by weights that were put in order once.
#![allow(unsafe_code, reason = "tiles work on pointers")]

use rayon::prelude::*;

use super::columns::column_sums;
use super::curves::{sigmoid, tanh};
use super::lanes::Lanes;
use super::level::{Level, with_lanes};
use super::panels::{Panel, Panels};
use super::product::{Matrix, product};
use super::tile::{Operands, strip, wide};

/// Input, forget, cell and output.
const GATES: usize = 4;
/// Most columns of a panel, of any level.
const WIDEST: usize = 32;

/// Sizes of a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lstm {
    pub(crate) samples: usize,
    pub(crate) moments: usize,
    pub(crate) inputs: usize,
    pub(crate) units: usize,
}

/// What a layer leaves behind, sample by sample and moment by moment.
pub(crate) struct States {
    /// Input, forget, cell and output gates, behind their curves.
    pub(crate) gates: Vec<f32>,
    pub(crate) cells: Vec<f32>,
    pub(crate) hidden: Vec<f32>,
}

/// Gradients of inputs, weights of inputs, weights of what is remembered, and biases.
pub(crate) struct Slopes {
    pub(crate) x: Option<Vec<f32>>,
    pub(crate) inputs: Vec<f32>,
    pub(crate) memory: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

impl Lstm {
    /// Samples of a task: many, since all of them share one reading of the weights. None depends on another.
    fn group(&self) -> usize {
        self.samples.div_ceil(rayon::current_num_threads()).clamp(8, 64)
    }

    fn width(&self) -> usize {
        GATES * self.units
    }

    fn steps(&self) -> usize {
        self.samples * self.moments
    }

    /// `x` is `[samples, moments, inputs]`, weights are `[inputs, gates · units]` and `[units, gates · units]`.
    pub(crate) fn forward(
        &self,
        x: &[f32],
        inputs: &[f32],
        memory: &[f32],
        bias: &[f32],
    ) -> States {
        let (units, width, steps) = (self.units, self.width(), self.steps());
        assert_eq!(x.len(), steps * self.inputs);
        assert_eq!(memory.len(), units * width);
        assert_eq!(bias.len(), width);
        let (a, b) = (Matrix::new(x, self.inputs), Matrix::new(inputs, width));
        let mut gates = product([steps, width, self.inputs], a, b);
        let (mut cells, mut hidden) = (vec![0.0; steps * units], vec![0.0; steps * units]);
        let level = Level::current();
        let ordered: Vec<Panels> = (0..GATES)
            .map(|gate| {
                let value = |row, column| memory[row * width + gate * units + column];
                Panels::new(units, units, level.lanes(), value)
            })
            .collect();
        let panels: Vec<Vec<Panel<'_>>> =
            ordered.iter().map(|panels| panels.iter().collect()).collect();
        let each = self.group() * self.moments;
        if steps > 0 && units > 0 {
            gates
                .par_chunks_mut(each * width)
                .zip(cells.par_chunks_mut(each * units))
                .zip(hidden.par_chunks_mut(each * units))
                .for_each(|((gates, cells), hidden)| {
                    let (lstm, panels) = (self, &panels[..]);
                    with_lanes!(
                        level,
                        forward_group(
                            lstm: &Lstm,
                            panels: &[Vec<Panel<'_>>],
                            bias: &[f32],
                            gates: &mut [f32],
                            cells: &mut [f32],
                            hidden: &mut [f32],
                        )
                    );
                });
        }
        States { gates, cells, hidden }
    }

    /// Gradients, given that of what is `hidden`. The gates become their own gradients on the way.
    #[allow(clippy::too_many_arguments, reason = "what the way forward was given and left behind")]
    pub(crate) fn backward(
        &self,
        x: &[f32],
        inputs: &[f32],
        memory: &[f32],
        (mut gates, cells): (Vec<f32>, Vec<f32>),
        hidden: &[f32],
        dy: &[f32],
        want_x: bool,
    ) -> Slopes {
        let (units, width, steps) = (self.units, self.width(), self.steps());
        assert_eq!(dy.len(), steps * units);
        assert_eq!(gates.len(), steps * width);
        let level = Level::current();
        let value = |row: usize, column: usize| memory[column * width + row];
        let ordered = Panels::new(width, units, level.lanes(), value);
        let panels: Vec<Panel<'_>> = ordered.iter().collect();
        let each = self.group() * self.moments;
        if steps > 0 && units > 0 {
            gates
                .par_chunks_mut(each * width)
                .zip(cells.par_chunks(each * units))
                .zip(dy.par_chunks(each * units))
                .for_each(|((gates, cells), dy)| {
                    let (lstm, panels) = (self, &panels[..]);
                    with_lanes!(
                        level,
                        backward_group(
                            lstm: &Lstm,
                            panels: &[Panel<'_>],
                            gates: &mut [f32],
                            cells: &[f32],
                            dy: &[f32],
                        )
                    );
                });
        }
        let slopes = Matrix::new(&gates, width);
        let of_x = want_x.then(|| {
            let inputs = transposed(inputs, self.inputs, width);
            let inputs = Matrix::new(&inputs, self.inputs);
            product([steps, self.inputs, width], slopes, inputs)
        });
        let seen = Matrix::new(x, self.inputs).transposed();
        let of_inputs = product([self.inputs, width, steps], seen, slopes);
        let of_bias = column_sums(&gates, width);
        // What is remembered at a moment was hidden at the one before; at the first of a sample, nothing was.
        if self.moments > 0 {
            gates.chunks_mut((self.moments * width).max(1)).for_each(|of| of[..width].fill(0.0));
        }
        let of_memory = match steps {
            0 => vec![0.0; units * width],
            _ => {
                let before = Matrix::new(hidden, units).transposed();
                let slopes = Matrix::new(&gates[width..], width);
                product([units, width, steps - 1], before, slopes)
            }
        };
        Slopes { x: of_x, inputs: of_inputs, memory: of_memory, bias: of_bias }
    }
}

/// The other way round: columns become rows.
fn transposed(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut turned = vec![0.0; values.len()];
    if rows > 0 {
        turned.par_chunks_mut(16 * rows).enumerate().for_each(|(block, turned)| {
            for (at, turned) in turned.chunks_exact_mut(rows).enumerate() {
                let column = 16 * block + at;
                for (row, value) in turned.iter_mut().enumerate() {
                    *value = values[row * columns + column];
                }
            }
        });
    }
    turned
}

/// Distance from one row to the next of what is multiplied. Rows that are powers of two apart would push each other out of the
/// nearest cache.
fn apart(depth: usize) -> usize {
    depth.next_multiple_of(16) + 16
}

/// `a · panel`, for rows of `a` that are [`apart`]: `c[m·c_m + column]`, all columns of the panel.
///
/// # Safety
/// The instructions of `L` must be there.
#[inline(always)]
unsafe fn multiply<L: Lanes>(
    a: &[f32],
    depth: usize,
    panel: &Panel<'_>,
    c: &mut [f32],
    c_m: usize,
) {
    const ZEROS: [f32; WIDEST] = [0.0; WIDEST];
    let rows = a.len() / apart(depth);
    assert!(panel.values.len() == depth * panel.width && panel.width <= wide::<L>());
    assert!(wide::<L>() <= WIDEST && (rows == 0 || c.len() >= (rows - 1) * c_m + panel.width));
    let at = Operands {
        a: a.as_ptr(),
        a_m: apart(depth),
        a_r: 0,
        a_k: 1,
        b: panel.values.as_ptr(),
        b_r: 0,
        b_k: panel.width,
        rows: 1,
        depth,
        init: ZEROS.as_ptr(),
        init_m: 0,
        c: c.as_mut_ptr(),
        c_m,
        columns: panel.width,
        floor: f32::NEG_INFINITY,
    };
    // SAFETY: `a` has `rows` rows of `depth`, the panel as many rows of its width, and `c` has room for them, as asserted.
    unsafe {
        if panel.width == wide::<L>() {
            strip::<L, 2>(rows, at);
        } else {
            strip::<L, 1>(rows, at);
        }
    }
}

/// All moments of some samples.
///
/// # Safety
/// The instructions of `L` must be there.
#[inline(always)]
unsafe fn forward_group<L: Lanes>(
    lstm: &Lstm,
    panels: &[Vec<Panel<'_>>],
    bias: &[f32],
    gates: &mut [f32],
    cells: &mut [f32],
    hidden: &mut [f32],
) {
    let (units, moments, width) = (lstm.units, lstm.moments, lstm.width());
    let samples = hidden.len() / (moments * units);
    // What was hidden at the moment before, sample after sample, so that the product reads it in order.
    let mut before = vec![0.0; samples * apart(units)];
    let mut sums = vec![0.0; samples * GATES * WIDEST];
    for moment in 0..moments {
        for block in 0..panels[0].len() {
            let Panel { from, columns, .. } = panels[0][block];
            if moment > 0 {
                for (gate, panels) in panels.iter().enumerate() {
                    let sums = &mut sums[gate * WIDEST..];
                    // SAFETY: the caller's.
                    unsafe {
                        multiply::<L>(&before, units, &panels[block], sums, GATES * WIDEST);
                    }
                }
            }
            for sample in 0..samples {
                let step = sample * moments + moment;
                let sums: [&[f32]; GATES] = std::array::from_fn(|gate| {
                    &sums[(sample * GATES + gate) * WIDEST..][..columns]
                });
                let bias: [&[f32]; GATES] =
                    std::array::from_fn(|gate| &bias[gate * units + from..][..columns]);
                let (past, now) = cells.split_at_mut(step * units);
                let past = match moment {
                    0 => None,
                    _ => Some(&past[(step - 1) * units + from..][..columns]),
                };
                let now = &mut now[from..from + columns];
                let gates = &mut gates[step * width..][..width];
                let (input, rest) = gates.split_at_mut(units);
                let (forget, rest) = rest.split_at_mut(units);
                let (cell, output) = rest.split_at_mut(units);
                let gates =
                    [input, forget, cell, output].map(|gate| &mut gate[from..from + columns]);
                let hidden = &mut hidden[step * units + from..][..columns];
                remember(gates, sums, bias, past, now, hidden);
            }
        }
        for (sample, before) in before.chunks_exact_mut(apart(units)).enumerate() {
            before[..units]
                .copy_from_slice(&hidden[(sample * moments + moment) * units..][..units]);
        }
    }
}

/// Gates behind their curves, and what becomes of cells and of what is hidden.
#[inline(always)]
fn remember(
    [input, forget, cell, output]: [&mut [f32]; GATES],
    sums: [&[f32]; GATES],
    bias: [&[f32]; GATES],
    past: Option<&[f32]>,
    now: &mut [f32],
    hidden: &mut [f32],
) {
    let len = hidden.len();
    // The compiler leaves the checks out of the loop once it knows that all are equally long.
    let (input, forget, cell) = (&mut input[..len], &mut forget[..len], &mut cell[..len]);
    let (output, now) = (&mut output[..len], &mut now[..len]);
    let (sums, bias) = (sums.map(|of| &of[..len]), bias.map(|of| &of[..len]));
    // One gate at a time: the compiler does many numbers at once only where few slices could overlap.
    for (gate, at) in [(&mut *input, 0), (&mut *forget, 1), (&mut *output, 3)] {
        bend(gate, sums[at], bias[at], sigmoid);
    }
    bend(cell, sums[2], bias[2], tanh);
    match past {
        None => (0..len).for_each(|at| now[at] = input[at] * cell[at]),
        Some(past) => {
            let past = &past[..len];
            (0..len).for_each(|at| now[at] = forget[at] * past[at] + input[at] * cell[at]);
        }
    }
    (0..len).for_each(|at| hidden[at] = output[at] * tanh(now[at]));
}

/// A gate behind its curve.
#[inline(always)]
fn bend(gate: &mut [f32], sums: &[f32], bias: &[f32], curve: impl Fn(f32) -> f32) {
    for ((gate, sum), bias) in gate.iter_mut().zip(sums).zip(bias) {
        *gate = curve(*gate + (sum + bias));
    }
}

/// All moments of some samples, from the last to the first.
///
/// # Safety
/// The instructions of `L` must be there.
#[inline(always)]
unsafe fn backward_group<L: Lanes>(
    lstm: &Lstm,
    panels: &[Panel<'_>],
    gates: &mut [f32],
    cells: &[f32],
    dy: &[f32],
) {
    let (units, moments, width) = (lstm.units, lstm.moments, lstm.width());
    let samples = dy.len() / (moments * units);
    // Gradients from the moment behind: of what is hidden, in panels' width, and of the cells.
    let stride = units.next_multiple_of(WIDEST);
    let mut of_hidden = vec![0.0; samples * stride];
    let mut of_cells = vec![0.0; samples * units];
    let mut slopes = vec![0.0; samples * apart(width)];
    let nothing = vec![0.0; units];
    for moment in (0..moments).rev() {
        for sample in 0..samples {
            let step = sample * moments + moment;
            let past = match moment {
                0 => &nothing[..],
                _ => &cells[(step - 1) * units..][..units],
            };
            let gates = &mut gates[step * width..][..width];
            unlearn(
                gates,
                past,
                &cells[step * units..][..units],
                &dy[step * units..][..units],
                &of_hidden[sample * stride..][..units],
                &mut of_cells[sample * units..][..units],
            );
            slopes[sample * apart(width)..][..width].copy_from_slice(gates);
        }
        if moment > 0 {
            for panel in panels {
                // SAFETY: the caller's.
                unsafe {
                    multiply::<L>(&slopes, width, panel, &mut of_hidden[panel.from..], stride);
                }
            }
        }
    }
}

/// Turns gates into their gradients, before their curves, and the gradient of the cells into that of the ones before.
#[inline(always)]
fn unlearn(
    gates: &mut [f32],
    past: &[f32],
    cells: &[f32],
    dy: &[f32],
    of_hidden: &[f32],
    of_cells: &mut [f32],
) {
    let units = of_cells.len();
    let (input, rest) = gates.split_at_mut(units);
    let (forget, rest) = rest.split_at_mut(units);
    let (cell, output) = rest.split_at_mut(units);
    // Some units at a time, which stay in the nearest cache, and one result at a time: as in `remember`.
    for from in (0..units).step_by(WIDEST) {
        let len = WIDEST.min(units - from);
        let part = from..from + len;
        let (input, forget) = (&mut input[part.clone()], &mut forget[part.clone()]);
        let (cell, output) = (&mut cell[part.clone()], &mut output[part.clone()]);
        let (past, cells) = (&past[part.clone()], &cells[part.clone()]);
        let (dy, of_hidden) = (&dy[part.clone()], &of_hidden[part.clone()]);
        let of_cells = &mut of_cells[part];
        let (mut slopes, mut shown, mut of_now) = ([0.0; WIDEST], [0.0; WIDEST], [0.0; WIDEST]);
        for at in 0..len {
            slopes[at] = dy[at] + of_hidden[at];
            shown[at] = tanh(cells[at]);
        }
        for at in 0..len {
            let shown = shown[at];
            of_now[at] = of_cells[at] + slopes[at] * output[at] * (1.0 - shown * shown);
        }
        for at in 0..len {
            output[at] = slopes[at] * shown[at] * output[at] * (1.0 - output[at]);
        }
        for at in 0..len {
            of_cells[at] = of_now[at] * forget[at];
        }
        for at in 0..len {
            forget[at] = of_now[at] * past[at] * forget[at] * (1.0 - forget[at]);
        }
        for at in 0..len {
            let (i, c) = (input[at], cell[at]);
            input[at] = of_now[at] * c * i * (1.0 - i);
            cell[at] = of_now[at] * i * (1.0 - c * c);
        }
    }
}
