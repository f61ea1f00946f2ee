//! Reads that end.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::StoreError;

/// The bytes of a file of at most `limit` bytes. Links are followed; what they lead to must be a file: a device may have
/// no end, and to open a pipe may take for ever.
///
/// No more than `limit` bytes are held, whatever the file says of its size or becomes while it is read.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, StoreError> {
    let failed = || StoreError::file(path);
    let found = std::fs::metadata(path).map_err(failed())?;
    if !found.is_file() {
        return Err(StoreError::not_a_file(path, found.file_type()));
    }
    let too_large = || StoreError::TooLarge { path: path.to_owned(), limit };
    if found.len() > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(found.len() as usize);
    let file = File::open(path).map_err(failed())?;
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed())?;
    if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit_and_refused_above() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, [7; 10]).unwrap();
        assert_eq!(read(&path, 10).unwrap(), [7; 10]);
        assert!(matches!(read(&path, 9), Err(StoreError::TooLarge { limit: 9, .. })));
        assert!(read(&place.path().join("none"), 9).unwrap_err().is_missing());
    }

    #[test]
    fn a_sparse_file_of_terabytes_costs_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        File::create(&path).unwrap().set_len(1 << 42).unwrap();
        assert!(matches!(read(&path, 1 << 30), Err(StoreError::TooLarge { .. })));
    }

    #[test]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        assert!(matches!(read(place.path(), 9), Err(StoreError::NotAFile { .. })));
        #[cfg(unix)]
        {
            let link = place.path().join("link");
            std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
            assert!(matches!(read(&link, 9), Err(StoreError::NotAFile { found: "a device", .. })));
            let pipe = place.path().join("pipe");
            let made = std::process::Command::new("mkfifo").arg(&pipe).status();
            if made.is_ok_and(|made| made.success()) {
                assert!(matches!(
                    read(&pipe, 9),
                    Err(StoreError::NotAFile { found: "a pipe", .. })
                ));
            }
        }
    }
}
