//! Noise in the rows of a table: one pass to learn what it needs, then row by row.

use std::collections::HashMap;

use anyhow::{Context, bail};
use lapwing_data::{MISSING_TOKENS, StringRecord, TableFile};
use lapwing_noise::{
    AddedNoise, ChunkLabelFlip, ChunkLabelShuffle, ChunkShuffle, ExactFlip, Level, NoiseKind,
    RandomLabel, RandomLabelPerSample, ReplaceWithNoise, UniformTarget,
};

use crate::output::number;

/// What is asked for.
pub(crate) struct Request<'a> {
    pub(crate) kind: NoiseKind,
    pub(crate) level: Level,
    pub(crate) seed: u64,
    /// Sources to make wrong.
    pub(crate) sources: &'a [String],
    /// Rows of a source in a chunk.
    pub(crate) chunk: usize,
    /// Positions of the columns.
    pub(crate) target: usize,
    pub(crate) source: usize,
    pub(crate) columns: Vec<usize>,
    /// 1, 1.0 and +1 are one class then.
    pub(crate) target_is_numeric: bool,
}

/// What became of a chosen source.
pub(crate) struct SourceCount {
    pub(crate) name: String,
    /// Rows with a target.
    pub(crate) rows: u64,
    /// Rows that differ from what they were.
    pub(crate) changed: u64,
}

/// Everything that is needed to change a row when it comes by.
pub(crate) struct Corruption<'a> {
    request: Request<'a>,
    noise: Noise,
    rows: u64,
    counts: Vec<SourceCount>,
    /// Chosen sources by name.
    chosen: HashMap<String, usize>,
}

enum Noise {
    None,
    Map {
        noise: RandomLabel,
        classes: Classes,
    },
    PerSample {
        noise: RandomLabelPerSample,
        classes: Classes,
    },
    /// New labels of the rows that change, in the order of the rows.
    Listed {
        labels: std::vec::IntoIter<(u64, u32)>,
        next: Option<(u64, u32)>,
        classes: Classes,
    },
    Uniform(UniformTarget),
    Added {
        noise: AddedNoise,
        scales: Vec<Scale>,
    },
    Replace {
        noise: ReplaceWithNoise,
        scales: Vec<Scale>,
    },
    Shuffle(ChunkShuffle),
}

impl<'a> Corruption<'a> {
    /// Reads the table once.
    pub(crate) fn plan(file: &TableFile, request: Request<'a>) -> anyhow::Result<Self> {
        let mut chosen = HashMap::new();
        let mut counts = Vec::new();
        for name in request.sources {
            let name = name.trim().to_owned();
            if !chosen.contains_key(&name) {
                chosen.insert(name.clone(), counts.len());
                counts.push(SourceCount { name, rows: 0, changed: 0 });
            }
        }
        let mut survey = Survey::new(&request, counts.len());
        file.each_record(|row, record| {
            survey.observe(&request, &chosen, row, record).with_context(|| {
                let column = &file.columns()[request.target];
                format!("{}, row {row}, column {column:?}", file.path().display())
            })
        })?;
        for count in &mut counts {
            count.rows = survey.sources.get(&count.name).map_or(0, |source| source.rows);
        }
        if let Some(absent) = counts.iter().find(|count| count.rows == 0) {
            bail!(
                "no row with a target has the source {:?} in column {:?}; {}",
                absent.name,
                file.columns()[request.source],
                survey.nearest(&absent.name)
            );
        }
        let rows = survey.rows;
        let noise = survey.noise(&request, &counts)?;
        Ok(Self { request, noise, rows, counts, chosen })
    }

    /// Rows of the table.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// What became of the chosen sources so far.
    pub(crate) fn counts(&self) -> &[SourceCount] {
        &self.counts
    }

