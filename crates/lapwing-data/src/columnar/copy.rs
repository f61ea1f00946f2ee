//! A copy of a Parquet file in which some values are others.
//!
//! Columns of a row group in which nothing changes are copied as they are stored, whatever they hold. A column in which
//! something changes is read and written again, with its type and its compression.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use csv::StringRecord;
use half::f16;
use parquet::basic::Compression;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::{ColumnCloseResult, ColumnWriterImpl};
use parquet::data_type::{DataType, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};

use super::{Meaning, columns, damaged, open, read, read_sheltered, rows_at_a_time};
use crate::error::DataError;
use crate::file::TableFile;

/// Copies a Parquet file; `edit` sees every record as text with its data row, counted from 1, and may change what stands in
/// the columns that are `changing`. What is missing stays missing.
///
/// Types, row groups and what else the file says of itself stay; indices of pages and filters of values are left out.
/// Returns how many rows were copied. The caller decides where the bytes go and discards them when this fails.
pub fn rewrite_parquet<E: From<DataError>>(
    file: &TableFile,
    changing: &[usize],
    output: &mut (dyn Write + Send),
    edit: impl FnMut(u64, &mut StringRecord) -> Result<(), E>,
) -> Result<u64, E> {
    let original = Original::open(file, changing)?;
    let mut output = Noted { output, failed: None };
    let copied = original.copy(changing, &mut output, edit);
    match output.failed {
        Some(error) => Err(DataError::Write(error).into()),
        None => copied,
    }
}

/// The values of a column that change: rows of the group, counted from 0, and what stands there then.
type Changes = Vec<(usize, String)>;

/// The file that is copied.
struct Original<'a> {
    file: &'a TableFile,
    reader: SerializedFileReader<File>,
    /// For columns as they are stored.
    stored: File,
    /// The leaf of each column, and what it means.
    readable: Vec<Option<(usize, Meaning)>>,
    rows_at_a_time: usize,
    properties: WriterProperties,
}

impl<'a> Original<'a> {
    fn open(file: &'a TableFile, changing: &[usize]) -> Result<Self, DataError> {
        let path = file.path();
        let reader = open(path)?;
        let metadata = reader.metadata();
        let readable = columns(metadata.file_metadata().schema_descr());
        if readable.len() != file.columns().len() {
            return Err(DataError::Changed { path: path.to_owned() });
        }
        let mut properties = WriterProperties::builder()
            .set_key_value_metadata(metadata.file_metadata().key_value_metadata().cloned())
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true);
        for &column in changing {
            let leaf = match readable[column] {
                Some((leaf, meaning)) if unwritten(meaning).is_none() => leaf,
                other => {
                    let found = other.and_then(|(_, meaning)| unwritten(meaning));
                    return Err(DataError::NotChanged {
                        path: path.to_owned(),
                        column: file.columns()[column].clone(),
                        found: found.unwrap_or("bytes or groups"),
                    });
                }
            };
            if let Some(group) = metadata.row_groups().first() {
                let chunk = group.column(leaf);
                let compression = match chunk.compression() {
                    // The old framing of it, which is read and no longer written.
                    Compression::LZ4 => Compression::LZ4_RAW,
                    compression => compression,
                };
                let place = chunk.column_path().clone();
                properties = properties.set_column_compression(place, compression);
            }
        }
        let rows_at_a_time = rows_at_a_time(path, &reader, &readable)?;
        let stored =
            File::open(path).map_err(|source| DataError::Open { path: path.to_owned(), source })?;
        let properties = properties.build();
        Ok(Self { file, reader, stored, readable, rows_at_a_time, properties })
    }

    fn copy<E: From<DataError>>(
        &self,
        changing: &[usize],
        output: &mut Noted<'_>,
        mut edit: impl FnMut(u64, &mut StringRecord) -> Result<(), E>,
    ) -> Result<u64, E> {
        let damaged = |error| damaged(self.file.path(), error);
        let metadata = self.reader.metadata();
        let schema = metadata.file_metadata().schema_descr().root_schema_ptr();
        let mut writer =
            SerializedFileWriter::new(output, schema, Arc::new(self.properties.clone()))
                .map_err(damaged)?;
        let lengths = metadata.row_groups().iter().map(|group| group.num_rows().max(0) as u64);
        let mut groups = lengths.enumerate().filter(|(_, rows)| *rows > 0);
        let mut group = groups.next();
        let mut changes = vec![Changes::new(); self.readable.len()];
        let (mut before, mut rows, mut copy) = (0, 0, StringRecord::new());
        self.file.each_record(|row, record| {
            copy.clone_from(record);
            edit(row, &mut copy)?;
            for &column in changing {
                let new = copy.get(column).unwrap_or_default();
                if record.get(column) != Some(new) {
                    changes[column].push(((row - before - 1) as usize, new.to_owned()));
                }
            }
            rows = row;
            if let Some((at, length)) = group.filter(|(_, length)| row == before + length) {
                read_sheltered(|| self.copy_group(at, &mut writer, &mut changes))
                    .map_err(damaged)?;
                before += length;
                group = groups.next();
            }
            Ok::<(), E>(())
        })?;
        writer.close().map_err(damaged)?;
        self.file.check_that_it_is_unchanged()?;
        Ok(rows)
    }

    /// Copies a row group, and forgets its changes.
    fn copy_group(
        &self,
        at: usize,
        writer: &mut SerializedFileWriter<&mut Noted<'_>>,
        changes: &mut [Changes],
    ) -> Result<(), ParquetError> {
        let group = self.reader.get_row_group(at)?;
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let mut copy = writer.next_row_group()?;
        for (leaf, chunk) in group.metadata().columns().iter().enumerate() {
            let column = schema.get_column_root_idx(leaf);
            let changes = std::mem::take(&mut changes[column]);
            match self.readable[column] {
                Some((_, meaning)) if !changes.is_empty() => {
                    let Some(mut copied) = copy.next_column()? else { break };
                    let optional = schema.column(leaf).max_def_level() > 0;
                    let column = group.get_column_reader(leaf)?;
                    Chunk { meaning, optional, rows_at_a_time: self.rows_at_a_time, changes }
                        .copy(column, &mut copied)?;
                    copied.close()?;
                }
                _ => {
                    let stored = ColumnCloseResult {
                        bytes_written: chunk.compressed_size().max(0) as u64,
                        rows_written: group.metadata().num_rows().max(0) as u64,
                        metadata: chunk.clone(),
                        bloom_filter: None,
                        column_index: None,
                        offset_index: None,
                    };
                    copy.append_column(&self.stored, stored)?;
                }
            }
        }
        copy.close()?;
        Ok(())
    }
}

