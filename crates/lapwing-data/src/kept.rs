//! Rows on disk that are kept: a second start on the same table begins with them, and does not read it again.
//!
//! ```text
//! block ‖ block ‖ … ‖ tail ‖ BLAKE3 of the tail (32 bytes) ‖ its length (8 bytes) ‖ MARK (16 bytes)
//! tail = length of the head (8 bytes) ‖ head (JSON) ‖ targets ‖ sources ‖ items, if any ‖ times, if any
//! ```
//!
//! Blocks are those of the [cache](crate::cache). Numbers are little-endian: 4 bytes for a class, a source or an item, 8 for
//! a value or a time. The head has a key, which is the digest of everything that the rows hang on: the bytes of the table, how
//! it is read, the memory and the seed by which it is dealt. What has another key, or is damaged, is made anew; a file that
//! is none of ours is never replaced.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use lapwing_sample::{Targets, Task};
use lapwing_store::{AtomicFile, Digested};
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, CacheError};
use crate::dataset::{Dataset, Dropped, ReadOptions, Sources};
use crate::error::DataError;
use crate::file::TableFile;
use crate::items::Items;
use crate::memory::Memory;
use crate::schema::{Schema, Storage};
use crate::table::{Layout, LayoutKind};
use crate::time::Times;
use crate::warning::Warning;

const MARK: &[u8; 16] = b"lapwing rows 1\r\n";
const DIGEST: usize = 32;
const END: usize = DIGEST + 8 + MARK.len();
/// Numbers that are read or written at a time.
const TOGETHER: usize = 1 << 14;

/// What the rows of a table on disk hang on, but for the task: a run that goes on asks for the one that it once inferred.
pub(crate) fn key(
    file: &TableFile,
    options: &ReadOptions,
    memory: &Memory,
) -> Result<String, DataError> {
    let path = file.path();
    let opened =
        File::open(path).map_err(|source| DataError::Open { path: path.to_owned(), source })?;
    let seed = memory.disk.as_ref().map(|disk| disk.seed);
    let version = env!("CARGO_PKG_VERSION");
    let options = ReadOptions { task: None, ..options.clone() };
    let read_as = (version, file.columns(), file.delimiter(), options);
    let mut hasher = blake3::Hasher::new();
    hasher.update(format!("{read_as:?}{:?}", (memory.limit, memory.program, seed)).as_bytes());
    hasher
        .update_reader(opened)
        .map_err(|source| DataError::Read { path: path.to_owned(), source })?;
    file.check_that_it_is_unchanged()?;
    Ok(hasher.finalize().to_hex().to_string())
}

#[derive(Serialize, Deserialize)]
struct Head {
    key: String,
    /// What was asked for; what it is stands in the schema.
    task: Option<Task>,
    rows: usize,
    columns: Vec<(String, Stored)>,
    schema: Schema,
    sources: Vec<String>,
    items: Option<Vec<String>>,
    /// Whether times are dates, and whether these have a time of day.
    times: Option<(bool, bool)>,
    dropped: Dropped,
    warnings: Vec<Warning>,
}

/// What the words of a column stand for.
#[derive(Serialize, Deserialize)]
enum Stored {
    Numbers { storage: Storage, is_date: bool },
    Codes { levels: Vec<String> },
    Vectors { width: usize },
}

impl Stored {
    fn of(kind: &LayoutKind) -> Self {
        match kind {
            &LayoutKind::Numbers { storage, is_date } => Self::Numbers { storage, is_date },
            LayoutKind::Codes { levels } => {
                Self::Codes { levels: levels.iter().map(ToString::to_string).collect() }
            }
            &LayoutKind::Vectors { width } => Self::Vectors { width },
        }
    }

    fn layout(self, name: String) -> Layout {
        let kind = match self {
            Self::Numbers { storage, is_date } => LayoutKind::Numbers { storage, is_date },
            Self::Codes { levels } => {
                let levels = levels.into_iter().map(String::into_boxed_str);
                LayoutKind::Codes { levels: Arc::new(levels.collect()) }
            }
            Self::Vectors { width } => LayoutKind::Vectors { width },
        };
        Layout { name, kind }
    }
}

