//! The same table in every format gives the same data set.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use lapwing_data::{
    Compression, DataError, Dataset, ReadOptions, Reason, Role, Schema, TableFile, Targets, rewrite,
};
use parquet::arrow::ArrowWriter;
use tempfile::TempDir;

const CSV: &str = "\
size,colour,seen,who,label
1.5,red,2024-01-01,a,yes
NA,\"light, blue\",2024-01-02,b,no
-3,\"say \"\"hi\"\"\",,a,yes
4,,2023-12-31,c,no
";

fn write(dir: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn read(path: &Path) -> Dataset {
    Dataset::read(path, &ReadOptions::new("label", "who")).unwrap()
}

/// Every value of every row as text.
fn shown(dataset: &Dataset) -> Vec<Vec<String>> {
    let names: Vec<&str> = dataset.table.columns().iter().map(lapwing_data::Column::name).collect();
    (0..dataset.len() as u32)
        .map(|row| names.iter().map(|name| dataset.table.display(row, name)).collect())
        .collect()
}

fn write_parquet(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn every_format_gives_the_same_data_set() {
    let dir = TempDir::new().unwrap();
    let plain = read(&write(&dir, "t.csv", CSV.as_bytes()));
    assert_eq!(
        shown(&plain),
        [
            ["1.5", "red", "2024-01-01"],
            ["", "light, blue", "2024-01-02"],
            ["-3", "say \"hi\"", ""],
            ["4", "", "2023-12-31"],
        ]
    );
    assert_eq!(plain.target, Targets::Classes { labels: vec![1, 0, 1, 0], classes: 2 });
    assert_eq!(plain.schema.classes, ["no", "yes"]);
    assert_eq!(plain.sources.codes, [0, 1, 0, 2]);
    assert_eq!(plain.sources.names, ["a", "b", "c"]);

    let parquet = dir.path().join("t.parquet");
    write_parquet(
        &parquet,
        vec![
            ("size", Arc::new(Float64Array::from(vec![Some(1.5), None, Some(-3.0), Some(4.0)]))),
            (
                "colour",
                Arc::new(StringArray::from(vec![
                    Some("red"),
                    Some("light, blue"),
                    Some("say \"hi\""),
                    None,
                ])),
            ),
            (
                "seen",
                Arc::new(Date32Array::from(vec![Some(19_723), Some(19_724), None, Some(19_722)])),
            ),
            ("who", Arc::new(StringArray::from(vec!["a", "b", "a", "c"]))),
            ("label", Arc::new(StringArray::from(vec!["yes", "no", "yes", "no"]))),
        ],
    );
    let tsv = CSV
        .replace("\"light, blue\"", "light; blue")
        .replace(',', "\t")
        .replace("light; blue", "light, blue");
    let members = [gzip(&CSV.as_bytes()[..40]), gzip(&CSV.as_bytes()[40..])].concat();
    let others = [
        parquet,
        write(&dir, "t.csv.gz", &gzip(CSV.as_bytes())),
        write(&dir, "members.csv.gz", &members),
        write(&dir, "t.csv.zst", &zstd::encode_all(CSV.as_bytes(), 3).unwrap()),
        write(&dir, "crlf.csv", CSV.replace('\n', "\r\n").as_bytes()),
        write(&dir, "bom.csv", format!("\u{feff}{CSV}").as_bytes()),
        write(&dir, "bom.csv.gz", &gzip(format!("\u{feff}{CSV}").as_bytes())),
        write(&dir, "t.tsv", tsv.as_bytes()),
        write(&dir, "t.tsv.gz", &gzip(tsv.as_bytes())),
        write(&dir, "tabs.txt", tsv.as_bytes()),
        write(&dir, "no-final-newline.csv", CSV.trim_end().as_bytes()),
        write(&dir, "blank-lines.csv", CSV.replace('\n', "\n\n").as_bytes()),
        write(&dir, "spaces.csv", CSV.replace(",a,", " ,  a , ").as_bytes()),
    ];
    for path in others {
        let other = read(&path);
        assert_eq!(shown(&other), shown(&plain), "{}", path.display());
        // As text, because a missing number is not equal to itself.
        let columns = |dataset: &Dataset| format!("{:?}", dataset.table.columns());
        assert_eq!(columns(&other), columns(&plain), "{}", path.display());
        assert_eq!(other.schema, plain.schema, "{}", path.display());
        assert_eq!(other.target, plain.target, "{}", path.display());
        assert_eq!(other.sources, plain.sources, "{}", path.display());
    }
}

#[test]
fn parquet_numbers_may_be_sources_and_classes_and_nested_columns_are_ignored() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t.parquet");
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("one")]);
    lists.append_null();
    lists.append_value([None::<&str>; 0]);
    let lists = lists.finish();
    write_parquet(
        &path,
        vec![
            ("x", Arc::new(Float64Array::from(vec![0.5, f64::NAN, f64::INFINITY]))),
            ("nested", Arc::new(lists)),
            ("who", Arc::new(UInt64Array::from(vec![u64::MAX, u64::MAX - 1, u64::MAX]))),
            ("label", Arc::new(Int64Array::from(vec![2, 10, 2]))),
        ],
    );
    let dataset = read(&path);
    assert_eq!(dataset.schema.columns[1].role, Role::Ignored(Reason::Unsupported));
    assert_eq!(dataset.sources.names, ["18446744073709551615", "18446744073709551614"]);
    assert_eq!(dataset.schema.classes, ["2", "10"]);
    assert_eq!(shown(&dataset), [["0.5"], [""], [""]]);
    let options = ReadOptions::new("nested", "who");
    assert!(
        matches!(Dataset::read(&path, &options), Err(DataError::UnsupportedColumn { column, .. }) if column == "nested")
    );
}

