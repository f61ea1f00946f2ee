//! `run.json`: whose directory this is, what the run was started on, and, once it is finished, the digests of its
//! results.
//!
//! It is written first, without results, and last, with them. So a directory that has one is a run's, a run whose
//! manifest has results is finished, and a result that has another digest is not what the run wrote.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use lapwing_data::{DataError, TableFile};
use lapwing_store::StoreError;
use serde::{Deserialize, Serialize};

use crate::{RunError, Settings};

/// The file.
pub(crate) const RUN: &str = "run.json";
/// The version of a run directory and of everything in it that has none of its own.
const FORMAT: u32 = 1;
/// Largest manifest read; one has less than two kilobytes.
const LARGEST: u64 = 1 << 16;

/// What `run.json` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    format: u32,
    /// The version of the program that started the run.
    version: String,
    /// The kernels that it computes with; others round differently.
    pub(crate) kernels: String,
    /// The table.
    pub(crate) data: Input,
    /// The table to test on, where it is another one.
    pub(crate) test: Option<Input>,
    /// The BLAKE3 digest of each result, once there are results.
    results: Option<BTreeMap<String, String>>,
}

/// What a file was when the run was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    bytes: u64,
    blake3: String,
}

impl Input {
    /// Reads a whole file to know it again; of a folder of pictures its list, as training knows the pictures themselves.
    pub(crate) fn of(path: &Path) -> Result<Self, RunError> {
        let failed = |source| StoreError::File { path: path.to_owned(), source };
        let mut hasher = blake3::Hasher::new();
        if path.is_dir() {
            let folder = TableFile::open(path)?;
            folder.each_record(|_, record| {
                for cell in record {
                    hasher.update(&(cell.len() as u64).to_le_bytes()).update(cell.as_bytes());
                }
                Ok::<(), DataError>(())
            })?;
            return Ok(Self {
                bytes: hasher.count(),
                blake3: hasher.finalize().to_hex().to_string(),
            });
        }
        hasher.update_reader(File::open(path).map_err(failed)?).map_err(failed)?;
        Ok(Self { bytes: hasher.count(), blake3: hasher.finalize().to_hex().to_string() })
    }
}

impl Manifest {
    /// Of a run that starts.
    pub(crate) fn new(settings: &Settings) -> Result<Self, RunError> {
        Ok(Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kernels: kernels(settings),
            data: Input::of(settings.data()?)?,
            test: settings.test.as_deref().map(Input::of).transpose()?,
            results: None,
        })
    }

    /// Whether a directory has one, of this version or of another.
    pub(crate) fn is_in(directory: &Path) -> bool {
        /// What tells it from a file of that name that is somebody else's.
        #[derive(Deserialize)]
        struct Mark {
            #[serde(rename = "format")]
            _format: u32,
            #[serde(rename = "version")]
            _version: String,
            #[serde(rename = "kernels")]
            _kernels: String,
        }
        lapwing_store::read(&directory.join(RUN), LARGEST)
            .is_ok_and(|bytes| serde_json::from_slice::<Mark>(&bytes).is_ok())
    }

    /// That of a directory, if it has one.
    pub(crate) fn read(directory: &Path) -> Result<Option<Self>, RunError> {
        let path = directory.join(RUN);
        let bytes = match lapwing_store::read(&path, LARGEST) {
            Err(error) if error.is_missing() => return Ok(None),
            bytes => bytes?,
        };
        let damaged = |reason: String| RunError::Damaged { path: path.clone(), reason };
        /// What every version has.
        #[derive(Deserialize)]
        struct Versioned {
            format: u32,
        }
        let Versioned { format } =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if format != FORMAT {
            return Err(damaged(format!("format {format}, this program reads format {FORMAT}")));
        }
        serde_json::from_slice(&bytes).map(Some).map_err(|error| damaged(error.to_string()))
    }

    /// The bytes of the file.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, RunError> {
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| RunError::Damaged { path: RUN.into(), reason: error.to_string() })?;
        text.push(b'\n');
        Ok(text)
    }

    /// The same run, finished.
    pub(crate) fn finished<'a>(
        &self,
        results: impl IntoIterator<Item = (&'a str, blake3::Hash)>,
    ) -> Self {
        let digest =
            |(name, digest): (&str, blake3::Hash)| (name.to_owned(), digest.to_hex().to_string());
        Self { results: Some(results.into_iter().map(digest).collect()), ..self.clone() }
    }

    /// Whether there are results.
    pub(crate) fn is_finished(&self) -> bool {
        self.results.is_some()
    }

    /// Whether these are the bytes that the run wrote under a name.
    pub(crate) fn wrote(&self, name: &str, bytes: &[u8]) -> bool {
        let digest = self.results.as_ref().and_then(|results| results.get(name));
        digest.is_some_and(|digest| *digest == blake3::hash(bytes).to_hex().as_str())
    }
}

/// What a run computes with: the level of the kernels on a CPU, or the device.
pub(crate) fn kernels(settings: &Settings) -> String {
    match settings.device.as_deref().unwrap_or("cpu") {
        "cpu" => lapwing_train::kernels().to_owned(),
        device => device.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> (tempfile::TempDir, Manifest) {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("a.csv");
        std::fs::write(&data, "a,b\n").unwrap();
        let settings = Settings { data: Some(data), ..Settings::default() };
        (place, Manifest::new(&settings).unwrap())
    }

    #[test]
    fn what_is_written_is_read_back_and_another_format_is_refused_by_its_number() {
        let (place, manifest) = example();
        assert_eq!(Manifest::read(place.path()).unwrap(), None);
        let path = place.path().join(RUN);
        for manifest in [manifest.clone(), manifest.finished([("sources.csv", blake3::hash(b"x"))])]
        {
            std::fs::write(&path, manifest.encode().unwrap()).unwrap();
            assert_eq!(Manifest::read(place.path()).unwrap(), Some(manifest));
        }
        std::fs::write(&path, r#"{"format": 7, "version": "", "kernels": "", "more": []}"#)
            .unwrap();
        assert!(Manifest::is_in(place.path()), "another version is a run, too");
        let error = Manifest::read(place.path()).unwrap_err().to_string();
        assert!(error.contains("format 7, this program reads format 1"), "{error}");
        std::fs::write(&path, r#"{"format": 7}"#).unwrap();
        assert!(!Manifest::is_in(place.path()), "somebody else's file");
        std::fs::write(&path, "{}").unwrap();
        assert!(Manifest::read(place.path()).is_err());
    }

    #[test]
    fn a_result_is_known_by_its_bytes() {
        let (_place, manifest) = example();
        assert!(!manifest.is_finished() && !manifest.wrote("sources.csv", b"x"));
        let finished = manifest.finished([("sources.csv", blake3::hash(b"x"))]);
        assert!(finished.is_finished() && finished.wrote("sources.csv", b"x"));
        assert!(!finished.wrote("sources.csv", b"") && !finished.wrote("model.json", b"x"));
    }

    #[test]
    fn a_table_is_known_by_its_bytes() {
        let (place, manifest) = example();
        let data = place.path().join("a.csv");
        assert_eq!(Input::of(&data).unwrap(), manifest.data);
        std::fs::write(&data, "a,c\n").unwrap();
        assert_ne!(Input::of(&data).unwrap(), manifest.data);
    }
}
