//! The rule: Algorithm 1 of the paper, for batches that mix sources.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::hash::Hash;

use foldhash::fast::RandomState;
use indexmap::{Equivalent, IndexSet};

use crate::moments::Moments;
use crate::source::{Present, Reference, Source, SourceStatus};
use crate::tree::Tree;
use crate::{BatchSums, LapConfig, LapError, SourceSum, Ties};

/// The place in the batch of a source that is not in it.
const ABSENT: u32 = u32::MAX;

/// Most sources that can be told apart: the tree that merges them has twice as many nodes, and
/// numbers these with 32 bits.
pub(crate) const MOST_SOURCES: u64 = 1 << 31;

/// Others that spread by no more than this say nothing, under [`Ties::Package`].
const PACKAGE_NO_SPREAD: f64 = 1e-8;

/// Loss Adapted Plasticity over sources named by `K` (text, integers, anything hashable).
///
/// One step is one mini-batch: [`weigh`](Self::weigh) where a batch mixes sources,
/// [`scale`](Self::scale) where it holds one source only, and [`update`](Self::update) where it is
/// split over many workers or too large to be held.
#[derive(Clone, Debug)]
pub struct Lap<K> {
    pub(crate) config: LapConfig,
    pub(crate) step: u64,
    /// A source's place in here is its place in `sources` and in the tree.
    pub(crate) names: IndexSet<K, RandomState>,
    pub(crate) sources: Vec<Source>,
    tree: Tree,
    /// What the batch of this step, or of the last one, says about each of its sources.
    batch: Vec<BatchEntry>,
    /// For each source, its place in the batch, or `ABSENT`.
    places: Vec<u32>,
    /// The sources of the batch that have complete histories, in ascending order.
    complete: Vec<u32>,
    /// Which source each sample of the batch in `weigh` belongs to, and what it weighs.
    slots: Vec<u32>,
    weights: Vec<f64>,
    /// [`MOST_SOURCES`], but in tests.
    most: u64,
}

#[derive(Clone, Debug)]
struct BatchEntry {
    slot: u32,
    sum: SourceSum,
}

impl<K: Hash + Eq> Lap<K> {
    /// A fresh start: no source known, nobody accused.
    ///
    /// # Errors
    /// Where a parameter lies outside its range.
    pub fn new(config: LapConfig) -> Result<Self, LapError> {
        config.check()?;
        Ok(Self {
            config,
            step: 0,
            names: IndexSet::default(),
            sources: Vec::new(),
            tree: Tree::new(),
            batch: Vec::new(),
            places: Vec::new(),
            complete: Vec::new(),
            slots: Vec::new(),
            weights: Vec::new(),
            most: MOST_SOURCES,
        })
    }

    /// The parameters.
    pub fn config(&self) -> &LapConfig {
        &self.config
    }

