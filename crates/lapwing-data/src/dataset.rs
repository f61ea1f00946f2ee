//! A table read for training: features, target and sources.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use lapwing_sample::{Samples, Targets, Task};
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, CachedRows, Dealer};
use crate::distinct::Distinct;
use crate::error::DataError;
use crate::file::TableFile;
use crate::gallery::{self, Unreadable};
use crate::input::Input;
use crate::items::Items;
use crate::kept::{self, Kept};
use crate::memory::{Memory, Need};
use crate::picture;
use crate::schema::{Kind, Reason, Role, Schema};
use crate::series::Channels;
use crate::survey::{Places, Survey};
use crate::table::{Column, ColumnBuilder, Table};
use crate::target::{Filled, TargetBuilder};
use crate::time::{TimeBuilder, Times};
use crate::value::{Lexicon, MISSING_TOKENS};
use crate::warning::Warning;

type Result<T> = std::result::Result<T, DataError>;

/// What to read and as what.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadOptions {
    /// Column to predict.
    pub target: String,
    /// Column that says where a row came from.
    pub source: String,
    /// Column that says what a row is an answer to, where several sources answer on the same item.
    pub item: Option<String>,
    /// Where no column says so, takes rows with the same inputs for answers on one item, if they are that.
    pub find_items: bool,
    /// Use these columns and no other; naming the source column makes it a feature too.
    pub features: Option<Vec<String>>,
    /// Do not use these columns.
    pub ignore: Vec<String>,
    /// Columns of text to learn from, whether or not they are among `features`.
    pub text: Vec<String>,
    /// Whether columns of text are learnt from alone.
    pub text_alone: bool,
    /// Channels of series to learn from, and from nothing else: columns of lists by name, or by a pattern such as `ecg_*`,
    /// which may also stand for the columns of the moments of one channel.
    pub series: Vec<String>,
    /// Kinds that override inference. A column named here is used even where inference would ignore it.
    pub types: BTreeMap<String, Kind>,
    /// What is learnt; inferred when not given.
    pub task: Option<Task>,
    /// Column that says when a row was taken; it is learnt from only where it is among `features`.
    pub time: Option<String>,
    /// Texts that stand for a missing value; an empty field always does.
    pub missing_tokens: Vec<String>,
    /// How pictures are read.
    pub pictures: PictureOptions,
}

/// How pictures are read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PictureOptions {
    /// Pixels of a side; chosen from the pictures when not given.
    pub side: Option<usize>,
    /// Most bytes of pixels that are held; beyond, pictures are read from their files batch by batch.
    pub most_held: Option<u64>,
    /// Leaves rows out whose picture cannot be read, which is an error otherwise.
    pub skip_unreadable: bool,
}

impl ReadOptions {
    /// Everything inferred.
    pub fn new(target: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            source: source.into(),
            item: None,
            find_items: true,
            features: None,
            ignore: Vec::new(),
            text: Vec::new(),
            text_alone: false,
            series: Vec::new(),
            types: BTreeMap::new(),
            task: None,
            time: None,
            missing_tokens: MISSING_TOKENS.map(str::to_owned).to_vec(),
            pictures: PictureOptions::default(),
        }
    }
}

/// Rows that were left out, by reason; a row counts for the first that applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// The target was missing.
    pub target_missing: u64,
    /// The target was infinite.
    #[serde(default)]
    pub target_infinite: u64,
    /// The source was missing.
    pub source_missing: u64,
    /// The item was missing.
    #[serde(default)]
    pub item_missing: u64,
    /// The picture could not be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub picture_unreadable: u64,
}

fn is_zero(rows: &u64) -> bool {
    *rows == 0
}

impl Dropped {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.target_missing
            + self.target_infinite
            + self.source_missing
            + self.item_missing
            + self.picture_unreadable
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.target_missing += other.target_missing;
        self.target_infinite += other.target_infinite;
        self.source_missing += other.source_missing;
        self.item_missing += other.item_missing;
        self.picture_unreadable += other.picture_unreadable;
    }

    /// How many rows for which reason, those that apply.
    pub fn reasons(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let reasons = [
            ("target missing", self.target_missing),
            ("target infinite", self.target_infinite),
            ("source missing", self.source_missing),
            ("item missing", self.item_missing),
            ("a picture that cannot be read", self.picture_unreadable),
        ];
        reasons.into_iter().filter(|(_, rows)| *rows > 0)
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons: Vec<String> =
            self.reasons().map(|(reason, rows)| format!("{rows} with {reason}")).collect();
        f.write_str(&reasons.join(", "))
    }
}

