//! Every kind of bad input is an error or a warning that says where and what.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use lapwing_data::{
    DataError, Dataset, Dropped, Encoder, EncoderConfig, Kind, NewData, NewDataOptions,
    ReadOptions, Targets, Task, UNSEEN_CLASS, Warning,
};
use parquet::arrow::ArrowWriter;
use tempfile::TempDir;

fn read_as(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Dataset, DataError> {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    Dataset::read(path, options)
}

fn read(text: &str) -> Result<Dataset, DataError> {
    read_as("t.csv", text.as_bytes(), &ReadOptions::new("y", "s"))
}

fn failure(text: &str) -> DataError {
    read(text).unwrap_err()
}

fn parquet_bytes() -> Vec<u8> {
    let numbers: ArrayRef =
        Arc::new(Float64Array::from_iter_values((0..500).map(|i| f64::from(i) / 7.0)));
    let names = |n: u32| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..500).map(|i| format!("v{}", i % n))))
    };
    let batch =
        RecordBatch::try_from_iter([("x", numbers), ("s", names(3)), ("y", names(2))]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn a_file_that_is_not_there() {
    let error = Dataset::read("no/such/file.csv", &ReadOptions::new("y", "s")).unwrap_err();
    assert!(matches!(&error, DataError::Open { .. }));
    assert!(error.to_string().contains("no/such/file.csv"));
}

#[test]
fn a_directory_in_place_of_a_file() {
    let dir = TempDir::new().unwrap();
    assert!(Dataset::read(dir.path(), &ReadOptions::new("y", "s")).is_err());
}

#[test]
fn an_empty_file() {
    for text in ["", "\n\n", "\u{feff}"] {
        assert!(matches!(failure(text), DataError::Empty { .. }), "{text:?}");
    }
}

#[test]
fn a_header_without_data() {
    assert!(matches!(failure("x,s,y\n"), DataError::HeaderOnly { .. }));
}

#[test]
fn a_missing_column_is_named_with_those_that_are_there() {
    let error = failure("x,who,y\n1,a,2\n");
    assert!(matches!(&error, DataError::MissingColumn { column, .. } if column == "s"));
    assert!(error.to_string().ends_with("has no column \"s\"; its columns are x, who, y"));
}

#[test]
fn a_column_named_in_an_option_has_to_exist() {
    let text = b"x,s,y\n1,a,2\n3,b,4\n";
    let base = ReadOptions::new("y", "s");
    for options in [
        ReadOptions { features: Some(vec!["z".into()]), ..base.clone() },
        ReadOptions { ignore: vec!["z".into()], ..base.clone() },
        ReadOptions { types: [("z".to_owned(), Kind::Numeric)].into(), ..base.clone() },
    ] {
        let error = read_as("t.csv", text, &options).unwrap_err();
        assert!(matches!(error, DataError::MissingColumn { column, .. } if column == "z"));
    }
}

#[test]
fn one_column_cannot_have_two_roles() {
    let text = b"x,s,y\n1,a,2\n3,b,4\n";
    let base = ReadOptions::new("y", "s");
    for options in [
        ReadOptions::new("y", "y"),
        ReadOptions { features: Some(vec!["y".into()]), ..base.clone() },
        ReadOptions { ignore: vec!["y".into()], ..base.clone() },
        ReadOptions { features: Some(vec!["x".into()]), ignore: vec!["x".into()], ..base.clone() },
    ] {
        let error = read_as("t.csv", text, &options).unwrap_err();
        assert!(matches!(error, DataError::RoleConflict { .. }), "{error}");
    }
}

#[test]
fn two_columns_of_the_same_name() {
    let error = failure("x,s,y,x\n1,a,2,3\n");
    assert!(
        matches!(error, DataError::DuplicateColumn { column, first: 1, second: 4, .. } if column == "x")
    );
}

#[test]
fn a_ragged_row() {
    for (text, found) in [("x,s,y\n1,a,2\n1,a\n", 2), ("x,s,y\n\"1\n1\",a,2\n1,a,2,3\n", 4)] {
        let error = failure(text);
        let line = if found == 2 { 3 } else { 4 };
        assert!(
            matches!(error, DataError::Ragged { line: at, expected: 3, found: n, .. } if at == line && n == found),
            "{error}"
        );
    }
}

#[test]
fn bytes_that_are_not_utf8_are_named_by_line_and_column() {
    let error =
        read_as("t.csv", b"x,s,y\n1,a,2\n1,caf\xe9,2\n", &ReadOptions::new("y", "s")).unwrap_err();
    assert!(
        matches!(&error, DataError::InvalidUtf8 { line: 3, column, .. } if column == "s"),
        "{error}"
    );
    let error = read_as("t.csv", b"x,\xff,y\n1,a,2\n", &ReadOptions::new("y", "s")).unwrap_err();
    assert!(
        matches!(&error, DataError::InvalidUtf8 { line: 1, column, .. } if column == "column 2"),
        "{error}"
    );
}

#[test]
fn an_unclosed_quote() {
    assert!(matches!(
        failure("x,s,y\n1,a,2\n1,a,\"2\n3,b,4\n"),
        DataError::UnclosedQuote { line: 3, .. }
    ));
    assert!(matches!(
        failure("x,s,y\n1,\"a,2\n3,\"b\",4\n"),
        DataError::TextAfterQuote { line: 3, opened: 2, .. }
    ));
}

#[test]
fn a_field_of_fifty_megabytes_is_refused_while_it_is_read() {
    let dir = TempDir::new().unwrap();
    for quoted in [true, false] {
        let path = dir.path().join("huge.csv");
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(if quoted { b"x,s,y\n1,a,2\n1,\"" } else { b"x,s,y\n1,a,2\n1," }).unwrap();
        for _ in 0..50 {
            file.write_all(&vec![b'a'; 1 << 20]).unwrap();
        }
        drop(file);
        let error = Dataset::read(&path, &ReadOptions::new("y", "s")).unwrap_err();
        assert!(
            matches!(&error, DataError::RecordTooLong { place, .. } if place.line == Some(3)),
            "{error}"
        );
    }
}

#[test]
fn a_header_of_a_million_columns_is_refused() {
    assert!(matches!(failure(&"a,".repeat(1_000_000)), DataError::TooManyColumns { line: 1, .. }));
}

#[test]
fn truncated_compression() {
    let text = (0..2000).fold("x,s,y\n".to_owned(), |text, i| {
        text + &format!("{},a{},{}\n", i * i % 977, i % 5, i % 2)
    });
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 3).unwrap();
    let options = ReadOptions::new("y", "s");
    for (name, bytes, format) in [("t.csv.gz", gzip, "gzip"), ("t.csv.zst", zstd, "zstd")] {
        assert_eq!(read_as(name, &bytes, &options).unwrap().len(), 2000);
        for keep in [bytes.len() - 1, bytes.len() - 9, bytes.len() / 2, 12, 5] {
            let error = read_as(name, &bytes[..keep], &options).unwrap_err();
            assert!(
                matches!(&error, DataError::Truncated { format: f, .. } if *f == format),
                "{name} {keep}: {error}"
            );
        }
        let mut damaged = bytes.clone();
        let middle = bytes.len() / 2;
        damaged[middle..middle + 8].fill(0xff);
        assert!(read_as(name, &damaged, &options).is_err());
    }
}