impl Head {
    /// Bytes of what stands behind the head; `None` where there would be too many to count.
    fn bytes_behind(&self) -> Option<u64> {
        let target = match self.schema.task {
            Task::Classification => 4,
            Task::Regression => 8,
        };
        let items = if self.items.is_some() { 4 } else { 0 };
        let times = if self.times.is_some() { 8 } else { 0 };
        (self.rows as u64).checked_mul(target + 4 + items + times)
    }
}

/// Keeps the rows of a table on disk.
pub(crate) fn write(
    path: &Path,
    (key, task): (&str, Option<Task>),
    dataset: &Dataset,
    cache: &Cache,
) -> Result<(), CacheError> {
    let Dataset { schema, target, sources, items, times, dropped, warnings, .. } = dataset;
    let columns = cache.layouts().iter();
    let head = Head {
        key: key.to_owned(),
        task,
        rows: dataset.len(),
        columns: columns.map(|layout| (layout.name.clone(), Stored::of(&layout.kind))).collect(),
        schema: schema.clone(),
        sources: sources.names.clone(),
        items: items.as_ref().map(|items| items.names.clone()),
        times: times.as_ref().map(|times| (times.is_date, times.with_time)),
        dropped: *dropped,
        warnings: warnings.clone(),
    };
    let head = serde_json::to_vec(&head).map_err(std::io::Error::from)?;
    let mut file = AtomicFile::create(path)?;
    cache.copy(&mut file)?;
    let mut length = 0;
    let mut tail = Digested::new(file);
    let mut put = |bytes: &[u8]| {
        length += bytes.len() as u64;
        tail.write_all(bytes)
    };
    put(&(head.len() as u64).to_le_bytes())?;
    put(&head)?;
    drop(head);
    match target {
        Targets::Classes { labels, .. } => put_all(labels, u32::to_le_bytes, &mut put)?,
        Targets::Values(values) => put_all(values, f64::to_le_bytes, &mut put)?,
    }
    put_all(&sources.codes, u32::to_le_bytes, &mut put)?;
    if let Some(items) = items {
        put_all(&items.codes, u32::to_le_bytes, &mut put)?;
    }
    if let Some(times) = times {
        put_all(&times.values, f64::to_le_bytes, &mut put)?;
    }
    let (mut file, digest) = tail.finish();
    file.write_all(digest.as_bytes())?;
    file.write_all(&length.to_le_bytes())?;
    file.write_all(MARK)?;
    Ok(file.commit()?)
}

fn put_all<T: Copy, const N: usize>(
    numbers: &[T],
    bytes: fn(T) -> [u8; N],
    put: &mut impl FnMut(&[u8]) -> std::io::Result<()>,
) -> std::io::Result<()> {
    for some in numbers.chunks(TOGETHER) {
        put(&some.iter().flat_map(|&number| bytes(number)).collect::<Vec<u8>>())?;
    }
    Ok(())
}

/// A file of rows as it was found.
pub(crate) struct Kept {
    file: File,
    head: Head,
    /// Of the tail so far.
    hasher: blake3::Hasher,
    digest: [u8; DIGEST],
    /// Where the tail begins.
    blocks: u64,
}

