//! The data of a cell: split, sources and noise.

use std::sync::Arc;

use lapwing_noise::{
    AddedNoise, BatchLabelFlip, BatchLabelShuffle, ChunkLabelFlip, ChunkLabelShuffle, ChunkShuffle,
    ClassSwap, ExactFlip, HumanLabels, Level, NoiseError, NoiseKind, PixelNoise, RandomLabel,
    RandomLabelPerSample, ReplaceWithNoise, SignalNoise, TokenPermutation, TokenReplacement,
    UniformTarget,
};
use lapwing_sample::{Draws, InputSpec, Matrix, Relabel, Samples, Targets};

use crate::cell::Cell;
use crate::data::{Houses, Loaded, mixed, shuffled, two_moons};
use crate::error::PaperError;
use crate::plan::Plan;
use crate::recipe::{BatchLabels, Layout};
use crate::sequence_store::SequenceStore;
use crate::store::Store;

/// What is drawn for a cell beside its noise; each has a stream of its own.
const SPLIT: u64 = 1;
const NOISY: u64 = 2;
const SOURCES: u64 = 3;
const CLASSES: u64 = 4;
/// The deviation of noise in signals, in their unit.
const INTERFERENCE: f64 = 0.2;

/// The data of a cell.
pub(crate) struct Prepared {
    pub(crate) train: Box<dyn Samples>,
    pub(crate) targets: Targets,
    pub(crate) sources: Vec<u32>,
    /// Noise that is drawn anew for every batch.
    pub(crate) batch_noise: Option<BatchNoise>,
    pub(crate) test: Box<dyn Samples>,
    pub(crate) test_targets: Targets,
    pub(crate) noisy_sources: Vec<u32>,
}

/// Prepares the data of a cell. Methods of the same condition and run share all draws.
pub(crate) fn prepare(loaded: &Loaded, plan: &Plan, cell: &Cell) -> Result<Prepared, PaperError> {
    let seed = cell.data_seed();
    match loaded {
        Loaded::Images { train, test, classes, human } => {
            let order = kept(train.len(), plan, seed);
            let normalise = plan.training.normalise;
            let mut rows = Store::new(Arc::clone(train), order.clone()).normalised(normalise);
            let human = human.as_ref().map(|labels| {
                order.iter().map(|&image| labels[image as usize]).collect::<Vec<u32>>()
            });
            let mut draft = Draft::new(plan, seed, rows.labels(), *classes)?;
            match &human {
                Some(human) => draft.human_labels(human)?,
                None => {
                    draft.deal();
                    draft.change_labels()?;
                    draft.change_images(&mut rows)?;
                }
            }
            let test = Store::all(Arc::clone(test)).normalised(normalise);
            Ok(draft.finish(Box::new(rows), test, *classes))
        }
        Loaded::Mixed { digits, colour } => {
            let pair = shuffled(10, &mut Draws::free(seed, CLASSES));
            let [train, test] = [0, 1]
                .map(|part| Arc::new(mixed(&digits[part], &colour[part], [pair[0], pair[1]])));
            let rows = Store::new(Arc::clone(&train), kept(train.len(), plan, seed));
            let mut draft = Draft::new(plan, seed, rows.labels(), 12)?;
            draft.deal();
            // Images of the other kind are a source of their own, the last, and clean.
            for (source, &label) in draft.sources.iter_mut().zip(&draft.labels) {
                if label >= 10 {
                    *source = plan.sources.count as u32;
                }
            }
            draft.change_labels()?;
            Ok(draft.finish(Box::new(rows), Store::all(test), 12))
        }
        Loaded::Sequences { train, test, classes } => {
            let mut rows = SequenceStore::new(Arc::clone(train), kept(train.len(), plan, seed));
            let mut draft = Draft::new(plan, seed, rows.labels(), *classes)?;
            match rows.sources().filter(|_| plan.sources.layout == Layout::Given) {
                Some(sources) => draft.sources = sources,
                None => draft.deal(),
            }
            draft.change_labels()?;
            draft.change_sequences(&mut rows)?;
            let test = SequenceStore::all(Arc::clone(test));
            let test_targets = classes_of(test.labels(), *classes);
            Ok(draft.finish_with(Box::new(rows), Box::new(test), test_targets, *classes))
        }
        Loaded::Houses(houses) => prepare_houses(houses, plan, seed),
        Loaded::Moons => prepare_moons(plan, cell, seed),
    }
}

