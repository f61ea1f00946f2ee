//! The first pass over a table: all that noise has to know before it changes a row.

use std::collections::{BTreeSet, HashMap};

use lapwing_data::StringRecord;

use super::classes::Classes;
use super::{Noise, Request, SourceCount, TableNoiseError, finite, key, usable};
use crate::{
    AddedNoise, ChunkLabelFlip, ChunkLabelShuffle, ChunkShuffle, ClassSwap, ExactFlip, NoiseKind,
    RandomLabel, RandomLabelPerSample, ReplaceWithNoise, TokenPermutation, TokenReplacement,
    UniformTarget,
};

/// What the first pass learns.
pub(super) struct Survey {
    pub(super) rows: u64,
    pub(super) sources: HashMap<String, Source>,
    classes: Classes,
    low: f64,
    high: f64,
    scales: Vec<Scale>,
    /// Rows and labels of each chosen source, where the noise needs them all at once.
    labels: Vec<(Vec<u64>, Vec<u32>)>,
    lists_labels: bool,
    /// The words of texts, where the noise draws from them.
    words: BTreeSet<String>,
}

pub(super) struct Source {
    pub(super) rows: u64,
    /// Order of first appearance.
    order: usize,
}

impl Survey {
    pub(super) fn new(request: &Request, chosen: usize) -> Self {
        let lists_labels = matches!(
            request.kind,
            NoiseKind::ExactFlip | NoiseKind::ChunkLabelShuffle | NoiseKind::ChunkLabelFlip
        );
        Self {
            rows: 0,
            sources: HashMap::new(),
            classes: Classes::new(request.target_is_numeric),
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            scales: vec![Scale::default(); request.columns.len()],
            labels: vec![Default::default(); chosen],
            lists_labels,
            words: BTreeSet::new(),
        }
    }

    pub(super) fn observe(
        &mut self,
        request: &Request,
        chosen: &HashMap<String, usize>,
        row: u64,
        record: &StringRecord,
    ) -> Result<(), TableNoiseError> {
        self.rows = row;
        let Some((name, target)) = usable(record, request) else { return Ok(()) };
        match self.sources.get_mut(name) {
            Some(source) => source.rows += 1,
            None => {
                let order = self.sources.len();
                self.sources.insert(name.to_owned(), Source { rows: 1, order });
            }
        }
        if request.kind == NoiseKind::UniformTarget {
            let Some(value) = finite(target) else {
                let (path, column) = request.place.clone();
                return Err(TableNoiseError::NotANumber {
                    path,
                    row,
                    column,
                    found: target.to_owned(),
                });
            };
            self.low = self.low.min(value);
            self.high = self.high.max(value);
        } else if request.columns.is_empty() {
            let class = self.classes.insert(target);
            if let Some(&source) = chosen.get(name).filter(|_| self.lists_labels) {
                self.labels[source].0.push(row - 1);
                self.labels[source].1.push(class);
            }
        }
        if request.kind == NoiseKind::TokenReplacement {
            for &column in &request.columns {
                for word in record.get(column).unwrap_or_default().split_whitespace() {
                    if !self.words.contains(word) {
                        self.words.insert(word.to_owned());
                    }
                }
            }
            return Ok(());
        }
        for (scale, &column) in self.scales.iter_mut().zip(&request.columns) {
            if let Some(value) = record.get(column).and_then(finite) {
                scale.observe(value);
            }
        }
        Ok(())
    }

