//! Means of rows of a table, and their gradient.
#![allow(unsafe_code, reason = "vector instructions")]

use rayon::prelude::*;

use super::level::vectorised;

/// Bags, or rows of a table, of a task.
const TASK: usize = 64;

/// What one of so many rows adds to their mean.
pub(crate) fn share(length: usize) -> f32 {
    1.0 / length.max(1) as f32
}

/// The mean of the rows in each bag. `begins` has a place for each bag and one behind the last.
pub(crate) fn means(table: &[f32], width: usize, items: &[u32], begins: &[usize]) -> Vec<f32> {
    let bags = begins.len() - 1;
    let mut means = vec![0.0; bags * width];
    if width > 0 {
        means.par_chunks_mut(TASK * width).enumerate().for_each(|(task, means)| {
            let first = task * TASK;
            let begins = &begins[first..(first + TASK).min(bags) + 1];
            means_part(means, table, width, items, begins);
        });
    }
    means
}

vectorised! {
    fn means_part(means: &mut [f32], table: &[f32], width: usize, items: &[u32], begins: &[usize]) {
        for (mean, bag) in means.chunks_exact_mut(width).zip(begins.windows(2)) {
            let held = &items[bag[0]..bag[1]];
            for &item in held {
                let row = &table[item as usize * width..][..width];
                for (mean, value) in mean.iter_mut().zip(row) {
                    *mean += value;
                }
            }
            let share = share(held.len());
            for mean in mean {
                *mean *= share;
            }
        }
    }
}

/// The gradient of each row of the table, given those of the means. Row by row and not bag by bag, so that threads do not
/// meet and sums have one order.
pub(crate) fn slopes(
    dy: &[f32],
    width: usize,
    items: &[u32],
    begins: &[usize],
    rows: usize,
) -> Vec<f32> {
    // The bags that hold each row, by counting.
    let mut ends = vec![0; rows + 1];
    items.iter().for_each(|&item| ends[item as usize + 1] += 1);
    for row in 0..rows {
        ends[row + 1] += ends[row];
    }
    let mut holders = vec![(0, 0.0); items.len()];
    let mut next = ends.clone();
    for (bag, of_bag) in begins.windows(2).enumerate() {
        let share = share(of_bag[1] - of_bag[0]);
        for &item in &items[of_bag[0]..of_bag[1]] {
            holders[next[item as usize]] = (bag as u32, share);
            next[item as usize] += 1;
        }
    }
    let mut slopes = vec![0.0; rows * width];
    if width > 0 {
        slopes.par_chunks_mut(TASK * width).enumerate().for_each(|(task, slopes)| {
            let first = task * TASK;
            let ends = &ends[first..(first + TASK).min(rows) + 1];
            slopes_part(slopes, dy, width, &holders, ends);
        });
    }
    slopes
}

vectorised! {
    fn slopes_part(slopes: &mut [f32], dy: &[f32], width: usize, holders: &[(u32, f32)], ends: &[usize]) {
        for (slope, row) in slopes.chunks_exact_mut(width).zip(ends.windows(2)) {
            for &(bag, share) in &holders[row[0]..row[1]] {
                let dy = &dy[bag as usize * width..][..width];
                for (slope, dy) in slope.iter_mut().zip(dy) {
                    *slope += share * dy;
                }
            }
        }
    }
}
