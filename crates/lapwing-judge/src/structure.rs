//! How the numbers of a row hang together: in a source, and in the others.
//!
//! What a column says of another is known from the other sources. Noise that is added to a column breaks that, as do inputs
//! that were replaced, even where each column by itself looks as it should.

use crate::Verdict;
use crate::chance::ln_more_often;
use crate::inputs::{Inputs, middle};

/// Most columns, evenly chosen.
const MOST_COLUMNS: usize = 64;
/// Fewest rows of the other sources per column.
const ROWS_PER_COLUMN: usize = 5;
/// Rows of the others by which a residual is called large, evenly chosen.
const COMPARED: usize = 500;
/// The share of the others' residuals that are not called large.
const USUAL: f64 = 0.9;
/// Values further out, in standard deviations, count as this far out.
const FURTHEST: f64 = 8.0;
/// Standard deviations that correlations have to lie above what chance makes of columns that have none.
const FAR: f64 = 5.0;
/// Correlations, in the mean of their squares, that are too small to miss.
const LEAST_CORRELATION: f64 = 0.05;
/// Added to variances, so that a column that is the sum of others can be told from them.
const RIDGE: f64 = 1e-3;

/// Numbers of all rows that are looked at, in units of each column.
pub(crate) struct Structure {
    /// Which columns.
    pub(crate) columns: Vec<usize>,
    /// Row after row; 0, the middle, where one is missing.
    values: Vec<f64>,
    /// Of each source: rows, sums, and sums of products.
    sums: Vec<Sums>,
    /// All sources that can be relied on together.
    reference: Sums,
    counted: Vec<bool>,
}

/// How a source compares with what is known from the others.
pub(crate) struct Compared {
    /// How much of the correlations of the others is found in the source: 1 where it is like them, 0 where its columns have
    /// nothing to do with each other; and the standard error of it.
    pub(crate) kept: f64,
    pub(crate) error: f64,
    /// Of each column, what the others do not explain by the rest of a row.
    pub(crate) columns: Vec<Unexplained>,
}

/// What of a column is not explained by the rest of the row.
pub(crate) struct Unexplained {
    /// Residuals of the source that are larger than nine in ten of the others', and how many there are.
    pub(crate) large: usize,
    pub(crate) of: usize,
    /// How probable as many are by chance.
    pub(crate) ln_chance: f64,
    /// How wide they are, as a multiple of the others'.
    pub(crate) ratio: f64,
    /// The place among the source's rows of the largest ones, largest first.
    pub(crate) largest: Vec<usize>,
}

/// What a column is, given the rest of a row.
struct Fit {
    rows: f64,
    means: Vec<f64>,
    precision: Vec<f64>,
}

#[derive(Clone)]
struct Sums {
    rows: f64,
    sums: Vec<f64>,
    products: Vec<f64>,
}

impl Structure {
    /// `None` where there are fewer than two columns of numbers.
    pub(crate) fn new(inputs: &Inputs, verdicts: &[Verdict]) -> Option<Self> {
        let numeric: Vec<usize> =
            (0..inputs.columns.len()).filter(|&at| inputs.columns[at].is_numeric()).collect();
        let width = numeric.len().min(MOST_COLUMNS);
        if width < 2 {
            return None;
        }
        let columns: Vec<usize> =
            (0..width).map(|at| numeric[at * numeric.len() / width]).collect();
        let rows = inputs.places().len();
        let mut values = vec![0.0; rows * width];
        for (at, &column) in columns.iter().enumerate() {
            let column = &inputs.columns[column];
            let (centre, spread) = column.middle();
            let spread = if spread > 0.0 && spread.is_finite() { spread } else { 1.0 };
            for (row, value) in column.values().iter().enumerate().filter(|(_, v)| v.is_finite()) {
                values[row * width + at] = ((value - centre) / spread).clamp(-FURTHEST, FURTHEST);
            }
        }
        let mut sums = Vec::new();
        let mut counted = Vec::new();
        for (source, slot) in inputs.compared() {
            let range = inputs.range(slot);
            sums.push(Sums::of(&values[range.start * width..range.end * width], width));
            counted.push(verdicts[source] == Verdict::Reliable);
        }
        if counted.iter().filter(|counted| **counted).count() < 2 {
            counted.fill(true);
        }
        let mut reference = Sums::of(&[], width);
        sums.iter().zip(&counted).filter(|(_, c)| **c).for_each(|(own, _)| reference.add(own, 1.0));
        Some(Self { columns, values, sums, reference, counted })
    }

