//! A noise rate per source: which share of its labels is noise rather than the truth.

mod config;
mod estimate;
mod interval;
mod labels;
mod likelihoods;
mod model;
mod state;
mod sums;
mod values;

pub use config::NoiseRateConfig;
pub use estimate::{Estimate, estimate};
pub use interval::rate_interval;
pub use labels::{Answer, Labels};
pub use likelihoods::Likelihoods;
pub use model::NoiseModel;
pub use state::{NOISE_STATE_VERSION, NoiseSourceState, NoiseState};
pub use sums::NoiseSums;
pub use values::{Reading, Values};

use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::hash::Hash;

use foldhash::fast::RandomState;
use indexmap::{Equivalent, IndexSet};

use crate::lap::MOST_SOURCES;
use crate::{BatchSums, LapError, SourceSum};

/// A noise rate for each source, learnt while training goes on, and a weight for each row.
///
/// Each label is either the truth, which the network predicts with p(y|x), or noise, drawn from the
/// label frequencies m(y) with a probability e that belongs to its source. So with
///
/// ```text
/// r = e·m(y) / (e·m(y) + (1 − e)·p(y|x))        the probability that this label is noise,
/// ```
///
/// a row weighs 1 − r, and e of a source is the mean of r over its rows, older ones counting less,
/// and some rows of a prior. Where LAP asks whether the loss of a source lies above that of the
/// others, and so condemns a source whose rows are difficult, this asks whether noise explains a
/// label better than the network does.
///
/// ```
/// use lapwing_core::{Answer, Labels, NoiseRate, NoiseRateConfig};
///
/// let mut noise = NoiseRate::new(NoiseRateConfig::default(), Labels::counted(3)?)?;
/// for step in 0..100 {
///     // What the network thinks of the labels given, and where each row came from.
///     let rows = [
///         Answer { probability: 0.93, label: step % 3 },
///         Answer { probability: 0.02, label: step % 3 },
///         Answer { probability: 0.55, label: 1 },
///     ];
///     let weights = noise.weigh(&rows, ["ward 1", "ward 2", "ward 3"])?;
///     // Train on the mean of weight · loss; no gradient flows through the weights.
///     assert!(weights.iter().all(|w| (0.0..=1.0).contains(w)));
/// }
/// assert!(noise.rate("ward 1") < 0.05 && noise.rate("ward 2") > 0.8);
/// # Ok::<(), lapwing_core::LapError>(())
/// ```
///
/// The model of noise is [`Labels`] for classes and [`Values`] for numbers.
#[derive(Clone, Debug)]
pub struct NoiseRate<K, M = Labels> {
    config: NoiseRateConfig,
    model: M,
    step: u64,
    /// A source's place in here is its place in `sources`.
    names: IndexSet<K, RandomState>,
    sources: Vec<Evidence>,
    /// The sources of the batch of this step, or of the last one.
    present: Vec<u32>,
    /// Which source each row of the batch in `weigh` belongs to, and what it weighs.
    slots: Vec<u32>,
    weights: Vec<f64>,
    /// What the model learns from that batch.
    learnt: BatchSums<u32>,
}

/// What is known of one source.
#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    /// Rows that were noise, and rows in all, older ones counting less.
    noise: f64,
    rows: f64,
    seen: u64,
    nonfinite: u64,
    /// The responsibilities of the batch.
    batch: SourceSum,
}

/// Where a source stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseStatus<'a, K> {
    /// The source.
    pub source: &'a K,
    /// e: the share of its labels that is noise.
    pub rate: f64,
    /// How many rows this rests on, older ones counting less, without those of the prior.
    pub evidence: f64,
    /// Rows seen, those that are not finite included.
    pub rows: u64,
    /// Rows with a number that is NaN or infinite.
    pub nonfinite: u64,
}