/// What a column holds, in words, if it is not written.
fn unwritten(meaning: Meaning) -> Option<&'static str> {
    match meaning {
        Meaning::Bool | Meaning::Integer | Meaning::Unsigned | Meaning::Float | Meaning::Text => {
            None
        }
        Meaning::Decimal(_) => Some("decimal numbers"),
        Meaning::Days | Meaning::Ticks(_) => Some("dates"),
        Meaning::TimeOfDay(_) => Some("times of day"),
        Meaning::List { .. } => Some("lists of numbers"),
    }
}

/// A column of a row group in which something changes.
struct Chunk {
    meaning: Meaning,
    optional: bool,
    rows_at_a_time: usize,
    changes: Changes,
}

impl Chunk {
    fn copy(
        self,
        column: ColumnReader,
        copy: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), ParquetError> {
        let unsigned = self.meaning == Meaning::Unsigned;
        match column {
            ColumnReader::BoolColumnReader(reader) => {
                self.values(reader, copy.typed(), |text| text.parse().ok())
            }
            ColumnReader::Int32ColumnReader(reader) => {
                self.values(reader, copy.typed(), |text| match unsigned {
                    true => u32::try_from(whole(text)?).ok().map(|value| value as i32),
                    false => i32::try_from(whole(text)?).ok(),
                })
            }
            ColumnReader::Int64ColumnReader(reader) => {
                self.values(reader, copy.typed(), |text| match unsigned {
                    true => Some(whole(text)?.clamp(0, u64::MAX.into()) as u64 as i64),
                    false => Some(whole(text)?.clamp(i64::MIN.into(), i64::MAX.into()) as i64),
                })
            }
            ColumnReader::FloatColumnReader(reader) => {
                self.values(reader, copy.typed(), |text| text.parse().ok())
            }
            ColumnReader::DoubleColumnReader(reader) => {
                self.values(reader, copy.typed(), |text| text.parse().ok())
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                self.values(reader, copy.typed(), |text| Some(text.into()))
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                self.values(reader, copy.typed(), |text| {
                    let bytes = f16::from_f32(text.parse().ok()?).to_le_bytes();
                    Some(FixedLenByteArray::from(bytes.to_vec()))
                })
            }
            ColumnReader::Int96ColumnReader(_) => {
                Err(ParquetError::General("dates are not written".to_owned()))
            }
        }
    }

    fn values<T: DataType>(
        self,
        mut column: ColumnReaderImpl<T>,
        copy: &mut ColumnWriterImpl<'_, T>,
        value: impl Fn(&str) -> Option<T::T>,
    ) -> Result<(), ParquetError> {
        let mut changes = self.changes.into_iter().peekable();
        let mut before = 0;
        loop {
            let mut cells = read(&mut column, self.rows_at_a_time, self.optional)?;
            if cells.is_empty() {
                return Ok(());
            }
            let end = before + cells.len();
            while let Some((row, text)) = changes.next_if(|(row, _)| *row < end) {
                let new = value(&text).ok_or_else(|| {
                    ParquetError::General(format!("a column cannot hold {text:?}"))
                })?;
                cells[row - before] = Some(new);
            }
            before = end;
            let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
            let values: Vec<T::T> = cells.into_iter().flatten().collect();
            copy.write_batch(&values, self.optional.then_some(levels.as_slice()), None)?;
        }
    }
}

/// A whole number as a class or as noise is written: `17`, or `1e17`.
fn whole(text: &str) -> Option<i128> {
    text.parse().ok().or_else(|| text.parse().ok().map(|value: f64| value as i128))
}

/// An output that remembers why it failed; the writer of Parquet passes on a text.
struct Noted<'a> {
    output: &'a mut (dyn Write + Send),
    failed: Option<io::Error>,
}

impl Noted<'_> {
    fn note<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let passed = io::Error::new(error.kind(), error.to_string());
            if error.kind() != io::ErrorKind::Interrupted {
                self.failed.get_or_insert(error);
            }
            passed
        })
    }
}

impl Write for Noted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.output.write(bytes);
        self.note(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.output.flush();
        self.note(done)
    }
}
