//! What is written to disk, and how it is read back.
//!
//! Six things that every file and directory of the project needs, and nothing about what is in them:
//!
//! ```text
//! AtomicFile, replace    a file is the old one or the new one, whole, whatever happens in between
//! read                   no more bytes than a file of its kind can have, and from nothing but a file
//! DirectoryLock          one process at a time builds in a directory; the lock dies with the process
//! Successor              a directory of files is built beside the one it replaces, and takes its place when complete
//! sweep                  what a killed process left under a temporary name goes
//! Digested               the digest of a file that is never held whole
//! ```
//!
//! Names that begin with [`PREFIX`] belong to this crate. They are never results: whoever lists a directory passes over
//! them ([`is_ours`]).
//!
//! # What is not promised
//! - A disk that says it has written and has not can lose anything.
//! - On file systems without locks (some network file systems) nobody is kept out; everything else holds.
//! - A read is limited, not private: somebody who writes to the file meanwhile is read as it comes. Checksums, where a
//!   format has them, are the format's.

mod atomic;
mod digested;
mod error;
mod lock;
mod read;
mod successor;
mod sweep;

pub use atomic::{AtomicFile, replace};
pub use digested::Digested;
pub use error::StoreError;
pub use lock::DirectoryLock;
pub use read::read;
pub use successor::Successor;
pub use sweep::sweep;

/// How the names of files and directories begin that are not yet, or no longer, what they will be called.
pub const PREFIX: &str = ".lapwing-";

/// Whether a name is one of this crate's own.
pub fn is_ours(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}