/// Where rows came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// For every row an index into `names`.
    pub codes: Vec<u32>,
    /// In order of first appearance.
    pub names: Vec<String>,
}

/// A table ready to be split and encoded.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// What each column holds and is used for.
    pub schema: Schema,
    /// The features.
    pub table: Table,
    /// What is to be predicted, row by row.
    pub target: Targets,
    /// Where the rows came from.
    pub sources: Sources,
    /// What they are answers to, where that was asked for.
    pub items: Option<Items>,
    /// When the rows were taken, where a column says so.
    pub times: Option<Times>,
    /// Rows that were left out.
    pub dropped: Dropped,
    /// What the user should be told.
    pub warnings: Vec<Warning>,
    /// All rows, where they do not fit into memory; `table` then holds the first of them.
    pub(crate) disk: Option<Arc<Cache>>,
    /// Whether these were there before.
    pub(crate) found: bool,
}

/// Rows that are dealt at a time.
const CHUNK: usize = 4096;
/// Most rows that are in memory where the others are on disk.
const MOST_HELD: u64 = 1 << 20;
/// Rows beyond which items are looked for in a part of the inputs first: to look in all takes as much memory as the rows.
const MANY: usize = 1 << 21;
/// Parts of the memory there is: for rows that are held, for blocks of late, and for a pile of rows to be dealt.
const HELD: u64 = 16;
const RECENT: u64 = 8;
const PILE: u64 = 8;

impl Dataset {
    /// Reads a table in two passes: the first infers types and counts, the second fills columns of exactly that size.
    pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self> {
        Self::read_within(path, options, None)
    }

    /// The same, where a table that needs more `memory` than there is goes to disk, or is refused after the first pass.
    /// Rows on disk are dealt at random once: their order is not that of the file.
    pub fn read_within(
        path: impl AsRef<Path>,
        options: &ReadOptions,
        memory: Option<&Memory>,
    ) -> Result<Self> {
        let file = TableFile::open(path)?;
        let keep = memory.and_then(|memory| Some((memory, memory.disk.as_ref()?.keep.as_deref()?)));
        let Some((memory, keep)) = keep else { return Self::read_all(file, options, memory) };
        let found = Kept::open(keep)?;
        let key = kept::key(&file, options, memory)?;
        if let Some(found) = found.filter(|found| found.is(&key, options.task)) {
            let held = |words| held_rows(memory.limit, words as u64) as usize;
            let dataset = found.dataset(file.path(), (memory.limit / RECENT, held))?;
            if let Some(dataset) = dataset {
                return Ok(dataset);
            }
        }
        let dataset = Self::read_all(file, options, Some(memory))?;
        if let Some(cache) = &dataset.disk {
            kept::write(keep, (&key, options.task), &dataset, cache)?;
        }
        Ok(dataset)
    }

