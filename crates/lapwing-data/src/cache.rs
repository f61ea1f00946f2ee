//! A table that does not fit into memory: its rows on disk, dealt at random into blocks that have checksums.
//!
//! ```text
//! block = row numbers ‖ column ‖ column ‖ … ‖ BLAKE3 of these (32 bytes)
//! ```
//!
//! Columns are 32-bit words, little-endian: numbers as they are kept in memory, or codes of levels; raw and not encoded,
//! as a feature per level would be many times as long. Every block but the last has [`BLOCK`] rows. Blocks are read where
//! they stand, by `seek` and `read`, and those of late are kept; nothing is mapped into memory, so that a file that is
//! cut short is an error and not the end of the process.
//!
//! The file has no name: whatever becomes of the process, the disk is free afterwards. Where it is to be kept, there is a copy
//! of it that has one ([`kept`](crate::kept)).

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use lapwing_sample::{Block, Blocks, Exhibit, InputSpec, SampleError, Samples, View};
use thiserror::Error;

use crate::input::Input;
use crate::table::{Column, Layout, Table};

/// Rows of a block.
pub const BLOCK: usize = 4096;
const DIGEST: usize = 32;
/// Most blocks whose rows are mixed: a million rows.
const MOST_TOGETHER: usize = 256;

/// Why rows on disk cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The file cannot be read or written.
    #[error("the rows of the table on disk: {0}")]
    Io(#[from] std::io::Error),
    /// A block is not what was written.
    #[error("block {0} of the table on disk is damaged: its checksum does not fit")]
    Damaged(usize),
    /// A file that was to be replaced by rows, and holds something else.
    #[error("{} is there, and holds no rows that were kept: it is not replaced", .0.display())]
    Foreign(PathBuf),
    /// Rows that are to be kept cannot be written.
    #[error(transparent)]
    Store(#[from] lapwing_store::StoreError),
}

/// Rows of a table on disk.
#[derive(Debug)]
pub(crate) struct Cache {
    /// Where the table was read from.
    path: PathBuf,
    rows: usize,
    /// What the columns are, each with its words per row.
    layouts: Vec<Layout>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Blocks of late, with the time at which each was wanted last.
    recent: HashMap<usize, (u64, Arc<Vec<u32>>)>,
    clock: u64,
    /// How many are kept.
    most: usize,
}

impl Cache {
    /// Blocks in a file, of which so many bytes are kept in memory.
    pub(crate) fn of(
        file: File,
        path: PathBuf,
        rows: usize,
        layouts: Vec<Layout>,
        recent: u64,
    ) -> Self {
        let state = State { file, recent: HashMap::new(), clock: 0, most: 2 };
        let mut cache = Self { path, rows, layouts, state: Mutex::new(state) };
        let block = (4 * BLOCK).saturating_mul(cache.words()) as u64;
        let most = usize::try_from(recent / block).unwrap_or(usize::MAX).max(2);
        cache.state.get_mut().unwrap_or_else(PoisonError::into_inner).most = most;
        cache
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// What the columns are.
    pub(crate) fn layouts(&self) -> &[Layout] {
        &self.layouts
    }

    /// Bytes of all blocks; `None` where there would be too many to count.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let words = (self.words() as u64).checked_mul(4 * self.rows as u64)?;
        words.checked_add((self.rows.div_ceil(BLOCK) * DIGEST) as u64)
    }

    /// Copies all blocks.
    pub(crate) fn copy(&self, to: &mut impl Write) -> std::io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.file.seek(SeekFrom::Start(0))?;
        std::io::copy(&mut state.file, to).map(|_| ())
    }

    /// The row numbers and the columns of some rows, in their order.
    pub(crate) fn table(&self, rows: &[u32]) -> Result<Table, CacheError> {
        let wanted: BTreeSet<usize> = rows.iter().map(|&row| row as usize / BLOCK).collect();
        let mut blocks = HashMap::with_capacity(wanted.len());
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            for &block in &wanted {
                blocks.insert(block, self.block(&mut state, block)?);
            }
        }
        // Where the words of each row begin, and how far those of two columns are from each other.
        let places: Vec<(&[u32], usize, usize)> = rows
            .iter()
            .map(|&row| {
                let block = row as usize / BLOCK;
                let words = blocks.get(&block).map_or(&[][..], |words| &words[..]);
                (words, row as usize % BLOCK, self.rows_of(block))
            })
            .collect();
        let word = |at: usize| places.iter().map(move |(words, row, rows)| words[at * rows + row]);
        let numbers = word(0).collect();
        let mut begin = 1;
        let mut columns = Vec::with_capacity(self.layouts.len());
        for layout in &self.layouts {
            let width = layout.words();
            let words = match width {
                1 => word(begin).collect(),
                _ => {
                    let of_row = |(words, row, rows): &(&[u32], usize, usize)| {
                        (0..width).map(|at| words[(begin + at) * rows + row]).collect::<Vec<u32>>()
                    };
                    places.iter().flat_map(of_row).collect()
                }
            };
            columns.push(Column::of(layout, words));
            begin += width;
        }
        Ok(Table::new(self.path.clone(), columns, rows.len(), numbers))
    }

    /// The number in the file of a row, without its block.
    pub(crate) fn number(&self, row: u32) -> Result<u32, CacheError> {
        let (block, row) = (row as usize / BLOCK, row as usize % BLOCK);
        let mut bytes = [0; 4];
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.file.seek(SeekFrom::Start(self.begin(block) + 4 * row as u64))?;
        state.file.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Words of a row: its number and its columns.
    pub(crate) fn words(&self) -> usize {
        let widths = self.layouts.iter().map(Layout::words);
        widths.fold(1, |words: usize, width| words.saturating_add(width))
    }

    fn rows_of(&self, block: usize) -> usize {
        BLOCK.min(self.rows - (block * BLOCK).min(self.rows))
    }

    fn begin(&self, block: usize) -> u64 {
        block as u64 * (4 * BLOCK * self.words() + DIGEST) as u64
    }

    fn block(&self, state: &mut State, block: usize) -> Result<Arc<Vec<u32>>, CacheError> {
        state.clock += 1;
        let now = state.clock;
        if let Some((wanted, words)) = state.recent.get_mut(&block) {
            *wanted = now;
            return Ok(Arc::clone(words));
        }
        let mut bytes = vec![0; 4 * self.rows_of(block) * self.words() + DIGEST];
        state.file.seek(SeekFrom::Start(self.begin(block)))?;
        state.file.read_exact(&mut bytes)?;
        let (body, digest) = bytes.split_at(bytes.len() - DIGEST);
        if blake3::hash(body).as_bytes() != digest {
            return Err(CacheError::Damaged(block));
        }
        let word = |four: &[u8]| four.try_into().map_or(0, u32::from_le_bytes);
        let words = Arc::new(body.chunks_exact(4).map(word).collect::<Vec<u32>>());
        if state.recent.len() >= state.most
            && let Some(oldest) =
                state.recent.iter().min_by_key(|(_, (wanted, _))| *wanted).map(|(&block, _)| block)
        {
            state.recent.remove(&oldest);
        }
        state.recent.insert(block, (now, Arc::clone(&words)));
        Ok(words)
    }
}