    /// Changes a row (counted from 1) if it is to be changed. Rows come in order.
    pub(crate) fn edit(&mut self, row: u64, record: &mut StringRecord) {
        let Some((name, target)) = usable(record, &self.request) else { return };
        let Some(&source) = self.chosen.get(name) else { return };
        let Request { level, seed, target: target_column, .. } = self.request;
        let index = row - 1;
        let mut changed = Vec::new();
        let label = match &mut self.noise {
            Noise::None => None,
            Noise::Listed { labels, next, classes } => match *next {
                Some((at, label)) if at == index => {
                    *next = labels.next();
                    Some(classes.text(label))
                }
                _ => None,
            },
            _ if !level.reaches(seed, index) => None,
            Noise::Map { noise, classes } => {
                let old = classes.code(target);
                let new = old.map(|old| noise.label(key(name), old));
                new.filter(|_| new != old).map(|new| classes.text(new))
            }
            Noise::PerSample { noise, classes } => {
                let new = noise.label(index);
                (classes.code(target) != Some(new)).then(|| classes.text(new))
            }
            Noise::Uniform(noise) => Some(number(noise.target(index))),
            Noise::Added { noise, scales } => {
                let mut drawn = vec![0.0; scales.len()];
                noise.apply(index, &mut drawn);
                for ((&column, scale), drawn) in self.request.columns.iter().zip(scales).zip(drawn)
                {
                    if let Some(value) = record.get(column).and_then(finite) {
                        changed.push((column, number(value + scale.std() * drawn)));
                    }
                }
                None
            }
            Noise::Replace { noise, scales } => {
                let mut drawn = vec![0.0; scales.len()];
                noise.apply(index, &mut drawn);
                let columns = self.request.columns.iter().zip(scales).zip(drawn);
                changed.extend(columns.map(|((&column, scale), drawn)| {
                    (column, number(scale.mean + scale.std() * drawn))
                }));
                None
            }
            Noise::Shuffle(noise) => {
                let mut from = self.request.columns.clone();
                noise.flat(index, &mut from);
                let moved = self.request.columns.iter().zip(from);
                changed.extend(moved.map(|(&column, from)| {
                    (column, record.get(from).unwrap_or_default().to_owned())
                }));
                None
            }
        };
        changed.extend(label.map(|label| (target_column, label)));
        changed.retain(|(column, text)| record.get(*column) != Some(text));
        if !changed.is_empty() {
            self.counts[source].changed += 1;
            *record = with_fields(record, &changed);
        }
    }
}

/// What the first pass learns.
struct Survey {
    rows: u64,
    sources: HashMap<String, Source>,
    classes: Classes,
    low: f64,
    high: f64,
    scales: Vec<Scale>,
    /// Rows and labels of each chosen source, where the noise needs them all at once.
    labels: Vec<(Vec<u64>, Vec<u32>)>,
    lists_labels: bool,
}

struct Source {
    rows: u64,
    /// Order of first appearance.
    order: usize,
}

impl Survey {
    fn new(request: &Request<'_>, chosen: usize) -> Self {
        let lists_labels = matches!(
            request.kind,
            NoiseKind::ExactFlip | NoiseKind::ChunkLabelShuffle | NoiseKind::ChunkLabelFlip
        );
        Self {
            rows: 0,
            sources: HashMap::new(),
            classes: Classes { numeric: request.target_is_numeric, ..Classes::default() },
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            scales: vec![Scale::default(); request.columns.len()],
            labels: vec![Default::default(); chosen],
            lists_labels,
        }
    }

    fn observe(
        &mut self,
        request: &Request<'_>,
        chosen: &HashMap<String, usize>,
        row: u64,
        record: &StringRecord,
    ) -> anyhow::Result<()> {
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
                bail!("expected a number, found {target:?}");
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
        for (scale, &column) in self.scales.iter_mut().zip(&request.columns) {
            if let Some(value) = record.get(column).and_then(finite) {
                scale.observe(value);
            }
        }
        Ok(())
    }

    /// The noise, now that all is known that it depends on.
    fn noise(mut self, request: &Request<'_>, counts: &[SourceCount]) -> anyhow::Result<Noise> {
        let Request { kind, level, seed, .. } = *request;
        // By name, so that the order of the rows has no say in what a class becomes.
        let new_codes = self.classes.sort();
        let classes = self.classes;
        let count = classes.names.len() as u32;
        Ok(match kind {
            NoiseKind::RandomLabel => Noise::Map { noise: RandomLabel::new(seed, count)?, classes },
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
            NoiseKind::Original => Noise::None,
            NoiseKind::BatchLabelShuffle | NoiseKind::BatchLabelFlip | NoiseKind::HumanLabels => {
                bail!("{kind} is no noise for a table")
            }
        })
    }