#[test]
fn truncated_or_damaged_parquet() {
    let bytes = parquet_bytes();
    let options = ReadOptions::new("y", "s");
    assert_eq!(read_as("t.parquet", &bytes, &options).unwrap().len(), 500);
    for keep in [bytes.len() - 1, bytes.len() / 2, 4] {
        let error = read_as("t.parquet", &bytes[..keep], &options).unwrap_err();
        assert!(
            matches!(
                error,
                DataError::Truncated { format: "Parquet", .. } | DataError::Damaged { .. }
            ),
            "{keep}: {error}"
        );
    }
    let error = read_as("t.parquet", b"x,s,y\n1,a,2\n", &options).unwrap_err();
    assert!(matches!(error, DataError::NotParquet { .. }) && error.to_string().contains(".csv"));
}

#[test]
fn a_parquet_file_without_its_dictionaries_was_a_panic() {
    let mut bytes = parquet_bytes();
    // The header of a page begins with its type, doubled: a dictionary (2) becomes an index (1).
    let dictionary = [0x15, 0x04, 0x15];
    let pages: Vec<usize> =
        (0..bytes.len() - 3).filter(|&at| bytes[at..at + 3] == dictionary).collect();
    assert!(!pages.is_empty());
    pages.into_iter().for_each(|page| bytes[page + 1] = 0x02);
    let error = read_as("t.parquet", &bytes, &ReadOptions::new("y", "s")).unwrap_err();
    assert!(matches!(error, DataError::Damaged { format: "Parquet", .. }), "{error}");
}

