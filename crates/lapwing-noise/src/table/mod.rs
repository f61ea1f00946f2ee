//! Noise in the rows of a table: one pass to learn what it needs, then row by row.

mod classes;
mod error;
mod survey;

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

use lapwing_data::{
    Form, Kind, MISSING_TOKENS, ReadOptions, Schema, StringRecord, TableFile, Task, number_text,
    rewrite, rewrite_parquet,
};

use crate::{
    AddedNoise, Changes, ChunkShuffle, ClassSwap, Level, NoiseKind, RandomLabel,
    RandomLabelPerSample, ReplaceWithNoise, TokenPermutation, TokenReplacement, UniformTarget,
};
use classes::Classes;
pub use error::{TableNoiseError, TargetIs};
use survey::{Scale, Survey};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct TableNoise {
    /// The kind of noise.
    pub kind: NoiseKind,
    /// How much of the sources.
    pub level: Level,
    /// Same seed, same noise.
    pub seed: u64,
    /// The column to predict.
    pub target: String,
    /// The column that says where a row came from.
    pub source: String,
    /// Sources to make wrong.
    pub sources: Vec<String>,
    /// The columns that noise of the inputs changes; all numeric ones where none is named.
    pub features: Option<Vec<String>>,
    /// What the target is; decided by its values where it is not said.
    pub task: Option<Task>,
    /// Rows of a source in a chunk, for kinds that change chunks.
    pub chunk: usize,
}

/// What is asked for in positions of a table's columns.
struct Request {
    /// The table and the name of its target, for messages.
    place: (PathBuf, String),
    kind: NoiseKind,
    level: Level,
    seed: u64,
    chunk: usize,
    target: usize,
    source: usize,
    columns: Vec<usize>,
    /// 1, 1.0 and +1 are one class then.
    target_is_numeric: bool,
}

/// What became of a chosen source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceCount {
    /// Its name.
    pub name: String,
    /// Rows with a target.
    pub rows: u64,
    /// Rows that differ from what they were.
    pub changed: u64,
}

/// Noise that knows its table: everything that is needed to change a row when it comes by.
pub struct Corruption {
    request: Request,
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
    Swap {
        noise: ClassSwap,
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
    Permute(TokenPermutation),
    /// With the words of all texts.
    Words {
        noise: TokenReplacement,
        words: Vec<String>,
    },
}

impl TableNoise {
    fn request(&self, file: &TableFile) -> Result<Request, TableNoiseError> {
        let options = ReadOptions {
            task: self.task,
            features: self.features.clone(),
            ..ReadOptions::new(&self.target, &self.source)
        };
        let schema = Schema::infer(file, &options)?;
        Ok(Request {
            place: (file.path().to_owned(), self.target.clone()),
            kind: self.kind,
            level: self.level,
            seed: self.seed,
            chunk: self.chunk.max(1),
            columns: self.columns(file, &schema)?,
            target: file.position(&self.target)?,
            source: file.position(&self.source)?,
            target_is_numeric: schema.target().is_some_and(|column| column.kind == Kind::Numeric),
        })
    }

    /// The columns that noise of the inputs changes, once it is clear that the kind fits the table.
    fn columns(&self, file: &TableFile, schema: &Schema) -> Result<Vec<usize>, TableNoiseError> {
        let kind = self.kind;
        let changes = kind.changes();
        let target = |is| TableNoiseError::Target { kind, target: self.target.clone(), is };
        if self.features.is_some() && !matches!(changes, Changes::Inputs | Changes::Texts) {
            return Err(TableNoiseError::NotOfInputs { kind, target: self.target.clone() });
        }
        match (changes, schema.task) {
            (Changes::Labels, Task::Regression) => return Err(target(TargetIs::Number)),
            (Changes::Numbers, Task::Classification) => return Err(target(TargetIs::Class)),
            (Changes::Numbers, _)
                if schema.target().is_some_and(|column| column.kind != Kind::Numeric) =>
            {
                return Err(target(TargetIs::Date));
            }
            (Changes::Inputs | Changes::Texts, _) if file.is_folder() => {
                return Err(TableNoiseError::Pictures { kind, path: file.path().to_owned() });
            }
            (Changes::Inputs, _) => {}
            (Changes::Texts, _) => return self.text_columns(file, schema),
            _ => return Ok(Vec::new()),
        }
        let mut columns = Vec::new();
        for column in schema.features() {
            if column.kind == Kind::Numeric && column.is_written_plainly() {
                columns.push(file.position(&column.name)?);
            } else if self.features.is_some() {
                let (column, is) = (column.name.clone(), column.kind);
                return Err(TableNoiseError::NotNumeric { kind, column, is });
            }
        }
        let needed = if kind == NoiseKind::ChunkShuffle { 2 } else { 1 };
        if columns.len() < needed {
            let path = file.path().to_owned();
            let lists = (0..file.columns().len()).any(|column| file.is_list(column));
            return Err(TableNoiseError::Columns {
                kind,
                needed,
                path,
                found: columns.len(),
                lists,
            });
        }
        Ok(columns)
    }

