//! What can go wrong with a file or a directory.

use std::fs::FileType;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a file or a directory cannot be read, written or held.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something is there, and it is no file.
    #[error("{}: expected a file, found {found}", path.display())]
    NotAFile {
        /// Where.
        path: PathBuf,
        /// What.
        found: &'static str,
    },
    /// More bytes than a file of its kind can have.
    #[error("{}: larger than {limit} bytes, which no such file is", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// Another process builds in the directory.
    #[error("{}: another process is writing in this directory", path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
}

impl StoreError {
    /// Whether it is only that nothing is there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { path: path.to_owned(), source }
    }

    pub(crate) fn not_a_file(path: &Path, kind: FileType) -> Self {
        Self::NotAFile { path: path.to_owned(), found: word(kind) }
    }
}

fn word(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    match kind {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_symlink() => "a link",
        _ => "something else",
    }
}