    fn width(&self) -> usize {
        self.columns.len()
    }

    /// `None` where the others have too few rows to know anything.
    pub(crate) fn compare(&self, inputs: &Inputs, slot: usize) -> Option<Compared> {
        let width = self.width();
        let own = &self.sums[slot];
        let mut others = self.reference.clone();
        if self.counted[slot] {
            others.add(own, -1.0);
        }
        if others.rows < (ROWS_PER_COLUMN * width) as f64 {
            return None;
        }
        let (theirs, mine) = (others.covariance(), own.covariance());
        let (kept, error) = kept(&theirs, &mine, width, [others.rows, own.rows]);
        let fit = Fit::new(&others, &theirs)?;
        let range = inputs.range(slot);
        let residuals = |rows: &mut dyn Iterator<Item = usize>, learnt: bool| -> Vec<Vec<f64>> {
            let mut residuals = vec![Vec::new(); width];
            for row in rows {
                let row = fit.residuals(&self.values[row * width..(row + 1) * width], learnt);
                residuals.iter_mut().zip(row).for_each(|(list, residual)| list.push(residual));
            }
            residuals
        };
        let own_residuals = residuals(&mut range.clone(), false);
        let compared: Vec<usize> = inputs
            .compared()
            .filter(|&(_, other)| other != slot && self.counted[other])
            .flat_map(|(_, other)| inputs.range(other))
            .collect();
        let step = compared.len().div_ceil(COMPARED).max(1);
        let others_residuals = residuals(&mut compared.into_iter().step_by(step), true);
        let columns = own_residuals.into_iter().zip(others_residuals);
        let columns = columns.map(|(own, others)| Unexplained::new(own, others)).collect();
        Some(Compared { kept, error, columns })
    }
}

impl Unexplained {
    fn new(mut own: Vec<f64>, mut others: Vec<f64>) -> Self {
        centre(&mut own);
        centre(&mut others);
        others.sort_by(f64::total_cmp);
        let place = |sorted: &[f64], share: f64| ((sorted.len() - 1) as f64 * share) as usize;
        let at = |sorted: &[f64], share: f64| sorted[place(sorted, share)];
        let limit = at(&others, USUAL);
        let mut largest: Vec<usize> = (0..own.len()).collect();
        largest.sort_by(|&a, &b| own[b].total_cmp(&own[a]).then(a.cmp(&b)));
        let large = own.iter().filter(|residual| **residual > limit).count();
        // As many as lie behind that place, be some of them equal to the limit: never too few.
        let beyond = others.len() - 1 - place(&others, USUAL);
        let ln_chance = ln_more_often([large, own.len()], [beyond, others.len()]);
        own.sort_by(f64::total_cmp);
        let ratio = at(&own, 2.0 / 3.0) / at(&others, 2.0 / 3.0);
        Self { large, of: own.len(), ln_chance, ratio, largest }
    }
}

/// Distances from the median.
fn centre(residuals: &mut [f64]) {
    let mut sorted = residuals.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (median, _) = middle(&sorted);
    residuals.iter_mut().for_each(|residual| *residual = (*residual - median).abs());
}

impl Fit {
    /// `None` where a column cannot be told from others.
    fn new(sums: &Sums, covariance: &[f64]) -> Option<Self> {
        let means = sums.sums.iter().map(|sum| sum / sums.rows).collect();
        Some(Self { rows: sums.rows, means, precision: inverse(covariance, sums.sums.len())? })
    }