#[test]
fn no_flipped_byte_of_a_parquet_file_makes_the_reader_panic() {
    let bytes = parquet_bytes();
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t.parquet");
    // Numbers of the footer change their sign with their lowest bit: a column of negative length was a panic.
    let footer = (bytes.len() - 700..bytes.len()).map(|position| (position, 0));
    for (position, bit) in (0..bytes.len()).step_by(3).map(|at| (at, at % 8)).chain(footer) {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1 << bit;
        fs::write(&path, &damaged).unwrap();
        // Any answer will do, as long as there is one.
        let _ = Dataset::read(&path, &ReadOptions::new("y", "s"));
    }
}

#[test]
fn a_target_of_one_class() {
    let error = failure("x,s,y\n1,a,cat\n2,b,cat\n");
    assert!(matches!(&error, DataError::OneClass { class, .. } if class == "cat"));
    assert!(matches!(failure("x,s,y\n1,a,2.5\n2,b,2.5\n"), DataError::OneClass { .. }));
}

#[test]
fn no_feature_is_left() {
    let error = failure("x,s,y,z\n1,a,0,\n1,b,1,NA\n");
    assert!(error.to_string().ends_with("(x ignored: constant, z ignored: no values)"), "{error}");
}

#[test]
fn rows_without_target_or_source_are_dropped_and_counted() {
    let dataset = read("x,s,y\n1,a,0\n2,a,NA\n3,,1\n4,b,1\n5,,\n6,b,inf\n").unwrap();
    assert_eq!(
        dataset.dropped,
        Dropped { target_missing: 2, target_infinite: 1, source_missing: 1, ..Dropped::default() }
    );
    assert_eq!((0..2).map(|row| dataset.table.row_number(row)).collect::<Vec<_>>(), [1, 4]);
    assert_eq!(dataset.schema.columns[0].distinct.count, 2);
    assert!(matches!(
        failure("x,s,y\n1,a,\n2,,0\n"),
        DataError::AllRowsDropped {
            dropped: Dropped {
                target_missing: 1,
                target_infinite: 0,
                source_missing: 1,
                item_missing: 0,
                picture_unreadable: 0,
            },
            ..
        }
    ));
}

#[test]
fn classes_and_sources_that_differ_in_case_or_spaces_alone_are_a_warning() {
    let rows = ["high,A", "low,A", "HIGH,b", "low,b", "Low,ward 1", "high,ward  1", "mid,A"];
    let table: String = (0..).zip(rows).map(|(at, row)| format!("{at},{row}\n")).collect();
    let told = read(&format!("x,y,s\n{table}")).unwrap().warnings;
    let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    let alike = |sources, count, first| Warning::NamesAlike { sources, count, first };
    let classes =
        told.iter().find(|warning| matches!(warning, Warning::NamesAlike { sources: false, .. }));
    let Some(Warning::NamesAlike { count: 2, first, .. }) = classes else { panic!("{told:?}") };
    assert_eq!(first.0.to_lowercase(), first.1.to_lowercase());
    assert!(told.contains(&alike(true, 1, pair("ward 1", "ward  1"))), "{told:?}");
    assert_eq!(
        alike(true, 1, pair("a", "A")).to_string(),
        "a source differs from another one in case or spaces alone, such as \"A\" from \"a\": they are told apart, correct the \
         table if they are the same"
    );
    assert!(
        alike(false, 2, pair("a", "A")).to_string().starts_with("2 classes differ from others in")
    );
}

#[test]
fn one_source_or_a_source_per_row_is_a_warning() {
    assert_eq!(read("x,s,y\n1,a,0\n2,a,1\n").unwrap().warnings, [Warning::OneSource("a".into())]);
    assert_eq!(read("x,s,y\n1,a,0\n2,b,1\n").unwrap().warnings, [Warning::SourcePerRow(2)]);
    assert_eq!(read("x,s,y\n1,a,0\n2,b,1\n3,b,1\n").unwrap().warnings, []);
}

#[test]
fn a_word_where_numbers_were_asked_for_is_named_by_line_and_column() {
    let types = [("x".to_owned(), Kind::Numeric)].into();
    let options = ReadOptions { types, ..ReadOptions::new("y", "s") };
    let error = read_as("t.csv", b"x,s,y\n1,a,0\n\"2\",b,1\nmany,b,1\n", &options).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("t.csv, line 4, column \"x\": expected numeric, found \"many\""),
        "{error}"
    );
    let options = ReadOptions { task: Some(Task::Regression), ..ReadOptions::new("y", "s") };
    let error = read_as("t.csv", b"x,s,y\n1,a,0\n2,b,one\n", &options).unwrap_err();
    assert!(
        error.to_string().ends_with("line 3, column \"y\": expected numeric, found \"one\""),
        "{error}"
    );
}