    fn read_all(file: TableFile, options: &ReadOptions, memory: Option<&Memory>) -> Result<Self> {
        let places = Places::new(&file, options)?;
        let lexicon = Lexicon::new(&options.missing_tokens);
        let survey = Survey::new(&file, &places, &lexicon)?;
        let mut schema = survey.schema(&file, &places, options)?;
        let mut warnings = survey.doubts(&file, &schema, options)?;
        schema.check_that_it_has_features(file.path())?;

        let (mut dropped, mut unreadable) = (survey.dropped, Unreadable::default());
        if let Some(column) = schema.pictures() {
            let PictureOptions { side, skip_unreadable, .. } = options.pictures;
            schema.columns[column].storage.width = match side {
                Some(side) if picture::ALLOWED.contains(&side) => side,
                Some(side) => return Err(DataError::PictureSide { side }),
                None => gallery::usual_side(&file, &places, &lexicon, column, survey.rows)?,
            };
            if skip_unreadable {
                unreadable = gallery::unreadable(&file, &places, &lexicon, column)?;
                dropped.picture_unreadable = unreadable.rows.len() as u64;
            }
        }
        let rows = (survey.rows - dropped.picture_unreadable) as usize;
        if rows == 0 {
            return Err(DataError::AllRowsDropped { path: file.path().to_owned(), dropped });
        }
        if let Some(first) = unreadable.first.take() {
            let (rows, lost) = (dropped.picture_unreadable, std::mem::take(&mut unreadable.lost));
            warnings.push(Warning::PicturesSkipped { rows, first, lost });
        }
        let dealt = match memory {
            Some(memory) => Dealt::new(&file, &schema, &survey, memory)?,
            None => None,
        };
        let in_memory = if dealt.is_some() { CHUNK } else { rows };
        let mut builders: Vec<ColumnBuilder> = schema
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.role.is_feature())
            .map(|(position, column)| {
                let builder = ColumnBuilder::new(column, position, in_memory);
                match options.pictures.most_held {
                    Some(most) => builder.holding(most),
                    None => builder,
                }
            })
            .collect();
        let mut target =
            TargetBuilder::new(schema.task, &schema.columns[places.target], places.target, rows);
        let mut sources = ColumnBuilder::names(&options.source, places.source, rows);
        let channels = Channels::of(&schema);
        let item = options.item.as_deref().zip(places.item);
        let mut items = item.map(|(name, place)| ColumnBuilder::names(name, place, rows));
        let mut times =
            places.time.map(|place| TimeBuilder::new(&schema.columns[place], place, rows));
        let numbered = dealt.is_some() || dropped.total() > 0;
        let mut numbers = RowNumbers::new(numbered, in_memory);
        let mut dealt = dealt;
        let mut kept = 0;
        file.scan(|record| {
            if places.drops(&lexicon, record).is_some() || unreadable.rows.contains(&record.row) {
                return Ok(());
            }
            kept += 1;
            if kept > rows {
                return Err(DataError::Changed { path: file.path().to_owned() });
            }
            for builder in &mut builders {
                builder.push(&lexicon, record)?;
            }
            channels.check(&builders, record)?;
            target.push(&lexicon, record)?;
            sources.push(&lexicon, record)?;
            if let Some(items) = &mut items {
                items.push(&lexicon, record)?;
            }
            if let Some(times) = &mut times {
                times.push(&lexicon, record)?;
            }
            numbers.push(record.row);
            match &mut dealt {
                Some(dealt) if numbers.0.len() == CHUNK => {
                    dealt.take(&mut numbers.0, &mut builders)
                }
                _ => Ok(()),
            }
        })?;
        if kept != rows {
            return Err(DataError::Changed { path: file.path().to_owned() });
        }
        file.check_that_it_is_unchanged()?;