/// Deals the rows of a table to piles on disk, and the piles to blocks: every order is as likely as every other, and a
/// pile is all that is ever in memory.
pub(crate) struct Dealer {
    place: PathBuf,
    piles: Vec<std::io::BufWriter<File>>,
    /// Words of a row in a pile: its number, its place among the rows, its columns.
    words: usize,
    rows: usize,
    seed: u64,
}

/// What dealing draws numbers for.
const PURPOSE: u64 = 32;
/// Bytes that wait for each pile.
const BUFFER: usize = 1 << 15;
/// Most piles: files that are open at a time.
const MOST_PILES: u64 = 400;

impl Dealer {
    /// For about so many bytes of rows with columns of so many words, of which a pile may hold `pile`.
    pub(crate) fn new(
        place: PathBuf,
        columns: usize,
        bytes: u64,
        pile: u64,
        seed: u64,
    ) -> Result<Self, CacheError> {
        let count = bytes.div_ceil(pile.max(1)).clamp(1, MOST_PILES);
        let open = |_| -> std::io::Result<std::io::BufWriter<File>> {
            let file = tempfile::tempfile_in(&place)?;
            Ok(std::io::BufWriter::with_capacity(BUFFER, file))
        };
        let piles = (0..count).map(open).collect::<std::io::Result<_>>()?;
        Ok(Self { place, piles, words: columns + 2, rows: 0, seed })
    }

