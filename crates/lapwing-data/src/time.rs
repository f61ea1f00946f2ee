//! When rows were taken.

use crate::date;
use crate::error::{DataError, shortened};
use crate::file::Record;
use crate::number_text;
use crate::numeral::Numerals;
use crate::schema::{ColumnSchema, Kind};
use crate::value::{Lexicon, Value};

/// A time for each row, in 64 bits: seconds must not be lost over years.
#[derive(Debug, Clone, PartialEq)]
pub struct Times {
    /// Seconds since 1970 where the column holds dates, else its numbers; NaN where there is none.
    pub values: Vec<f64>,
    pub(crate) is_date: bool,
    pub(crate) with_time: bool,
}

impl Times {
    /// A time as it would stand in the table.
    pub fn text(&self, value: f64) -> String {
        match self.is_date {
            true => date::format(value, self.with_time),
            false => number_text(value),
        }
    }

    /// Rows without a time.
    pub fn missing(&self) -> u64 {
        self.values.iter().filter(|value| value.is_nan()).count() as u64
    }
}

/// Fills the times row by row.
pub(crate) struct TimeBuilder {
    position: usize,
    name: String,
    kind: Kind,
    numerals: Numerals,
    times: Times,
    buffer: String,
}

impl TimeBuilder {
    /// Of a column of numbers or dates.
    pub(crate) fn new(schema: &ColumnSchema, position: usize, capacity: usize) -> Self {
        let is_date = schema.kind == Kind::Date;
        let times = Times { values: Vec::with_capacity(capacity), is_date, with_time: false };
        let (name, kind, numerals) = (schema.name.clone(), schema.kind, schema.storage.numerals);
        Self { position, name, kind, numerals, times, buffer: String::new() }
    }

    pub(crate) fn push(&mut self, lexicon: &Lexicon, record: &Record<'_>) -> Result<(), DataError> {
        let raw = record.value(self.position);
        let value = match lexicon.look_as(raw, self.numerals) {
            Value::Missing | Value::Infinite => f64::NAN,
            Value::Number(number) if !self.times.is_date => number,
            Value::Date(moment) if self.times.is_date => {
                self.times.with_time |= moment.has_time;
                moment.seconds
            }
            _ => {
                let found = lexicon.text(raw, &mut self.buffer).unwrap_or_default();
                return Err(DataError::WrongType {
                    place: record.place(),
                    column: self.name.clone(),
                    expected: self.kind,
                    value: shortened(found),
                });
            }
        };
        self.times.values.push(value);
        Ok(())
    }

    pub(crate) fn finish(self) -> Times {
        self.times
    }
}
