//! Files that are either the old one or the new one, whole, whatever happens in between.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::{PREFIX, StoreError};

/// Writes `parts` to `path` as one [`AtomicFile`].
pub fn replace(path: &Path, parts: &[&[u8]]) -> Result<(), StoreError> {
    let mut file = AtomicFile::create(path)?;
    for part in parts {
        file.write_all(part).map_err(StoreError::file(path))?;
    }
    file.commit()
}

/// A file that appears under its name only when it is complete: it is written under another one in the same directory,
/// flushed to disk, renamed over the old one, and the directory is flushed so that the new name survives a power cut.
///
/// Dropped before [`commit`](Self::commit), it leaves nothing. Killed, it leaves a file whose name begins with
/// [`PREFIX`], which [`sweep`](crate::sweep) removes.
///
/// A link of that name is replaced, not followed: in a directory that somebody else made, it may lead anywhere. A pipe,
/// a device or a directory of that name is refused, as a rename would put a file in its place.
#[derive(Debug)]
pub struct AtomicFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl AtomicFile {
    /// Begins a file. What is at `path` stays until [`commit`](Self::commit).
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        if let Ok(found) = path.symlink_metadata()
            && !found.is_file()
            && !found.is_symlink()
        {
            return Err(StoreError::not_a_file(path, found.file_type()));
        }
        let mut builder = tempfile::Builder::new();
        // Temporary files are private by default; the user's mask decides about files that stay.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let directory = parent(path);
        let file = builder
            .prefix(PREFIX)
            .tempfile_in(directory)
            .map_err(StoreError::file(if directory.is_dir() { path } else { directory }))?;
        // Held as long as somebody writes, so that only what nobody writes any more is swept. Where there are no locks,
        // its age protects it.
        let _ = file.as_file().try_lock();
        Ok(Self { file: BufWriter::new(file), path: path.to_owned() })
    }

    /// Puts everything so far on disk, still under the temporary name: what can fail has then not failed.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.file
            .flush()
            .and_then(|()| self.file.get_ref().as_file().sync_all())
            .map_err(StoreError::file(&self.path))
    }

    /// Ends the file: it is there now, under its name and whole, or an error says why not.
    pub fn commit(mut self) -> Result<(), StoreError> {
        self.sync()?;
        let Self { file, path } = self;
        let failed = StoreError::file(&path);
        let file = match file.into_inner() {
            Ok(file) => file,
            Err(error) => return Err(failed(error.into_error())),
        };
        file.persist(&path).map_err(|error| failed(error.error))?;
        flush_names(parent(&path)).map_err(StoreError::file(&path))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Makes the names in a directory survive a power cut.
pub(crate) fn flush_names(directory: &Path) -> io::Result<()> {
    // Other systems cannot open a directory as a file, and flush names by themselves.
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// The directory of a file.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_is_left_behind() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        replace(&path, &[b"old"]).unwrap();
        replace(&path, &[b"new ", b"bytes"]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new bytes");
        let mut abandoned = AtomicFile::create(&path).unwrap();
        abandoned.write_all(b"abandoned").unwrap();
        abandoned.sync().unwrap();
        drop(abandoned);
        assert_eq!(std::fs::read(&path).unwrap(), b"new bytes");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
        let error = replace(&place.path().join("missing/file"), &[b""]).unwrap_err();
        assert!(error.to_string().contains("missing: "), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_stays() {
        let place = tempfile::tempdir().unwrap();
        let (link, target) = (place.path().join("link"), place.path().join("target"));
        std::fs::write(&target, "mine").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        replace(&link, &[b"new"]).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"mine");
        assert_eq!(std::fs::read(&link).unwrap(), b"new");
    }

    #[test]
    fn what_is_no_file_is_never_replaced_by_one() {
        let place = tempfile::tempdir().unwrap();
        let error = replace(place.path(), &[b""]).unwrap_err();
        assert!(error.to_string().ends_with("expected a file, found a directory"), "{error}");
        if cfg!(unix) {
            let error = replace(Path::new("/dev/null"), &[b""]).unwrap_err();
            assert!(error.to_string().ends_with("expected a file, found a device"), "{error}");
        }
    }
}
