//! Checkpoints: everything a run needs to go on, in one file, written so that a crash at any moment loses at most the
//! work since the last one.
//!
//! ```text
//! checkpoint.safetensors = safetensors container ‖ BLAKE3 of the container (32 bytes)
//!   state                          U8    JSON: format, fingerprints, progress, state of learner and method
//!   learner.network.<parameter>    F32   parameters as of the last step
//!   learner.optimiser.<kind>.<n>   F32   running moments of parameter n
//!   method.<array>                 F32   what the method keeps, if anything
//!   method.<column>                U64   what it keeps of each source, or
//!                                  F64
//!   best.<parameter>               F32   parameters of the best epoch so far, if any
//!   bytes                          U8    what the observer gathered, if anything
//! ```
//!
//! Random numbers are a function of seed, epoch and step, so there is no state of a generator. The checksum is verified
//! before anything is parsed. The checkpoint before the last stays as `checkpoint.previous.safetensors`; a damaged last
//! one is set aside as `checkpoint.damaged.safetensors`, never deleted.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lapwing_core::{PeerError, Peers};
use lapwing_store::{AtomicFile, Digested, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::arrays::{Arrays, ArraysError, decode, encode, write};
use crate::error::TrainError;
use crate::method::MethodError;
use crate::saved::Saved;
use crate::train::Progress;

const FORMAT: u32 = 4;
const DIGEST: usize = 32;
/// Largest file read: parameters, moments and the best epoch of a network with a hundred million parameters.
const LARGEST: u64 = 1 << 32;
/// The last one, the one before, and a damaged last one that was set aside.
const NAMES: [&str; 3] =
    ["checkpoint.safetensors", "checkpoint.previous.safetensors", "checkpoint.damaged.safetensors"];

/// The JSON part.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    format: u32,
    fingerprint: Fingerprint,
    progress: Progress,
    parts: Value,
}

/// What data and settings a run is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    /// Of settings, rows, targets and sources.
    pub(crate) run: String,
    /// Of the features.
    pub(crate) features: String,
}

/// A run between two steps.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) progress: Progress,
    /// Learner, method, and the parameters of the best epoch so far.
    pub(crate) parts: Saved,
    pub(crate) observer: Vec<u8>,
}

/// Why a checkpoint cannot be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] StoreError),
    /// The file is shorter than a checksum, or its checksum is wrong.
    #[error("{}: damaged (its checksum does not fit)", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The container is wrong in spite of a right checksum.
    #[error("{}: {source}", path.display())]
    Arrays {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ArraysError,
    },
    /// The JSON part is wrong in spite of a right checksum.
    #[error("{}: {source}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Written by another version.
    #[error("{}: format {found}, this program reads format {FORMAT}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: String,
    },
}

/// A directory for the checkpoints of one run.
#[derive(Clone, Debug)]
pub struct CheckpointDir {
    directory: PathBuf,
}

/// What was found in a directory.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) checkpoint: Checkpoint,
    /// Why the last one was passed over for the one before.
    pub(crate) damaged: Option<CheckpointError>,
}

impl CheckpointDir {
    /// Uses `directory`, which is created with the first checkpoint.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Every file that it may hold.
    pub fn files(&self) -> [PathBuf; 3] {
        NAMES.map(|name| self.directory.join(name))
    }

    /// Removes the checkpoints, and the directory if nothing else is in it.
    pub fn clear(&self) -> Result<(), CheckpointError> {
        for path in self.files() {
            match std::fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::File { path, source }.into());
                }
                _ => {}
            }
        }
        // Fails where there are files of somebody else, and that is right.
        let _ = std::fs::remove_dir(&self.directory);
        Ok(())
    }

    pub(crate) fn save(&self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        let [last, previous, _] = self.files();
        let file = |source| StoreError::File { path: last.clone(), source };
        let arrays = checkpoint.arrays(&last)?;
        std::fs::create_dir_all(&self.directory).map_err(file)?;
        let mut container = Digested::new(AtomicFile::create(&last)?);
        write(&arrays, &mut container).map_err(|error| match error {
            ArraysError::Io(error) => file(error).into(),
            source => CheckpointError::Arrays { path: last.clone(), source },
        })?;
        let (mut written, digest) = container.finish();
        written.write_all(digest.as_bytes()).map_err(file)?;
        written.sync()?;
        // A crash between the two renames leaves the previous one, which load() takes.
        match std::fs::rename(&last, &previous) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file(error))?,
            _ => {}
        }
        Ok(written.commit()?)
    }

    /// The last checkpoint, or the one before if the last is damaged or missing; nothing if there is none; an error if
    /// there is one and none is usable.
    pub(crate) fn load(&self) -> Result<Option<Found>, CheckpointError> {
        let [last, previous, aside] = self.files();
        let damaged = match Checkpoint::read(&last) {
            Ok(Some(checkpoint)) => {
                return Ok(Some(Found { checkpoint, damaged: None }));
            }
            Ok(None) => None,
            Err(error @ (CheckpointError::File(_) | CheckpointError::Format { .. })) => {
                return Err(error);
            }
            Err(error) => Some(error),
        };
        match (Checkpoint::read(&previous), damaged) {
            (Ok(Some(checkpoint)), damaged) => {
                if damaged.is_some() {
                    // Otherwise the next save would put the damaged one in the place of the good one.
                    std::fs::rename(&last, &aside)
                        .map_err(|source| StoreError::File { path: aside, source })?;
                }
                Ok(Some(Found { checkpoint, damaged }))
            }
            (_, Some(damaged)) => Err(damaged),
            (Ok(None), None) => Ok(None),
            (Err(error), None) => Err(error),
        }
    }
}

