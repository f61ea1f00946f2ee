//! Sums over rows, one per column.
#![allow(unsafe_code, reason = "vector instructions")]

use rayon::prelude::*;

use super::level::vectorised;

/// Columns summed at a time, in registers.
pub(crate) const BLOCK: usize = 16;

/// Values of a block of rows that stays in the nearest cache while its columns are summed.
const NEAR: usize = 4096;

/// Values of a task.
const TASK: usize = 1 << 16;

/// Rows of a task, given the number of columns.
pub(crate) fn rows_per_task(columns: usize) -> usize {
    (TASK / columns.max(1)).max(1)
}

/// Rows of a block that stays in the nearest cache.
pub(crate) fn rows_near(columns: usize) -> usize {
    (NEAR / columns.max(1)).max(1)
}

/// The sum of each column of `values`, row by row.
pub(crate) fn column_sums(values: &[f32], columns: usize) -> Vec<f32> {
    if columns == 0 {
        return Vec::new();
    }
    let parts: Vec<Vec<f64>> = values
        .par_chunks(rows_per_task(columns) * columns)
        .map(|values| {
            let mut sums = vec![0.0; columns];
            add_columns(values, columns, &mut sums);
            sums
        })
        .collect();
    total(parts, columns).into_iter().map(|sum| sum as f32).collect()
}

/// The sum of equally long vectors, in their order.
pub(crate) fn total(parts: Vec<Vec<f64>>, len: usize) -> Vec<f64> {
    let mut total = vec![0.0; len];
    for part in parts {
        for (total, part) in total.iter_mut().zip(part) {
            *total += part;
        }
    }
    total
}

vectorised! {
    fn add_columns(values: &[f32], columns: usize, sums: &mut [f64]) {
        for near in values.chunks(rows_near(columns) * columns) {
            for (from, sums) in (0..columns).step_by(BLOCK).zip(sums.chunks_mut(BLOCK)) {
                let mut found = [0.0f32; BLOCK];
                if sums.len() == BLOCK {
                    for row in near.chunks_exact(columns) {
                        for (found, value) in found.iter_mut().zip(&row[from..from + BLOCK]) {
                            *found += value;
                        }
                    }
                } else {
                    for row in near.chunks_exact(columns) {
                        for (found, value) in found.iter_mut().zip(&row[from..]) {
                            *found += value;
                        }
                    }
                }
                for (sum, found) in sums.iter_mut().zip(found) {
                    *sum += f64::from(found);
                }
            }
        }
    }
}
