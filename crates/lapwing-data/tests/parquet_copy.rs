//! Copies of Parquet files in which some values are others.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float16Array, Float32Array,
    Float64Array, Int8Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray, UInt8Array, UInt64Array,
};
use lapwing_data::{Compression, DataError, StringRecord, TableFile, rewrite, rewrite_parquet};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression as Codec, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use tempfile::TempDir;

const ROWS: i32 = 500;

/// A column of every type that is written, and some that are copied only; every seventh value is missing.
fn batch() -> RecordBatch {
    fn cells<T>(value: impl Fn(i32) -> T) -> Vec<Option<T>> {
        (0..ROWS).map(|row| (row % 7 != 3).then(|| value(row))).collect()
    }
    let lists = cells(|row| (0..row % 5).map(|at| Some(at as f32)).collect::<Vec<_>>());
    let inner: ArrayRef = Arc::new(Int32Array::from(cells(|row| row)));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("text", Arc::new(StringArray::from(cells(|row| format!("word {}", row % 9))))),
        ("truth", Arc::new(BooleanArray::from(cells(|row| row % 2 == 0)))),
        ("small", Arc::new(Int8Array::from(cells(|row| (row % 100) as i8)))),
        ("whole", Arc::new(Int32Array::from(cells(|row| row - 250)))),
        ("large", Arc::new(Int64Array::from(cells(|row| i64::from(row) << 40)))),
        ("byte", Arc::new(UInt8Array::from(cells(|row| (row % 200) as u8)))),
        ("huge", Arc::new(UInt64Array::from(cells(|row| u64::MAX - row as u64)))),
        (
            "half",
            Arc::new(Float16Array::from_iter(cells(|row| half::f16::from_f32(row as f32 / 4.0)))),
        ),
        ("single", Arc::new(Float32Array::from(cells(|row| row as f32 / 3.0)))),
        ("double", Arc::new(Float64Array::from(cells(|row| f64::from(row) / 3.0)))),
        ("always", Arc::new(Int32Array::from_iter_values(0..ROWS))),
        ("day", Arc::new(Date32Array::from(cells(|row| row)))),
        (
            "price",
            Arc::new(
                Decimal128Array::from(cells(i128::from)).with_precision_and_scale(9, 2).unwrap(),
            ),
        ),
        ("bytes", Arc::new(BinaryArray::from_iter(cells(|row| row.to_le_bytes().to_vec())))),
        ("list", Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(lists))),
        ("group", Arc::new(StructArray::try_from(vec![("inner", inner)]).unwrap())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// The batch in row groups of 128 rows.
fn written(directory: &TempDir, codec: Codec) -> PathBuf {
    let path = directory.path().join("t.parquet");
    let properties =
        WriterProperties::builder().set_compression(codec).set_max_row_group_row_count(Some(128));
    let batch = batch();
    let mut writer = ArrowWriter::try_new(
        File::create(&path).unwrap(),
        batch.schema(),
        Some(properties.build()),
    )
    .unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

fn read(path: &Path) -> RecordBatch {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let mut reader = builder.with_batch_size(10_000).build().unwrap();
    let batch = reader.next().unwrap().unwrap();
    assert!(reader.next().is_none());
    batch
}

fn position(file: &TableFile, name: &str) -> usize {
    file.columns().iter().position(|column| column == name).unwrap()
}

/// A copy in which a column has another text in all rows that are of one group, and in one that is of another.
fn changed(path: &Path, name: &str, text: &str) -> Result<(), DataError> {
    let file = TableFile::open(path)?;
    let column = position(&file, name);
    let mut bytes = Vec::new();
    let rows = rewrite_parquet(&file, &[column], &mut bytes, |row, record| {
        if !record[column].is_empty() && (129..=256).contains(&row) || row == 500 {
            let fields = record.iter().enumerate();
            *record = fields.map(|(at, old)| if at == column { text } else { old }).collect();
        }
        Ok::<(), DataError>(())
    })?;
    assert_eq!(rows, 500);
    std::fs::write(path.with_file_name("copy.parquet"), bytes).unwrap();
    Ok(())
}

#[test]
fn a_column_changes_and_all_others_stay_whatever_they_hold() {
    let texts = [
        ("text", "é, \"other\""),
        ("truth", "true"),
        ("small", "-128"),
        ("whole", "-7"),
        ("large", "9007199254740993"),
        ("byte", "255"),
        ("huge", "18446744073709551614"),
        ("half", "0.5"),
        ("single", "0.1"),
        ("double", "0.1"),
        ("always", "-1"),
    ];
    let codecs = [
        Codec::UNCOMPRESSED,
        Codec::SNAPPY,
        Codec::GZIP(GzipLevel::default()),
        Codec::ZSTD(ZstdLevel::default()),
        Codec::LZ4_RAW,
        Codec::LZ4,
    ];
    for (at, (name, text)) in texts.into_iter().enumerate() {
        let directory = TempDir::new().unwrap();
        let path = written(&directory, codecs[at % codecs.len()]);
        changed(&path, name, text).unwrap();
        let copy = directory.path().join("copy.parquet");
        let (before, after) = (read(&path), read(&copy));
        assert_eq!(before.schema(), after.schema());
        for (column, field) in before.schema().fields().iter().enumerate() {
            let same = before.column(column) == after.column(column);
            assert_eq!(same, field.name() != name, "{name}: {}", field.name());
        }
        let (file, copied) = (TableFile::open(&path).unwrap(), TableFile::open(&copy).unwrap());
        let column = position(&file, name);
        let all: Vec<u64> = (1..=500).collect();
        let (old, new) = (file.rows(&all).unwrap(), copied.rows(&all).unwrap());
        for row in 1..=500 {
            let is_changed =
                (129..=256).contains(&row) && !old[&row][column].is_empty() || row == 500;
            let expected = if is_changed { text } else { &old[&row][column] };
            assert_eq!(new[&row][column], expected, "{name}, row {row}");
        }
    }
}

#[test]
fn what_a_file_says_of_itself_stays() {
    let directory = TempDir::new().unwrap();
    let path = written(&directory, Codec::SNAPPY);
    changed(&path, "text", "other").unwrap();
    let open = |path: &Path| SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let (before, after) = (open(&path), open(&directory.path().join("copy.parquet")));
    let keys = |reader: &SerializedFileReader<File>| {
        reader.metadata().file_metadata().key_value_metadata().cloned()
    };
    assert!(keys(&before).is_some());
    assert_eq!(keys(&before), keys(&after));
    let groups = |reader: &SerializedFileReader<File>| -> Vec<_> {
        let groups = reader.metadata().row_groups().iter();
        groups.map(|group| (group.num_rows(), group.column(0).compression())).collect()
    };
    assert_eq!(groups(&before), groups(&after));
    // A reader that looks at the least and the greatest value would miss rows otherwise.
    let least = |reader: &SerializedFileReader<File>, group: usize| {
        let statistics = reader.metadata().row_group(group).column(0).statistics().cloned();
        statistics.unwrap().min_bytes_opt().unwrap().to_vec()
    };
    assert_eq!([least(&before, 1), least(&after, 1)], [b"word 0".to_vec(), b"other".to_vec()]);
}

#[test]
fn decimals_dates_lists_and_bytes_are_copied_and_not_changed() {
    let directory = TempDir::new().unwrap();
    let path = written(&directory, Codec::SNAPPY);
    for (name, what) in [
        ("day", "dates"),
        ("price", "decimal numbers"),
        ("list", "lists of numbers"),
        ("bytes", "bytes or groups"),
        ("group", "bytes or groups"),
    ] {
        let said = changed(&path, name, "1").unwrap_err().to_string();
        assert!(said.contains(&format!("column {name:?} holds {what}")), "{said}");
    }
    let file = TableFile::open(&path).unwrap();
    let said = rewrite(&file, io::sink(), Compression::None, |_, _| Ok::<(), DataError>(()));
    let said = said.unwrap_err().to_string();
    assert!(said.contains("column \"bytes\" is bytes, which CSV does not have"), "{said}");
}

#[test]
fn numbers_are_rounded_to_what_a_column_can_hold() {
    let directory = TempDir::new().unwrap();
    let file = TableFile::open(written(&directory, Codec::SNAPPY)).unwrap();
    let nearest = |name: &str, number| file.nearest(position(&file, name), number);
    assert_eq!(
        [nearest("small", 3.5), nearest("small", 1e9), nearest("small", -1e9)],
        [4.0, 127.0, -128.0]
    );
    assert_eq!([nearest("byte", -0.3), nearest("byte", 300.0)], [0.0, 255.0]);
    assert!(nearest("byte", -0.3).is_sign_positive());
    assert_eq!([nearest("whole", 1e12), nearest("double", 0.25)], [f64::from(i32::MAX), 0.25]);
    // The greatest number of 64 bits is none of a float; it is written all the same.
    let path = file.path();
    for (name, number, written) in
        [("large", 1e30, "9223372036854775807"), ("huge", 1e30, "18446744073709551615")]
    {
        let text = lapwing_data::number_text(nearest(name, number));
        changed(path, name, &text).unwrap();
        let copy = TableFile::open(directory.path().join("copy.parquet")).unwrap();
        assert_eq!(copy.rows(&[500]).unwrap()[&500][position(&file, name)], written);
    }
}

/// An output that takes a few bytes and no more.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_fails_is_told_from_a_file_that_is_damaged() {
    let directory = TempDir::new().unwrap();
    let path = written(&directory, Codec::SNAPPY);
    let file = TableFile::open(&path).unwrap();
    let same = |_: u64, _: &mut StringRecord| Ok::<(), DataError>(());
    for space in [0, 10_000] {
        let failed = rewrite_parquet(&file, &[0], &mut Full(space), same);
        assert!(
            matches!(&failed, Err(DataError::Write(error))
            if error.kind() == io::ErrorKind::StorageFull),
            "{failed:?}"
        );
    }
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[200..1200].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let file = TableFile::open(&path).unwrap();
    let failed = rewrite_parquet(&file, &[0], &mut io::sink(), same);
    assert!(matches!(failed, Err(DataError::Damaged { .. })), "{failed:?}");
}