/// What the first worker tells the others of its checkpoint.
const NONE: u8 = 0;
const FOUND: u8 = 1;
const FAILED: u8 = 2;

impl CheckpointDir {
    /// What the first worker finds, on all of them: the others read nothing.
    pub(crate) fn load_among(&self, peers: &dyn Peers) -> Result<Option<Found>, TrainError> {
        if peers.count() == 1 {
            return Ok(self.load()?);
        }
        if peers.rank() > 0 {
            let said = peers.gather(&[]).map_err(MethodError::from)?.swap_remove(0);
            let lost = |reason| MethodError::from(PeerError::Lost { rank: 0, reason });
            return match said.split_first() {
                Some((&NONE, _)) => Ok(None),
                Some((&FOUND, container)) => {
                    let checkpoint = Checkpoint::decode(container, &self.files()[0])?;
                    Ok(Some(Found { checkpoint, damaged: None }))
                }
                Some((_, reason)) => Err(lost(String::from_utf8_lossy(reason).into_owned()).into()),
                None => Err(lost("it said nothing of its checkpoint".to_owned()).into()),
            };
        }
        let found = self.load().and_then(|found| {
            let Some(Found { checkpoint, .. }) = &found else { return Ok((vec![NONE], found)) };
            let path = &self.files()[0];
            let container = encode(&checkpoint.arrays(path)?)
                .map_err(|source| CheckpointError::Arrays { path: path.clone(), source })?;
            Ok(([&[FOUND][..], &container].concat(), found))
        });
        let said = match &found {
            Ok((said, _)) => said.clone(),
            Err(error) => [&[FAILED][..], error.to_string().as_bytes()].concat(),
        };
        peers.gather(&said).map_err(MethodError::from)?;
        Ok(found.map(|(_, found)| found)?)
    }
}

impl Checkpoint {
    fn arrays(&self, path: &Path) -> Result<Arrays, CheckpointError> {
        let state = State {
            format: FORMAT,
            fingerprint: self.fingerprint.clone(),
            progress: self.progress.clone(),
            parts: self.parts.state.clone(),
        };
        let text = serde_json::to_string(&state)
            .map_err(|source| CheckpointError::State { path: path.to_owned(), source })?;
        let Saved { arrays: parameters, columns, .. } = self.parts.clone();
        Ok(Arrays { text, parameters, columns, bytes: self.observer.clone() })
    }

    fn read(path: &Path) -> Result<Option<Self>, CheckpointError> {
        let bytes = match lapwing_store::read(path, LARGEST) {
            Err(error) if error.is_missing() => return Ok(None),
            bytes => bytes?,
        };
        let Some((container, digest)) = bytes.split_last_chunk::<DIGEST>() else {
            return Err(CheckpointError::Damaged { path: path.to_owned() });
        };
        if blake3::hash(container) != *digest {
            return Err(CheckpointError::Damaged { path: path.to_owned() });
        }
        Self::decode(container, path).map(Some)
    }

    /// Reads a container whose checksum was right.
    fn decode(container: &[u8], path: &Path) -> Result<Self, CheckpointError> {
        let arrays = decode(container)
            .map_err(|source| CheckpointError::Arrays { path: path.to_owned(), source })?;
        let other = |found| CheckpointError::Format { path: path.to_owned(), found };
        if arrays.text.is_empty() {
            // It stood in the container's header before.
            return Err(other("3 or earlier".to_owned()));
        }
        let state: State = serde_json::from_str(&arrays.text)
            .map_err(|source| CheckpointError::State { path: path.to_owned(), source })?;
        if state.format != FORMAT {
            return Err(other(state.format.to_string()));
        }
        Ok(Self {
            fingerprint: state.fingerprint,
            progress: state.progress,
            parts: Saved { state: state.parts, arrays: arrays.parameters, columns: arrays.columns },
            observer: arrays.bytes,
        })
    }
}