impl Kept {
    /// Opens a file; `None` where there is none, or one that is damaged.
    ///
    /// # Errors
    /// Where it is none of ours, or cannot be read.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, CacheError> {
        // Before it is opened: a pipe would wait for somebody who writes.
        let about = match std::fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            about => about?,
        };
        let foreign = || CacheError::Foreign(path.to_owned());
        let size = about.len();
        if !about.is_file() || size < END as u64 {
            return Err(foreign());
        }
        let mut file = File::open(path)?;
        let mut end = [0; END];
        file.seek(SeekFrom::Start(size - END as u64))?;
        file.read_exact(&mut end)?;
        if !end.ends_with(MARK) {
            return Err(foreign());
        }
        let digest = end[..DIGEST].try_into().unwrap_or_default();
        let tail = end[DIGEST..DIGEST + 8].try_into().map_or(0, u64::from_le_bytes);
        let Some(blocks) = (size - END as u64).checked_sub(tail).filter(|_| tail >= 8) else {
            return Ok(None);
        };
        let mut length = [0; 8];
        file.seek(SeekFrom::Start(blocks))?;
        file.read_exact(&mut length)?;
        // At most what there is of the file.
        let bytes = u64::from_le_bytes(length);
        let Some(behind) = (tail - 8).checked_sub(bytes) else { return Ok(None) };
        let mut text = vec![0; bytes as usize];
        file.read_exact(&mut text)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&length).update(&text);
        let Ok(head) = serde_json::from_slice::<Head>(&text) else { return Ok(None) };
        let whole = head.bytes_behind() == Some(behind);
        Ok(whole.then_some(Self { file, head, hasher, digest, blocks }))
    }

    /// Whether these are the rows that are wanted.
    pub(crate) fn is(&self, key: &str, task: Option<Task>) -> bool {
        let found = [self.head.task, Some(self.head.schema.task)];
        self.head.key == key && found.contains(&task)
    }

    /// The table; `None` where something of it is damaged. So many bytes of blocks are kept in memory, and so many rows
    /// are held.
    pub(crate) fn dataset(
        mut self,
        table: &Path,
        (recent, held): (u64, impl Fn(usize) -> usize),
    ) -> Result<Option<Dataset>, CacheError> {
        let (rows, classes) = (self.head.rows, self.head.schema.classes.len());
        let target = match self.head.schema.task {
            Task::Classification => {
                Targets::Classes { labels: self.numbers(u32::from_le_bytes)?, classes }
            }
            Task::Regression => Targets::Values(self.numbers(f64::from_le_bytes)?),
        };
        let codes = self.numbers(u32::from_le_bytes)?;
        let (items, times) = (self.head.items.is_some(), self.head.times.is_some());
        let item_codes = if items { self.numbers(u32::from_le_bytes)? } else { Vec::new() };
        let values = if times { self.numbers(f64::from_le_bytes)? } else { Vec::new() };
        let Self { file, head, hasher, digest, blocks } = self;
        let within =
            |codes: &[u32], count: usize| codes.iter().all(|&code| (code as usize) < count);
        let sound = hasher.finalize() == digest
            && head.schema.check().is_ok()
            && within(&codes, head.sources.len())
            && within(&item_codes, head.items.as_ref().map_or(0, Vec::len))
            && match &target {
                Targets::Classes { labels, .. } => within(labels, classes),
                Targets::Values(values) => values.iter().all(|value| value.is_finite()),
            };
        if !sound || rows == 0 {
            return Ok(None);
        }
        let layouts = head.columns.into_iter().map(|(name, stored)| stored.layout(name)).collect();
        let cache = Cache::of(file, table.to_owned(), rows, layouts, recent);
        if cache.bytes() != Some(blocks) {
            return Ok(None);
        }
        let first: Vec<u32> = (0..held(cache.words()).min(rows) as u32).collect();
        let table = match cache.table(&first) {
            Err(CacheError::Damaged(_)) => return Ok(None),
            table => table?,
        };
        Ok(Some(Dataset {
            table,
            target,
            sources: Sources { codes, names: head.sources },
            items: head.items.map(|names| Items { codes: item_codes, names }),
            times: head.times.map(|(is_date, with_time)| Times { values, is_date, with_time }),
            dropped: head.dropped,
            warnings: head.warnings,
            schema: head.schema,
            disk: Some(Arc::new(cache)),
            found: true,
        }))
    }

    /// A number for each row.
    fn numbers<T, const N: usize>(&mut self, number: fn([u8; N]) -> T) -> std::io::Result<Vec<T>> {
        let mut numbers = Vec::with_capacity(self.head.rows);
        let mut buffer = vec![0; TOGETHER * N];
        while numbers.len() < self.head.rows {
            let some = &mut buffer[..N * TOGETHER.min(self.head.rows - numbers.len())];
            self.file.read_exact(some)?;
            self.hasher.update(some);
            numbers.extend(some.chunks_exact(N).filter_map(|own| own.try_into().ok()).map(number));
        }
        Ok(numbers)
    }
}