    /// The sources there are: those that look like `wanted` first.
    fn nearest(&self, wanted: &str) -> String {
        const SHOWN: usize = 10;
        let wanted = wanted.to_lowercase();
        let mut names: Vec<(bool, usize, &str)> = self
            .sources
            .iter()
            .map(|(name, source)| {
                let lower = name.to_lowercase();
                let alike = lower.contains(&wanted) || wanted.contains(&lower);
                (!alike, source.order, name.as_str())
            })
            .collect();
        names.sort_unstable();
        let mut text: Vec<String> =
            names.iter().take(SHOWN).map(|(_, _, name)| format!("{name:?}")).collect();
        if names.len() > SHOWN {
            text.push(format!("{} more", names.len() - SHOWN));
        }
        format!("the sources are {}", text.join(", "))
    }
}

/// The classes of a target, each by the text it first appeared as.
#[derive(Default)]
struct Classes {
    numeric: bool,
    codes: HashMap<String, u32>,
    names: Vec<String>,
}

impl Classes {
    /// 1, 1.0 and +1 are one class where the target is numeric.
    fn canonical(&self, text: &str) -> String {
        match finite(text).filter(|_| self.numeric) {
            Some(value) => (value + 0.0).to_string(),
            None => text.to_owned(),
        }
    }

    fn insert(&mut self, text: &str) -> u32 {
        let next = self.names.len() as u32;
        let code = *self.codes.entry(self.canonical(text)).or_insert(next);
        if code == next {
            self.names.push(text.to_owned());
        }
        code
    }

    fn code(&self, text: &str) -> Option<u32> {
        self.codes.get(&self.canonical(text)).copied()
    }

    fn text(&self, code: u32) -> String {
        self.names.get(code as usize).cloned().unwrap_or_default()
    }

    /// Numbers classes by value or alphabet; returns the new number of each old one.
    fn sort(&mut self) -> Vec<u32> {
        let mut order: Vec<(String, u32)> = self.codes.drain().collect();
        let value = |name: &str| finite(name).filter(|_| self.numeric).unwrap_or(f64::INFINITY);
        order.sort_unstable_by(|a, b| {
            value(&a.0).total_cmp(&value(&b.0)).then_with(|| a.0.cmp(&b.0))
        });
        let mut new_codes = vec![0; order.len()];
        let mut names = Vec::with_capacity(order.len());
        for (new, (name, old)) in order.into_iter().enumerate() {
            new_codes[old as usize] = new as u32;
            names.push(std::mem::take(&mut self.names[old as usize]));
            self.codes.insert(name, new as u32);
        }
        self.names = names;
        new_codes
    }
}

/// Mean and standard deviation of a column, value by value (Welford).
#[derive(Clone, Copy, Default)]
struct Scale {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Scale {
    fn observe(&mut self, value: f64) {
        self.count += 1.0;
        let before = value - self.mean;
        self.mean += before / self.count;
        self.squares += before * (value - self.mean);
    }

    fn std(&self) -> f64 {
        (self.squares / self.count.max(1.0)).sqrt()
    }
}

/// Source and target of a row that has both.
fn usable<'r>(record: &'r StringRecord, request: &Request<'_>) -> Option<(&'r str, &'r str)> {
    let present = |column| {
        let text = record.get(column).unwrap_or_default().trim();
        (!text.is_empty() && !MISSING_TOKENS.contains(&text)).then_some(text)
    };
    let target = present(request.target)?;
    // A number that is not finite is a missing one, as in training.
    let infinite = target.parse::<f64>().is_ok_and(f64::is_infinite);
    Some((present(request.source)?, target)).filter(|_| !infinite)
}

fn finite(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|value: &f64| value.is_finite())
}

/// A number for a source that depends on its name alone (FNV-1a), so that its noise does, too.
fn key(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn with_fields(record: &StringRecord, changed: &[(usize, String)]) -> StringRecord {
    let mut fields: Vec<&str> = record.iter().collect();
    for (column, text) in changed {
        if let Some(field) = fields.get_mut(*column) {
            *field = text;
        }
    }
    StringRecord::from(fields)
}
