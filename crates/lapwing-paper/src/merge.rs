//! Records of several machines in one directory.

use std::path::Path;

use crate::error::PaperError;
use crate::record::{Record, files, read};

/// Takes the records below other directories of results into one, and says how many were new there. A cell that was run
/// twice must have come to the same, but for the time that it took; nothing is overwritten.
///
/// # Errors
/// Where a directory holds no records, a record cannot be read or written, or two of one cell differ.
pub fn merge(out: &Path, others: &[impl AsRef<Path>]) -> Result<usize, PaperError> {
    let mut new = 0;
    for other in others.iter().map(AsRef::as_ref) {
        let root = other.join("records");
        if !root.is_dir() {
            let why = format!("{} is no directory of results: it has no records", other.display());
            return Err(PaperError::Usage(why));
        }
        for experiment in folders(&root)? {
            for form in folders(&root.join(&experiment))? {
                for path in files(&root.join(&experiment).join(&form))? {
                    let Some(name) = path.file_name() else { continue };
                    let place = out.join("records").join(&experiment).join(&form).join(name);
                    new += usize::from(take(&path, &place)?);
                }
            }
        }
    }
    Ok(new)
}

/// Takes one record to its place; whether there was none.
fn take(path: &Path, place: &Path) -> Result<bool, PaperError> {
    let record = read(path)?;
    if place.exists() {
        let timeless = |mut record: Record| {
            record.seconds = 0.0;
            record
        };
        if timeless(read(place)?) != timeless(record) {
            let (here, there) = (place.display(), path.display());
            let why =
                format!("{here} and {there} are of one cell and differ: remove the wrong one");
            return Err(PaperError::Usage(why));
        }
        return Ok(false);
    }
    let failed = |error| PaperError::File { path: place.to_owned(), error };
    if let Some(parent) = place.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    let bytes =
        std::fs::read(path).map_err(|error| PaperError::File { path: path.to_owned(), error })?;
    lapwing_store::replace(place, &[&bytes])?;
    Ok(true)
}

/// The names of the folders in a folder, in order.
fn folders(path: &Path) -> Result<Vec<std::ffi::OsString>, PaperError> {
    let failed = |error| PaperError::File { path: path.to_owned(), error };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_dir() {
            names.push(entry.file_name());
        }
    }
    names.sort();
    Ok(names)
}
