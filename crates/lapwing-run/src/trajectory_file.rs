//! `trajectory.parquet`: loss, unreliability and weight per step and source.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::ArrowError;
use lapwing_judge::TrajectoryPoint;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

pub(crate) fn encode(
    points: &[TrajectoryPoint],
    names: &[String],
) -> Result<Vec<u8>, ParquetError> {
    let column = |values: ArrayRef| values;
    let loss = |point: &TrajectoryPoint| Some(point.loss).filter(|loss| !loss.is_nan());
    let name = |point: &TrajectoryPoint| names.get(point.source as usize).map(String::as_str);
    let batch = RecordBatch::try_from_iter_with_nullable([
        (
            "step",
            column(Arc::new(points.iter().map(|p| p.step as i64).collect::<Int64Array>())),
            false,
        ),
        ("source", Arc::new(points.iter().map(name).collect::<StringArray>()), false),
        ("loss", Arc::new(points.iter().map(loss).collect::<Float64Array>()), true),
        (
            "unreliability",
            Arc::new(points.iter().map(|p| p.unreliability as i64).collect::<Int64Array>()),
            false,
        ),
        (
            "weight",
            Arc::new(points.iter().map(|p| Some(p.weight)).collect::<Float64Array>()),
            false,
        ),
    ])
    .map_err(|error: ArrowError| ParquetError::ArrowError(error.to_string()))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_data::TableFile;

    #[test]
    fn points_read_back_under_their_names() {
        let point = |step, loss| TrajectoryPoint {
            step,
            source: (step % 2) as u32,
            loss,
            unreliability: step,
            weight: 0.25,
        };
        let points = [point(0, 1.5), point(1, f64::NAN), point(2, 0.1)];
        let bytes = encode(&points, &["<b>".to_owned(), "b".to_owned()]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trajectory.parquet");
        std::fs::write(&path, &bytes).unwrap();
        let file = TableFile::open(&path).unwrap();
        assert_eq!(file.columns(), ["step", "source", "loss", "unreliability", "weight"]);
        let rows = file.rows(&[1, 2, 3]).unwrap();
        assert_eq!(rows[&1], ["0", "<b>", "1.5", "0", "0.25"]);
        assert_eq!(rows[&2], ["1", "b", "", "1", "0.25"]);
        assert_eq!(bytes, encode(&points, &["<b>".to_owned(), "b".to_owned()]).unwrap());
    }
}
