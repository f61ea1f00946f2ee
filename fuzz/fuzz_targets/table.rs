//! Any bytes as a table of text: an answer or an error, never a panic. `fuzz/run table -max_total_time=300`

#![no_main]

use lapwing_fuzz::{file, read_table};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some((_directory, path)) = file("t.csv", bytes) {
        let _ = read_table(&path);
    }
});
