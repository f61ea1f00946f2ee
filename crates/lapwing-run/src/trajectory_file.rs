//! `trajectory.parquet`: loss, unreliability and weight per step and source.

use std::sync::Arc;

use lapwing_judge::TrajectoryPoint;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

const SCHEMA: &str = "message trajectory {
    REQUIRED INT64 step;
    REQUIRED BYTE_ARRAY source (UTF8);
    OPTIONAL DOUBLE loss;
    REQUIRED INT64 unreliability;
    REQUIRED DOUBLE weight;
}";

pub(crate) fn encode(
    points: &[TrajectoryPoint],
    names: &[String],
) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut rows = file.next_row_group()?;
    let names: Vec<ByteArray> = names.iter().map(|name| name.as_str().into()).collect();
    let name = |point: &TrajectoryPoint| names.get(point.source as usize).cloned();
    let present = |point: &TrajectoryPoint| !point.loss.is_nan();
    let losses: Vec<f64> = points.iter().filter(|p| present(p)).map(|p| p.loss).collect();
    let levels: Vec<i16> = points.iter().map(|point| present(point).into()).collect();
    column::<Int64Type>(&mut rows, points.iter().map(|p| p.step as i64), None)?;
    column::<ByteArrayType>(&mut rows, points.iter().map(|p| name(p).unwrap_or_default()), None)?;
    column::<DoubleType>(&mut rows, losses.into_iter(), Some(&levels))?;
    column::<Int64Type>(&mut rows, points.iter().map(|p| p.unreliability as i64), None)?;
    column::<DoubleType>(&mut rows, points.iter().map(|p| p.weight), None)?;
    rows.close()?;
    file.into_inner()
}

/// Writes the next column; `levels` has 1 for each row that has a value and 0 for the others.
fn column<T: DataType>(
    rows: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: impl Iterator<Item = T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("a column more than the schema has".to_owned());
    let mut column = rows.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(&values.collect::<Vec<_>>(), levels, None)?;
    column.close()
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