fn trained() -> (TempDir, Encoder) {
    let text = (0..60).fold("x,c,s,y\n".to_owned(), |text, i| {
        text + &format!(
            "{},{},s{},{}\n",
            f64::from(i * 7 % 13) / 2.0,
            ["u", "v"][i as usize % 2],
            i % 3,
            ["no", "yes"][i as usize / 5 % 2]
        )
    });
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("t.csv"), text).unwrap();
    let dataset = Dataset::read(dir.path().join("t.csv"), &ReadOptions::new("y", "s")).unwrap();
    let rows: Vec<u32> = (0..60).collect();
    let encoder = Encoder::fit(&dataset, &rows, &EncoderConfig::default());
    (dir, encoder)
}

fn new_file(dir: &TempDir, text: &str) -> PathBuf {
    let path = dir.path().join("new.csv");
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn new_data_needs_the_columns_of_training_but_no_target_and_no_source() {
    let (dir, encoder) = trained();
    let read = |text: &str, target| {
        NewData::read(
            new_file(&dir, text),
            encoder.schema(),
            &NewDataOptions { target, group: None },
        )
    };
    let data = read("extra,c,x\n9,v,1.5\n9,,\n", false).unwrap();
    assert_eq!((data.table.len(), data.target), (2, None));
    let error = read("c,y\nv,no\n", false).unwrap_err();
    assert!(matches!(error, DataError::MissingColumn { column, .. } if column == "x"));
    let error = read("c,x\nv,1\n", true).unwrap_err();
    assert!(matches!(error, DataError::MissingColumn { column, .. } if column == "y"));
}

#[test]
fn a_column_that_changed_its_type_is_named_by_line() {
    let (dir, encoder) = trained();
    let path = new_file(&dir, "c,x\nv,1\nv,tall\n");
    let error = NewData::read(path, encoder.schema(), &NewDataOptions::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("new.csv, line 3, column \"x\": expected numeric, found \"tall\""),
        "{error}"
    );
}

#[test]
fn a_class_that_training_never_saw_is_counted() {
    let (dir, encoder) = trained();
    let path = new_file(&dir, "c,x,y,g\nv,1,maybe,k\nv,2,yes,\nu,3,maybe,k\nu,3,NA,k\n");
    let options = NewDataOptions { target: true, group: Some("g".into()) };
    let data = NewData::read(path, encoder.schema(), &options).unwrap();
    assert_eq!(data.unseen_classes, [("maybe".to_owned(), 2)].into());
    assert_eq!(
        data.target,
        Some(Targets::Classes { labels: vec![UNSEEN_CLASS, 1, UNSEEN_CLASS], classes: 2 })
    );
    let groups = data.groups.unwrap();
    assert_eq!(
        (groups.codes, groups.names),
        (vec![0, 1, 0], vec!["k".to_owned(), "(missing)".to_owned()])
    );
    assert_eq!(data.dropped.target_missing, 1);
}

#[test]
fn a_saved_encoder_that_contradicts_itself_is_refused() {
    let (_dir, encoder) = trained();
    let saved = serde_json::to_value(&encoder).unwrap();
    let load = |value: serde_json::Value| serde_json::from_value::<Encoder>(value);
    assert_eq!(load(saved.clone()).unwrap(), encoder);
    let mut first = saved.clone();
    first["version"] = 1.into();
    first["target"] = serde_json::Value::Null;
    assert_eq!(load(first).unwrap(), encoder, "the first version had the scale of the target, too");
    let edits: [(&str, serde_json::Value); 9] = [
        ("/version", 3.into()),
        ("/columns", serde_json::json!([])),
        ("/columns/0/number/scale/std", 0.0.into()),
        ("/columns/0/number/scale/mean", serde_json::Value::Null),
        ("/columns/1/levels/shares", serde_json::json!([1.0])),
        ("/columns/1/levels/levels", serde_json::json!(["v", "u"])),
        ("/schema/columns/0/storage/unit", 0.0.into()),
        ("/schema/columns/0/name", "c".into()),
        ("/schema/classes", serde_json::json!(["yes"])),
    ];
    for (pointer, value) in edits {
        let mut changed = saved.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert!(load(changed).is_err(), "{pointer}");
    }
}
