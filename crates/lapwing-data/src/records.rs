//! The records of a table that is read once: a file, or a stream such as standard input.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use crate::error::DataError;
use crate::file::{Record, TableFile};
use crate::text::TextStream;

/// Where records come from.
pub(crate) enum Records {
    File(TableFile),
    Stream(TextStream),
}

impl Records {
    /// Those of a file.
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        TableFile::open(path).map(Self::File)
    }

    /// Those of text that comes from somewhere; `name` stands for it in messages.
    pub(crate) fn from_reader(name: &str, reader: impl Read + 'static) -> Result<Self, DataError> {
        let stream = TextStream::new(PathBuf::from(name), Box::new(BufReader::new(reader)))?;
        Ok(Self::Stream(stream))
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(file) => file.path(),
            Self::Stream(stream) => stream.path(),
        }
    }

    pub(crate) fn columns(&self) -> &[String] {
        match self {
            Self::File(file) => file.columns(),
            Self::Stream(stream) => stream.columns(),
        }
    }

    /// How long they are, in the unit of [`Record::read`], where that is known in advance.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::File(file) => file.length(),
            Self::Stream(_) => None,
        }
    }

    /// Position of a column.
    pub(crate) fn position(&self, column: &str) -> Result<usize, DataError> {
        self.columns().iter().position(|name| name == column).ok_or_else(|| {
            DataError::MissingColumn {
                path: self.path().to_owned(),
                column: column.to_owned(),
                available: self.columns().to_vec(),
            }
        })
    }

    /// Position of a column whose values can be read.
    pub(crate) fn usable(&self, column: &str) -> Result<usize, DataError> {
        let position = self.position(column)?;
        match self {
            Self::File(file) => file.check_usable(position)?,
            Self::Stream(_) => {}
        }
        Ok(position)
    }

    /// Calls `visit` with every record, until it returns an error.
    pub(crate) fn scan<E: From<DataError>>(
        self,
        visit: impl FnMut(&Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::File(file) => file.scan(visit),
            Self::Stream(stream) => stream.scan(visit),
        }
    }
}