    /// The columns of text: those that are named, or all that hold free text.
    fn text_columns(
        &self,
        file: &TableFile,
        schema: &Schema,
    ) -> Result<Vec<usize>, TableNoiseError> {
        let columns: Vec<usize> = match &self.features {
            Some(named) => {
                named.iter().map(|name| file.position(name)).collect::<Result<_, _>>()?
            }
            None => {
                let texts = |column: &&lapwing_data::ColumnSchema| column.kind == Kind::Text;
                let texts = schema.columns.iter().filter(texts);
                texts.map(|column| file.position(&column.name)).collect::<Result<_, _>>()?
            }
        };
        if columns.is_empty() {
            let (kind, path) = (self.kind, file.path().to_owned());
            return Err(TableNoiseError::NoText { kind, path });
        }
        if let Some(&column) = columns.iter().find(|&&column| !file.holds_texts(column)) {
            let (kind, column) = (self.kind, file.columns()[column].clone());
            return Err(TableNoiseError::NotText { kind, column });
        }
        Ok(columns)
    }

    /// Reads the table once, so that the noise is ready to change it.
    ///
    /// # Errors
    /// Where the kind does not fit the table, a source is not in it, or it cannot be read.
    pub fn plan(&self, file: &TableFile) -> Result<Corruption, TableNoiseError> {
        if let Some(reason) = self.kind.unfit_for_tables() {
            return Err(TableNoiseError::Unfit { kind: self.kind, reason });
        }
        let request = self.request(file)?;
        let mut chosen = HashMap::new();
        let mut counts = Vec::new();
        for name in &self.sources {
            let name = name.trim().to_owned();
            if !chosen.contains_key(&name) {
                chosen.insert(name.clone(), counts.len());
                counts.push(SourceCount { name, rows: 0, changed: 0 });
            }
        }
        let mut survey = Survey::new(&request, counts.len());
        file.each_record(|row, record| survey.observe(&request, &chosen, row, record))?;
        for count in &mut counts {
            count.rows = survey.sources.get(&count.name).map_or(0, |source| source.rows);
        }
        if let Some(absent) = counts.iter().find(|count| count.rows == 0) {
            return Err(TableNoiseError::AbsentSource {
                source_name: absent.name.clone(),
                column: self.source.clone(),
                known: survey.nearest(&absent.name),
            });
        }
        let rows = survey.rows;
        let noise = survey.noise(&request, &counts)?;
        Ok(Corruption { request, noise, rows, counts, chosen })
    }
}

impl Corruption {
    /// Copies the table that it was planned for, while changing it; `each` is told every row. Only Parquet can be copied as
    /// Parquet.
    ///
    /// # Errors
    /// Where the table cannot be read, has changed since, or the output cannot be written.
    pub fn copy(
        &mut self,
        file: &TableFile,
        output: &mut (dyn Write + Send),
        form: Form,
        mut each: impl FnMut(u64),
    ) -> Result<(), TableNoiseError> {
        let changing = self.changing();
        let edit = |row: u64, record: &mut StringRecord| {
            self.edit(file, row, record);
            each(row);
            Ok::<(), TableNoiseError>(())
        };
        let rows = match form {
            Form::Text(compression) => rewrite(file, output, compression, edit)?,
            Form::Parquet => rewrite_parquet(file, &changing, output, edit)?,
        };
        if rows != self.rows {
            return Err(TableNoiseError::Changed(file.path().to_owned()));
        }
        Ok(())
    }