/// The samples to train on, in random order.
fn kept(count: usize, plan: &Plan, seed: u64) -> Vec<u32> {
    let mut order = shuffled(count, &mut Draws::free(seed, SPLIT));
    let most = plan.limit.unwrap_or(usize::MAX);
    // What is set aside is a whole number of samples, rounded down; a share such as 0.9 is not quite that.
    let kept = (count as f64 * plan.keep - 1e-6).ceil() as usize;
    order.truncate(kept.min(most));
    order
}

/// A training set with classes, in the making.
struct Draft<'a> {
    plan: &'a Plan,
    seed: u64,
    labels: Vec<u32>,
    sources: Vec<u32>,
    /// The noisy sources, in the order in which they were chosen.
    noisy: Vec<u32>,
    random_classes: u32,
    batch_noise: Option<BatchNoise>,
}

impl<'a> Draft<'a> {
    fn new(plan: &'a Plan, seed: u64, labels: Vec<u32>, classes: u32) -> Result<Self, PaperError> {
        if labels.is_empty() {
            return Err(PaperError::Usage("no sample is left to train on".to_owned()));
        }
        let random_classes = plan.random_classes.unwrap_or(classes);
        let noisy = noisy_sources(plan, seed);
        let sources = vec![0; labels.len()];
        Ok(Self { plan, seed, labels, sources, noisy, random_classes, batch_noise: None })
    }

    /// Gives every sample its source.
    fn deal(&mut self) {
        let (count, chunk) = (self.plan.sources.count, self.plan.sources.chunk.max(1));
        let mut draws = Draws::free(self.seed, SOURCES);
        for (row, source) in self.sources.iter_mut().enumerate() {
            *source = match self.plan.sources.layout {
                Layout::Chunks => (row / chunk % count) as u32,
                _ => draws.below(count as u32),
            };
        }
    }

    fn is_noisy(&self, row: usize) -> bool {
        self.noisy.contains(&self.sources[row])
    }

    /// The kinds of noise there are, and the rows of the sources that have each.
    fn noisy_rows(&self) -> Vec<(NoiseKind, Vec<usize>)> {
        let rows = |sources: &[u32]| -> Vec<usize> {
            (0..self.labels.len()).filter(|&row| sources.contains(&self.sources[row])).collect()
        };
        if self.plan.mixed_kinds.is_empty() {
            return vec![(self.plan.noise_kind, rows(&self.noisy))];
        }
        let mut kinds = self.plan.mixed_kinds.clone();
        kinds.sort_unstable();
        kinds.dedup();
        let of_kind = |kind| {
            let sources = self.noisy.iter().zip(&self.plan.mixed_kinds);
            let sources: Vec<u32> =
                sources.filter(|(_, own)| **own == kind).map(|(source, _)| *source).collect();
            (kind, rows(&sources))
        };
        kinds.into_iter().map(of_kind).collect()
    }

    /// The level of a noisy source.
    fn level(&self, row: usize) -> Result<Level, NoiseError> {
        let place = self.noisy.iter().position(|source| *source == self.sources[row]);
        let level = place.and_then(|place| self.plan.sources.levels.get(place));
        level.map_or(Ok(Level::FULL), |&level| Level::new(level))
    }

    fn change_labels(&mut self) -> Result<(), NoiseError> {
        for (kind, rows) in self.noisy_rows() {
            self.change_labels_of(kind, rows)?;
        }
        Ok(())
    }

