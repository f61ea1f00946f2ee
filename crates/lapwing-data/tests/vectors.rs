//! Lists of numbers in Parquet: embeddings.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::sync::Arc;

use arrow_array::builder::{
    FixedSizeListBuilder, Float16Builder, Float32Builder, Float64Builder, Int32Builder,
    Int64Builder, ListBuilder, StringBuilder, UInt8Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use half::f16;
use lapwing_data::{
    DataError, Dataset, Encoder, EncoderConfig, Input, InputKind, Kind, NewData, NewDataOptions,
    NewRows, ReadOptions,
};
use lapwing_sample::{Samples, View};
use parquet::arrow::ArrowWriter;
use tempfile::TempDir;

const ROWS: usize = 60;

fn number(row: usize, at: usize) -> f64 {
    ((row * 31 + at * 17) % 23) as f64 / 4.0 - 2.0
}

/// Lists of three numbers, changed by `of`, which gives `None` for a number that is missing.
fn lists(of: impl Fn(usize) -> Option<Vec<Option<f64>>>) -> ArrayRef {
    let mut builder = ListBuilder::new(Float64Builder::new());
    for row in 0..ROWS {
        if let Some(list) = of(row) {
            list.into_iter().for_each(|value| builder.values().append_option(value));
            builder.append(true);
        } else {
            builder.append(false);
        }
    }
    Arc::new(builder.finish())
}

fn good(row: usize) -> Option<Vec<Option<f64>>> {
    Some((0..3).map(|at| Some(number(row, at))).collect())
}

fn write(directory: &TempDir, name: &str, vectors: ArrayRef) -> std::path::PathBuf {
    let names = |n: usize| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("v{}", row % n))))
    };
    let columns = [("e", vectors), ("s", names(3)), ("y", names(2))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let path = directory.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn read(vectors: ArrayRef) -> Result<Dataset, DataError> {
    let directory = TempDir::new().unwrap();
    Dataset::read(write(&directory, "t.parquet", vectors), &ReadOptions::new("y", "s"))
}

#[test]
fn a_list_of_numbers_is_a_vector_of_features_standardised_by_training_rows() {
    let mut fixed = FixedSizeListBuilder::new(Float32Builder::new(), 3);
    for row in 0..ROWS {
        (0..3).for_each(|at| fixed.values().append_value(number(row, at) as f32));
        fixed.append(true);
    }
    let mut halves = ListBuilder::new(Float16Builder::new());
    for row in 0..ROWS {
        halves.append_value((0..3).map(|at| Some(f16::from_f64(number(row, at)))));
    }
    for vectors in [lists(good), Arc::new(fixed.finish()) as ArrayRef, Arc::new(halves.finish())] {
        let dataset = read(vectors).unwrap();
        let column = dataset.schema.features().next().unwrap();
        assert_eq!((column.kind, column.note.as_deref()), (Kind::Vector, Some("3 numbers")));
        let rows: Vec<u32> = (0..40).collect();
        let encoder = Encoder::fit(&dataset, &rows, &EncoderConfig::default());
        assert_eq!(encoder.feature_names(), ["e[0]", "e[1]", "e[2]"]);
        let found = encoder.bind(&dataset.table).unwrap();
        let found = found.gather(&[50, 0], View::Plain).unwrap().into_floats().unwrap();
        // Mean and standard deviation of the training rows, slowly.
        for (place, row) in [50, 0].into_iter().enumerate() {
            for at in 0..3 {
                let seen: Vec<f64> = (0..40).map(|row| number(row, at)).collect();
                let mean = seen.iter().sum::<f64>() / 40.0;
                let variance = seen.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 40.0;
                let expected = (number(row, at) - mean) / variance.sqrt();
                let found = f64::from(found[place * 3 + at]);
                assert!((found - expected).abs() < 1e-5, "{found} against {expected}");
            }
        }
        let shown = dataset.table.display(0, "e");
        assert!(shown.starts_with("[-2, 2.25,"), "{shown}");
    }
}

#[test]
fn lists_that_are_not_like_the_others_are_errors_with_row_and_column() {
    let with = |row: usize, list: Option<Vec<Option<f64>>>| {
        read(lists(move |at| if at == row { list.clone() } else { good(at) }))
            .unwrap_err()
            .to_string()
    };
    let cases = [
        (with(7, Some(vec![Some(1.0); 2])), "found 2"),
        (with(7, Some(vec![Some(1.0); 4])), "found 4"),
        (with(7, Some(Vec::new())), "found none"),
        (with(7, None), "found none"),
        (with(7, Some(vec![Some(1.0), None, Some(1.0)])), "place 2"),
        (with(7, Some(vec![Some(1.0), Some(1.0), Some(f64::NAN)])), "place 3"),
    ];
    for (message, part) in cases {
        let place = message.contains("row 8") && message.contains("column \"e\"");
        assert!(place && message.contains("expected 3") && message.contains(part), "{message}");
    }
    let mut words = ListBuilder::new(StringBuilder::new());
    (0..ROWS).for_each(|row| words.append_value([Some(row.to_string())]));
    let error = read(Arc::new(words.finish())).unwrap_err().to_string();
    assert!(error.contains("e ignored: unsupported type"), "{error}");
}

#[test]
fn lists_of_whole_numbers_are_vectors_with_their_sign_or_without_one() {
    let (small, large) = ([-7, 4, i32::MAX], [-7, 4, i64::MAX]);
    let mut smalls = ListBuilder::new(Int32Builder::new());
    let mut larges = ListBuilder::new(Int64Builder::new());
    let mut bytes = ListBuilder::new(UInt8Builder::new());
    let mut widest = ListBuilder::new(UInt64Builder::new());
    for _ in 0..ROWS {
        smalls.append_value(small.map(Some));
        larges.append_value(large.map(Some));
        bytes.append_value([0, 4, u8::MAX].map(Some));
        widest.append_value([0, 4, u64::MAX].map(Some));
    }
    let cases: [(ArrayRef, &str); 4] = [
        (Arc::new(smalls.finish()), "[-7, 4, 2147483600]"),
        (Arc::new(larges.finish()), "[-7, 4, 9223372000000000000]"),
        (Arc::new(bytes.finish()), "[0, 4, 255]"),
        (Arc::new(widest.finish()), "[0, 4, 18446744000000000000]"),
    ];
    for (vectors, shown) in cases {
        assert_eq!(read(vectors).unwrap().table.display(5, "e"), shown);
    }
}

#[test]
fn vectors_cannot_be_targets_and_new_ones_must_be_as_long() {
    let directory = TempDir::new().unwrap();
    let path = write(&directory, "t.parquet", lists(good));
    for options in [ReadOptions::new("e", "s"), ReadOptions::new("y", "e")] {
        let error = Dataset::read(&path, &options).unwrap_err().to_string();
        assert!(error.contains("column \"e\"") && error.contains("list"), "{error}");
    }
    let dataset = Dataset::read(&path, &ReadOptions::new("y", "s")).unwrap();
    let rows: Vec<u32> = (0..ROWS as u32).collect();
    let input = InputKind::Table.fit(&dataset, &rows).unwrap();
    let text = serde_json::to_string(&input).unwrap();
    assert_eq!(Input::from_json("table", &text).unwrap(), input);
    let wider = text.replacen("\"width\":3", "\"width\":4", 1);
    assert!(wider != text && Input::from_json("table", &wider).is_err());

    let options = NewDataOptions { target: true, group: None };
    assert_eq!(NewData::read(&path, input.schema(), &options).unwrap().table.len(), ROWS);
    let long = write(
        &directory,
        "long.parquet",
        lists(|row| {
            good(row).map(|mut list| {
                list.push(Some(0.0));
                list
            })
        }),
    );
    let error = NewData::read(&long, input.schema(), &options).unwrap_err().to_string();
    assert!(error.contains("row 1") && error.contains("found 4"), "{error}");
    let csv = directory.path().join("t.csv");
    fs::write(&csv, "e,s,y\n1.5,v0,v1\n").unwrap();
    let error = NewRows::open(&csv, input.schema())
        .unwrap()
        .each_part(|_| Ok::<(), DataError>(()))
        .unwrap_err()
        .to_string();
    assert!(error.contains("column \"e\"") && error.contains("expected 3"), "{error}");
    let _ = input.bind(&dataset.table).unwrap().exhibit(0).unwrap();
}

#[test]
fn lists_are_nothing_but_lists_whatever_they_are_called() {
    let directory = TempDir::new().unwrap();
    let path = write(&directory, "lists.parquet", lists(good));
    for kind in [Kind::Image, Kind::Categorical, Kind::Numeric] {
        let mut options = ReadOptions::new("y", "s");
        options.types = [("e".to_owned(), kind)].into();
        let error = Dataset::read(&path, &options).unwrap_err();
        assert!(matches!(&error, DataError::Lists { column, .. } if column == "e"), "{error}");
    }
    let mut options = ReadOptions::new("y", "s");
    (options.series, options.features) = (vec!["e".to_owned()], Some(vec!["s".to_owned()]));
    let error = Dataset::read(&path, &options).unwrap_err();
    assert!(matches!(error, DataError::FeatureBeside { kind: "series", .. }), "{error}");
    options.features = None;
    options.text = vec!["s".to_owned()];
    let error = Dataset::read(&path, &options).unwrap_err().to_string();
    assert!(error.contains("series and texts cannot be learnt from together"), "{error}");
}
