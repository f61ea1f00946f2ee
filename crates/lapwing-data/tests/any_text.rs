//! Arbitrary text is read or refused, and what is read survives rewriting.
#![allow(clippy::unwrap_used)]

use std::fs;

use lapwing_data::{
    Compression, DataError, Dataset, Encoder, EncoderConfig, ReadOptions, Split, SplitConfig,
    TableFile, rewrite,
};
use lapwing_sample::{Samples, View};
use proptest::prelude::*;
use tempfile::TempDir;

/// Text made of the characters that matter to a parser of tables.
fn text() -> impl Strategy<Value = String> {
    let field = prop_oneof![
        2 => Just(String::new()),
        20 => "-?[0-9]{1,3}(\\.[0-9])?",
        20 => "[ab]",
        5 => "2024-0[1-9]-0[1-9]",
        5 => "\"[a,\n\r;é]{0,4}(\"\")?\"",
        // Rarely, or no text would be a table.
        1 => "[\"a ,;\t\r\n?é0-9.eE+-]{0,6}",
        1 => Just("inf".to_owned()),
        1 => Just("NA".to_owned()),
    ];
    prop::collection::vec(prop::collection::vec(field, 3), 0..40).prop_map(|rows| {
        let lines: Vec<String> = rows.iter().map(|fields| fields.join(",")).collect();
        format!("x,s,y\n{}\n", lines.join("\n"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_read_and_encoded_or_refused(text in text()) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("t.csv");
        fs::write(&path, text).unwrap();
        let Ok(dataset) = Dataset::read(&path, &ReadOptions::new("y", "s")) else { return Ok(()) };
        prop_assert_eq!(dataset.target.len(), dataset.len());
        prop_assert_eq!(dataset.sources.codes.len(), dataset.len());
        let split = Split::new(&dataset.target, &SplitConfig::default()).unwrap();
        let encoder = Encoder::fit(&dataset, &split.train, &EncoderConfig::default());
        let all: Vec<u32> = (0..dataset.len() as u32).collect();
        let rows = encoder.bind(&dataset.table).unwrap();
        let out = rows.gather(&all, View::Plain).unwrap().into_floats().unwrap();
        prop_assert_eq!(out.len(), all.len() * encoder.width());
        prop_assert!(out.iter().all(|value| value.abs() <= 10.0));
    }

    #[test]
    fn what_is_read_survives_rewriting(text in text()) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("t.csv");
        fs::write(&path, text).unwrap();
        let all: Vec<u64> = (1..200).collect();
        let Ok(file) = TableFile::open(&path) else { return Ok(()) };
        let Ok(before) = file.rows(&all) else { return Ok(()) };
        let mut copy = Vec::new();
        let rows = rewrite(&file, &mut copy, Compression::None, |_, _| Ok::<(), DataError>(())).unwrap();
        prop_assert_eq!(rows as usize, before.len());
        fs::write(&path, copy).unwrap();
        prop_assert_eq!(TableFile::open(&path).unwrap().rows(&all).unwrap(), before);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), start in 0..5_usize) {
        let starts: [&[u8]; 5] = [b"", b"x,s,y\n", b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd", b"PAR1"];
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("t.csv");
        fs::write(&path, [starts[start], &bytes].concat()).unwrap();
        // Any answer will do, as long as there is one.
        let _ = Dataset::read(&path, &ReadOptions::new("y", "s"));
    }
}
