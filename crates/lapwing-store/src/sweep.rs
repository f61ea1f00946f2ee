//! What a killed process leaves.

use std::path::Path;
use std::time::Duration;

use crate::is_ours;

/// Removes files that a killed process left in `directory` under their temporary names: those that nobody writes any
/// more and that are at least as old as `age`. The age is for those who share a directory without a
/// [lock](crate::DirectoryLock): a file that was made a moment ago may not be held yet.
///
/// Nothing is said of what cannot be removed: it does no harm.
pub fn sweep(directory: &Path, age: Duration) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(found) = entry.metadata() else { continue };
        let old = || {
            let age_of = found.modified().ok().and_then(|time| time.elapsed().ok());
            age.is_zero() || age_of.is_some_and(|found| found >= age)
        };
        if is_ours(&entry.file_name()) && found.is_file() && old() {
            let path = entry.path();
            let written = std::fs::File::open(&path).is_ok_and(|file| match file.try_lock() {
                Err(std::fs::TryLockError::WouldBlock) => true,
                Err(std::fs::TryLockError::Error(_)) => age.is_zero(),
                Ok(()) => false,
            });
            if !written {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AtomicFile, DirectoryLock};

    #[test]
    fn what_nobody_writes_any_more_goes_and_everything_else_stays() {
        let place = tempfile::tempdir().unwrap();
        let left = place.path().join(".lapwing-left");
        std::fs::write(&left, "half").unwrap();
        std::fs::write(place.path().join("result"), "").unwrap();
        std::fs::create_dir(place.path().join(".lapwing-next")).unwrap();
        let lock = DirectoryLock::acquire(place.path()).unwrap();
        let writing = AtomicFile::create(&place.path().join("other")).unwrap();
        sweep(place.path(), Duration::from_secs(60));
        assert!(left.exists(), "it may be about to be held");
        sweep(place.path(), Duration::ZERO);
        assert!(!left.exists());
        writing.commit().unwrap();
        drop(lock);
        let mut names: Vec<_> =
            std::fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".lapwing-next", "other", "result"]);
    }
}