    /// Takes in some rows: their numbers in the file, and their columns one after another.
    pub(crate) fn deal(
        &mut self,
        numbers: &[u32],
        columns: &[(usize, Vec<u32>)],
    ) -> Result<(), CacheError> {
        let index = self.rows as u64;
        let mut draws = lapwing_sample::Draws::of(self.seed, PURPOSE, 0, index);
        for (at, number) in numbers.iter().enumerate() {
            let pile = draws.below(self.piles.len() as u32) as usize;
            let pile = &mut self.piles[pile];
            pile.write_all(&number.to_le_bytes())?;
            pile.write_all(&((self.rows + at) as u32).to_le_bytes())?;
            for (width, words) in columns {
                for word in &words[at * width..(at + 1) * width] {
                    pile.write_all(&word.to_le_bytes())?;
                }
            }
        }
        self.rows += numbers.len();
        Ok(())
    }

    /// Deals the piles to blocks, of which so many bytes are to be kept in memory later on. Also returns which row of the
    /// table became which.
    pub(crate) fn finish(
        self,
        path: PathBuf,
        layouts: Vec<Layout>,
        recent: u64,
    ) -> Result<(Cache, Vec<u32>), CacheError> {
        let file = tempfile::tempfile_in(&self.place)?;
        let mut writer = BlockWriter {
            file: std::io::BufWriter::with_capacity(1 << 20, file),
            columns: vec![Vec::with_capacity(BLOCK); self.words - 1],
        };
        let mut order = Vec::with_capacity(self.rows);
        for (number, pile) in self.piles.into_iter().enumerate() {
            let mut pile = pile.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            pile.seek(SeekFrom::Start(0))?;
            let mut bytes = Vec::new();
            pile.read_to_end(&mut bytes)?;
            drop(pile);
            let size = 4 * self.words;
            let mut rows: Vec<u32> = (0..(bytes.len() / size) as u32).collect();
            let mut draws = lapwing_sample::Draws::of(self.seed, PURPOSE, 1, number as u64);
            draws.shuffle(&mut rows);
            for row in rows {
                let begin = row as usize * size;
                let word = |four: &[u8]| four.try_into().map_or(0, u32::from_le_bytes);
                let mut words = bytes[begin..begin + size].chunks_exact(4).map(word);
                let number = words.next().unwrap_or_default();
                order.push(words.next().unwrap_or_default());
                writer.push(number, words)?;
            }
        }
        writer.block()?;
        let file = writer.file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        Ok((Cache::of(file, path, self.rows, layouts, recent), order))
    }
}

/// Fills blocks.
struct BlockWriter {
    file: std::io::BufWriter<File>,
    columns: Vec<Vec<u32>>,
}

impl BlockWriter {
    fn push(&mut self, number: u32, words: impl Iterator<Item = u32>) -> std::io::Result<()> {
        let all = std::iter::once(number).chain(words);
        self.columns.iter_mut().zip(all).for_each(|(column, word)| column.push(word));
        if self.columns[0].len() == BLOCK { self.block() } else { Ok(()) }
    }

    fn block(&mut self) -> std::io::Result<()> {
        if self.columns[0].is_empty() {
            return Ok(());
        }
        let words = self.columns.iter().flatten();
        let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        self.file.write_all(&bytes)?;
        self.file.write_all(blake3::hash(&bytes).as_bytes())?;
        self.columns.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

/// The rows of a table on disk as samples.
pub(crate) struct CachedRows<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) input: &'a Input,
}

impl CachedRows<'_> {
    fn with<T>(
        &self,
        rows: &[u32],
        use_them: impl FnOnce(&dyn Samples, &[u32]) -> Result<T, SampleError>,
    ) -> Result<T, SampleError> {
        self.check_rows(rows)?;
        let row = rows.first().copied().unwrap_or_default();
        let table = self.cache.table(rows);
        let table = table.map_err(|error| SampleError::Unreadable { row, reason: error.into() })?;
        let bound = self.input.bind(&table);
        let bound = bound.map_err(|error| SampleError::Unreadable { row, reason: error.into() })?;
        let places: Vec<u32> = (0..rows.len() as u32).collect();
        use_them(&*bound, &places)
    }
}