    /// The noise, now that all is known that it depends on.
    pub(super) fn noise(
        mut self,
        request: &Request,
        counts: &[SourceCount],
    ) -> Result<Noise, TableNoiseError> {
        let Request { kind, level, seed, .. } = *request;
        // By name, so that the order of the rows has no say in what a class becomes.
        let new_codes = self.classes.sort();
        let classes = self.classes;
        let count = classes.names.len() as u32;
        Ok(match kind {
            NoiseKind::RandomLabel => Noise::Map { noise: RandomLabel::new(seed, count)?, classes },
            NoiseKind::ClassSwap => Noise::Swap { noise: ClassSwap::new(seed, count)?, classes },
            NoiseKind::RandomLabelPerSample => {
                Noise::PerSample { noise: RandomLabelPerSample::new(seed, count)?, classes }
            }
            NoiseKind::ExactFlip | NoiseKind::ChunkLabelShuffle | NoiseKind::ChunkLabelFlip => {
                let mut changes = Vec::new();
                for ((rows, mut labels), source) in self.labels.into_iter().zip(counts) {
                    for label in &mut labels {
                        *label = new_codes[*label as usize];
                    }
                    let old = labels.clone();
                    if kind == NoiseKind::ExactFlip {
                        ExactFlip::new(seed, level, count)?
                            .apply(key(&source.name), &mut labels)?;
                    }
                    let chunks = rows.chunks(request.chunk).zip(labels.chunks_mut(request.chunk));
                    for (rows, labels) in chunks {
                        match kind {
                            NoiseKind::ChunkLabelShuffle => {
                                ChunkLabelShuffle::new(seed, level).apply(rows, labels)?;
                            }
                            NoiseKind::ChunkLabelFlip => {
                                ChunkLabelFlip::new(seed, level).apply(rows, labels)?;
                            }
                            _ => {}
                        }
                    }
                    let new = rows.into_iter().zip(labels).zip(old);
                    changes.extend(new.filter(|((_, new), old)| new != old).map(|(new, _)| new));
                }
                changes.sort_unstable();
                let mut labels = changes.into_iter();
                Noise::Listed { next: labels.next(), labels, classes }
            }
            NoiseKind::UniformTarget => {
                Noise::Uniform(UniformTarget::new(seed, self.low, self.high)?)
            }
            NoiseKind::AddedNoise => {
                Noise::Added { noise: AddedNoise::new(seed), scales: self.scales }
            }
            NoiseKind::ReplaceWithNoise => {
                Noise::Replace { noise: ReplaceWithNoise::new(seed), scales: self.scales }
            }
            NoiseKind::ChunkShuffle => Noise::Shuffle(ChunkShuffle::new(seed)),
            NoiseKind::TokenPermutation => Noise::Permute(TokenPermutation::new(seed)),
            NoiseKind::TokenReplacement => {
                let words: Vec<String> = self.words.into_iter().collect();
                Noise::Words { noise: TokenReplacement::new(seed, words.len() as u32), words }
            }
            NoiseKind::Original => Noise::None,
            NoiseKind::BatchLabelShuffle
            | NoiseKind::BatchLabelFlip
            | NoiseKind::HumanLabels
            | NoiseKind::PixelNoise
            | NoiseKind::SignalNoise => {
                return Err(TableNoiseError::Unfit { kind, reason: "it has no form for tables" });
            }
        })
    }

    /// The sources there are: those that look like `wanted` first.
    pub(super) fn nearest(&self, wanted: &str) -> Vec<String> {
        let wanted = wanted.to_lowercase();
        let mut names: Vec<(bool, usize, &String)> = self
            .sources
            .iter()
            .map(|(name, source)| {
                let lower = name.to_lowercase();
                let alike = lower.contains(&wanted) || wanted.contains(&lower);
                (!alike, source.order, name)
            })
            .collect();
        names.sort_unstable();
        names.into_iter().map(|(_, _, name)| name.clone()).collect()
    }
}

/// Mean and standard deviation of a column, value by value (Welford).
#[derive(Clone, Copy, Default)]
pub(super) struct Scale {
    count: f64,
    pub(super) mean: f64,
    squares: f64,
}

impl Scale {
    fn observe(&mut self, value: f64) {
        self.count += 1.0;
        let before = value - self.mean;
        self.mean += before / self.count;
        self.squares += before * (value - self.mean);
    }

    pub(super) fn std(&self) -> f64 {
        (self.squares / self.count.max(1.0)).sqrt()
    }
}
