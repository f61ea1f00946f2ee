//! The first half of a step: what one batch says about each source.

use core::hash::Hash;

use foldhash::fast::RandomState;
use indexmap::{Equivalent, IndexMap};
use serde::{Deserialize, Serialize};

use alloc::borrow::ToOwned;

/// Losses beyond ±1e150 are read as ±1e150, so that their squares stay finite. Nothing that a
/// network returns in f32 comes near it.
pub const LARGEST_LOSS: f64 = 1e150;

/// The losses of one source in one batch.
///
/// The sum carries its own rounding error along (it is a double-double), so that the order of the
/// samples, and how they were split over workers, leaves no trace in the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceSum {
    high: f64,
    low: f64,
    finite: u64,
    nonfinite: u64,
}

impl SourceSum {
    /// Adds one sample's loss.
    #[inline]
    pub fn add(&mut self, loss: f64) {
        if loss.is_finite() {
            self.add_finite(loss.clamp(-LARGEST_LOSS, LARGEST_LOSS));
            self.finite += 1;
        } else {
            self.nonfinite += 1;
        }
    }

    /// Adds the losses of the same source on another worker.
    pub fn merge(&mut self, other: &Self) {
        self.add_finite(other.high);
        self.add_finite(other.low);
        self.finite = self.finite.saturating_add(other.finite);
        self.nonfinite = self.nonfinite.saturating_add(other.nonfinite);
    }

    fn add_finite(&mut self, value: f64) {
        let sum = self.high + value;
        let virtual_value = sum - self.high;
        let error = (self.high - (sum - virtual_value)) + (value - virtual_value);
        let low = self.low + error;
        self.high = sum + low;
        self.low = low - (self.high - sum);
    }

    /// The mean of the finite losses, if there are any.
    pub fn mean(&self) -> Option<f64> {
        let mean = self.high / self.finite as f64;
        // Sums that arrive from elsewhere may hold anything.
        (self.finite > 0 && mean.is_finite()).then(|| mean.clamp(-LARGEST_LOSS, LARGEST_LOSS))
    }

    /// The sum of the finite losses.
    pub fn total(&self) -> f64 {
        self.high + self.low
    }

    /// How many finite losses there are.
    pub fn finite(&self) -> u64 {
        self.finite
    }

    /// How many losses are NaN or infinite.
    pub fn nonfinite(&self) -> u64 {
        self.nonfinite
    }
}

/// The losses of every source in one batch, the first of the two halves of a step: what workers
/// exchange when a batch is split over many machines, and what a batch too large to be held is
/// boiled down to. [`Lap::update`](crate::Lap::update) is the second half.
///
/// ```
/// use lapwing_core::{BatchSums, Lap, LapConfig};
/// let (mut here, mut there) = (BatchSums::<String>::new(), BatchSums::<String>::new());
/// here.add("a", 0.5);
/// there.add("a", 1.5);
/// there.add("b", f64::NAN);
/// here.merge(&there);
/// let means: Vec<_> = here.iter().map(|(source, sum)| (source.as_str(), sum.mean())).collect();
/// assert_eq!(means, [("a", Some(1.0)), ("b", None)]);
///
/// let mut lap = Lap::new(LapConfig::default())?;
/// lap.update(&here)?;
/// assert_eq!(lap.weight("a"), 1.0);
/// # Ok::<(), lapwing_core::LapError>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "K: Serialize", deserialize = "K: Deserialize<'de> + Hash + Eq"))]
pub struct BatchSums<K> {
    #[serde(with = "indexmap::map::serde_seq")]
    sums: IndexMap<K, SourceSum, RandomState>,
}

impl<K> Default for BatchSums<K> {
    fn default() -> Self {
        Self { sums: IndexMap::default() }
    }
}

impl<K: Hash + Eq> BatchSums<K> {
    /// No losses yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one sample's loss.
    pub fn add<Q>(&mut self, source: &Q, loss: f64)
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        self.of(source).add(loss);
    }

    /// Adds what was summed up of one source elsewhere.
    pub fn add_sum<Q>(&mut self, source: &Q, sum: &SourceSum)
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        self.of(source).merge(sum);
    }

    /// Adds another worker's part of the batch.
    ///
    /// Merge the parts in the same order (that of the ranks) on every worker, and all of them end
    /// in the same state to the last bit.
    pub fn merge(&mut self, other: &Self)
    where
        K: Clone,
    {
        for (source, sum) in &other.sums {
            self.add_sum(source, sum);
        }
    }

    /// Forgets all losses and keeps the memory, for the next batch.
    pub fn clear(&mut self) {
        self.sums.clear();
    }

    fn of<Q>(&mut self, source: &Q) -> &mut SourceSum
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        let at = match self.sums.get_index_of(source) {
            Some(at) => at,
            None => self.sums.insert_full(source.to_owned(), SourceSum::default()).0,
        };
        &mut self.sums[at]
    }

    /// The sources in order of first appearance.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &SourceSum)> {
        self.sums.iter()
    }

    /// How many sources there are.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// Whether there is no source at all.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn sum(losses: &[f64]) -> SourceSum {
        let mut sum = SourceSum::default();
        losses.iter().for_each(|&loss| sum.add(loss));
        sum
    }

    proptest! {
        #[test]
        fn order_and_split_leave_no_trace_in_the_mean(
            losses in prop::collection::vec(prop_oneof![-1.0..1.0f64, -1e9..1e9f64], 1..200),
            cut in any::<prop::sample::Index>(),
        ) {
            let whole = sum(&losses);
            let backwards: Vec<f64> = losses.iter().rev().copied().collect();
            prop_assert_eq!(sum(&backwards).mean(), whole.mean());
            let (a, b) = losses.split_at(cut.index(losses.len()));
            let mut merged = sum(b);
            merged.merge(&sum(a));
            prop_assert_eq!(merged.mean(), whole.mean());
        }
    }

    #[test]
    fn losses_that_are_not_finite_are_counted_apart() {
        let s = sum(&[1.0, f64::NAN, 3.0, f64::INFINITY, f64::NEG_INFINITY]);
        assert_eq!((s.mean(), s.finite(), s.nonfinite()), (Some(2.0), 2, 3));
        assert_eq!(sum(&[f64::NAN]).mean(), None);
        assert_eq!(SourceSum::default().mean(), None);
    }

    #[test]
    fn the_largest_finite_losses_do_not_overflow() {
        assert_eq!(sum(&[f64::MAX; 1000]).mean(), Some(LARGEST_LOSS));
        assert_eq!(sum(&[f64::MAX, f64::MIN, 4.0, 0.0]).mean(), Some(1.0));
    }
}
