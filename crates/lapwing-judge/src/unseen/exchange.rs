//! Two classes that a source has exchanged: where networks say the one it says the other, and the other way round.
//!
//! Such labels do not look like noise, which is drawn from all labels; and networks that have learnt from the source, too,
//! hold the other class for possible. What gives it away is that it goes both ways, and that the others do not do it.

use std::collections::BTreeMap;

/// Which share of each class must have the label of the other one.
const OWN: f64 = 0.5;
/// And at most of those of the others.
const OTHERS: f64 = 0.25;
/// Fewest rows of each class.
const FEWEST: f64 = 5.0;
/// How improbable it must be that such a source does as the others do.
const CHANCE: f64 = 1e-3;
/// Labels of the others are no less often wrong than this.
const LEAST: f64 = 0.05;
/// How much more often than the others' the labels of other classes may be contradicted: where all of them are, rows are
/// difficult.
const REST: f64 = 0.15;

/// What networks say and what labels say, where they differ.
#[derive(Clone, Debug, Default)]
pub(super) struct Contradictions {
    /// Rows by what the network says.
    said: Vec<f64>,
    /// Rows by what the network says and by the label.
    pairs: BTreeMap<(u32, u32), f64>,
}

/// Classes that are exchanged, two by two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Exchange {
    /// Rows of these classes.
    pub(super) rows: u64,
    /// The share of them that has the label of the other.
    pub(super) share: f64,
}

impl Contradictions {
    pub(super) fn new(classes: usize) -> Self {
        Self { said: vec![0.0; classes], pairs: BTreeMap::new() }
    }

    /// Adds a row, which may count for less than one.
    pub(super) fn add(&mut self, said: u32, label: u32, weight: f64) {
        self.said[said as usize] += weight;
        if said != label {
            *self.pairs.entry((said, label)).or_default() += weight;
        }
    }

    /// The pairs of classes that a source has exchanged, if there are such; `all` are the rows of everybody, in which each of
    /// its own counts for `weight`.
    pub(super) fn exchange(&self, all: &Self, weight: f64) -> Option<Exchange> {
        let pair = |of: &Self, a, b| of.pairs.get(&(a, b)).copied().unwrap_or(0.0);
        let others = |a: u32, b: u32| {
            let said = all.said[a as usize] - weight * self.said[a as usize];
            ((pair(all, a, b) - weight * pair(self, a, b)) / said.max(1.0)).max(0.0)
        };
        let classes = self.said.len() as f64;
        let pairs = (0.5 * classes * (classes - 1.0)).max(1.0);
        let mut exchanged = vec![false; self.said.len()];
        let (mut rows, mut wrong) = (0.0, 0.0);
        for (&(a, b), &ab) in self.pairs.iter().filter(|((a, b), _)| a < b) {
            let ba = pair(self, b, a);
            let (of_a, of_b) = (self.said[a as usize], self.said[b as usize]);
            let usual = others(a, b).max(others(b, a)).max(LEAST);
            let both = of_a >= FEWEST && of_b >= FEWEST && ab >= OWN * of_a && ba >= OWN * of_b;
            if !both || usual > OTHERS {
                continue;
            }
            // Chernoff's bound on the probability of so many by chance, in any of all pairs.
            let surprise = (of_a + of_b) * divergence((ab + ba) / (of_a + of_b), usual);
            if surprise >= (pairs / CHANCE).ln() {
                (exchanged[a as usize], exchanged[b as usize]) = (true, true);
                (rows, wrong) = (rows + of_a + of_b, wrong + ab + ba);
            }
        }
        let found = rows > 0.0 && self.rest_is_usual(&exchanged, all, weight);
        found.then(|| Exchange { rows: rows as u64, share: wrong / rows })
    }

    /// Whether labels of the other classes are not contradicted much more than those of the others.
    fn rest_is_usual(&self, exchanged: &[bool], all: &Self, weight: f64) -> bool {
        let outside = |of: &Self| {
            let said = of.said.iter().zip(exchanged).filter(|(_, exchanged)| !**exchanged);
            let pairs = of.pairs.iter().filter(|((said, _), _)| !exchanged[*said as usize]);
            (said.map(|(rows, _)| rows).sum::<f64>(), pairs.map(|(_, rows)| rows).sum::<f64>())
        };
        let ((rows, contradicted), (all_rows, all_contradicted)) = (outside(self), outside(all));
        let usual =
            (all_contradicted - weight * contradicted) / (all_rows - weight * rows).max(1.0);
        contradicted <= (usual.max(0.0) + REST) * rows.max(1.0)
    }
}

/// How far a share is from what it would be by chance, in nats per row.
fn divergence(share: f64, chance: f64) -> f64 {
    let part = |a: f64, b: f64| if a > 0.0 { a * (a / b).ln() } else { 0.0 };
    if share <= chance { 0.0 } else { part(share, chance) + part(1.0 - share, 1.0 - chance) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 30 rows of each of four classes.
    fn source(label: impl Fn(u32, u32) -> u32) -> Contradictions {
        let mut rows = Contradictions::new(4);
        (0..120).for_each(|row| rows.add(row % 4, label(row % 4, row / 4), 1.0));
        rows
    }

    fn found(own: &Contradictions) -> Option<Exchange> {
        let mut all = own.clone();
        for row in 0..1200 {
            // One in ten of the others is contradicted, with the next class.
            all.add(row % 4, if row % 40 < 4 { (row + 1) % 4 } else { row % 4 }, 1.0);
        }
        own.exchange(&all, 1.0)
    }

    #[test]
    fn what_goes_both_ways_is_found_and_what_does_not_is_not() {
        let swapped = source(|class, _| [1, 0, 2, 3][class as usize]);
        assert_eq!(found(&swapped), Some(Exchange { rows: 60, share: 1.0 }));
        assert_eq!(found(&source(|class, _| class)), None);
        assert_eq!(found(&source(|class, _| [1, 1, 2, 3][class as usize])), None, "one way");
        let twice = found(&source(|class, _| class ^ 1));
        assert_eq!(twice, Some(Exchange { rows: 120, share: 1.0 }), "two pairs");
        let mostly_wrong = source(|class, at| match class {
            0 | 1 => class ^ 1,
            _ => (class + at) % 4,
        });
        assert_eq!(found(&mostly_wrong), None, "where all is contradicted, rows are difficult");
        assert_eq!(found(&source(|class, at| if at < 9 { class ^ 1 } else { class })), None);
    }

    #[test]
    fn a_few_rows_are_no_pattern() {
        let mut few = Contradictions::new(10);
        (0..4).for_each(|_| few.add(0, 1, 1.0));
        (0..4).for_each(|at| few.add(1, u32::from(at < 1), 1.0));
        assert_eq!(found(&few), None);
    }
}
