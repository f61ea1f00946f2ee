//! One process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::{PREFIX, StoreError};

/// A directory that no other process builds in as long as this is held.
///
/// The lock is the system's, on a file of its own in the directory: it ends with the process, however that ends, so a
/// lock is never stale. The file goes when the lock is given back; one that stays after a kill means nothing.
#[derive(Debug)]
pub struct DirectoryLock {
    file: PathBuf,
    _held: File,
}

impl DirectoryLock {
    /// Takes the lock of a directory that exists, or says that somebody else has it.
    pub fn acquire(directory: &Path) -> Result<Self, StoreError> {
        let file = directory.join(format!("{PREFIX}lock"));
        loop {
            // To open a pipe of that name would wait for somebody who reads.
            if let Ok(found) = file.symlink_metadata()
                && !found.is_file()
            {
                return Err(StoreError::not_a_file(&file, found.file_type()));
            }
            let held = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&file)
                .map_err(StoreError::file(&file))?;
            match held.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    return Err(StoreError::Busy { path: directory.to_owned() });
                }
                // A file system without locks keeps nobody out.
                Err(TryLockError::Error(_)) => {}
                // Whoever had it before may have removed the file between our opening and our locking it: then the
                // name is free, or another's.
                Ok(()) if !is_still_there(&file, &held) => continue,
                Ok(()) => {}
            }
            return Ok(Self { file, _held: held });
        }
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Before the lock itself goes, with the file that holds it.
        let _ = std::fs::remove_file(&self.file);
    }
}

fn is_still_there(path: &Path, file: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let of = |found: &std::fs::Metadata| (found.dev(), found.ino());
        matches!((std::fs::metadata(path), file.metadata()), (Ok(a), Ok(b)) if of(&a) == of(&b))
    }
    // Elsewhere a file that is open cannot be removed.
    #[cfg(not(unix))]
    {
        let _ = (path, file);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_nothing_is_left() {
        let place = tempfile::tempdir().unwrap();
        let first = DirectoryLock::acquire(place.path()).unwrap();
        let second = DirectoryLock::acquire(place.path());
        assert!(matches!(second, Err(StoreError::Busy { .. })), "{second:?}");
        drop(first);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
        drop(DirectoryLock::acquire(place.path()).unwrap());
    }

    #[test]
    fn a_file_left_by_a_killed_process_keeps_nobody_out() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join(".lapwing-lock"), "").unwrap();
        DirectoryLock::acquire(place.path()).unwrap();
    }

    #[test]
    fn many_at_once_are_one_at_a_time() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let place = tempfile::tempdir().unwrap();
        let (inside, turns) = (AtomicUsize::new(0), AtomicUsize::new(0));
        // Everybody has as many turns as he likes, however long others were asleep while they held it.
        let turn = || loop {
            match DirectoryLock::acquire(place.path()) {
                Ok(lock) => break lock,
                Err(StoreError::Busy { .. }) => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _lock = turn();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        turns.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(turns.into_inner(), 400);
    }
}
