//! Parquet, batch by batch.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array,
    StringViewArray, UInt64Array,
};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};

use crate::date::{DAY, Moment};
use crate::error::{DataError, Place};
use crate::guard::MAX_RECORD_BYTES;
use crate::value::Raw;

/// Rows decoded at a time, at most: the part of a Parquet file that is in memory twice.
const BATCH: usize = 4096;
/// Bytes decoded at a time, about.
const BATCH_BYTES: u64 = 32 << 20;

/// One column of a batch.
pub(crate) enum Cells {
    Bool(BooleanArray),
    Integer(Int64Array),
    Unsigned(UInt64Array),
    Single(Float32Array),
    Double(Float64Array),
    /// Days since 1970-01-01.
    Days(Int32Array),
    /// Ticks since 1970-01-01.
    Ticks(Int64Array, f64),
    /// Ticks since midnight.
    TimeOfDay(Int64Array, f64),
    Text(StringViewArray),
    /// Null, nested or binary.
    Nothing,
}

impl Cells {
    pub(crate) fn value(&self, index: usize) -> Raw<'_> {
        fn of<'a, A: Array>(
            array: &'a A,
            index: usize,
            value: impl FnOnce(&'a A) -> Raw<'a>,
        ) -> Raw<'a> {
            if array.is_null(index) { Raw::Null } else { value(array) }
        }
        match self {
            Self::Bool(array) => of(array, index, |array| Raw::Bool(array.value(index))),
            Self::Integer(array) => {
                of(array, index, |array| Raw::Integer(array.value(index).into()))
            }
            Self::Unsigned(array) => {
                of(array, index, |array| Raw::Integer(array.value(index).into()))
            }
            Self::Single(array) => of(array, index, |array| Raw::Single(array.value(index))),
            Self::Double(array) => of(array, index, |array| Raw::Double(array.value(index))),
            Self::Days(array) => of(array, index, |array| {
                Raw::Date(Moment { seconds: f64::from(array.value(index)) * DAY, has_time: false })
            }),
            Self::Ticks(array, per_second) => of(array, index, |array| {
                Raw::Date(Moment {
                    seconds: array.value(index) as f64 / per_second,
                    has_time: true,
                })
            }),
            Self::TimeOfDay(array, per_second) => {
                of(array, index, |array| Raw::Double(array.value(index) as f64 / per_second))
            }
            Self::Text(array) => of(array, index, |array| Raw::Text(array.value(index))),
            Self::Nothing => Raw::Null,
        }
    }

    fn new(array: &ArrayRef) -> Result<Self, ArrowError> {
        use DataType as T;
        let as_type = |to: &DataType| cast(array, to);
        Ok(match array.data_type() {
            T::Boolean => Self::Bool(array.as_boolean().clone()),
            T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::UInt8 | T::UInt16 | T::UInt32 => {
                Self::Integer(as_type(&T::Int64)?.as_primitive::<Int64Type>().clone())
            }
            T::UInt64 => Self::Unsigned(array.as_primitive::<UInt64Type>().clone()),
            T::Float16 | T::Float32 => {
                Self::Single(as_type(&T::Float32)?.as_primitive::<Float32Type>().clone())
            }
            T::Float64
            | T::Decimal32(..)
            | T::Decimal64(..)
            | T::Decimal128(..)
            | T::Decimal256(..) => {
                Self::Double(as_type(&T::Float64)?.as_primitive::<Float64Type>().clone())
            }
            T::Date32 | T::Date64 => {
                let days = as_type(&T::Date32)?;
                Self::Days(Int32Array::new(
                    days.as_primitive::<Date32Type>().values().clone(),
                    days.nulls().cloned(),
                ))
            }
            T::Timestamp(unit, _) => {
                Self::Ticks(as_type(&T::Int64)?.as_primitive::<Int64Type>().clone(), ticks(*unit))
            }
            T::Time32(unit) => {
                let ticks_of_day = cast(&as_type(&T::Int32)?, &T::Int64)?;
                Self::TimeOfDay(ticks_of_day.as_primitive::<Int64Type>().clone(), ticks(*unit))
            }
            T::Time64(unit) => Self::TimeOfDay(
                as_type(&T::Int64)?.as_primitive::<Int64Type>().clone(),
                ticks(*unit),
            ),
            T::Utf8 | T::LargeUtf8 | T::Utf8View => {
                Self::Text(as_type(&T::Utf8View)?.as_string_view().clone())
            }
            _ => Self::Nothing,
        })
    }
}

fn ticks(unit: TimeUnit) -> f64 {
    match unit {
        TimeUnit::Second => 1.0,
        TimeUnit::Millisecond => 1e3,
        TimeUnit::Microsecond => 1e6,
        TimeUnit::Nanosecond => 1e9,
    }
}

fn is_supported(data_type: &DataType) -> bool {
    use DataType as T;
    !data_type.is_nested()
        && !matches!(
            data_type,
            T::Binary
                | T::LargeBinary
                | T::BinaryView
                | T::FixedSizeBinary(_)
                | T::Interval(_)
                | T::Duration(_)
        )
}

