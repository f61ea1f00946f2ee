//! Given labels against predicted ones.

use serde::{Deserialize, Serialize};

/// Classes up to which a confusion can be read, and is made.
pub const MOST_CLASSES: usize = 40;

/// How often each given label met each predicted one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Confusion {
    /// The classes.
    pub classes: Vec<String>,
    /// `counts[given][predicted]`.
    pub counts: Vec<Vec<u64>>,
    /// Share of rows of reliable sources on which label and model agree, 0 to 1.
    pub reliable_agreement: Option<f64>,
}

/// The confusion of one source with its sums.
#[derive(Clone, Debug)]
pub struct Tally {
    /// `cells[given][predicted]`.
    pub cells: Vec<Vec<u64>>,
    /// Rows by given label.
    pub given: Vec<u64>,
    /// Rows by predicted label.
    pub predicted: Vec<u64>,
    /// All rows.
    pub total: u64,
    /// Rows in which both agree.
    pub agreed: u64,
}

impl Tally {
    /// Counts pairs of a given and a predicted class, each below `classes`.
    pub(crate) fn of(classes: usize, pairs: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut tally = Self {
            cells: vec![vec![0; classes]; classes],
            given: vec![0; classes],
            predicted: vec![0; classes],
            total: 0,
            agreed: 0,
        };
        for (given, predicted) in pairs {
            let (i, j) = (given as usize, predicted as usize);
            tally.cells[i][j] += 1;
            tally.given[i] += 1;
            tally.predicted[j] += 1;
            tally.total += 1;
            tally.agreed += u64::from(i == j);
        }
        tally
    }

    /// Rows in which label and model differ.
    pub fn disagreeing(&self) -> u64 {
        self.total - self.agreed
    }

    /// The label that nearly every row is given, if there is one.
    pub fn dominant(&self) -> Option<usize> {
        (0..self.given.len()).find(|&i| share(self.given[i], self.total) >= 0.95)
    }

    /// Given label, predicted label and number of the most frequent disagreement; of equals the first, so that the
    /// order of the classes decides.
    pub fn most_frequent_disagreement(&self) -> Option<(usize, usize, u64)> {
        let off = self.cells().filter(|(i, j, n)| i != j && *n > 0);
        off.reduce(|best, cell| if cell.2 > best.2 { cell } else { best })
    }

    /// Labels most of whose rows are one other class to the model, and that class.
    pub fn moved(&self) -> Vec<(usize, usize)> {
        let main_answer = |given: usize| {
            let row = &self.cells[given];
            (0..row.len()).find(|&j| row[j] > self.given[given] / 2)
        };
        let all = (0..self.given.len()).filter_map(|i| Some((i, main_answer(i)?)));
        all.filter(|(i, j)| i != j).collect()
    }

    /// Cramér's V: 0 when given and predicted labels are independent, 1 when one determines the other.
    pub fn association(&self) -> f64 {
        let n = self.total as f64;
        let expected = |i: usize, j: usize| self.given[i] as f64 * self.predicted[j] as f64 / n;
        let cells = self.cells().filter(|(i, j, _)| expected(*i, *j) > 0.0);
        let chi2: f64 = cells
            .map(|(i, j, count)| (count as f64 - expected(i, j)).powi(2) / expected(i, j))
            .sum();
        let used = |sums: &[u64]| sums.iter().filter(|s| **s > 0).count();
        let freedom = used(&self.given).min(used(&self.predicted)).saturating_sub(1);
        if freedom == 0 { 0.0 } else { (chi2 / (n * freedom as f64)).sqrt() }
    }

    /// Cramér's V less what chance makes of it where rows are few (Bergsma 2013).
    pub fn corrected_association(&self) -> f64 {
        let n = self.total as f64;
        let used = |sums: &[u64]| sums.iter().filter(|s| **s > 0).count() as f64;
        let (given, predicted) = (used(&self.given), used(&self.predicted));
        let freedom = given.min(predicted) - 1.0;
        if n < 2.0 || freedom <= 0.0 {
            return 0.0;
        }
        let phi2 = self.association().powi(2) * freedom;
        let corrected = (phi2 - (given - 1.0) * (predicted - 1.0) / (n - 1.0)).max(0.0);
        let less = |classes: f64| classes - (classes - 1.0).powi(2) / (n - 1.0);
        let most = less(given).min(less(predicted)) - 1.0;
        if most > 0.0 { (corrected / most).sqrt().min(1.0) } else { 0.0 }
    }

    fn cells(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        let rows = self.cells.iter().enumerate();
        rows.flat_map(|(i, row)| row.iter().enumerate().map(move |(j, n)| (i, j, *n)))
    }
}

/// One count as a share of another; none of nothing.
pub(crate) fn share(part: u64, of: u64) -> f64 {
    part as f64 / of.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checked by hand: chi² of [[30, 10], [10, 30]] is 20, n = 80, so V = sqrt(20 / 80).
    #[test]
    fn association_is_cramers_v() {
        let cells = [(0, 0, 30), (0, 1, 10), (1, 0, 10), (1, 1, 30)];
        let pairs = cells.iter().flat_map(|&(i, j, n)| (0..n).map(move |_| (i, j)));
        assert!((Tally::of(2, pairs).association() - 0.5).abs() < 1e-12);
    }

    /// Checked by hand: of the same table phi² is 0.25, less 1/79; both sides count as 2 − 1/79 classes.
    #[test]
    fn the_corrected_association_is_bergsmas() {
        let cells = [(0, 0, 30), (0, 1, 10), (1, 0, 10), (1, 1, 30)];
        let pairs = cells.iter().flat_map(|&(i, j, n)| (0..n).map(move |_| (i, j)));
        let expected = ((0.25 - 1.0 / 79.0) / (1.0 - 1.0 / 79.0_f64)).sqrt();
        assert!((Tally::of(2, pairs).corrected_association() - expected).abs() < 1e-12);
        // Ten classes at random, in 40 rows: chance alone makes half of the largest association of them.
        let mut drawn = 1u32;
        let random = (0..40u32).map(|row| {
            drawn = drawn.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            (row % 10, drawn / 65_536 % 10)
        });
        let tally = Tally::of(10, random);
        let (plain, corrected) = (tally.association(), tally.corrected_association());
        assert!(plain > 0.35 && corrected < 0.25, "{plain} {corrected}");
    }

    #[test]
    fn nothing_counted_is_associated_with_nothing() {
        let tally = Tally::of(3, std::iter::empty());
        assert_eq!((tally.association(), tally.dominant()), (0.0, None));
        assert_eq!(tally.most_frequent_disagreement(), None);
    }
}
