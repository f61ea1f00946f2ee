//! Parquet, batch by batch.

mod copy;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

pub use copy::rewrite_parquet;
use half::f16;
use parquet::basic::{
    Compression, ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical,
};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type};

use crate::date::{DAY, Moment};
use crate::error::{DataError, Place};
use crate::file::Holds;
use crate::guard::MAX_RECORD_BYTES;
use crate::shelter::sheltered;
use crate::value::Raw;

/// Rows decoded at a time, at most: the part of a Parquet file that is in memory twice.
const BATCH: usize = 4096;
/// Bytes decoded at a time, about.
const BATCH_BYTES: u64 = 32 << 20;

/// What the numbers and bytes of a column stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Meaning {
    Bool,
    Integer,
    Unsigned,
    Float,
    /// A whole number of parts, so many to one.
    Decimal(f64),
    /// Days since 1970-01-01.
    Days,
    /// Ticks since 1970-01-01, and how many make a second.
    Ticks(f64),
    /// Ticks since midnight.
    TimeOfDay(f64),
    Text,
    /// A list of numbers; whole ones may be below zero, or may not.
    List {
        signed: bool,
    },
}

impl Meaning {
    /// `None` for what a table cannot use: bytes, lists of anything but numbers, intervals.
    fn of(column: &ColumnDescriptor) -> Option<Self> {
        match (column.max_rep_level(), Self::of_value(column)?) {
            (0, meaning) if column.max_def_level() <= 1 => Some(meaning),
            (1, Self::Float | Self::Integer) => Some(Self::List { signed: true }),
            (1, Self::Unsigned) => Some(Self::List { signed: false }),
            _ => None,
        }
    }

    /// Of one value.
    fn of_value(column: &ColumnDescriptor) -> Option<Self> {
        use ConvertedType as C;
        use LogicalType as L;
        use Physical as P;
        let decimal = |scale: i32| Some(Self::Decimal(10f64.powi(scale.max(0))));
        let physical = column.physical_type();
        match (physical, column.logical_type_ref(), column.converted_type()) {
            (P::FIXED_LEN_BYTE_ARRAY, Some(L::Float16), _) => Some(Self::Float),
            (
                P::INT32 | P::INT64 | P::BYTE_ARRAY | P::FIXED_LEN_BYTE_ARRAY,
                Some(L::Decimal(d)),
                _,
            ) => decimal(d.scale),
            (P::INT32 | P::INT64 | P::BYTE_ARRAY | P::FIXED_LEN_BYTE_ARRAY, _, C::DECIMAL) => {
                decimal(column.type_scale())
            }
            (P::BOOLEAN, ..) => Some(Self::Bool),
            (P::FLOAT | P::DOUBLE, ..) => Some(Self::Float),
            (P::INT96, ..) => Some(Self::Ticks(1e9)),
            (P::INT32, Some(L::Date), _) | (P::INT32, _, C::DATE) => Some(Self::Days),
            (_, Some(L::Time(time)), _) => Some(Self::TimeOfDay(ticks(time.unit))),
            (P::INT64, Some(L::Timestamp(moment)), _) => Some(Self::Ticks(ticks(moment.unit))),
            (P::INT64, _, C::TIMESTAMP_MILLIS) => Some(Self::Ticks(1e3)),
            (P::INT64, _, C::TIMESTAMP_MICROS) => Some(Self::Ticks(1e6)),
            (P::INT32, _, C::TIME_MILLIS) => Some(Self::TimeOfDay(1e3)),
            (P::INT64, _, C::TIME_MICROS) => Some(Self::TimeOfDay(1e6)),
            (P::INT32 | P::INT64, Some(L::Integer(integer)), _) if !integer.is_signed => {
                Some(Self::Unsigned)
            }
            (P::INT32 | P::INT64, _, C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64) => {
                Some(Self::Unsigned)
            }
            (P::INT32 | P::INT64, ..) => Some(Self::Integer),
            (P::BYTE_ARRAY, Some(L::String | L::Enum | L::Json), _)
            | (P::BYTE_ARRAY, _, C::UTF8 | C::ENUM | C::JSON) => Some(Self::Text),
            (P::BYTE_ARRAY | P::FIXED_LEN_BYTE_ARRAY, ..) => None,
        }
    }
}