fn open(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>, DataError> {
    let open = |source| DataError::Open { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(open)?;
    let mut end = [0; 4];
    file.seek(SeekFrom::End(-4)).and_then(|_| file.read_exact(&mut end)).map_err(open)?;
    if &end != b"PAR1" {
        return Err(DataError::Truncated { path: path.to_owned(), format: "Parquet" });
    }
    // Without the writer's Arrow schema the types are those of Parquet itself: fewer, and the same for every writer.
    let options = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let found =
        ArrowReaderMetadata::load(&file, options()).map_err(|error| damaged(path, error))?;
    // Texts as views into the pages: a text that a dictionary has once is then in memory once, not in every row.
    let fields = found.schema().fields().iter().map(|field| match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => {
            Arc::new(Field::new(field.name(), DataType::Utf8View, field.is_nullable()))
        }
        _ => Arc::clone(field),
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let wanted =
        ArrowReaderMetadata::try_new(Arc::clone(found.metadata()), options().with_schema(schema))
            .map_err(|error| damaged(path, error))?;
    Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(file, wanted))
}

/// Rows to decode at a time, so that their text fits into memory several times over.
///
/// Text in the file has the limit of a record of CSV. A page is decoded as a whole, so a row group whose rows are on
/// average longer than that is refused before any of them is.
fn rows_at_a_time(
    path: &Path,
    builder: &ParquetRecordBatchReaderBuilder<File>,
    readable: &[usize],
) -> Result<usize, DataError> {
    let schema = builder.parquet_schema();
    let (mut rows, mut first) = (BATCH as u64, 1);
    for group in builder.metadata().row_groups() {
        let bytes: u64 = group
            .columns()
            .iter()
            .enumerate()
            .filter(|(leaf, _)| readable.binary_search(&schema.get_column_root_idx(*leaf)).is_ok())
            .map(|(_, chunk)| chunk.uncompressed_size().max(0) as u64)
            .fold(0, u64::saturating_add);
        let in_group = group.num_rows().max(0) as u64;
        let each = bytes / in_group.max(1);
        if each > MAX_RECORD_BYTES as u64 {
            return Err(too_long(path, first));
        }
        rows = rows.min((BATCH_BYTES / each.max(1)).max(1));
        first += in_group;
    }
    Ok(rows as usize)
}

fn too_long(path: &Path, row: u64) -> DataError {
    let place = Place { path: path.to_owned(), line: None, row };
    DataError::RecordTooLong { place, limit: MAX_RECORD_BYTES }
}

/// The first row of a batch whose texts are longer than a record may be.
fn long_row(columns: &[Cells], rows: usize) -> Option<usize> {
    let mut lengths = vec![0_u64; rows];
    for column in columns {
        if let Cells::Text(array) = column {
            for (length, view) in lengths.iter_mut().zip(array.views()) {
                // The lower half of the lower half of a view is its length.
                *length += u64::from(*view as u32);
            }
        }
    }
    lengths.iter().position(|length| *length > MAX_RECORD_BYTES as u64)
}

fn damaged(path: &Path, error: impl std::error::Error) -> DataError {
    DataError::Damaged { path: path.to_owned(), format: "Parquet", message: error.to_string() }
}

/// The names of the columns, and the types of those that cannot be used.
pub(crate) fn header(path: &Path) -> Result<(Vec<String>, Vec<Option<String>>), DataError> {
    let builder = open(path)?;
    let fields = builder.schema().fields();
    let names = fields.iter().map(|field| field.name().trim().to_owned()).collect();
    let unsupported = fields
        .iter()
        .map(|field| (!is_supported(field.data_type())).then(|| field.data_type().to_string()))
        .collect();
    Ok((names, unsupported))
}

/// How many rows there are.
pub(crate) fn rows(path: &Path) -> Result<u64, DataError> {
    Ok(open(path)?.metadata().file_metadata().num_rows().max(0) as u64)
}

/// Calls `visit` with the columns of a batch and an index into it, for every row.
pub(crate) fn scan<E: From<DataError>>(
    path: &Path,
    width: usize,
    mut visit: impl FnMut(&[Cells], usize) -> Result<(), E>,
) -> Result<(), E> {
    let builder = open(path)?;
    let fields = builder.schema().fields().clone();
    if fields.len() != width {
        return Err(DataError::Changed { path: path.to_owned() }.into());
    }
    let readable: Vec<usize> =
        (0..width).filter(|&index| is_supported(fields[index].data_type())).collect();
    let rows_at_a_time = rows_at_a_time(path, &builder, &readable)?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), readable.iter().copied());
    let reader = builder
        .with_projection(mask)
        .with_batch_size(rows_at_a_time)
        .build()
        .map_err(|error| damaged(path, error))?;
    let mut before = 0;
    for batch in reader {
        let batch = batch.map_err(|error| damaged(path, error))?;
        let mut columns: Vec<Cells> = (0..width).map(|_| Cells::Nothing).collect();
        for (&position, array) in readable.iter().zip(batch.columns()) {
            columns[position] = Cells::new(array).map_err(|error| damaged(path, error))?;
        }
        if let Some(index) = long_row(&columns, batch.num_rows()) {
            return Err(too_long(path, before + index as u64 + 1).into());
        }
        before += batch.num_rows() as u64;
        for index in 0..batch.num_rows() {
            visit(&columns, index)?;
        }
    }
    Ok(())
}
