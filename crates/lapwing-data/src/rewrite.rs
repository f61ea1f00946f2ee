//! Copying a table while changing some of its rows.

use std::io::{self, BufWriter, Write};

use csv::StringRecord;
use flate2::write::GzEncoder;

use crate::error::DataError;
use crate::file::TableFile;
use crate::text::{BYTE_ORDER_MARK, Compression};

/// How a copy of a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As text, by [`rewrite`].
    Text(Compression),
    /// As Parquet, by [`rewrite_parquet`](crate::rewrite_parquet).
    Parquet,
}

/// Copies a table as text, record by record; `edit` sees every record with its data row, counted from 1, and may change it.
///
/// Header, order, delimiter, line ends and a byte order mark stay; fields are quoted where they have to be, and blank lines
/// are dropped. Parquet without lists and folders of pictures become CSV. Returns how many rows were copied. The caller
/// decides where the bytes go and discards them when this fails.
pub fn rewrite<E: From<DataError>>(
    file: &TableFile,
    output: impl Write,
    compression: Compression,
    mut edit: impl FnMut(u64, &mut StringRecord) -> Result<(), E>,
) -> Result<u64, E> {
    file.check_that_it_has_text()?;
    let dialect = file.dialect();
    let mut output =
        Compressor::new(BufWriter::new(output), compression).map_err(DataError::Write)?;
    if dialect.marked {
        output.write_all(BYTE_ORDER_MARK).map_err(DataError::Write)?;
    }
    let line_end = match dialect.carriage_returns {
        true => csv::Terminator::CRLF,
        false => csv::Terminator::Any(b'\n'),
    };
    let mut writer = csv::WriterBuilder::new()
        .delimiter(dialect.delimiter)
        .terminator(line_end)
        .from_writer(output);
    let write_error = |error: csv::Error| DataError::Write(io::Error::from(error));
    writer.write_record(file.header()).map_err(write_error)?;
    let mut rows = 0;
    let mut copy = StringRecord::new();
    file.each_record(|row, record| {
        copy.clone_from(record);
        edit(row, &mut copy)?;
        writer.write_record(&copy).map_err(write_error)?;
        rows = row;
        Ok::<(), E>(())
    })?;
    let output = writer.into_inner().map_err(|error| DataError::Write(error.into_error()))?;
    output.finish().map_err(DataError::Write)?;
    Ok(rows)
}

/// The three ways in which text is written.
enum Compressor<W: Write> {
    None(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> Compressor<W> {
    fn new(output: W, compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None(output),
            // Without name and time in its header the file depends on its content alone.
            Compression::Gzip => Self::Gzip(GzEncoder::new(output, flate2::Compression::default())),
            Compression::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(output, 0)?),
        })
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::None(output) => output,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        }
        .flush()
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::None(output) => output.write(buffer),
            Self::Gzip(encoder) => encoder.write(buffer),
            Self::Zstd(encoder) => encoder.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::None(output) => output.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}
