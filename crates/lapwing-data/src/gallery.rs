//! The pictures of a column: in memory, or in their files where they would take too much of it.
//!
//! Every picture is decoded once when a table is read, so that a broken one is known before anything is trained. Where
//! all of them together are larger than a limit, only their paths are kept, and the pictures of a batch are decoded
//! again, by several threads, while the batch before it trains.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

use crate::error::{DataError, Place};
use crate::file::{Record, TableFile};
use crate::picture::{self, PictureError, SIDES, numbers};
use crate::survey::Places;
use crate::value::Lexicon;

/// Pictures that are decoded together, by several threads.
const TOGETHER: usize = 64;
/// Most bytes of pixels that are held unless another limit is given.
const MOST_HELD: u64 = 1 << 30;
/// Pictures whose size is looked at to choose that of all.
const LOOKED_AT: u64 = 256;

/// Pictures of equal size.
#[derive(Debug, Clone)]
pub(crate) struct Gallery {
    folder: PathBuf,
    paths: Vec<Box<str>>,
    /// By which pictures that are read again are known.
    digests: Vec<u64>,
    side: usize,
    /// Of all pictures, or of none.
    pixels: Option<Vec<u8>>,
    most_held: u64,
}

impl Gallery {
    /// None yet, of that side; 0 stands for the least one.
    pub(crate) fn new(side: usize) -> Self {
        let side = if side == 0 { SIDES[0] } else { side };
        let (folder, paths, digests) = (PathBuf::new(), Vec::new(), Vec::new());
        Self { folder, paths, digests, side, pixels: Some(Vec::new()), most_held: MOST_HELD }
    }

    /// Pixels of a side.
    pub(crate) fn side(&self) -> usize {
        self.side
    }

    /// Bytes of all pixels, and whether they are in memory.
    pub(crate) fn size(&self) -> (u64, bool) {
        (numbers(self.side) as u64 * self.paths.len() as u64, self.pixels.is_some())
    }

    pub(crate) fn path(&self, row: u32) -> &str {
        self.paths.get(row as usize).map_or("", |path| path)
    }

    /// The pixels of some rows, one picture after another, red, green and blue of each pixel; or a row whose picture cannot
    /// be read any more, or is another one.
    pub(crate) fn gather(&self, rows: &[u32]) -> Result<Vec<u8>, (u32, PictureError)> {
        let size = numbers(self.side);
        if let Some(pixels) = &self.pixels {
            let picture = |&row: &u32| &pixels[size * row as usize..][..size];
            return Ok(rows.iter().flat_map(picture).copied().collect());
        }
        let mut pixels = vec![0; size * rows.len()];
        let paths: Vec<Option<&str>> = rows.iter().map(|&row| Some(self.path(row))).collect();
        let failed = picture::read_all(&self.folder, &paths, self.side, &mut pixels);
        if let Some((at, error)) = failed.into_iter().next() {
            return Err((rows[at], error));
        }
        let mut read = rows.iter().zip(pixels.chunks_exact(size));
        match read.find(|(row, picture)| digest(picture) != self.digests[**row as usize]) {
            None => Ok(pixels),
            Some((&row, _)) => {
                Err((row, PictureError::Replaced { path: self.path(row).to_owned() }))
            }
        }
    }

    fn extend(
        &mut self,
        column: &str,
        waiting: &mut Vec<(Option<String>, Place)>,
    ) -> Result<(), DataError> {
        let Some((_, first)) = waiting.first() else { return Ok(()) };
        self.folder = folder_of(&first.path);
        let mut read = vec![0; numbers(self.side) * waiting.len()];
        let paths: Vec<Option<&str>> = waiting.iter().map(|(path, _)| path.as_deref()).collect();
        let failed = picture::read_all(&self.folder, &paths, self.side, &mut read);
        if let Some((at, source)) = failed.into_iter().next() {
            let place = waiting[at].1.clone();
            return Err(DataError::Picture { place, column: column.to_owned(), source });
        }
        self.digests.extend(read.chunks_exact(numbers(self.side)).map(digest));
        self.paths.extend(waiting.drain(..).filter_map(|(path, _)| path).map(Box::from));
        if numbers(self.side) as u64 * self.paths.len() as u64 > self.most_held {
            self.pixels = None;
        }
        if let Some(pixels) = &mut self.pixels {
            pixels.extend(read);
        }
        Ok(())
    }
}

/// What a picture is known by as long as the program runs.
fn digest(pixels: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(pixels);
    hasher.finish()
}

/// Fills a gallery record by record.
#[derive(Debug)]
pub(crate) struct GalleryBuilder {
    column: String,
    gallery: Gallery,
    /// Pictures that are yet to be read.
    waiting: Vec<(Option<String>, Place)>,
}

impl GalleryBuilder {
    /// For a column of pictures of that side.
    pub(crate) fn new(column: &str, side: usize) -> Self {
        Self { column: column.to_owned(), gallery: Gallery::new(side), waiting: Vec::new() }
    }