impl Samples for CachedRows<'_> {
    fn len(&self) -> usize {
        self.cache.len()
    }

    fn spec(&self) -> InputSpec {
        self.input.spec()
    }

    fn gather(&self, rows: &[u32], view: View) -> Result<Block, SampleError> {
        self.with(rows, |samples, places| samples.gather(places, view))
    }

    fn exhibit(&self, row: u32) -> Result<Exhibit, SampleError> {
        self.with(&[row], |samples, places| samples.exhibit(places[0]))
    }

    fn blocks(&self) -> Option<Blocks> {
        let state = self.cache.state.lock().unwrap_or_else(PoisonError::into_inner);
        // All blocks whose rows are mixed stay in memory, and there is room for the first ones of the next.
        Some(Blocks { rows: BLOCK, together: (state.most * 3 / 4).clamp(1, MOST_TOGETHER) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Storage;
    use crate::table::LayoutKind;

    fn layouts() -> Vec<Layout> {
        let numbers = LayoutKind::Numbers { storage: Storage::default(), is_date: false };
        let vectors = LayoutKind::Vectors { width: 2 };
        let layout = |name: &str, kind| Layout { name: name.to_owned(), kind };
        vec![layout("a", numbers), layout("b", vectors)]
    }

    fn dealt(rows: u32, pile: u64, seed: u64) -> (Cache, Vec<u32>) {
        let place = tempfile::tempdir().unwrap();
        let bytes = u64::from(rows) * 20;
        let mut dealer = Dealer::new(place.path().to_owned(), 3, bytes, pile, seed).unwrap();
        for chunk in (0..rows).collect::<Vec<u32>>().chunks(1000) {
            let numbers: Vec<u32> = chunk.iter().map(|row| row + 1).collect();
            let a = chunk.iter().map(|&row| (row as f32).to_bits()).collect();
            let of_row = |&row: &u32| [row as f32 + 0.25, row as f32 + 0.5].map(f32::to_bits);
            let b = chunk.iter().flat_map(of_row).collect();
            dealer.deal(&numbers, &[(1, a), (2, b)]).unwrap();
        }
        dealer.finish("table.csv".into(), layouts(), 1 << 16).unwrap()
    }

    #[test]
    fn every_row_is_dealt_once_with_its_columns_and_in_another_order() {
        let (cache, order) = dealt(10_000, 30_000, 3);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..10_000).collect::<Vec<u32>>());
        let rows: Vec<u32> = vec![9_999, 0, 4_095, 4_096, 8_191, 8_192, 77];
        let table = cache.table(&rows).unwrap();
        let (a, b) = (table.column("a").unwrap(), table.column("b").unwrap());
        for (at, &row) in rows.iter().enumerate() {
            let before = order[row as usize];
            assert_eq!(table.row_number(at as u32), u64::from(before) + 1);
            assert_eq!(cache.number(row).unwrap(), before + 1);
            assert_eq!(a.display(at as u32), before.to_string());
            assert!(b.display(at as u32).contains(&format!("{before}.25")), "{}", b.display(0));
        }
        // A table that is sorted by source is not sorted any more: neighbours come from everywhere.
        let near = order.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 1_000).count();
        assert!((1_500..2_500).contains(&near), "{near}");
        assert_eq!(dealt(10_000, 30_000, 3).1, order);
        assert_ne!(dealt(10_000, 30_000, 4).1, order);
    }

    #[test]
    fn a_damaged_block_is_an_error_that_says_which() {
        let (cache, _) = dealt(9_000, 1 << 20, 1);
        {
            let mut state = cache.state.lock().unwrap();
            let place = cache.begin(1) + 100;
            state.file.seek(SeekFrom::Start(place)).unwrap();
            state.file.write_all(&[0xFF; 3]).unwrap();
        }
        assert!(cache.table(&[0, 8_500]).is_ok());
        assert!(matches!(cache.table(&[5_000]), Err(CacheError::Damaged(1))));
    }
}
