//! Files that are either the old one or the new one, whole, whatever happens in between.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Writes `parts` to `path`: a temporary file in the same directory, flushed to disk, renamed over the old one, and the
/// directory flushed so that the new name survives a power cut. Promises nothing about a disk that lies about flushing.
pub fn replace(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    write_beside(path, parts)?.persist(path).map_err(|failed| failed.error)?;
    flush_directory(path)
}

/// The first half of [`replace`]: the bytes are on disk under a temporary name, which goes away if not persisted.
pub(crate) fn write_beside(path: &Path, parts: &[&[u8]]) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    // Temporary files are private by default; the user's mask decides about files that stay.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.prefix(".lapwing-").tempfile_in(directory(path))?;
    for part in parts {
        file.write_all(part)?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}

/// The second half of [`replace`], after renaming.
pub(crate) fn flush_directory(path: &Path) -> io::Result<()> {
    // Other systems cannot open a directory as a file, and flush names by themselves.
    if cfg!(unix) { File::open(directory(path))?.sync_all() } else { Ok(()) }
}

fn directory(path: &Path) -> &Path {
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
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        replace(&path, &[b"old"]).unwrap();
        replace(&path, &[b"new ", b"bytes"]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new bytes");
        drop(write_beside(&path, &[b"abandoned"]).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"new bytes");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(replace(&dir.path().join("missing/file"), &[b""]).is_err());
    }
}