    /// What is not explained of each column of a row.
    ///
    /// A row that it has learnt from is explained too well to be compared with one that it has not: with few rows to a column
    /// by far. So of such a row this is what a fit without it leaves, which takes no other fit: the residual, divided by what
    /// the row does not decide by itself.
    fn residuals(&self, row: &[f64], learnt: bool) -> Vec<f64> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let apart: Vec<f64> = row.iter().zip(&self.means).map(|(v, mean)| v - mean).collect();
        let pulls: Vec<f64> =
            self.precision.chunks_exact(row.len()).map(|line| dot(line, &apart)).collect();
        let distance = dot(&pulls, &apart);
        let residual = |(at, pull): (usize, &f64)| {
            let own = self.precision[at * row.len() + at];
            // Of the regression on the other columns: how far out the row is in these alone.
            let leverage = (1.0 + distance - pull * pull / own) / self.rows;
            pull / own / if learnt { 1.0 - leverage } else { 1.0 }
        };
        pulls.iter().enumerate().map(residual).collect()
    }
}

impl Sums {
    fn of(values: &[f64], width: usize) -> Self {
        let mut sums =
            Self { rows: 0.0, sums: vec![0.0; width], products: vec![0.0; width * width] };
        for row in values.chunks_exact(width) {
            sums.rows += 1.0;
            for (i, a) in row.iter().enumerate() {
                sums.sums[i] += a;
                let line = &mut sums.products[i * width..(i + 1) * width];
                line.iter_mut().zip(row).for_each(|(sum, b)| *sum += a * b);
            }
        }
        sums
    }

    fn add(&mut self, other: &Self, sign: f64) {
        self.rows += sign * other.rows;
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, v)| *sum += sign * v);
        self.products.iter_mut().zip(&other.products).for_each(|(sum, v)| *sum += sign * v);
    }

    fn covariance(&self) -> Vec<f64> {
        let width = self.sums.len();
        let mean = |at: usize| self.sums[at] / self.rows;
        let cell = |at: usize| {
            let (i, j) = (at / width, at % width);
            let ridge = if i == j { RIDGE } else { 0.0 };
            self.products[at] / self.rows - mean(i) * mean(j) + ridge
        };
        (0..width * width).map(cell).collect()
    }
}

/// The slope of the correlations of a source over those of the others, and its standard error where there is nothing to them.
///
/// Columns that have nothing to do with each other have correlations by chance, too: that much is taken off. Where next to
/// nothing is left, there is nothing to compare with, and the error is infinite.
fn kept(theirs: &[f64], mine: &[f64], width: usize, [their_rows, rows]: [f64; 2]) -> (f64, f64) {
    let correlation = |covariance: &[f64], i: usize, j: usize| {
        covariance[i * width + j] / (covariance[i * width + i] * covariance[j * width + j]).sqrt()
    };
    let (mut both, mut squares) = (0.0, 0.0);
    for i in 0..width {
        for j in 0..i {
            let other = correlation(theirs, i, j);
            both += other * correlation(mine, i, j);
            squares += other * other;
        }
    }
    let pairs = (width * (width - 1) / 2) as f64;
    let signal = squares - pairs / their_rows;
    let by_chance = FAR * (2.0 * pairs).sqrt() / their_rows;
    if signal <= by_chance || signal < pairs * LEAST_CORRELATION.powi(2) {
        return (1.0, f64::INFINITY);
    }
    (both / signal, (squares / rows).sqrt() / signal)
}