        let mut target = target.finish();
        check_that_it_varies(&target, file.path(), &options.target)?;
        schema.classes = target.classes;
        let (mut codes, names) = sources.into_names();
        let mut items = items.map(|items| {
            let (codes, names) = items.into_names();
            Items { codes, names }
        });
        let mut times = times.map(TimeBuilder::finish);
        let (table, disk) = match dealt {
            None => {
                let columns: Vec<Column> =
                    builders.into_iter().map(ColumnBuilder::finish).collect::<Result<_>>()?;
                (Table::new(file.path().to_owned(), columns, rows, numbers.0), None)
            }
            Some(mut dealt) => {
                dealt.take(&mut numbers.0, &mut builders)?;
                let (table, cache, order) = dealt.finish(&file, builders)?;
                codes = order.iter().map(|&row| codes[row as usize]).collect();
                target.targets = target.targets.select(&order);
                if let Some(items) = &mut items {
                    items.codes = order.iter().map(|&row| items.codes[row as usize]).collect();
                }
                if let Some(times) = &mut times {
                    times.values = order.iter().map(|&row| times.values[row as usize]).collect();
                }
                (table, Some(Arc::new(cache)))
            }
        };
        // Names are spelt in one way, so there may be fewer of them than texts, and more than numbers.
        schema.columns[places.source].distinct =
            Distinct { count: names.len() as u64, exact: true };
        let features = schema.columns.iter_mut().filter(|column| column.role.is_feature());
        for (column, built) in features.zip(table.columns()) {
            if let Some(count) = built.level_count() {
                column.distinct = Distinct { count, exact: true };
            }
        }
        let mut dataset = Self {
            schema,
            table,
            target: target.targets,
            sources: Sources { codes, names },
            items,
            times,
            dropped,
            warnings: Vec::new(),
            disk,
            found: false,
        };
        if options.find_items {
            warnings.extend(dataset.find_items());
        }
        warnings.extend(dataset.find_warnings(options));
        dataset.warnings = warnings;
        Ok(dataset)
    }

    /// Whether rows are on disk, because they do not fit into memory.
    pub fn is_on_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// Bytes of rows on disk, and whether they were kept there by somebody before; `None` where rows are in memory.
    pub fn on_disk(&self) -> Option<(u64, bool)> {
        let cache = self.disk.as_ref()?;
        Some((cache.bytes().unwrap_or(u64::MAX), self.found))
    }

    /// Those of some rows, in ascending order, that are in `table`: all of them, unless rows are on disk. Since these
    /// were dealt at random, the ones in memory are a sample of all.
    pub fn held<'a>(&self, rows: &'a [u32]) -> &'a [u32] {
        &rows[..rows.partition_point(|&row| (row as usize) < self.table.len())]
    }

    /// All rows as samples.
    pub fn bind<'a>(&'a self, input: &'a Input) -> Result<Box<dyn Samples + 'a>> {
        match &self.disk {
            None => input.bind(&self.table),
            Some(cache) => Ok(Box::new(CachedRows { cache, input })),
        }
    }

    /// Data row in the file, counted from 1, of a row.
    pub fn row_number(&self, row: u32) -> Result<u64> {
        match &self.disk {
            Some(cache) if row as usize >= self.table.len() => Ok(cache.number(row)?.into()),
            _ => Ok(self.table.row_number(row)),
        }
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.sources.codes.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes rows with the same inputs for answers on one item, where they are that.
    fn find_items(&mut self) -> Option<Warning> {
        let Targets::Classes { labels, .. } = &self.target else { return None };
        if self.items.is_some() || self.is_on_disk() {
            return None;
        }
        let rows: Vec<u32> = (0..self.len() as u32).collect();
        if rows.len() > MANY && !Items::may_be(self.some_inputs(&rows)) {
            return None;
        }
        let digests = self.table.digests(&rows);
        let number = |row| self.table.row_number(row);
        self.items = Items::found(&digests, &self.sources.codes, labels, number);
        let items = self.items.as_ref()?.names.len() as u64;
        Some(Warning::ItemsFound { rows: rows.len() as u64, items })
    }

    /// The digests of some inputs, of each with all rows that have them, and the sources of these rows.
    fn some_inputs(&self, rows: &[u32]) -> Vec<(u64, u32)> {
        let every = (rows.len() / (MANY / 4)) as u64;
        let mut some = Vec::new();
        for rows in rows.chunks(CHUNK) {
            let sources = rows.iter().map(|&row| self.sources.codes[row as usize]);
            let digests = self.table.digests(rows).into_iter().zip(sources);
            some.extend(digests.filter(|(digest, _)| digest % every == 0));
        }
        some
    }

    fn find_warnings(&self, options: &ReadOptions) -> Vec<Warning> {
        let rows = self.len() as u64;
        let mut warnings = Vec::new();
        for column in &self.schema.columns {
            let asked = options.types.contains_key(&column.name);
            if column.role == Role::Ignored(Reason::FreeText) && !asked {
                warnings.push(Warning::TextNotUsed { column: column.name.clone() });
            }
        }
        match self.sources.names.as_slice() {
            [only] => warnings.push(Warning::OneSource(only.clone())),
            names if names.len() as u64 == rows => warnings.push(Warning::SourcePerRow(rows)),
            _ => {}
        }
        if let (Some(column), Some(items)) = (&options.item, &self.items) {
            let (column, items) = (column.clone(), items.names.len() as u64);
            if items == rows {
                warnings.push(Warning::OneAnswerEach { column });
            } else if items * self.sources.names.len() as u64 * 2 < rows {
                warnings.push(Warning::FewItems { column, items, rows });
            }
        }
        if let (Some(times), Some(column)) = (&self.times, &options.time)
            && times.missing() > 0
        {
            warnings.push(Warning::TimeMissing { column: column.clone(), rows: times.missing() });
        }
        warnings.extend(Warning::of_names_alike(&self.schema.classes, false));
        warnings.extend(Warning::of_names_alike(&self.sources.names, true));
        let classes = self.schema.classes.len() as u64;
        if classes > 2 && classes * 2 > rows {
            warnings.push(Warning::ManyClasses { classes, rows });
        }
        warnings
    }
}