fn ticks(unit: TimeUnit) -> f64 {
    match unit {
        TimeUnit::MILLIS => 1e3,
        TimeUnit::MICROS => 1e6,
        TimeUnit::NANOS => 1e9,
    }
}

/// One column of a batch.
pub(crate) enum Cells {
    Bools(Vec<Option<bool>>),
    Small(Vec<Option<i32>>, Meaning),
    Large(Vec<Option<i64>>, Meaning),
    Single(Vec<Option<f32>>),
    Double(Vec<Option<f64>>),
    /// Checked to be UTF-8.
    Text(Vec<Option<ByteArray>>),
    Lists(Lists),
    /// Nested or binary.
    Nothing,
}

/// Lists of numbers, one after another; a number that is missing is NaN.
#[derive(Default)]
pub(crate) struct Lists {
    values: Vec<f32>,
    /// Where each list ends, and whether there is one.
    ends: Vec<(usize, bool)>,
}

impl Lists {
    fn get(&self, index: usize) -> Option<&[f32]> {
        let &(end, present) = self.ends.get(index)?;
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before].0);
        present.then(|| &self.values[begin..end])
    }
}

impl Cells {
    pub(crate) fn value(&self, index: usize) -> Raw<'_> {
        fn of<'a, T>(
            cells: &'a [Option<T>],
            index: usize,
            raw: impl FnOnce(&'a T) -> Raw<'a>,
        ) -> Raw<'a> {
            cells.get(index).and_then(Option::as_ref).map_or(Raw::Null, raw)
        }
        match self {
            Self::Bools(cells) => of(cells, index, |value| Raw::Bool(*value)),
            Self::Small(cells, meaning) => of(cells, index, |&value| match meaning {
                Meaning::Unsigned => Raw::Integer((value as u32).into()),
                meaning => number(value.into(), *meaning),
            }),
            Self::Large(cells, meaning) => of(cells, index, |&value| match meaning {
                Meaning::Unsigned => Raw::Integer((value as u64).into()),
                meaning => number(value, *meaning),
            }),
            Self::Single(cells) => of(cells, index, |value| Raw::Single(*value)),
            Self::Double(cells) => of(cells, index, |value| Raw::Double(*value)),
            Self::Text(cells) => {
                of(cells, index, |text| Raw::Text(text.as_utf8().unwrap_or_default()))
            }
            Self::Lists(lists) => lists.get(index).map_or(Raw::Null, Raw::List),
            Self::Nothing => Raw::Null,
        }
    }

    /// Bytes of text in each row, added to what other columns have.
    fn add_lengths(&self, lengths: &mut [u64]) {
        if let Self::Text(cells) = self {
            for (length, text) in lengths.iter_mut().zip(cells) {
                *length += text.as_ref().map_or(0, |text| text.len() as u64);
            }
        }
    }
}

fn number(value: i64, meaning: Meaning) -> Raw<'static> {
    match meaning {
        Meaning::Decimal(parts) => Raw::Double(value as f64 / parts),
        Meaning::Days => Raw::Date(Moment { seconds: value as f64 * DAY, has_time: false }),
        Meaning::Ticks(per_second) => {
            Raw::Date(Moment { seconds: value as f64 / per_second, has_time: true })
        }
        Meaning::TimeOfDay(per_second) => Raw::Double(value as f64 / per_second),
        _ => Raw::Integer(value.into()),
    }
}

/// A number in big-endian two's complement, of any length.
fn signed(bytes: &[u8]) -> f64 {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    // The complement of a negative number is not negative, and one less than its size.
    let digit = |&byte: &u8| f64::from(if negative { !byte } else { byte });
    let size = bytes.iter().map(digit).fold(0.0, |sum, digit| sum * 256.0 + digit);
    if negative { -size - 1.0 } else { size }
}

/// A number of two bytes.
fn half(bytes: &[u8]) -> f32 {
    <[u8; 2]>::try_from(bytes).map_or(f32::NAN, |bytes| f16::from_le_bytes(bytes).to_f32())
}

/// A column of a row group on its way out of the file.
struct Stream {
    reader: ColumnReader,
    meaning: Meaning,
    optional: bool,
    /// Of a list: the level at which a place of it exists, and the one at which there is a number in it.
    levels: (i16, i16),
}