    /// Rows of the table.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What became of the chosen sources so far.
    pub fn counts(&self) -> &[SourceCount] {
        &self.counts
    }

    /// The columns in which something may change.
    fn changing(&self) -> Vec<usize> {
        match self.request.kind.changes() {
            Changes::Nothing => Vec::new(),
            Changes::Inputs | Changes::Texts => self.request.columns.clone(),
            Changes::Labels | Changes::Numbers => vec![self.request.target],
        }
    }

    /// Changes a row (counted from 1) of its table if it is to be changed. Rows come in order.
    fn edit(&mut self, file: &TableFile, row: u64, record: &mut StringRecord) {
        let number = |column: usize, value: f64| number_text(file.nearest(column, value));
        let Some((name, target)) = usable(record, &self.request) else { return };
        let Some(&source) = self.chosen.get(name) else { return };
        let Request { level, seed, target: target_column, .. } = self.request;
        let index = row - 1;
        let present = |column: usize| record.get(column).and_then(finite).is_some();
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
            Noise::Swap { noise, classes } => {
                let old = classes.code(target);
                let new = old.map(|old| noise.label(key(name), old));
                new.filter(|_| new != old).map(|new| classes.text(new))
            }
            Noise::PerSample { noise, classes } => {
                let new = noise.label(index);
                (classes.code(target) != Some(new)).then(|| classes.text(new))
            }
            Noise::Uniform(noise) => Some(number(target_column, noise.target(index))),
            Noise::Added { noise, scales } => {
                let mut drawn = vec![0.0; scales.len()];
                noise.apply(index, &mut drawn);
                for ((&column, scale), drawn) in self.request.columns.iter().zip(scales).zip(drawn)
                {
                    if let Some(value) = record.get(column).and_then(finite) {
                        changed.push((column, number(column, value + scale.std() * drawn)));
                    }
                }
                None
            }
            Noise::Replace { noise, scales } => {
                let mut drawn = vec![0.0; scales.len()];
                noise.apply(index, &mut drawn);
                for ((&column, scale), drawn) in self.request.columns.iter().zip(scales).zip(drawn)
                {
                    if present(column) {
                        changed.push((column, number(column, scale.mean + scale.std() * drawn)));
                    }
                }
                None
            }
            Noise::Permute(noise) => {
                for &column in &self.request.columns {
                    let text = record.get(column).unwrap_or_default();
                    let mut words: Vec<&str> = text.split_whitespace().collect();
                    noise.apply(index, &mut words);
                    changed.push((column, words.join(" ")));
                }
                None
            }
            Noise::Words { noise, words } => {
                for &column in &self.request.columns {
                    let text = record.get(column).unwrap_or_default();
                    let own: Vec<&str> = text.split_whitespace().collect();
                    let new = noise.tokens(index, own.len());
                    let word = |(own, new): (&&str, Option<u32>)| match new {
                        Some(new) => words[new as usize].clone(),
                        None => (*own).to_owned(),
                    };
                    let text: Vec<String> = own.iter().zip(new).map(word).collect();
                    changed.push((column, text.join(" ")));
                }
                None
            }
            Noise::Shuffle(noise) => {
                // What is missing stays where it is: a series that ends early has no gap then.
                let mut places = self.request.columns.clone();
                places.retain(|&column| present(column));
                let mut from = places.clone();
                noise.flat(index, &mut from);
                changed.extend(places.into_iter().zip(from).map(|(column, from)| {
                    let text = record.get(from).unwrap_or_default();
                    // A whole number stays as it is written; others may become whole by moving.
                    let nearest = finite(text).map(|value| (value, file.nearest(column, value)));
                    match nearest.filter(|(value, nearest)| value != nearest) {
                        Some((_, nearest)) => (column, number_text(nearest)),
                        None => (column, text.to_owned()),
                    }
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

/// Source and target of a row that has both.
fn usable<'r>(record: &'r StringRecord, request: &Request) -> Option<(&'r str, &'r str)> {
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