impl<K: Hash + Eq, M: NoiseModel> NoiseRate<K, M> {
    /// A fresh start: no source known.
    ///
    /// # Errors
    /// Where a parameter lies outside its range.
    pub fn new(config: NoiseRateConfig, model: M) -> Result<Self, LapError> {
        config.check()?;
        Ok(Self {
            config,
            model,
            step: 0,
            names: IndexSet::default(),
            sources: Vec::new(),
            present: Vec::new(),
            slots: Vec::new(),
            weights: Vec::new(),
            learnt: BatchSums::new(),
        })
    }

    /// The parameters.
    pub fn config(&self) -> &NoiseRateConfig {
        &self.config
    }

    /// What noise is drawn from, as far as it is known.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// How many steps have been made.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// One step: returns the weight 1 − r of each row, by what was known before the step, and then
    /// learns from the batch. Train on the mean of weight · loss (not divided by the sum of the
    /// weights).
    ///
    /// A row with a number that is not finite weighs 0; leave it out of the sum, as 0 · NaN is NaN.
    ///
    /// # Errors
    /// Where there is not exactly one source per row, or a label is no class. Nothing has changed
    /// then.
    pub fn weigh<'a, Q>(
        &mut self,
        rows: &[M::Row],
        sources: impl IntoIterator<Item = &'a Q, IntoIter: ExactSizeIterator>,
    ) -> Result<&[f64], LapError>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'a,
    {
        let sources = sources.into_iter();
        self.check(rows, sources.len())?;
        let mut slots = core::mem::take(&mut self.slots);
        slots.clear();
        let known = self.names.len();
        for source in sources {
            match self.enter(source) {
                Ok(slot) => slots.push(slot),
                Err(error) => {
                    self.forget_after(known);
                    return Err(error);
                }
            }
        }
        self.weights.clear();
        self.present.clear();
        let mut learnt = core::mem::take(&mut self.learnt);
        learnt.clear();
        for (&row, &slot) in rows.iter().zip(&slots) {
            let noise = self.responsibility_at(row, self.rate_at(slot));
            if let Some(noise) = noise {
                M::add(&mut learnt, row, 1.0 - noise);
            }
            self.entry(slot).add(noise.unwrap_or(f64::NAN));
            self.weights.push(noise.map_or(0.0, |noise| 1.0 - noise));
        }
        self.slots = slots;
        self.advance(&learnt);
        self.learnt = learnt;
        Ok(&self.weights)
    }

    /// The first half of a step, where a batch is split over many workers: what the local part of
    /// it says. The weights of the local rows are left in `weights`.
    ///
    /// # Errors
    /// Where there is not exactly one source per row, or a label is no class.
    pub fn sums<'a, Q>(
        &self,
        rows: &[M::Row],
        sources: impl IntoIterator<Item = &'a Q, IntoIter: ExactSizeIterator>,
        weights: &mut Vec<f64>,
    ) -> Result<NoiseSums<K>, LapError>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'a,
    {
        let sources = sources.into_iter();
        self.check(rows, sources.len())?;
        weights.clear();
        let mut sums = NoiseSums::new();
        for (&row, source) in rows.iter().zip(sources) {
            let noise = self.responsibility(row, source);
            sums.add::<M, Q>(source, row, noise);
            weights.push(noise.map_or(0.0, |noise| 1.0 - noise));
        }
        Ok(sums)
    }

    /// The second half of a step: learns from a batch that was summed up by [`sums`](Self::sums),
    /// and possibly elsewhere. All workers end in the state of one worker with the whole batch.
    ///
    /// # Errors
    /// Where there are too many sources, or a label is no class. Nothing has changed then.
    pub fn update(&mut self, sums: &NoiseSums<K>) -> Result<(), LapError>
    where
        K: Clone,
    {
        self.model.check_sums(&sums.model)?;
        let known = self.names.len();
        self.present.clear();
        for (source, sum) in sums.responsibilities.iter() {
            match self.enter(source) {
                Ok(slot) => *self.entry(slot) = *sum,
                Err(error) => {
                    self.forget_after(known);
                    return Err(error);
                }
            }
        }
        self.advance(&sums.model);
        Ok(())
    }

    /// e of this source now; the prior for a source never seen, and for all during the warm-up.
    pub fn rate<Q>(&self, source: &Q) -> f64
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let slot = self.names.get_index_of(source);
        slot.map_or_else(|| self.prior(), |slot| self.rate_at(slot as u32))
    }

    /// The probability that the label of this row is noise, by what is known now; `None` where the
    /// row holds a number that is not finite.
    pub fn responsibility<Q>(&self, row: M::Row, source: &Q) -> Option<f64>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.responsibility_at(row, self.rate(source))
    }

    /// Where every source stands, in order of first appearance.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = NoiseStatus<'_, K>> {
        self.names.iter().zip(&self.sources).enumerate().map(|(slot, (source, known))| {
            NoiseStatus {
                source,
                rate: self.rate_at(slot as u32),
                evidence: known.rows,
                rows: known.seen,
                nonfinite: known.nonfinite,
            }
        })
    }

    /// The sources of the last step, in order of first appearance in its batch.
    pub fn present(&self) -> impl Iterator<Item = (&K, f64)> {
        self.present.iter().map(|&slot| (&self.names[slot as usize], self.rate_at(slot)))
    }

    fn prior(&self) -> f64 {
        self.config.rate(0.0, 0.0)
    }

    fn rate_at(&self, slot: u32) -> f64 {
        if self.step < self.config.warmup {
            return self.prior();
        }
        let known = &self.sources[slot as usize];
        self.config.rate(known.noise, known.rows)
    }

    fn responsibility_at(&self, row: M::Row, rate: f64) -> Option<f64> {
        self.model.likelihoods(row).map(|row| row.responsibility(rate))
    }

    fn check(&self, rows: &[M::Row], sources: usize) -> Result<(), LapError> {
        if rows.len() != sources {
            return Err(LapError::Unpaired { losses: rows.len(), sources });
        }
        rows.iter().try_for_each(|&row| self.model.check_row(row))
    }

    /// The slot of a source, which is met here for the first time if need be.
    fn enter<Q>(&mut self, source: &Q) -> Result<u32, LapError>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(slot) = self.names.get_index_of(source) {
            return Ok(slot as u32);
        }
        if self.names.len() as u64 >= MOST_SOURCES {
            return Err(LapError::TooManySources);
        }
        let slot = self.names.len() as u32;
        self.names.insert(source.to_owned());
        self.sources.push(Evidence::default());
        Ok(slot)
    }

    /// Takes back the sources that a refused batch has entered.
    fn forget_after(&mut self, known: usize) {
        for &slot in &self.present {
            self.sources[slot as usize].batch = SourceSum::default();
        }
        self.present.clear();
        self.names.truncate(known);
        self.sources.truncate(known);
    }

    /// The sum of a source in the batch.
    fn entry(&mut self, slot: u32) -> &mut SourceSum {
        let sum = &mut self.sources[slot as usize].batch;
        if sum.finite() == 0 && sum.nonfinite() == 0 {
            self.present.push(slot);
        }
        sum
    }

    /// The step itself, once the batch is summed up. Evidence decays with the batches that a source
    /// is in: one that is rarely seen is not forgotten between them.
    fn advance(&mut self, learnt: &BatchSums<u32>) {
        let decay = self.config.decay;
        for &slot in &self.present {
            let source = &mut self.sources[slot as usize];
            let batch = core::mem::take(&mut source.batch);
            // Saturating and clamped, as sums and states may come from anywhere.
            let (finite, nonfinite) = (batch.finite(), batch.nonfinite());
            source.seen = source.seen.saturating_add(finite).saturating_add(nonfinite);
            source.nonfinite = source.nonfinite.saturating_add(nonfinite);
            if finite > 0 {
                let rows = finite as f64;
                source.rows = decay * source.rows + rows;
                source.noise =
                    decay * source.noise + batch.mean().unwrap_or(0.0).clamp(0.0, 1.0) * rows;
            }
        }
        self.model.update(learnt, decay);
        self.step = self.step.saturating_add(1);
    }
}
