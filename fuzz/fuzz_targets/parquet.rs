//! Edits of a Parquet file, or any bytes, as a table: an answer or an error, never a panic.
//! `fuzz/run parquet -max_total_time=300`

#![no_main]

use std::sync::{Arc, OnceLock};

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use lapwing_fuzz::{edited, file, read_table};
use libfuzzer_sys::fuzz_target;
use parquet::arrow::ArrowWriter;

/// Numbers, whole numbers, truths, dates, texts (with a dictionary, as usual) and missing values.
fn valid() -> &'static [u8] {
    static VALID: OnceLock<Vec<u8>> = OnceLock::new();
    VALID.get_or_init(|| {
        let rows = || 0..30_i32;
        let text = |count: i32| -> ArrayRef {
            Arc::new(StringArray::from_iter(
                rows().map(|i| (i != 5).then(|| format!("v{}", i % count))),
            ))
        };
        let columns: [(&str, ArrayRef); 6] = [
            ("site", text(3)),
            (
                "x",
                Arc::new(Float64Array::from_iter(
                    rows().map(|i| (i != 3).then_some(f64::from(i) / 7.0)),
                )),
            ),
            ("n", Arc::new(Int64Array::from_iter_values(rows().map(|i| i64::from(i * 11 % 13))))),
            ("flag", Arc::new(BooleanArray::from_iter(rows().map(|i| Some(i % 4 == 0))))),
            ("day", Arc::new(Date32Array::from_iter_values(rows().map(|i| 19_000 + i)))),
            ("y", text(2)),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, array)| (name, array, true)),
        )
        .expect("a batch");
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("a writer");
        writer.write(&batch).expect("rows");
        writer.close().expect("an end");
        bytes
    })
}

fuzz_target!(|bytes: &[u8]| {
    let table = if bytes.starts_with(b"PAR1") { bytes.to_vec() } else { edited(valid(), bytes) };
    if let Some((_directory, path)) = file("t.parquet", &table) {
        let _ = read_table(&path);
    }
});