#[test]
fn numbers_far_from_zero_keep_their_precision() {
    let dir = TempDir::new().unwrap();
    let rows: String =
        (0..100).map(|i| format!("{},s{},{}\n", 1_700_000_000 + i * 3, i % 2, i % 3)).collect();
    let dataset = read(&write(&dir, "t.csv", format!("stamp,who,label\n{rows}").as_bytes()));
    for row in 0..100 {
        assert_eq!(dataset.table.display(row, "stamp"), (1_700_000_000 + row * 3).to_string());
    }
}

#[test]
fn a_few_rows_can_be_fetched_as_they_stand_in_the_file() {
    let dir = TempDir::new().unwrap();
    let file = TableFile::open(write(&dir, "t.csv", CSV.as_bytes())).unwrap();
    let rows = file.rows(&[2, 4, 99]).unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[&2], ["NA", "light, blue", "2024-01-02", "b", "no"]);
    assert_eq!(rows[&4], ["4", "", "2023-12-31", "c", "no"]);
}

#[test]
fn rewriting_changes_what_was_edited_and_nothing_else() {
    let dir = TempDir::new().unwrap();
    let path = write(&dir, "t.csv", CSV.as_bytes());
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let mut out = Vec::new();
        let rows =
            rewrite(&TableFile::open(&path).unwrap(), &mut out, compression, |row, record| {
                if row == 2 {
                    *record = record
                        .iter()
                        .enumerate()
                        .map(|(i, field)| if i == 4 { "maybe" } else { field })
                        .collect();
                }
                Ok::<(), DataError>(())
            });
        assert_eq!(rows.unwrap(), 4);
        let copy = write(&dir, "copy", &out);
        let (before, after) = (TableFile::open(&path).unwrap(), TableFile::open(&copy).unwrap());
        assert_eq!(before.columns(), after.columns());
        let all = [1, 2, 3, 4];
        let mut expected = before.rows(&all).unwrap();
        expected.get_mut(&2).unwrap()[4] = "maybe".into();
        assert_eq!(after.rows(&all).unwrap(), expected);
        if compression == Compression::None {
            assert_eq!(String::from_utf8(out).unwrap(), CSV.replace("b,no", "b,maybe"));
        }
    }
}

#[test]
fn an_error_of_the_editor_ends_the_rewriting() {
    let dir = TempDir::new().unwrap();
    let path = write(&dir, "t.csv", CSV.as_bytes());
    let refuse = |row, _: &mut lapwing_data::StringRecord| {
        if row == 3 { Err("row 3".to_owned()) } else { Ok(()) }
    };
    let result =
        rewrite(&TableFile::open(&path).unwrap(), Vec::new(), Compression::None, |row, record| {
            refuse(row, record).map_err(Mine)
        });
    assert_eq!(result.unwrap_err().0, "row 3");

    #[derive(Debug)]
    struct Mine(String);
    impl From<DataError> for Mine {
        fn from(error: DataError) -> Self {
            Self(error.to_string())
        }
    }
}

#[test]
fn a_schema_can_be_inferred_without_reading_the_rows() {
    let dir = TempDir::new().unwrap();
    let path = write(&dir, "t.csv", CSV.as_bytes());
    let dataset = read(&path);
    let file = TableFile::open(&path).unwrap();
    let schema = Schema::infer(&file, &ReadOptions::new("label", "who")).unwrap();
    assert_eq!(schema.columns, dataset.schema.columns);
    assert_eq!(schema.task, dataset.schema.task);

    let bare = write(&dir, "bare.csv", b"s,y\na,1\nb,0\n");
    let options = ReadOptions::new("y", "s");
    assert!(Schema::infer(&TableFile::open(&bare).unwrap(), &options).is_ok());
    assert!(matches!(Dataset::read(&bare, &options), Err(DataError::NoFeatures { .. })));
}

#[test]
fn records_of_text_are_visited_as_they_stand_and_those_of_parquet_as_they_would() {
    let dir = TempDir::new().unwrap();
    let path = write(&dir, "t.csv.gz", &gzip(CSV.as_bytes()));
    let file = TableFile::open(&path).unwrap();
    let mut seen = Vec::new();
    file.each_record(|row, record| {
        seen.push((row, record.iter().map(str::to_owned).collect::<Vec<_>>()));
        Ok::<(), DataError>(())
    })
    .unwrap();
    let expected = file.rows(&[1, 2, 3, 4]).unwrap();
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|(row, fields)| expected[row] == *fields));

    let parquet = dir.path().join("t.parquet");
    write_parquet(&parquet, vec![("x", Arc::new(Int64Array::from(vec![Some(1), None])))]);
    let file = TableFile::open(&parquet).unwrap();
    let mut seen = Vec::new();
    file.each_record(|row, record| {
        seen.push((row, record[0].to_owned()));
        Ok::<(), DataError>(())
    })
    .unwrap();
    assert_eq!(seen, [(1, "1".to_owned()), (2, String::new())]);
    let mut text = Vec::new();
    rewrite(&file, &mut text, Compression::None, |_, _| Ok::<(), DataError>(())).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "x\n1\n\"\"\n");
}
