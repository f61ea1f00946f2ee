//! Rows of a table as vectors, written batch by batch.

use lapwing_sample::{Block, Exhibit, InputSpec, SampleError, Samples, Scale, View};

use super::pixels::Frame;
use super::table::Encoding;
use crate::error::DataError;
use crate::schema::ColumnSchema;
use crate::table::{Column, MISSING, Table, Values};

/// Largest standardised value.
pub const LIMIT: f64 = 10.0;
/// In place of a feature: the value says nothing.
const NEUTRAL: u32 = u32::MAX;

/// The rows of a table as seen through an encoder.
#[derive(Debug)]
pub struct EncodedRows<'a> {
    columns: Vec<Bound<'a>>,
    shown: Vec<&'a Column>,
    frame: Option<Frame<'a>>,
    width: usize,
    len: usize,
}

#[derive(Debug)]
enum Bound<'a> {
    Number { values: &'a [f32], shift: f64, factor: f64, low: f64, high: f64, indicator: bool },
    Vector { values: &'a [f32], scales: Vec<(f64, f64)> },
    Levels { codes: &'a [u32], features: Vec<u32>, other: u32, missing: u32, shares: &'a [f32] },
}

impl<'a> EncodedRows<'a> {
    /// Finds the column of every encoding in the table, by name.
    pub(crate) fn new(
        encodings: impl Iterator<Item = (&'a ColumnSchema, &'a Encoding)>,
        table: &'a Table,
    ) -> Result<Self, DataError> {
        let (mut columns, mut shown) = (Vec::new(), Vec::new());
        let mut width = 0;
        for (schema, encoding) in encodings {
            let column = table.column(&schema.name).ok_or_else(|| DataError::MissingColumn {
                path: table.path().to_owned(),
                column: schema.name.clone(),
                available: table.columns().iter().map(|column| column.name().to_owned()).collect(),
            })?;
            columns.push(Bound::new(encoding, column)?);
            shown.push(column);
            width += encoding.width();
        }
        Ok(Self { columns, frame: Frame::of(&shown), shown, width, len: table.len() })
    }
}

impl Samples for EncodedRows<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn spec(&self) -> InputSpec {
        InputSpec::Vector { width: self.width }
    }

    fn gather(&self, rows: &[u32], view: View) -> Result<Block, SampleError> {
        if view != View::Plain {
            return Err(SampleError::NoViews);
        }
        self.check_rows(rows)?;
        let mut out = vec![0.0; rows.len() * self.width];
        let mut start = 0;
        if !out.is_empty() {
            for column in &self.columns {
                start += column.gather(rows, &mut out, self.width, start);
            }
        }
        Ok(Block::of(out))
    }

    fn exhibit(&self, row: u32) -> Result<Exhibit, SampleError> {
        self.check_rows(&[row])?;
        if let Some(frame) = &self.frame {
            return Ok(frame.picture(row));
        }
        Ok(Exhibit::Cells(self.shown.iter().map(|column| column.display(row)).collect()))
    }
}

impl<'a> Bound<'a> {
    fn new(encoding: &'a Encoding, column: &'a Column) -> Result<Self, DataError> {
        match (encoding, column.values()) {
            (
                Encoding::Number { scale, low, high, indicator },
                Values::Numbers { values, storage, .. },
            ) => {
                let standardised = |value: &f64| (value - scale.mean) / scale.std;
                Ok(Self::Number {
                    values,
                    shift: storage.offset - scale.mean,
                    factor: 1.0 / scale.std,
                    low: low.as_ref().map_or(-LIMIT, standardised).max(-LIMIT),
                    high: high.as_ref().map_or(LIMIT, standardised).min(LIMIT),
                    indicator: *indicator,
                })
            }
            (
                Encoding::Levels { levels, other, missing, shares, .. },
                Values::Codes { codes, levels: table_levels },
            ) => {
                let other_feature = other.then_some(levels.len());
                let features = table_levels
                    .iter()
                    .map(|name| {
                        levels
                            .binary_search_by(|level| level.as_str().cmp(name))
                            .ok()
                            .or(other_feature)
                    })
                    .map(|feature| feature.map_or(NEUTRAL, |feature| feature as u32))
                    .collect();
                Ok(Self::Levels {
                    codes,
                    features,
                    other: other_feature.map_or(NEUTRAL, |feature| feature as u32),
                    missing: if *missing {
                        (levels.len() + usize::from(*other)) as u32
                    } else {
                        NEUTRAL
                    },
                    shares,
                })
            }
            (Encoding::Vector { scales }, Values::Vectors { values, width })
                if scales.len() == *width =>
            {
                let scale = |scale: &Scale| (scale.mean, 1.0 / scale.std);
                Ok(Self::Vector { values, scales: scales.iter().map(scale).collect() })
            }
            _ => Err(DataError::EncoderInvalid(format!(
                "column {:?} was read as another type than the one it is encoded as",
                column.name()
            ))),
        }
    }

    /// Writes the features of one column from `start` on and says how many there are.
    fn gather(&self, rows: &[u32], out: &mut [f32], width: usize, start: usize) -> usize {
        match self {
            Self::Number { values, shift, factor, low, high, indicator } => {
                for (&row, out) in rows.iter().zip(out.chunks_exact_mut(width)) {
                    let value = values[row as usize];
                    out[start] = if value.is_nan() {
                        0.0
                    } else {
                        ((f64::from(value) + shift) * factor).max(*low).min(*high) as f32
                    };
                    if *indicator {
                        out[start + 1] = f32::from(value.is_nan());
                    }
                }
                1 + usize::from(*indicator)
            }
            Self::Vector { values, scales } => {
                for (&row, out) in rows.iter().zip(out.chunks_exact_mut(width)) {
                    let values = &values[row as usize * scales.len()..][..scales.len()];
                    let out = &mut out[start..start + scales.len()];
                    for ((out, value), (mean, factor)) in out.iter_mut().zip(values).zip(scales) {
                        *out = ((f64::from(*value) - mean) * factor).clamp(-LIMIT, LIMIT) as f32;
                    }
                }
                scales.len()
            }
            Self::Levels { codes, features, other, missing, shares } => {
                if shares.is_empty() {
                    return 0;
                }
                for (&row, out) in rows.iter().zip(out.chunks_exact_mut(width)) {
                    let out = &mut out[start..start + shares.len()];
                    let feature = match codes[row as usize] {
                        MISSING => *missing,
                        code => *features.get(code as usize).unwrap_or(other),
                    };
                    if feature == NEUTRAL {
                        out.copy_from_slice(shares);
                    } else {
                        out.fill(0.0);
                        out[feature as usize] = 1.0;
                    }
                }
                shares.len()
            }
        }
    }
}