    /// Holds at most so many bytes of pixels.
    pub(crate) fn holding(mut self, most_held: u64) -> Self {
        self.gallery.most_held = most_held;
        self
    }

    pub(crate) fn push(
        &mut self,
        path: Option<String>,
        record: &Record<'_>,
    ) -> Result<(), DataError> {
        self.waiting.push((path, record.place()));
        if self.waiting.len() == TOGETHER {
            self.gallery.extend(&self.column, &mut self.waiting)?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Gallery, DataError> {
        self.gallery.extend(&self.column, &mut self.waiting)?;
        self.gallery.paths.shrink_to_fit();
        self.gallery.digests.shrink_to_fit();
        self.gallery.pixels.iter_mut().for_each(Vec::shrink_to_fit);
        Ok(self.gallery)
    }
}

/// What the paths of a table are relative to: a folder of pictures is its own table.
fn folder_of(table: &Path) -> PathBuf {
    match table.is_dir() {
        true => table.to_owned(),
        false => table.parent().unwrap_or(Path::new("")).to_owned(),
    }
}

/// The side for the pictures of a column: the largest of [`SIDES`] that the shorter side of half of the pictures has, by a
/// few of them from all over the table. Who cannot be read is not asked; reading them will tell.
pub(crate) fn usual_side(
    file: &TableFile,
    places: &Places,
    lexicon: &Lexicon,
    column: usize,
    rows: u64,
) -> Result<usize, DataError> {
    let folder = folder_of(file.path());
    let (every, mut kept, mut buffer) = (rows.div_ceil(LOOKED_AT).max(1), 0, String::new());
    let mut sides = Vec::new();
    file.scan(|record| {
        if places.drops(lexicon, record).is_some() {
            return Ok(());
        }
        if kept % every == 0
            && let Some(path) = lexicon.text(record.value(column), &mut buffer)
            && let Some((width, height)) = picture::dimensions(&folder, path)
        {
            sides.push(width.min(height) as usize);
        }
        kept += 1;
        Ok::<(), DataError>(())
    })?;
    sides.sort_unstable();
    let middle = sides.get(sides.len() / 2).copied().unwrap_or(0);
    Ok(SIDES.into_iter().rev().find(|&side| side <= middle).unwrap_or(SIDES[0]))
}

/// Rows whose pictures cannot be read, the first of them with its reason, and the sources that have no others.
#[derive(Debug, Default)]
pub(crate) struct Unreadable {
    pub(crate) rows: BTreeSet<u64>,
    pub(crate) first: Option<String>,
    pub(crate) lost: Vec<String>,
}

/// Looks for pictures that cannot be read, for those who want to go on without them. That decodes all of them once more
/// than is needed where all of them are sound.
pub(crate) fn unreadable(
    file: &TableFile,
    places: &Places,
    lexicon: &Lexicon,
    column: usize,
) -> Result<Unreadable, DataError> {
    let folder = folder_of(file.path());
    let (mut found, mut buffer) = (Unreadable::default(), String::new());
    let mut waiting: Vec<(Option<String>, Place)> = Vec::new();
    let side = SIDES[0];
    let mut pixels = vec![0; numbers(side) * TOGETHER];
    let mut look = |waiting: &mut Vec<(Option<String>, Place)>, found: &mut Unreadable| {
        let paths: Vec<Option<&str>> = waiting.iter().map(|(path, _)| path.as_deref()).collect();
        let failed: Vec<(usize, PictureError)> =
            picture::read_all(&folder, &paths, side, &mut pixels[..numbers(side) * paths.len()]);
        for (at, error) in failed {
            let place = &waiting[at].1;
            found.rows.insert(place.row);
            found.first.get_or_insert_with(|| format!("{place}: {error}"));
        }
        waiting.clear();
    };
    file.scan(|record| {
        if places.drops(lexicon, record).is_some() {
            return Ok(());
        }
        let path = lexicon.text(record.value(column), &mut buffer).map(str::to_owned);
        waiting.push((path, record.place()));
        if waiting.len() == TOGETHER {
            look(&mut waiting, &mut found);
        }
        Ok::<(), DataError>(())
    })?;
    look(&mut waiting, &mut found);
    if !found.rows.is_empty() {
        found.lost = lost(file, places, lexicon, &found.rows)?;
    }
    Ok(found)
}

/// Sources all of whose rows are among some.
fn lost(
    file: &TableFile,
    places: &Places,
    lexicon: &Lexicon,
    rows: &BTreeSet<u64>,
) -> Result<Vec<String>, DataError> {
    let (mut sources, mut buffer) = (BTreeMap::new(), String::new());
    file.scan(|record| {
        if places.drops(lexicon, record).is_none()
            && let Some(source) = lexicon.text(record.value(places.source), &mut buffer)
        {
            let kept = !rows.contains(&record.row);
            *sources.entry(source.to_owned()).or_insert(false) |= kept;
        }
        Ok::<(), DataError>(())
    })?;
    Ok(sources.into_iter().filter(|(_, kept)| !kept).map(|(source, _)| source).collect())
}