impl Stream {
    fn next(&mut self, rows: usize) -> Result<Cells, ParquetError> {
        let (meaning, optional) = (self.meaning, self.optional);
        if let Meaning::List { signed } = meaning {
            let levels = self.levels;
            return Ok(Cells::Lists(match &mut self.reader {
                ColumnReader::FloatColumnReader(reader) => read_lists(reader, rows, levels, |v| v)?,
                ColumnReader::DoubleColumnReader(reader) => {
                    read_lists(reader, rows, levels, |v| v as f32)?
                }
                ColumnReader::Int32ColumnReader(reader) => {
                    let single = |v: i32| if signed { v as f32 } else { v as u32 as f32 };
                    read_lists(reader, rows, levels, single)?
                }
                ColumnReader::Int64ColumnReader(reader) => {
                    let single = |v: i64| if signed { v as f32 } else { v as u64 as f32 };
                    read_lists(reader, rows, levels, single)?
                }
                ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                    read_lists(reader, rows, levels, |v: FixedLenByteArray| half(v.data()))?
                }
                _ => Lists::default(),
            }));
        }
        Ok(match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => Cells::Bools(read(reader, rows, optional)?),
            ColumnReader::Int32ColumnReader(reader) => {
                Cells::Small(read(reader, rows, optional)?, meaning)
            }
            ColumnReader::Int64ColumnReader(reader) => {
                Cells::Large(read(reader, rows, optional)?, meaning)
            }
            ColumnReader::Int96ColumnReader(reader) => {
                let moments = read(reader, rows, optional)?;
                let moments =
                    moments.iter().map(|cell: &Option<Int96>| cell.as_ref().map(Int96::to_nanos));
                Cells::Large(moments.collect(), meaning)
            }
            ColumnReader::FloatColumnReader(reader) => Cells::Single(read(reader, rows, optional)?),
            ColumnReader::DoubleColumnReader(reader) => {
                Cells::Double(read(reader, rows, optional)?)
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                let texts: Vec<Option<ByteArray>> = read(reader, rows, optional)?;
                match meaning {
                    Meaning::Decimal(parts) => {
                        let value = |text: &ByteArray| signed(text.data()) / parts;
                        Cells::Double(texts.iter().map(|cell| cell.as_ref().map(value)).collect())
                    }
                    _ => {
                        texts.iter().flatten().try_for_each(|text| text.as_utf8().map(drop))?;
                        Cells::Text(texts)
                    }
                }
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                let cells: Vec<Option<FixedLenByteArray>> = read(reader, rows, optional)?;
                let bytes = cells.iter().map(|cell| cell.as_ref().map(|cell| cell.data()));
                match meaning {
                    Meaning::Decimal(parts) => Cells::Double(
                        bytes.map(|cell| cell.map(|cell| signed(cell) / parts)).collect(),
                    ),
                    _ => Cells::Single(bytes.map(|cell| cell.map(half)).collect()),
                }
            }
        })
    }
}

