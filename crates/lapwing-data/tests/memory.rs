//! Memory, measured: alone in its process, because the peak is that of the whole process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{BufWriter, Write};

use lapwing_data::{DataError, Dataset, Encoder, EncoderConfig, ReadOptions, Split, SplitConfig};
use lapwing_sample::{Samples, View};
use tempfile::TempDir;

/// Largest resident size of this process so far, in bytes.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[test]
fn a_table_takes_less_than_twice_its_matrix_and_a_hostile_field_a_few_records() {
    const ROWS: usize = 100_000;
    const COLUMNS: usize = 20;
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t.csv");
    let mut out = BufWriter::new(File::create(&path).unwrap());
    let header: String = (0..COLUMNS).map(|column| format!("x{column},")).collect();
    writeln!(out, "{header}s,y").unwrap();
    for row in 0..ROWS {
        for column in 0..COLUMNS {
            write!(out, "{}.25,", row * 31 % (101 + column)).unwrap();
        }
        writeln!(out, "s{},{}", row % 7, row % 2).unwrap();
    }
    out.flush().unwrap();
    drop(out);

    let before = peak();
    let dataset = Dataset::read(&path, &ReadOptions::new("y", "s")).unwrap();
    let split = Split::new(&dataset.target, &SplitConfig::default()).unwrap();
    let encoder = Encoder::fit(&dataset, &split.train, &EncoderConfig::default());
    let rows = encoder.bind(&dataset.table).unwrap();
    for indices in split.train.chunks_exact(128) {
        rows.gather(indices, View::Plain).unwrap();
    }
    let used = peak() - before;
    let matrix = ROWS * COLUMNS * size_of::<f32>();
    assert!(used < 2 * matrix, "{used} bytes for a matrix of {matrix}");

    let mut out = File::create(&path).unwrap();
    out.write_all(b"x,s,y\n1,a,\"").unwrap();
    for _ in 0..200 {
        out.write_all(&vec![b'a'; 1 << 20]).unwrap();
    }
    let before = peak();
    let error = Dataset::read(&path, &ReadOptions::new("y", "s")).unwrap_err();
    assert!(matches!(error, DataError::RecordTooLong { .. }), "{error}");
    // The record so far, in a buffer that doubles.
    let used = peak() - before;
    assert!(used < 70 << 20, "{used} bytes for a field of 200 MiB");
}
