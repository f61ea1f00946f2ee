//! Finding the files of a data set, and telling the official ones from others.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::PaperError;

/// An official file, as its authors hand it out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Official {
    /// The data set.
    pub(crate) set: &'static str,
    /// The name of the file, without `.gz`.
    pub(crate) file: &'static str,
    /// The folders it is looked for in, below the directory of the data sets.
    pub(crate) folders: &'static [&'static str],
    /// Where it comes from.
    pub(crate) page: &'static str,
    /// Its size in bytes, unpacked, where that is known; otherwise the most that is read.
    pub(crate) bytes: Size,
    /// Its SHA-256, unpacked, where that is known.
    pub(crate) sha256: Option<&'static str>,
}

/// How much of a file is expected.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Size {
    /// Exactly so many bytes.
    Exactly(u64),
    /// No more than so many.
    AtMost(u64),
}

impl Size {
    fn most(self) -> u64 {
        let (Size::Exactly(bytes) | Size::AtMost(bytes)) = self;
        bytes
    }
}

/// A directory that holds data sets in their official layouts.
#[derive(Clone, Debug)]
pub struct DataDir {
    root: Option<PathBuf>,
    official_only: bool,
}

impl DataDir {
    /// The directory; none where only experiments without files are run.
    pub fn new(root: Option<PathBuf>) -> Self {
        Self { root, official_only: true }
    }

    /// A directory whose files have the official layouts but other contents, such as a few made-up images for a test:
    /// sizes and checksums are not compared.
    pub fn of_other_files(root: PathBuf) -> Self {
        Self { root: Some(root), official_only: false }
    }

    /// Whether only the official files will do.
    pub(crate) fn is_official(&self) -> bool {
        self.official_only
    }

    /// Whether a file is there, packed or not.
    pub(crate) fn has(&self, official: &Official) -> bool {
        self.root.as_deref().is_some_and(|root| find(root, official).is_some())
    }

    /// The folder of a data set that is many files: the first of `folders` that holds `file`.
    pub(crate) fn folder(
        &self,
        set: &'static str,
        file: &'static str,
        folders: &[&str],
        page: &'static str,
    ) -> Result<PathBuf, PaperError> {
        let root = self.root.as_deref().ok_or(PaperError::NoDataDirectory { set, page })?;
        let looked: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
        match looked.iter().find(|folder| folder.join(file).exists()) {
            Some(found) => Ok(found.clone()),
            None => Err(PaperError::MissingFile { set, file, looked, page }),
        }
    }

    /// Reads a file whole, unpacked, without checking what is in it.
    pub(crate) fn read(&self, official: &'static Official) -> Result<Found, PaperError> {
        let Official { set, file, page, .. } = *official;
        let root = self.root.as_deref().ok_or(PaperError::NoDataDirectory { set, page })?;
        let path = find(root, official).ok_or_else(|| {
            let looked = official.folders.iter().map(|folder| root.join(folder)).collect();
            PaperError::MissingFile { set, file, looked, page }
        })?;
        let mut found = Found { path, bytes: Vec::new(), official };
        let packed = found.path.extension().is_some_and(|extension| extension == "gz");
        let most = official.bytes.most();
        let failed = |error| PaperError::File { path: found.path.clone(), error };
        let input = File::open(&found.path).map_err(failed)?;
        // One byte more than there may be shows that there is too much, whatever a packed file claims.
        let mut input: Box<dyn Read> = match packed {
            true => Box::new(flate2::read::MultiGzDecoder::new(input).take(most + 1)),
            false => Box::new(input.take(most + 1)),
        };
        let mut bytes = Vec::new();
        match input.read_to_end(&mut bytes) {
            Ok(_) => found.bytes = bytes,
            Err(error) if packed => return Err(found.refused(format!("cannot unpack ({error})"))),
            Err(error) => return Err(failed(error)),
        }
        if found.bytes.len() as u64 > most {
            let problem = format!("more than the {most} bytes expected");
            return Err(found.refused(problem));
        }
        Ok(found)
    }