/// By elimination; `None` where there is none.
fn inverse(matrix: &[f64], width: usize) -> Option<Vec<f64>> {
    let mut left = matrix.to_vec();
    let mut right = vec![0.0; width * width];
    (0..width).for_each(|at| right[at * width + at] = 1.0);
    for pivot in 0..width {
        let best = (pivot..width).max_by(|&a, &b| {
            left[a * width + pivot].abs().total_cmp(&left[b * width + pivot].abs())
        })?;
        if left[best * width + pivot].abs() < 1e-12 {
            return None;
        }
        for at in 0..width {
            left.swap(best * width + at, pivot * width + at);
            right.swap(best * width + at, pivot * width + at);
        }
        let scale = left[pivot * width + pivot];
        for at in 0..width {
            left[pivot * width + at] /= scale;
            right[pivot * width + at] /= scale;
        }
        for row in (0..width).filter(|row| *row != pivot) {
            let factor = left[row * width + pivot];
            for at in 0..width {
                left[row * width + at] -= factor * left[pivot * width + at];
                right[row * width + at] -= factor * right[pivot * width + at];
            }
        }
    }
    Some(right).filter(|inverse| inverse.iter().all(|v| v.is_finite()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let matrix = [0.0, 2.0, 1.0, 2.0, 5.0, 3.0, 1.0, 3.0, 4.0];
        let inverse = inverse(&matrix, 3).unwrap();
        for i in 0..3 {
            for j in 0..3 {
                let product: f64 = (0..3).map(|k| matrix[i * 3 + k] * inverse[k * 3 + j]).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12, "{i} {j}");
            }
        }
        assert!(super::inverse(&[1.0, 2.0, 2.0, 4.0], 2).is_none());
    }

    /// The slow way: a fit for every row that is left out.
    #[test]
    fn a_row_that_was_learnt_from_has_the_residuals_of_a_fit_without_it() {
        const WIDTH: usize = 6;
        let mut state = 3u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as f64 / (1u64 << 30) as f64 - 1.0
        };
        let mut values = Vec::new();
        for _ in 0..ROWS_PER_COLUMN * WIDTH {
            let common = next();
            values.extend((0..WIDTH).map(|_| common + next()));
        }
        let fit = |sums: &Sums| Fit::new(sums, &sums.covariance()).unwrap();
        let sums = Sums::of(&values, WIDTH);
        let (all, mut smaller) = (fit(&sums), 0);
        for row in values.chunks_exact(WIDTH) {
            let mut rest = sums.clone();
            rest.add(&Sums::of(row, WIDTH), -1.0);
            let (quick, slow) = (all.residuals(row, true), fit(&rest).residuals(row, false));
            for ((quick, slow), seen) in quick.iter().zip(slow).zip(all.residuals(row, false)) {
                // The same ridge to every row is a little less to one row fewer.
                assert!((quick - slow).abs() < 1e-3, "{quick} {slow}");
                smaller += usize::from(seen.abs() < 0.95 * slow.abs());
            }
        }
        assert!(smaller > values.len() / 2, "{smaller}");
    }

    #[test]
    fn columns_without_correlations_leave_nothing_to_compare_with() {
        const WIDTH: usize = 20;
        let sums = |rows: usize, shared: f64, start: u64| {
            let mut state = start;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as f64 / (1u64 << 30) as f64 - 1.0
            };
            let mut values = Vec::new();
            for _ in 0..rows {
                let common = shared * next();
                values.extend((0..WIDTH).map(|_| common + next()));
            }
            Sums::of(&values, WIDTH).covariance()
        };
        let compare = |theirs: f64, mine: f64| {
            kept(&sums(2_000, theirs, 1), &sums(500, mine, 2), WIDTH, [2_000.0, 500.0])
        };
        assert_eq!(compare(0.0, 0.0).1, f64::INFINITY);
        assert_eq!(compare(0.0, 1.0).1, f64::INFINITY);
        let (alike, error) = compare(1.0, 1.0);
        assert!((alike - 1.0).abs() < 0.1 && error < 0.05, "{alike} {error}");
        let (replaced, error) = compare(1.0, 0.0);
        assert!(replaced.abs() < 0.1 && error < 0.05, "{replaced} {error}");
    }

    #[test]
    fn sums_of_a_part_can_be_taken_away() {
        let values = [1.0, 2.0, 3.0, -4.0, 0.5, 0.25];
        let mut all = Sums::of(&values, 2);
        all.add(&Sums::of(&values[4..], 2), -1.0);
        let rest = Sums::of(&values[..4], 2);
        assert_eq!((all.rows, &all.sums, &all.products), (rest.rows, &rest.sums, &rest.products));
        // By hand: means 2 and −1, so products of distances −1·3 and 1·−3.
        assert_eq!(rest.covariance()[1], -3.0);
    }
}
