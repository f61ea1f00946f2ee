//! How many different values a column has, in bounded memory.

use serde::{Deserialize, Serialize};

/// Hashes kept: counts below this are exact, above it the relative standard error is about 1/√1024 = 3 %.
const KEPT: usize = 1024;

/// A number of different values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distinct {
    /// How many.
    pub count: u64,
    /// Whether they were all counted; otherwise `count` is an estimate within a few per cent.
    pub exact: bool,
}

/// Keeps the smallest hashes seen: few values leave all their hashes, many leave a density that tells their number.
#[derive(Debug, Clone, Default)]
pub(crate) struct DistinctCounter {
    /// Ascending.
    smallest: Vec<u64>,
    overflowed: bool,
}

impl DistinctCounter {
    pub(crate) fn observe_number(&mut self, number: f64) {
        // Adding zero makes −0 and 0 one value.
        self.observe(mix((number + 0.0).to_bits()));
    }

    pub(crate) fn observe_text(&mut self, text: &str) {
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        self.observe(mix(hash));
    }

    fn observe(&mut self, hash: u64) {
        let full = self.smallest.len() == KEPT;
        if full && self.smallest.last().is_some_and(|&last| hash > last) {
            self.overflowed = true;
            return;
        }
        if let Err(position) = self.smallest.binary_search(&hash) {
            if full {
                self.smallest.pop();
                self.overflowed = true;
            }
            self.smallest.insert(position, hash);
        }
    }

    pub(crate) fn distinct(&self) -> Distinct {
        match self.smallest.last() {
            Some(&largest) if self.overflowed => {
                let share = (largest as f64 + 1.0) / 2_f64.powi(64);
                Distinct { count: ((KEPT - 1) as f64 / share).round() as u64, exact: false }
            }
            _ => Distinct { count: self.smallest.len() as u64, exact: true },
        }
    }
}

/// Spreads the bits of a key evenly (the finaliser of SplitMix64).
fn mix(key: u64) -> u64 {
    let key = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_counted_exactly() {
        let mut counter = DistinctCounter::default();
        for i in 0..10_000 {
            counter.observe_number(f64::from(i % 1024));
        }
        assert_eq!(counter.distinct(), Distinct { count: 1024, exact: true });
        counter.observe_number(-0.0);
        assert!(counter.distinct().exact);
        counter.observe_number(0.5);
        assert!(!counter.distinct().exact);
    }

    #[test]
    fn many_values_are_estimated_within_a_tenth() {
        for count in [2_000_u64, 50_000, 300_000] {
            let mut numbers = DistinctCounter::default();
            let mut texts = DistinctCounter::default();
            for i in 0..count {
                numbers.observe_number(i as f64);
                texts.observe_text(&format!("user-{i}"));
            }
            for counter in [numbers, texts] {
                let estimate = counter.distinct();
                assert!(!estimate.exact);
                assert!(
                    (estimate.count as f64 / count as f64 - 1.0).abs() < 0.1,
                    "{count}: {estimate:?}"
                );
            }
        }
    }
}