    /// Compares size and checksum with those of the official file.
    pub(crate) fn verify(&self, found: &Found) -> Result<(), PaperError> {
        if !self.official_only {
            return Ok(());
        }
        let length = found.bytes.len() as u64;
        if let Size::Exactly(bytes) = found.official.bytes
            && bytes != length
        {
            return Err(found.refused(format!("{length} bytes unpacked, expected {bytes}")));
        }
        let Some(expected) = found.official.sha256 else { return Ok(()) };
        let sum: String =
            Sha256::digest(&found.bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if sum != expected {
            return Err(found.refused(format!(
                "the SHA-256 of its contents is {sum}, that of the official file {expected}"
            )));
        }
        Ok(())
    }
}

/// A file that was found and read.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// Its contents, unpacked.
    pub(crate) bytes: Vec<u8>,
    official: &'static Official,
}

impl Found {
    /// The error that names the file and the official one.
    pub(crate) fn refused(&self, problem: impl Into<String>) -> PaperError {
        let Official { set, file, page, .. } = *self.official;
        PaperError::WrongFile { path: self.path.clone(), problem: problem.into(), set, file, page }
    }
}

fn find(root: &Path, official: &Official) -> Option<PathBuf> {
    let names = [official.file.to_owned(), format!("{}.gz", official.file)];
    official
        .folders
        .iter()
        .flat_map(|folder| names.iter().map(move |name| root.join(folder).join(name)))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    static TINY: Official = Official {
        set: "Tiny",
        file: "tiny.bin",
        folders: &["tiny", "."],
        page: "https://example.org/tiny",
        bytes: Size::Exactly(3),
        // printf abc | sha256sum
        sha256: Some("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    };

    fn directory(name: &str, bytes: &[u8]) -> (tempfile::TempDir, DataDir) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(name), bytes).unwrap();
        let data = DataDir::new(Some(dir.path().to_owned()));
        (dir, data)
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gz.write_all(bytes).unwrap();
        gz.finish().unwrap()
    }

    #[test]
    fn a_file_is_read_packed_or_not_and_its_checksum_is_that_of_its_contents() {
        for (name, bytes) in [("tiny.bin", b"abc".to_vec()), ("tiny.bin.gz", packed(b"abc"))] {
            let (_dir, data) = directory(name, &bytes);
            let found = data.read(&TINY).unwrap();
            assert_eq!(found.bytes, b"abc");
            data.verify(&found).unwrap();
        }
    }

    #[test]
    fn what_is_missing_is_named_with_where_it_comes_from() {
        let said = DataDir::new(None).read(&TINY).unwrap_err().to_string();
        assert!(said.contains("LAPWING_DATA") && said.contains("example.org"), "{said}");
        let (_dir, data) = directory("other.bin", b"");
        let said = data.read(&TINY).unwrap_err().to_string();
        assert!(said.contains("tiny.bin") && said.contains("example.org"), "{said}");
    }

    #[test]
    fn wrong_sums_sizes_and_archives_are_refused_by_name() {
        let refused = |name, bytes: &[u8]| {
            let (_dir, data) = directory(name, bytes);
            data.read(&TINY).and_then(|found| data.verify(&found)).expect_err("refused").to_string()
        };
        assert!(refused("tiny.bin", b"abd").contains("SHA-256"));
        assert!(refused("tiny.bin", b"ab").contains("2 bytes unpacked, expected 3"));
        assert!(refused("tiny.bin", b"abcd").contains("more than the 3 bytes"));
        // A thousand megabytes of zeros in a megabyte are not unpacked.
        assert!(refused("tiny.bin.gz", &packed(&vec![0; 1 << 20])).contains("more than"));
        assert!(refused("tiny.bin.gz", &packed(b"abc")[..12]).contains("cannot unpack"));
        assert!(refused("tiny.bin.gz", b"abc").contains("cannot unpack"));
        assert!(refused("tiny.bin", b"abd").contains("example.org"));
    }
}
