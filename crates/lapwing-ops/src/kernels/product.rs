//! Products of matrices, with the sum and the ReLU that follow them in a layer.
#![allow(unsafe_code, reason = "the product's interface is pointers")]

use gemm::{Parallelism, gemm};
use rayon::prelude::*;

use super::fresh::filled;
use super::level::vectorised;

/// A matrix in a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a> {
    values: &'a [f32],
    /// Distance from one row to the next.
    row: usize,
    /// Distance from one column to the next.
    column: usize,
}

impl<'a> Matrix<'a> {
    /// `values` row by row.
    pub(crate) fn new(values: &'a [f32], columns: usize) -> Self {
        Self { values, row: columns, column: 1 }
    }

    pub(crate) fn transposed(self) -> Self {
        Self { values: self.values, row: self.column, column: self.row }
    }

    fn holds(&self, rows: usize, columns: usize) -> bool {
        rows == 0
            || columns == 0
            || (rows - 1) * self.row + (columns - 1) * self.column < self.values.len()
    }
}

/// Multiplications from which on threads are worth their while.
const THREADS: usize = 1 << 22;

/// `a · b`: `rows` × `columns`, row by row.
pub(crate) fn product(
    [rows, columns, depth]: [usize; 3],
    a: Matrix<'_>,
    b: Matrix<'_>,
) -> Vec<f32> {
    assert!(a.holds(rows, depth) && b.holds(depth, columns));
    let large = rows * columns * depth >= THREADS;
    let parallelism = if large { Parallelism::Rayon(0) } else { Parallelism::None };
    let stride = |distance: usize| distance as isize;
    // SAFETY: both factors hold as many rows and columns as are read, and all of the result is written, from nothing.
    unsafe {
        filled(rows * columns, |c| {
            gemm(
                rows,
                columns,
                depth,
                c.as_mut_ptr().cast::<f32>(),
                1,
                stride(columns),
                false,
                a.values.as_ptr(),
                stride(a.column),
                stride(a.row),
                b.values.as_ptr(),
                stride(b.column),
                stride(b.row),
                0.0,
                1.0,
                false,
                false,
                false,
                parallelism,
            );
        })
    }
}

/// `a · b` into rows of `c` that are `stride` apart, on one thread: for tasks that have threads of their own.
pub(crate) fn multiply(
    [rows, columns, depth]: [usize; 3],
    a: Matrix<'_>,
    b: Matrix<'_>,
    c: &mut [f32],
    stride: usize,
) {
    assert!(a.holds(rows, depth) && b.holds(depth, columns));
    assert!(rows < 2 || columns <= stride);
    assert!(rows == 0 || columns == 0 || (rows - 1) * stride + columns <= c.len());
    let signed = |distance: usize| distance as isize;
    // SAFETY: both factors hold as many rows and columns as are read, and `c` has room for the result.
    unsafe {
        gemm(
            rows,
            columns,
            depth,
            c.as_mut_ptr(),
            1,
            signed(stride),
            false,
            a.values.as_ptr(),
            signed(a.column),
            signed(a.row),
            b.values.as_ptr(),
            signed(b.column),
            signed(b.row),
            0.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// Adds `a · b` to `sums`, `rows` × `columns`, row by row.
pub(crate) fn add_product(
    sums: &mut [f32],
    [rows, columns, depth]: [usize; 3],
    a: Matrix<'_>,
    b: Matrix<'_>,
) {
    assert!(a.holds(rows, depth) && b.holds(depth, columns));
    assert_eq!(sums.len(), rows * columns);
    let large = rows * columns * depth >= THREADS;
    let parallelism = if large { Parallelism::Rayon(0) } else { Parallelism::None };
    let stride = |distance: usize| distance as isize;
    // SAFETY: both factors hold as many rows and columns as are read, and so do the sums.
    unsafe {
        gemm(
            rows,
            columns,
            depth,
            sums.as_mut_ptr(),
            1,
            stride(columns),
            true,
            a.values.as_ptr(),
            stride(a.column),
            stride(a.row),
            b.values.as_ptr(),
            stride(b.column),
            stride(b.row),
            1.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// Adds `bias` to each row, then cuts off what is negative with `relu`.
pub(crate) fn add_bias(y: &mut [f32], bias: &[f32], relu: bool) {
    if bias.is_empty() {
        return;
    }
    assert_eq!(y.len() % bias.len(), 0, "one bias for each column");
    let floor = if relu { 0.0 } else { f32::NEG_INFINITY };
    let task = ((1 << 16) / bias.len()).max(1) * bias.len();
    y.par_chunks_mut(task).for_each(|y| add_rows(y, bias, floor));
}

vectorised! {
    fn add_rows(y: &mut [f32], bias: &[f32], floor: f32) {
        for y in y.chunks_exact_mut(bias.len()) {
            for (y, bias) in y.iter_mut().zip(bias) {
                let value = *y + bias;
                *y = if value < floor { floor } else { value };
            }
        }
    }
}

/// Sets the gradient of results that ReLU has cut off, `y`, to zero.
pub(crate) fn cut(dy: &mut [f32], y: &[f32]) {
    assert_eq!(dy.len(), y.len());
    const TASK: usize = 1 << 16;
    dy.par_chunks_mut(TASK).zip(y.par_chunks(TASK)).for_each(|(dy, y)| cut_part(dy, y));
}

vectorised! {
    fn cut_part(dy: &mut [f32], y: &[f32]) {
        for (dy, y) in dy.iter_mut().zip(y) {
            *dy = if *y <= 0.0 { 0.0 } else { *dy };
        }
    }
}
