//! Memory of a table that is read part by part, measured: alone in its process, because the peak is that of the process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Read;

use lapwing_data::{DataError, Dataset, NewRows, ReadOptions};
use tempfile::TempDir;

/// Largest resident size of this process so far, in bytes.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// So many rows of text that nobody holds.
struct Rows {
    left: usize,
    line: Vec<u8>,
    at: usize,
}

impl Read for Rows {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            if self.at == self.line.len() {
                if self.left == 0 {
                    break;
                }
                self.left -= 1;
                self.line =
                    format!("{},{}.5,k{}\n", self.left, self.left % 97, self.left % 7).into();
                self.at = 0;
            }
            let many = (buffer.len() - filled).min(self.line.len() - self.at);
            buffer[filled..filled + many].copy_from_slice(&self.line[self.at..self.at + many]);
            (filled, self.at) = (filled + many, self.at + many);
        }
        Ok(filled)
    }
}

#[test]
fn ten_times_the_rows_take_no_more_memory() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t.csv");
    let text = (0..90).fold("a,b,kind,s,y\n".to_owned(), |text, i| {
        text + &format!("{i}.25,{},k{},s{},{}\n", i % 31, i % 7, i % 3, i % 2)
    });
    fs::write(&path, text).unwrap();
    let schema = Dataset::read(&path, &ReadOptions::new("y", "s")).unwrap().schema;
    let read = |rows: usize| {
        let stream = Rows { left: rows, line: b"a,b,kind\n".to_vec(), at: 0 };
        let table = NewRows::from_reader("rows", stream, &schema).unwrap();
        let mut next = 1;
        table
            .each_part(|part| {
                assert_eq!(part.first, next);
                next += part.table.len() as u64;
                Ok::<(), DataError>(())
            })
            .unwrap();
        assert_eq!(next, rows as u64 + 1);
    };
    read(60_000);
    let before = peak();
    read(600_000);
    let grown = peak() - before;
    // A value takes four bytes: all rows would take 7 MB.
    assert!(grown < 1 << 20, "{grown} bytes more");
}