    /// How many steps have been made.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// One step: takes the per-sample losses of a batch and where each sample came from, updates
    /// the unreliability of these sources, and returns the weight of each sample. Train on the
    /// mean of weight · loss (not divided by the sum of the weights).
    ///
    /// A sample whose loss is not finite weighs 0; leave it out of the sum, as 0 · NaN is NaN.
    ///
    /// # Errors
    /// Where there is not exactly one source per loss, or where there are too many sources. Nothing
    /// has changed then.
    pub fn weigh<'a, L, Q>(
        &mut self,
        losses: &[L],
        sources: impl IntoIterator<Item = &'a Q, IntoIter: ExactSizeIterator>,
    ) -> Result<&[f64], LapError>
    where
        L: Copy + Into<f64>,
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'a,
    {
        let sources = sources.into_iter();
        if losses.len() != sources.len() {
            return Err(LapError::Unpaired { losses: losses.len(), sources: sources.len() });
        }
        self.enter_all(sources)?;
        self.start_batch();
        let slots = core::mem::take(&mut self.slots);
        for (&loss, &slot) in losses.iter().zip(&slots) {
            self.entry(slot).add(loss.into());
        }
        self.slots = slots;
        self.advance();
        self.weights.clear();
        for (&loss, &slot) in losses.iter().zip(&self.slots) {
            let finite = loss.into().is_finite();
            let weight = if finite { self.sources[slot as usize].weight() } else { 0.0 };
            self.weights.push(weight);
        }
        Ok(&self.weights)
    }

    /// One step with a batch from a single source: returns the one factor by which to scale the
    /// gradient (or the loss) of the whole batch. It is 0 where no loss is finite.
    ///
    /// With optimisers that normalise the gradient, such as Adam, scaling a whole batch hardly
    /// changes the update: prefer batches that mix sources, and [`weigh`](Self::weigh).
    ///
    /// # Errors
    /// Where there are too many sources. Nothing has changed then.
    pub fn scale<L, Q>(&mut self, losses: &[L], source: &Q) -> Result<f64, LapError>
    where
        L: Copy + Into<f64>,
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        let slot = self.enter(source)?;
        self.start_batch();
        let sum = self.entry(slot);
        losses.iter().for_each(|&loss| sum.add(loss.into()));
        let usable = sum.finite() > 0;
        self.advance();
        Ok(if usable { self.sources[slot as usize].weight() } else { 0.0 })
    }

    /// One step with a batch that was summed up beforehand, and possibly elsewhere: the second of
    /// the two halves of a step.
    ///
    /// On many machines, each worker sums up its part of the batch ([`BatchSums`]), the parts are
    /// merged in the order of the ranks, and each worker calls this with the result. All end in the
    /// same state, that of one worker with the whole batch; [`weight`](Self::weight) then tells
    /// what the local samples weigh.
    ///
    /// # Errors
    /// Where there are too many sources. Nothing has changed then.
    pub fn update(&mut self, sums: &BatchSums<K>) -> Result<(), LapError>
    where
        K: Clone,
    {
        self.enter_all(sums.iter().map(|(source, _)| source))?;
        self.start_batch();
        let slots = core::mem::take(&mut self.slots);
        for (&slot, (_, sum)) in slots.iter().zip(sums.iter()) {
            *self.entry(slot) = *sum;
        }
        self.slots = slots;
        self.advance();
        Ok(())
    }

    /// What samples of this source weigh now; 1 for a source never seen.
    pub fn weight<Q>(&self, source: &Q) -> f64
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.names.get_index_of(source).map_or(1.0, |slot| self.sources[slot].weight())
    }

    /// C of this source now; 0 for a source never seen.
    pub fn unreliability<Q>(&self, source: &Q) -> u64
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.names.get_index_of(source).map_or(0, |slot| self.sources[slot].unreliability)
    }

    /// The sources of the last step, in order of first appearance in its batch.
    pub fn present(&self) -> impl Iterator<Item = Present<'_, K>> {
        self.batch.iter().map(|BatchEntry { slot, sum }| {
            let known = &self.sources[*slot as usize];
            Present {
                source: &self.names[*slot as usize],
                loss: sum.mean(),
                unreliability: known.unreliability,
                weight: known.weight(),
            }
        })
    }

    /// Where one source stands; `None` if it has never been seen. Costs O(S): for all sources,
    /// call [`sources`](Self::sources).
    pub fn status<Q>(&self, source: &Q) -> Option<SourceStatus<&K>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let slot = self.names.get_index_of(source)?;
        self.sources().nth(slot)
    }

    /// Where every source stands, in order of first appearance.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = SourceStatus<&K>> {
        let known = self.names.iter().zip(&self.sources).zip(self.references());
        known.map(|((source, known), reference)| SourceStatus {
            source,
            rows: known.rows,
            batches: known.batches,
            unreliability: known.unreliability,
            weight: known.weight(),
            mean_loss: (!known.window.is_empty()).then(|| known.moments(self.config.reading).mean),
            reference,
            nonfinite: known.nonfinite,
            judged: known.judged,
            above: known.above,
            first_departure_step: known.first_departure_step,
        })
    }

    fn start_batch(&mut self) {
        for entry in self.batch.drain(..) {
            self.places[entry.slot as usize] = ABSENT;
        }
    }

    /// The slots of sources, into `slots`. All look-ups come first, as they wait for memory side by
    /// side when nothing comes between them. Where one is refused, none is remembered.
    fn enter_all<'a, Q>(&mut self, sources: impl Iterator<Item = &'a Q>) -> Result<(), LapError>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'a,
    {
        let before = self.names.len();
        let mut slots = core::mem::take(&mut self.slots);
        slots.clear();
        let mut refused = None;
        for source in sources {
            match self.enter(source) {
                Ok(slot) => slots.push(slot),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        self.slots = slots;
        match refused {
            None => Ok(()),
            Some(error) => {
                self.names.truncate(before);
                self.sources.truncate(before);
                self.places.truncate(before);
                Err(error)
            }
        }
    }

    /// The slot of a source, which is met here for the first time if need be.
    fn enter<Q>(&mut self, source: &Q) -> Result<u32, LapError>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(slot) = self.names.get_index_of(source) {
            return Ok(slot as u32);
        }
        if self.names.len() as u64 >= self.most {
            return Err(LapError::TooManySources);
        }
        let slot = self.names.len() as u32;
        self.names.insert(source.to_owned());
        self.sources.push(Source::default());
        self.places.push(ABSENT);
        Ok(slot)
    }

    /// The sums of a source in the batch.
    fn entry(&mut self, slot: u32) -> &mut SourceSum {
        let place = &mut self.places[slot as usize];
        if *place == ABSENT {
            *place = self.batch.len() as u32;
            self.batch.push(BatchEntry { slot, sum: SourceSum::default() });
        }
        &mut self.batch[*place as usize].sum
    }

    /// The step itself, once the batch is summed up.
    fn advance(&mut self) {
        self.remember();
        if self.step >= self.config.warmup {
            self.judge();
        }
        self.step = self.step.saturating_add(1);
    }

    /// Puts the batch's mean losses into the histories, and these into the tree.
    fn remember(&mut self) {
        let LapConfig { history_length, reading, .. } = self.config;
        // Histories lie far apart in memory. Asking for all of them before working on the first
        // lets the processor fetch them side by side: a tenth of the step with 10,000 sources.
        let ahead = self.batch.iter().map(|entry| self.sources[entry.slot as usize].window.peek());
        core::hint::black_box(ahead.sum::<f64>());
        self.complete.clear();
        for BatchEntry { slot, sum } in &self.batch {
            let source = &mut self.sources[*slot as usize];
            // Saturating, as sums and states may come from anywhere.
            source.rows = source.rows.saturating_add(sum.finite()).saturating_add(sum.nonfinite());
            source.nonfinite = source.nonfinite.saturating_add(sum.nonfinite());
            if let Some(loss) = sum.mean() {
                source.batches = source.batches.saturating_add(1);
                source.window.push(loss, history_length);
                if source.window.is_complete(history_length) {
                    self.tree.set(*slot, source.moments(reading));
                    self.complete.push(*slot);
                }
            }
        }
        self.complete.sort_unstable();
        self.tree.choose(&self.complete);
        self.tree.merge();
    }

    /// Compares the sources of the batch with the others, all with the weights from before the
    /// step and the histories from after it, and moves their unreliability.
    fn judge(&mut self) {
        let Self { config, step, sources, tree, complete, .. } = self;
        complete.clear();
        tree.leave_one_out(|slot, own, others| {
            if others.mass.is_none() {
                return;
            }
            let source = &mut sources[slot as usize];
            source.judged = source.judged.saturating_add(1);
            let unreliability = match compare(own.mean, others, config) {
                Side::Above => {
                    source.above = source.above.saturating_add(1);
                    source.first_departure_step.get_or_insert(*step);
                    source.unreliability.saturating_add(1)
                }
                Side::Below => source.unreliability.saturating_sub(1),
                Side::Undecided => source.unreliability,
            };
            if unreliability != source.unreliability {
                source.set_unreliability(unreliability, config);
                complete.push(slot);
            }
        });
        // The tree had the old weights until here: all were judged simultaneously.
        for &slot in &*complete {
            tree.set(slot, sources[slot as usize].moments(config.reading));
        }
        tree.choose(complete);
        tree.merge();
    }

    /// What each source would be compared with now: prefix and suffix merges, O(S).
    fn references(&self) -> Vec<Option<Reference>> {
        let leaves = || {
            self.sources.iter().map(|source| {
                let complete = source.window.is_complete(self.config.history_length);
                if complete { source.moments(self.config.reading) } else { Moments::NONE }
            })
        };
        let mut suffixes: Vec<Moments> = Vec::with_capacity(self.sources.len());
        let mut after = Moments::NONE;
        for leaf in leaves().rev() {
            suffixes.push(after);
            after = leaf.merge(after);
        }
        let mut before = Moments::NONE;
        let others = leaves().zip(suffixes.into_iter().rev()).map(|(leaf, after)| {
            let others = before.merge(after);
            before = before.merge(leaf);
            (!others.mass.is_none())
                .then(|| Reference { mean: others.mean, std: libm::sqrt(others.variance) })
        });
        others.collect()
    }

    /// Brings all that is derived up to date with sources that were set from outside.
    pub(crate) fn rebuild(&mut self) {
        self.places.resize(self.sources.len(), ABSENT);
        let slots = 0..self.sources.len() as u32;
        let complete = |slot: &u32| {
            self.sources[*slot as usize].window.is_complete(self.config.history_length)
        };
        self.complete = slots.filter(complete).collect();
        for &slot in &self.complete {
            self.tree.set(slot, self.sources[slot as usize].moments(self.config.reading));
        }
        self.tree.choose(&self.complete);
        self.tree.merge();
    }
}