/// The next `rows` cells of a column, or as many as there are.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    optional: bool,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let (mut levels, mut values, mut records) = (Vec::new(), Vec::new(), 0);
    while records < rows {
        let (more, ..) = reader.read_records(
            rows - records,
            optional.then_some(&mut levels),
            None,
            &mut values,
        )?;
        if more == 0 {
            break;
        }
        records += more;
    }
    if !optional {
        return Ok(values.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    Ok(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
}

/// The next `rows` lists of a column, or as many as there are.
fn read_lists<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    (place, number): (i16, i16),
    single: impl Fn(T::T) -> f32,
) -> Result<Lists, ParquetError> {
    let (mut definitions, mut repetitions, mut values, mut records) =
        (Vec::new(), Vec::new(), Vec::new(), 0);
    while records < rows {
        let (more, ..) = reader.read_records(
            rows - records,
            Some(&mut definitions),
            Some(&mut repetitions),
            &mut values,
        )?;
        if more == 0 {
            break;
        }
        records += more;
    }
    let (mut lists, mut values) = (Lists::default(), values.into_iter());
    for (definition, repetition) in definitions.into_iter().zip(repetitions) {
        if repetition == 0 {
            // A list without places is empty, or there is none; a table can use neither.
            lists.ends.push((lists.values.len(), definition >= place));
        }
        if definition >= place {
            let value = if definition >= number { values.next() } else { None };
            lists.values.push(value.map_or(f32::NAN, &single));
            if let Some((end, _)) = lists.ends.last_mut() {
                *end = lists.values.len();
            }
        }
    }
    Ok(lists)
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, DataError> {
    let open = |source| DataError::Open { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(open)?;
    let mut end = [0; 4];
    file.seek(SeekFrom::End(-4)).and_then(|_| file.read_exact(&mut end)).map_err(open)?;
    if &end != b"PAR1" {
        return Err(DataError::Truncated { path: path.to_owned(), format: "Parquet" });
    }
    read_sheltered(|| SerializedFileReader::new(file)).map_err(|error| damaged(path, error))
}

/// Does something with the reader, whose panics are errors.
fn read_sheltered<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    sheltered(work).unwrap_or_else(|panic| Err(ParquetError::General(panic)))
}

fn damaged(path: &Path, error: impl std::error::Error) -> DataError {
    DataError::Damaged { path: path.to_owned(), format: "Parquet", message: error.to_string() }
}

/// For each column of the table, the leaf it is and what it means; `None` for those that cannot be used.
fn columns(schema: &SchemaDescriptor) -> Vec<Option<(usize, Meaning)>> {
    let mut columns = vec![None; schema.root_schema().get_fields().len()];
    for leaf in 0..schema.num_columns() {
        let root = schema.get_column_root(leaf);
        let meaning = Meaning::of(&schema.column(leaf));
        // Of groups, lists alone are values: one leaf, which is repeated and nothing above it but the list.
        if root.is_primitive() || (matches!(meaning, Some(Meaning::List { .. })) && is_list(root)) {
            columns[schema.get_column_root_idx(leaf)] = meaning.map(|meaning| (leaf, meaning));
        }
    }
    columns
}

/// Whether a group is a list: in it one that is repeated, and in that one value, as the format says.
fn is_list(group: &Type) -> bool {
    let only = |group: &Type| match group.get_fields() {
        [only] => Some(only.clone()),
        _ => None,
    };
    group.is_group()
        && only(group).is_some_and(|places| {
            places.is_primitive() || only(&places).is_some_and(|value| value.is_primitive())
        })
}

/// The type of a column that cannot be used, in words.
fn name_of_type(field: &Type) -> &'static str {
    let repeated = field.get_basic_info().has_repetition()
        && field.get_basic_info().repetition() == Repetition::REPEATED;
    if field.is_group() || repeated {
        "a list of something other than numbers, or a group"
    } else {
        "bytes"
    }
}

/// What the header of a file says.
pub(crate) struct Header {
    /// The names of the columns.
    pub(crate) names: Vec<String>,
    /// What each can hold.
    pub(crate) holds: Vec<Holds>,
}

/// Reads the header.
pub(crate) fn header(path: &Path) -> Result<Header, DataError> {
    let reader = open(path)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let fields = schema.root_schema().get_fields();
    let names = fields.iter().map(|field| field.name().trim().to_owned()).collect();
    let holds = |(field, column): (&Arc<Type>, Option<(usize, Meaning)>)| match column {
        None => Holds::Unsupported(name_of_type(field)),
        Some((_, Meaning::List { .. })) => Holds::List,
        Some((_, Meaning::Text)) => Holds::Text,
        Some((leaf, meaning)) => match whole(&schema.column(leaf), meaning) {
            Some((low, high)) => Holds::Whole(low, high),
            None => Holds::Value,
        },
    };
    let holds = fields.iter().zip(columns(schema)).map(holds).collect();
    Ok(Header { names, holds })
}

/// The least and the greatest of the whole numbers that a column can hold, if it holds such.
fn whole(column: &ColumnDescriptor, meaning: Meaning) -> Option<(f64, f64)> {
    use ConvertedType as C;
    let bits = match (column.logical_type_ref(), column.converted_type(), column.physical_type()) {
        (Some(LogicalType::Integer(integer)), ..) => i32::from(integer.bit_width),
        (_, C::INT_8 | C::UINT_8, _) => 8,
        (_, C::INT_16 | C::UINT_16, _) => 16,
        (_, _, Physical::INT32) => 32,
        _ => 64,
    };
    let above = |bits: i32| 2f64.powi(bits);
    match meaning {
        Meaning::Integer => Some((-above(bits - 1), above(bits - 1) - 1.0)),
        Meaning::Unsigned => Some((0.0, above(bits) - 1.0)),
        _ => None,
    }
}

/// How many rows there are.
pub(crate) fn rows(path: &Path) -> Result<u64, DataError> {
    Ok(open(path)?.metadata().file_metadata().num_rows().max(0) as u64)
}

/// Rows to decode at a time, so that their text fits into memory several times over.
///
/// Text in the file has the limit of a record of CSV. A page is decoded as a whole, so a row group whose rows are on
/// average longer than that is refused before any of them is.
fn rows_at_a_time(
    path: &Path,
    reader: &SerializedFileReader<File>,
    readable: &[Option<(usize, Meaning)>],
) -> Result<usize, DataError> {
    let (mut rows, mut first) = (BATCH as u64, 1);
    for group in reader.metadata().row_groups() {
        let chunks = readable.iter().flatten().map(|(leaf, _)| group.column(*leaf));
        let mut bytes = 0u64;
        for chunk in chunks {
            if let codec @ (Compression::BROTLI(_) | Compression::LZO) = chunk.compression() {
                return Err(DataError::Codec { path: path.to_owned(), codec: codec.to_string() });
            }
            // The reader takes it for granted, and panics otherwise.
            let begin = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
            if begin < 0 || chunk.compressed_size() < 0 {
                let (path, message) =
                    (path.to_owned(), "a column begins or ends before the file".to_owned());
                return Err(DataError::Damaged { path, format: "Parquet", message });
            }
            bytes = bytes.saturating_add(chunk.uncompressed_size().max(0) as u64);
        }
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

/// Calls `visit` with the columns of a batch and an index into it, for every row.
pub(crate) fn scan<E: From<DataError>>(
    path: &Path,
    width: usize,
    mut visit: impl FnMut(&[Cells], usize) -> Result<(), E>,
) -> Result<(), E> {
    let reader = open(path)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let readable = columns(&schema);
    if readable.len() != width {
        return Err(DataError::Changed { path: path.to_owned() }.into());
    }
    let at_a_time = rows_at_a_time(path, &reader, &readable)?;
    let damaged = |error| damaged(path, error);
    let mut before = 0;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(damaged)?;
        let stream = |&(leaf, meaning): &(usize, Meaning)| {
            let column = schema.column(leaf);
            let number = column.max_def_level();
            let own = &column.self_type().get_basic_info();
            let nullable = own.has_repetition() && own.repetition() == Repetition::OPTIONAL;
            let levels = (number - i16::from(nullable), number);
            let reader = group.get_column_reader(leaf)?;
            Ok(Stream { reader, meaning, optional: number > 0, levels })
        };
        let each = || readable.iter().map(|column| column.as_ref().map(stream).transpose());
        let mut streams =
            read_sheltered(|| each().collect::<Result<Vec<_>, ParquetError>>()).map_err(damaged)?;
        let mut left = group.metadata().num_rows().max(0) as u64;
        while left > 0 {
            let count = left.min(at_a_time as u64) as usize;
            let cells = |stream: &mut Option<Stream>| match stream {
                Some(stream) => stream.next(count),
                None => Ok(Cells::Nothing),
            };
            let batch: Vec<Cells> =
                read_sheltered(|| streams.iter_mut().map(cells).collect()).map_err(damaged)?;
            let mut lengths = vec![0; count];
            batch.iter().for_each(|column| column.add_lengths(&mut lengths));
            if let Some(index) = lengths.iter().position(|length| *length > MAX_RECORD_BYTES as u64)
            {
                return Err(too_long(path, before + index as u64 + 1).into());
            }
            for index in 0..count {
                visit(&batch, index)?;
            }
            before += count as u64;
            left -= count as u64;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_bytes_have_the_sign_of_their_first_bit() {
        assert_eq!(signed(&[]), 0.0);
        assert_eq!(signed(&[0x7f, 0xff]), 32_767.0);
        assert_eq!(signed(&[0xff]), -1.0);
        assert_eq!(signed(&[0x80, 0x00]), -32_768.0);
        assert_eq!(signed(&[0xff, 0xff, 0xff, 0x00]), -256.0);
        assert_eq!(signed(&(-123_456_789_i128).to_be_bytes()), -123_456_789.0);
    }
}
