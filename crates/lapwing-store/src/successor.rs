//! Files that take the place of others all at once.
//!
//! ```text
//! run/            begin      run/                 complete    run/                    settle    run/
//!   a, b (old)    ─────▶       a, b (old)         ─────▶        a, b (old)            ─────▶      a, b (new)
//!   notes                      notes                            notes                             notes
//!                              .lapwing-next/                   .lapwing-complete/
//!                                a, b (growing)                   a, b (new)
//! ```
//!
//! The step in the middle is a single rename. Killed before it, the old files are there; killed after it, whoever opens
//! the directory next [settles](Successor::settle) it, which can be repeated. Files of other names are never touched.

use std::io;
use std::path::{Path, PathBuf};

use crate::atomic::flush_names;
use crate::{PREFIX, StoreError};

/// Files that are built beside those they replace.
#[derive(Clone, Debug)]
pub struct Successor {
    /// Whose files are to be replaced.
    directory: PathBuf,
}

impl Successor {
    /// The successor of some files in `directory`.
    pub fn of(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Where it is built.
    pub fn path(&self) -> PathBuf {
        self.directory.join(format!("{PREFIX}next"))
    }

    fn completed(&self) -> PathBuf {
        self.directory.join(format!("{PREFIX}complete"))
    }

    /// Whether one is being built, or was when its process ended.
    pub fn is_begun(&self) -> bool {
        self.path().is_dir()
    }

    /// Whether one is complete and has not taken its place yet: a process was killed while it settled.
    pub fn is_complete(&self) -> bool {
        self.completed().is_dir()
    }

    /// Begins anew, with nothing.
    pub fn begin(&self) -> Result<(), StoreError> {
        self.abandon()?;
        let path = self.path();
        std::fs::create_dir(&path).map_err(StoreError::file(&path))
    }

    /// Gives up what was built. The directory is of our own name and making, so that all in it is ours, too.
    pub fn abandon(&self) -> Result<(), StoreError> {
        remove(&self.path())
    }

    /// Says that it is complete, from which on there is no way back, and [settles](Self::settle) it.
    pub fn complete(&self, last: &[&str]) -> Result<(), StoreError> {
        let (path, completed) = (self.path(), self.completed());
        flush_names(&path).map_err(StoreError::file(&path))?;
        remove(&completed)?;
        std::fs::rename(&path, &completed).map_err(StoreError::file(&path))?;
        flush_names(&self.directory).map_err(StoreError::file(&self.directory))?;
        self.settle(last)
    }

    /// Puts the files of a complete successor in their places, those in `last` at the end and in that order, so that
    /// whoever reads meanwhile can tell. Directories in it were for building, and go. Without one it does nothing.
    pub fn settle(&self, last: &[&str]) -> Result<(), StoreError> {
        let completed = self.completed();
        if !completed.is_dir() {
            return Ok(());
        }
        let entries = std::fs::read_dir(&completed).map_err(StoreError::file(&completed))?;
        let names = entries.flatten().filter(|entry| entry.path().is_file());
        let first = names.map(|entry| entry.file_name());
        let first = first.filter(|name| last.iter().all(|last| name != last));
        for name in first.chain(last.iter().map(Into::into)) {
            let (from, to) = (completed.join(&name), self.directory.join(&name));
            match std::fs::rename(&from, &to) {
                // It has moved before.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                moved => moved.map_err(StoreError::file(&to))?,
            }
        }
        flush_names(&self.directory).map_err(StoreError::file(&self.directory))?;
        remove(&completed)
    }
}

fn remove(directory: &Path) -> Result<(), StoreError> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(StoreError::file(directory)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["a", "b"];
    const LAST: [&str; 1] = ["a"];

    fn old() -> (tempfile::TempDir, Successor) {
        let place = tempfile::tempdir().unwrap();
        for name in ["a", "b", "notes"] {
            std::fs::write(place.path().join(name), "old").unwrap();
        }
        let successor = Successor::of(place.path());
        successor.begin().unwrap();
        for name in NAMES {
            std::fs::write(successor.path().join(name), "new").unwrap();
        }
        std::fs::create_dir(successor.path().join("workshop")).unwrap();
        (place, successor)
    }

    fn contents(place: &Path) -> Vec<String> {
        ["a", "b", "notes"]
            .iter()
            .map(|n| std::fs::read_to_string(place.join(n)).unwrap())
            .collect()
    }

    #[test]
    fn the_old_files_stay_until_the_new_ones_are_complete() {
        let (place, successor) = old();
        assert!(successor.is_begun() && !successor.is_complete());
        assert_eq!(contents(place.path()), ["old", "old", "old"]);
        successor.complete(&LAST).unwrap();
        assert_eq!(contents(place.path()), ["new", "new", "old"]);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 3);
    }

    #[test]
    fn killed_between_any_two_renames_it_is_settled_by_the_next() {
        for moved in 0..=NAMES.len() {
            let (place, successor) = old();
            std::fs::rename(successor.path(), successor.completed()).unwrap();
            for name in &NAMES[..moved] {
                std::fs::rename(successor.completed().join(name), place.path().join(name)).unwrap();
            }
            assert!(successor.is_complete());
            successor.settle(&LAST).unwrap();
            assert_eq!(contents(place.path()), ["new", "new", "old"]);
            successor.settle(&LAST).unwrap();
            assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 3);
        }
    }

    #[test]
    fn given_up_it_leaves_the_old_files() {
        let (place, successor) = old();
        successor.abandon().unwrap();
        successor.abandon().unwrap();
        assert_eq!(contents(place.path()), ["old", "old", "old"]);
        assert!(!successor.is_begun());
    }
}