    fn change_labels_of(&mut self, kind: NoiseKind, rows: Vec<usize>) -> Result<(), NoiseError> {
        let seed = self.seed;
        match kind {
            NoiseKind::RandomLabel => {
                let noise = RandomLabel::new(seed, self.random_classes)?;
                for row in rows {
                    self.labels[row] = noise.label(u64::from(self.sources[row]), self.labels[row]);
                }
            }
            NoiseKind::ClassSwap => {
                let noise = ClassSwap::new(seed, self.random_classes)?;
                for row in rows {
                    self.labels[row] = noise.label(u64::from(self.sources[row]), self.labels[row]);
                }
            }
            NoiseKind::RandomLabelPerSample => {
                let noise = RandomLabelPerSample::new(seed, self.random_classes)?;
                for row in rows {
                    self.labels[row] = noise.label(row as u64);
                }
            }
            NoiseKind::SignalNoise => {
                for row in rows {
                    let noise = SignalNoise::new(seed, self.level(row)?, INTERFERENCE);
                    self.labels[row] = noise.label(row as u64, self.labels[row]);
                }
            }
            NoiseKind::BatchLabelShuffle | NoiseKind::BatchLabelFlip => {
                match self.plan.batch_labels {
                    BatchLabels::Chunk => self.change_chunks(kind)?,
                    BatchLabels::Fresh => {
                        let noisy = (0..self.labels.len()).map(|row| self.is_noisy(row)).collect();
                        self.batch_noise = Some(BatchNoise { kind, seed, noisy });
                    }
                }
            }
            NoiseKind::ExactFlip => {
                for (&source, &level) in self.noisy.iter().zip(&self.plan.sources.levels) {
                    let rows: Vec<usize> =
                        (0..self.labels.len()).filter(|&row| self.sources[row] == source).collect();
                    let mut labels: Vec<u32> = rows.iter().map(|&row| self.labels[row]).collect();
                    ExactFlip::new(seed, Level::new(level)?, self.random_classes)?
                        .apply(u64::from(source), &mut labels)?;
                    for (row, label) in rows.into_iter().zip(labels) {
                        self.labels[row] = label;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The fixed form of batch label noise: chunk by chunk, each of one source.
    fn change_chunks(&mut self, kind: NoiseKind) -> Result<(), NoiseError> {
        let chunk = self.plan.sources.chunk.max(1);
        for start in (0..self.labels.len()).step_by(chunk) {
            if !self.is_noisy(start) {
                continue;
            }
            let end = (start + chunk).min(self.labels.len());
            let level = self.level(start)?;
            let samples: Vec<u64> = (start as u64..end as u64).collect();
            let labels = &mut self.labels[start..end];
            match kind {
                NoiseKind::BatchLabelShuffle => {
                    ChunkLabelShuffle::new(self.seed, level).apply(&samples, labels)?;
                }
                _ => ChunkLabelFlip::new(self.seed, level).apply(&samples, labels)?,
            }
        }
        Ok(())
    }

    fn change_images(&self, store: &mut Store) -> Result<(), NoiseError> {
        for (kind, rows) in self.noisy_rows() {
            match kind {
                NoiseKind::PixelNoise => {
                    store.add_pixel_noise(PixelNoise::new(self.seed), rows.into_iter());
                }
                _ => self.change_images_of(kind, rows, store)?,
            }
        }
        Ok(())
    }

    fn change_images_of(
        &self,
        kind: NoiseKind,
        rows: Vec<usize>,
        store: &mut Store,
    ) -> Result<(), NoiseError> {
        let seed = self.seed;
        let [height, width, channels] = store.shape();
        for row in rows {
            let index = row as u64;
            match kind {
                NoiseKind::ChunkShuffle => {
                    let noise = ChunkShuffle::new(seed);
                    let mut done = Ok(());
                    store.change(row, |values| match channels {
                        // Channels of a pixel move together.
                        3 => {
                            let (pixels, _) = values.as_chunks_mut::<3>();
                            done = noise.image(index, pixels, [1, height, width]);
                        }
                        _ => noise.flat(index, values),
                    });
                    done?;
                }
                NoiseKind::AddedNoise => {
                    store.change(row, |values| AddedNoise::new(seed).apply(index, values));
                }
                NoiseKind::ReplaceWithNoise => {
                    store.change(row, |values| ReplaceWithNoise::new(seed).apply(index, values));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn change_sequences(&self, store: &mut SequenceStore) -> Result<(), NoiseError> {
        let seed = self.seed;
        let vocabulary = match store.spec() {
            InputSpec::Tokens { vocabulary, .. } => vocabulary as u32,
            _ => 0,
        };
        for (kind, rows) in self.noisy_rows() {
            for row in rows {
                let index = row as u64;
                match kind {
                    NoiseKind::TokenPermutation => store.change_tokens(row, |tokens| {
                        TokenPermutation::new(seed).apply(index, tokens);
                    }),
                    NoiseKind::TokenReplacement => store.change_tokens(row, |tokens| {
                        TokenReplacement::new(seed, vocabulary).apply(index, tokens);
                    }),
                    NoiseKind::SignalNoise => {
                        let noise = SignalNoise::new(seed, self.level(row)?, INTERFERENCE);
                        store.change_signal(row, |values| noise.apply(index, values));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Shares samples among sources so that each has its exact share of labels that people got wrong.
    fn human_labels(&mut self, human: &[u32]) -> Result<(), PaperError> {
        let mut levels = vec![Level::new(0.0)?; self.plan.sources.count];
        for (&source, &level) in self.noisy.iter().zip(&self.plan.sources.levels) {
            levels[source as usize] = Level::new(level)?;
        }
        let shared = HumanLabels::new(self.seed, &self.labels, human, &levels)?;
        (self.sources, self.labels) = (shared.sources, shared.labels);
        Ok(())
    }

    fn finish(self, train: Box<dyn Samples>, test: Store, classes: u32) -> Prepared {
        let test_targets = classes_of(test.labels(), classes);
        self.finish_with(train, Box::new(test), test_targets, classes)
    }

    fn finish_with(
        self,
        train: Box<dyn Samples>,
        test: Box<dyn Samples>,
        test_targets: Targets,
        classes: u32,
    ) -> Prepared {
        Prepared {
            train,
            targets: classes_of(self.labels, classes),
            sources: self.sources,
            batch_noise: self.batch_noise,
            test,
            test_targets,
            noisy_sources: self.noisy,
        }
    }
}

fn classes_of(labels: Vec<u32>, classes: u32) -> Targets {
    Targets::Classes { labels, classes: classes as usize }
}

/// The noisy sources, chosen at random; none where nothing is noisy.
fn noisy_sources(plan: &Plan, seed: u64) -> Vec<u32> {
    if plan.noise_kind == NoiseKind::Original {
        return Vec::new();
    }
    let mut chosen = shuffled(plan.sources.count, &mut Draws::free(seed, NOISY));
    chosen.truncate(plan.sources.noisy);
    chosen
}

/// 80 % of the houses to train on; each draws its source, and in noisy sources its value.
fn prepare_houses(houses: &Houses, plan: &Plan, seed: u64) -> Result<Prepared, PaperError> {
    let mut order = shuffled(houses.values.len(), &mut Draws::free(seed, SPLIT));
    let test = order.split_off(houses.values.len() * 4 / 5);
    order.truncate(plan.limit.unwrap_or(usize::MAX));
    let part = |rows: &[u32]| {
        let width = Houses::WIDTH;
        let features = rows
            .iter()
            .flat_map(|&row| houses.features[row as usize * width..][..width].iter().copied());
        let values: Vec<f64> =
            rows.iter().map(|&row| f64::from(houses.values[row as usize])).collect();
        let matrix = Matrix::new(features.collect(), width)
            .map_err(|error| PaperError::Usage(error.to_string()))?;
        Ok::<_, PaperError>((matrix, values))
    };
    let ((train, mut values), (test, test_values)) = (part(&order)?, part(&test)?);
    let mut draws = Draws::free(seed, SOURCES);
    let sources: Vec<u32> = values.iter().map(|_| draws.below(plan.sources.count as u32)).collect();
    let noisy_sources = noisy_sources(plan, seed);
    if plan.noise_kind == NoiseKind::UniformTarget {
        let noise = UniformTarget::over(seed, &values)?;
        for (row, value) in values.iter_mut().enumerate() {
            if noisy_sources.contains(&sources[row]) {
                // The authors keep targets in 32 bits.
                *value = f64::from(noise.target(row as u64) as f32);
            }
        }
    }
    Ok(Prepared {
        train: Box::new(train),
        targets: Targets::Values(values),
        sources,
        batch_noise: None,
        test: Box::new(test),
        test_targets: Targets::Values(test_values),
        noisy_sources,
    })
}

/// The paper's moons with the paper's flips in the first run, fresh moons in later ones; or, where all runs have the
/// same data, the paper's moons with flips drawn anew.
fn prepare_moons(plan: &Plan, cell: &Cell, seed: u64) -> Result<Prepared, PaperError> {
    let run = if plan.same_data { 0 } else { cell.run };
    let (mut train, test) = two_moons(run, seed)?;
    let rows = plan.limit.unwrap_or(usize::MAX).min(train.labels.len());
    train.split_off(rows);
    let matrix =
        |points| Matrix::new(points, 2).map_err(|error| PaperError::Usage(error.to_string()));
    let mut draft = Draft::new(plan, seed, train.labels, 2)?;
    draft.sources = train.sources;
    if !plan.same_data {
        // The paper's noisy sources in the order of their levels, in every run.
        draft.noisy = vec![2, 0, 1, 3];
    }
    match train.flipped.filter(|_| !plan.same_data) {
        Some(flipped) => draft.labels = flipped,
        None => draft.change_labels()?,
    }
    let (rows, test_rows) = (matrix(train.points)?, matrix(test.points)?);
    Ok(draft.finish_with(Box::new(rows), Box::new(test_rows), classes_of(test.labels, 2), 2))
}

/// Label noise that is drawn anew for every batch.
#[derive(Debug)]
pub(crate) struct BatchNoise {
    kind: NoiseKind,
    seed: u64,
    /// Whether a row is of a noisy source.
    noisy: Vec<bool>,
}

impl Relabel for BatchNoise {
    fn relabel(&self, step: u64, rows: &[u32], labels: &mut [u32]) {
        let is_noisy = |position: usize| self.noisy[rows[position] as usize];
        match self.kind {
            NoiseKind::BatchLabelShuffle => {
                BatchLabelShuffle::new(self.seed).apply(step, labels, is_noisy);
            }
            _ => BatchLabelFlip::new(self.seed).apply(step, labels, is_noisy),
        }
    }

    fn identity(&self) -> Vec<u8> {
        let noisy = self.noisy.iter().map(|&noisy| u8::from(noisy));
        let head = self.kind.name().bytes().chain(self.seed.to_le_bytes());
        head.chain(noisy).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Form, Selection};
    use crate::data::{Images, Pixels};
    use crate::recipe::{Recipe, Version, recipe};
    use lapwing_sample::View;

    /// Six hundred images of 10 × 10 pixels in ten classes, and as many to test on.
    fn images(human: bool) -> Loaded {
        let part = || {
            let labels: Vec<u32> = (0..600).map(|at| at % 10).collect();
            // The first two values tell the image.
            let pixel = |at: usize| match (at / 300, at % 300) {
                (image, 0) => image / 250,
                (image, 1) => image % 250,
                _ => at % 251,
            };
            let pixels = Pixels::Bytes((0..600 * 300).map(|at| pixel(at) as u8).collect());
            Arc::new(Images { pixels, labels, shape: [10, 10, 3] })
        };
        let wrong = (0..600).map(|at| if at % 2 == 0 { (at + 1) % 10 } else { at % 10 }).collect();
        Loaded::Images { train: part(), test: part(), classes: 10, human: human.then_some(wrong) }
    }

    fn prepared(loaded: &Loaded, id: &str, condition: &str, method: &str) -> Prepared {
        let mut recipe: Recipe = recipe(id, Version::Code).unwrap();
        if let Some(sources) = &mut recipe.sources {
            sources.chunk = sources.chunk.min(15);
        }
        let words = |word: &str| vec![word.to_owned()];
        let selection = Selection {
            runs: Some(1),
            conditions: words(condition),
            methods: words(method),
            shard: None,
        };
        let cell = &selection.cells(&recipe).unwrap()[0];
        prepare(loaded, &Plan::new(&recipe, cell, Form::FULL).unwrap(), cell).unwrap()
    }

    fn labels(targets: &Targets) -> &[u32] {
        match targets {
            Targets::Classes { labels, .. } => labels,
            Targets::Values(_) => &[],
        }
    }

    fn values(samples: &dyn Samples) -> Vec<f32> {
        let all: Vec<u32> = (0..samples.len() as u32).collect();
        samples.gather(&all, View::Plain).unwrap().into_floats().unwrap()
    }

    #[test]
    fn sources_are_chunks_in_turn_and_methods_share_their_data() {
        let loaded = images(false);
        let standard = prepared(&loaded, "table-1-cifar-10", "random-label", "standard");
        assert_eq!(standard.train.len(), 450, "three quarters");
        assert_eq!(standard.test.len(), 600);
        assert_eq!(standard.sources[..31], [&[0; 15][..], &[1; 15], &[2]].concat());
        let mut noisy = standard.noisy_sources.clone();
        noisy.sort_unstable();
        noisy.dedup();
        assert_eq!(noisy.len(), 4);
        let lap = prepared(&loaded, "table-1-cifar-10", "random-label", "lap");
        assert_eq!(lap.targets, standard.targets);
        assert_eq!(values(&*lap.train), values(&*standard.train));
        let original = prepared(&loaded, "table-1-cifar-10", "original", "lap");
        assert_ne!(values(&*original.train), values(&*lap.train), "another split");
    }

    #[test]
    fn random_labels_map_classes_within_noisy_sources_only() {
        let loaded = images(false);
        let noisy = prepared(&loaded, "table-1-cifar-10", "random-label", "standard");
        let mut maps = std::collections::BTreeMap::new();
        let mut changed = 0;
        let pixels = values(&*noisy.train);
        for row in 0..450 {
            let value = |at: usize| (pixels[row * 300 + at] * 255.0).round() as u32;
            let class = (value(0) * 250 + value(1)) % 10;
            let (source, label) = (noisy.sources[row], labels(&noisy.targets)[row]);
            match noisy.noisy_sources.contains(&source) {
                true => {
                    assert_eq!(*maps.entry((source, class)).or_insert(label), label);
                    changed += u32::from(label != class);
                }
                false => assert_eq!(label, class),
            }
        }
        // Four of ten sources, nine of ten labels: about 162 of 450.
        assert!((110..=185).contains(&changed), "{changed}");
    }

    #[test]
    fn noise_of_inputs_changes_noisy_sources_only() {
        let loaded = images(false);
        for (condition, sorted_same) in
            [("chunk-shuffle", true), ("added-noise", false), ("replace-with-noise", false)]
        {
            let noisy = prepared(&loaded, "table-1-cifar-10", condition, "standard");
            let pixels = values(&*noisy.train);
            for row in 0..450 {
                let own = &pixels[row * 300..row * 300 + 300];
                let bytes = own.iter().all(|&x| (x * 255.0 - (x * 255.0).round()).abs() < 1e-4);
                let is_noisy = noisy.noisy_sources.contains(&noisy.sources[row]);
                assert!(bytes == (!is_noisy || sorted_same), "{condition}, row {row}");
            }
        }
        let original = prepared(&loaded, "table-1-cifar-10", "original", "standard");
        assert!(original.noisy_sources.is_empty());
    }

    #[test]
    fn batch_label_noise_is_fresh_or_fixed_as_the_method_has_it() {
        let loaded = images(false);
        let fresh = prepared(&loaded, "table-1-cifar-10", "batch-label-flip", "lap");
        let noise = fresh.batch_noise.as_ref().unwrap();
        let rows: Vec<u32> = (0..100).collect();
        let truth = &labels(&fresh.targets)[..100];
        let relabelled = |step| {
            let mut labels = truth.to_vec();
            noise.relabel(step, &rows, &mut labels);
            labels
        };
        assert_eq!(relabelled(3), relabelled(3));
        assert!((0..20).any(|step| relabelled(step) != relabelled(3)));
        for (row, (new, old)) in relabelled(3).iter().zip(truth).enumerate() {
            let is_noisy = fresh.noisy_sources.contains(&fresh.sources[row]);
            assert!(is_noisy || new == old);
        }
        let fixed = prepared(&loaded, "table-1-cifar-10", "batch-label-flip", "arfl");
        assert!(fixed.batch_noise.is_none());
        for chunk in 0..30 {
            let own = &labels(&fixed.targets)[chunk * 15..chunk * 15 + 15];
            let is_noisy = fixed.noisy_sources.contains(&fixed.sources[chunk * 15]);
            assert_eq!(own.iter().all(|label| *label == own[0]), is_noisy);
        }
    }

    #[test]
    fn a_level_of_chunk_label_noise_is_the_share_of_labels_that_change() {
        let loaded = images(false);
        let changed = |condition: &str| {
            let noisy = prepared(&loaded, "table-7-rrl", condition, "rrl");
            assert!(noisy.batch_noise.is_none());
            let pixels = values(&*noisy.train);
            let value = |row: usize, at: usize| (pixels[row * 300 + at] * 255.0).round() as u32;
            let wrong = (0..450).filter(|&row| {
                let class = (value(row, 0) * 250 + value(row, 1)) % 10;
                labels(&noisy.targets)[row] != class
            });
            let wrong: Vec<usize> = wrong.collect();
            assert!(wrong.iter().all(|&row| noisy.noisy_sources.contains(&noisy.sources[row])));
            (noisy.noisy_sources.len(), wrong.len())
        };
        // Of 45 samples of each noisy source about nine in ten change, at the level that is said.
        assert!(matches!(changed("noisy-4-level-100"), (4, 145..=180)));
        assert!(matches!(changed("noisy-4-level-25"), (4, 20..=65)));
        assert!(matches!(changed("noisy-2-level-100"), (2, 65..=90)));
    }

    #[test]
    fn human_labels_are_exact_shares_of_equal_sources() {
        let shared = prepared(&images(true), "cifar-10n", "noisy-2", "lap");
        assert_eq!(shared.train.len(), 600);
        let pixels = values(&*shared.train);
        let truth = |row: usize| {
            let value = |at: usize| (pixels[row * 300 + at] * 255.0).round() as u32;
            (value(0) * 250 + value(1)) % 10
        };
        for source in 0..10 {
            let rows: Vec<usize> = (0..600).filter(|&row| shared.sources[row] == source).collect();
            assert_eq!(rows.len(), 60);
            let wrong = rows.iter().filter(|&&r| labels(&shared.targets)[r] != truth(r));
            let expected = match shared.noisy_sources.iter().position(|noisy| *noisy == source) {
                Some(0) => 15,
                Some(1) => 60,
                _ => 0,
            };
            assert_eq!(wrong.count(), expected, "source {source}");
        }
    }

    #[test]
    fn the_first_run_of_the_toy_is_the_papers_and_the_sweep_draws_its_flips() {
        let toy = prepared(&Loaded::Moons, "toy", "base", "lap");
        assert_eq!(toy.noisy_sources, [2, 0, 1, 3]);
        let sweep = prepared(&Loaded::Moons, "sensitivity", "base", "lap");
        assert_eq!(values(&*toy.train), values(&*sweep.train));
        assert_ne!(toy.targets, sweep.targets);
        let clean = two_moons(0, 0).unwrap().0;
        for (source, level) in sweep.noisy_sources.iter().zip([0.025, 0.05, 0.25, 1.0]) {
            let rows: Vec<usize> = (0..8000).filter(|&row| sweep.sources[row] == *source).collect();
            let wrong = rows.iter().filter(|&&r| labels(&sweep.targets)[r] != clean.labels[r]);
            assert_eq!(wrong.count(), (rows.len() as f64 * level) as usize);
        }
    }

    #[test]
    fn houses_of_noisy_sources_have_uniform_values() {
        let values: Vec<f32> = (0..2000).map(|at| if at == 0 { 5.0 } else { 1.0 }).collect();
        let houses = Houses { features: vec![0.5; 2000 * 8], values };
        let noisy = prepared(&Loaded::Houses(houses), "california", "random-target", "lap");
        let Targets::Values(values) = &noisy.targets else { unreachable!() };
        assert_eq!((values.len(), noisy.test.len()), (1600, 400));
        for (value, source) in values.iter().zip(&noisy.sources) {
            let ordinary = *value == 1.0 || *value == 5.0;
            assert_eq!(ordinary, !noisy.noisy_sources.contains(source));
        }
        let changed = values.iter().filter(|&&value| value > 1.0 && value < 5.0).count();
        assert!((540..=740).contains(&changed), "{changed}");
    }
}
