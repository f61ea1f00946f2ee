//! What the targets share.

use std::path::{Path, PathBuf};

use lapwing_data::{
    Compression, DataError, Dataset, Encoder, EncoderConfig, NewData, NewDataOptions, ReadOptions,
    Split, SplitConfig, TableFile, rewrite, rewrite_parquet,
};
use tempfile::TempDir;

/// A directory with one file in it.
pub fn file(name: &str, bytes: &[u8]) -> Option<(TempDir, PathBuf)> {
    let directory = tempfile::tempdir().ok()?;
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).ok()?;
    Some((directory, path))
}

/// A table through everything that reads tables, with its first column as source and its last as target.
pub fn read_table(path: &Path) -> Result<(), DataError> {
    let file = TableFile::open(path)?;
    let (Some(source), Some(target)) = (file.columns().first(), file.columns().last()) else {
        return Ok(());
    };
    if file.delimiter().is_some() {
        let mut copy = Vec::new();
        let _ = rewrite(&file, &mut copy, Compression::None, |_, _| Ok::<(), DataError>(()));
    }
    if file.is_parquet() {
        let changing = [file.columns().len() - 1];
        let mut copy = Vec::new();
        let _ = rewrite_parquet(&file, &changing, &mut copy, |_, _| Ok::<(), DataError>(()));
    }
    let dataset = Dataset::read(path, &ReadOptions::new(target, source))?;
    assert_eq!(dataset.target.len(), dataset.len());
    assert_eq!(dataset.sources.codes.len(), dataset.len());
    let Ok(split) = Split::new(&dataset.target, &SplitConfig::default()) else { return Ok(()) };
    let encoder = Encoder::fit(&dataset, &split.train, &EncoderConfig::default());
    assert_eq!(encoder.feature_names().len(), encoder.width());
    // What was trained on can be read again as new data.
    let options = NewDataOptions { target: true, group: Some(source.clone()) };
    let new = NewData::read(path, encoder.schema(), &options)?;
    // Rows without a source are not trained on, and may have classes of their own.
    let whole = new.table.len() == dataset.len();
    assert!(!whole || new.unseen_classes.is_empty(), "a class of the same table is new");
    assert!(new.table.len() >= dataset.len());
    encoder.bind(&new.table)?;
    encoder.unseen(&new.table);
    Ok(())
}

/// `base` with the edits that the bytes stand for: a place (three bytes), what to do there, and a byte for it.
///
/// Formats with checksums and lengths are hardly ever met by bytes from nowhere; edits of a valid file go deep.
pub fn edited(base: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for edit in edits.chunks_exact(5) {
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], 0]) as usize % (bytes.len() + 1);
        let count = usize::from(edit[4]).min(bytes.len() - at);
        match edit[3] % 8 {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..at + count)),
            2 | 3 => bytes.insert(at, edit[4]),
            4 => {
                let copy = bytes[at..at + count].to_vec();
                bytes.splice(at..at, copy);
            }
            _ if at < bytes.len() => bytes[at] = edit[4],
            _ => {}
        }
    }
    bytes
}

/// A small table with every kind of column.
pub const TABLE: &str = "\
a,b,day,flag,ward,ill
0.1,x,2024-01-01,True,w1,yes
0.9,y,2024-01-02,False,w2,no
0.4,x,2024-01-03,True,w1,no
0.5,,2024-01-04,True,w2,yes
,y,2024-01-05,False,w3,yes
0.7,x,2024-01-06,True,w3,no
0.2,x,2024-01-07,False,w1,yes
0.8,z,2024-01-08,True,w2,no
0.3,y,2024-01-09,False,w3,yes
0.6,x,2024-01-10,True,w1,no
";