/// On which side of the threshold a source lies.
enum Side {
    Above,
    Below,
    Undecided,
}

fn compare(mean: f64, others: Moments, config: &LapConfig) -> Side {
    if config.leniency == f64::INFINITY {
        return Side::Below;
    }
    let std = libm::sqrt(others.variance);
    let threshold = others.mean + config.leniency * std;
    match config.ties {
        Ties::Package if std <= PACKAGE_NO_SPREAD => Side::Undecided,
        Ties::Package if mean >= threshold => Side::Above,
        Ties::Paper if mean > threshold => Side::Above,
        _ => Side::Below,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn every_node_above_the_most_sources_has_a_number_of_32_bits() {
        // Leaves and the nodes above them: 1 to 2·S − 1, for S a power of two.
        assert!(MOST_SOURCES.is_power_of_two());
        assert_eq!(2 * MOST_SOURCES - 1, u64::from(u32::MAX));
        assert!(LapError::TooManySources.to_string().contains("2,147,483,648"));
    }

    #[test]
    fn histories_that_are_not_complete_take_no_room_in_the_tree() {
        let config = LapConfig { history_length: 3, ..LapConfig::default() };
        let mut lap = Lap::<u32>::new(config).unwrap();
        let many: Vec<u32> = (0..1000).collect();
        for _ in 0..2 {
            lap.weigh(&[0.5; 1000], &many).unwrap();
        }
        assert_eq!(lap.tree.leaves(), 1);
        lap.weigh(&[0.5, 0.7], &[0, 4]).unwrap();
        assert_eq!(lap.tree.leaves(), 8);
        assert!(lap.sources().all(|known| known.reference.is_some() && known.judged <= 1));
    }

    /// Everything that can be seen from outside.
    fn seen(lap: &Lap<u32>) -> (Vec<u32>, Vec<u32>, u64) {
        let present = lap.present().map(|present| *present.source).collect();
        (lap.names.iter().copied().collect(), present, lap.step)
    }

    #[test]
    fn a_batch_with_too_many_sources_leaves_nothing_behind() {
        let mut lap = Lap::<u32>::new(LapConfig::default()).unwrap();
        lap.most = 3;
        lap.weigh(&[0.5, 0.7], &[1, 2]).unwrap();
        let before = seen(&lap);
        assert_eq!(lap.weigh(&[0.1; 3], &[2, 3, 4]), Err(LapError::TooManySources));
        assert_eq!(seen(&lap), before);
        let mut sums = BatchSums::new();
        [3, 1, 4].iter().for_each(|source| sums.add(source, 0.2));
        assert_eq!(lap.update(&sums), Err(LapError::TooManySources));
        assert_eq!(seen(&lap), before);
        // There is room for one more, which the refused batches have not taken.
        assert_eq!(lap.weigh(&[0.1, 0.2], &[3, 1]).unwrap(), [1.0, 1.0]);
        assert_eq!(lap.scale(&[0.3], &4), Err(LapError::TooManySources));
        assert_eq!(seen(&lap), (vec![1, 2, 3], vec![3, 1], 2));
    }

    #[test]
    fn a_reference_is_what_a_source_would_be_compared_with_now() {
        let config =
            LapConfig { history_length: 1, depression_strength: 0.0, ..LapConfig::default() };
        let mut lap = Lap::<u32>::new(config).unwrap();
        lap.weigh(&[1.0, 2.0, 4.0], &[0, 1, 2]).unwrap();
        assert_eq!(lap.status(&0).unwrap().reference, Some(Reference { mean: 3.0, std: 1.0 }));
        // Source 0 is not in this batch, so nothing was compared with it; its reference has moved.
        lap.weigh(&[6.0], &[2]).unwrap();
        assert_eq!(lap.status(&0).unwrap().judged, 1);
        assert_eq!(lap.status(&0).unwrap().reference, Some(Reference { mean: 4.0, std: 2.0 }));
    }
}