/// A table on its way to disk.
struct Dealt {
    dealer: Dealer,
    limit: u64,
    words: u64,
}

impl Dealt {
    /// `None` where all fits into memory.
    fn new(
        file: &TableFile,
        schema: &Schema,
        survey: &Survey,
        memory: &Memory,
    ) -> Result<Option<Self>> {
        let (rows, limit) = (survey.rows, memory.limit);
        let need = Need::new(schema, rows, survey.dropped.total() > 0, memory.program);
        if need.whole <= limit {
            return Ok(None);
        }
        let path = || file.path().to_owned();
        let (needed, on_disk) = (need.whole, false);
        let Some(disk) = &memory.disk else {
            return Err(DataError::TooLarge { path: path(), rows, needed, limit, on_disk });
        };
        let Some(words) = need.words else {
            return Err(DataError::TooLargeForDisk { path: path(), rows, needed });
        };
        // Beside what is kept of the rows on disk.
        let needed = need.on_disk + limit / HELD + limit / RECENT;
        if needed > limit {
            return Err(DataError::TooLarge { path: path(), rows, needed, limit, on_disk: true });
        }
        let bytes = 4 * (words + 2) * rows;
        let (place, seed) = (disk.place.clone(), disk.seed);
        let dealer = Dealer::new(place, words as usize, bytes, limit / PILE, seed)?;
        Ok(Some(Self { dealer, limit, words }))
    }

    /// Takes the rows so far out of the builders.
    fn take(&mut self, numbers: &mut Vec<u32>, builders: &mut [ColumnBuilder]) -> Result<()> {
        let columns: Vec<(usize, Vec<u32>)> =
            builders.iter_mut().map(ColumnBuilder::drain).collect();
        self.dealer.deal(numbers, &columns)?;
        numbers.clear();
        Ok(())
    }

    /// The first rows in memory, all of them on disk, and which row of the file became which.
    fn finish(
        self,
        file: &TableFile,
        builders: Vec<ColumnBuilder>,
    ) -> Result<(Table, Cache, Vec<u32>)> {
        let layouts = builders.into_iter().filter_map(ColumnBuilder::layout).collect();
        let (cache, order) =
            self.dealer.finish(file.path().to_owned(), layouts, self.limit / RECENT)?;
        let held = held_rows(self.limit, self.words + 1) as usize;
        let held: Vec<u32> = (0..held.min(cache.len()) as u32).collect();
        Ok((cache.table(&held)?, cache, order))
    }
}

/// Rows of so many words that are held in memory where the others are on disk.
fn held_rows(limit: u64, words: u64) -> u64 {
    (limit / HELD / words.saturating_mul(4).max(1)).clamp(CHUNK as u64, MOST_HELD)
}

fn check_that_it_varies(target: &Filled, path: &Path, column: &str) -> Result<()> {
    let only = match &target.targets {
        Targets::Classes { classes: 1, .. } => target.classes[0].clone(),
        Targets::Values(values) if values.iter().all(|value| *value == values[0]) => {
            values[0].to_string()
        }
        _ => return Ok(()),
    };
    Err(DataError::OneClass { path: path.to_owned(), column: column.to_owned(), class: only })
}

/// Row numbers, kept only when they are not simply 1, 2, 3, ….
pub(crate) struct RowNumbers(pub(crate) Vec<u32>, bool);

impl RowNumbers {
    pub(crate) fn new(needed: bool, capacity: usize) -> Self {
        Self(Vec::with_capacity(if needed { capacity } else { 0 }), needed)
    }

    pub(crate) fn push(&mut self, row: u64) {
        if self.1 {
            // The survey refuses tables with more rows than 32 bits can number.
            self.0.push(row as u32);
        }
    }
}
