//! What the report shows of a row.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lapwing_sample::{Exhibit, SampleError, Samples};

/// A row as a person recognises it: one of these, the others empty.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Shown {
    /// The cells of a table.
    pub(crate) cells: Vec<String>,
    /// A picture, as PNG in base64.
    pub(crate) picture: Option<String>,
    /// The beginning of a text.
    pub(crate) text: Option<String>,
    /// The channels of a series.
    pub(crate) lines: Vec<Vec<f32>>,
}

impl Shown {
    pub(crate) fn of(samples: &dyn Samples, row: u32) -> Result<Self, SampleError> {
        let mut shown = Self::default();
        match samples.exhibit(row)? {
            Exhibit::Cells(cells) => shown.cells = cells,
            Exhibit::Picture { width, height, rgb } => {
                let png = lapwing_sample::png(width, height, &rgb)
                    .map_err(|error| SampleError::Unreadable { row, reason: error.into() })?;
                shown.picture = Some(STANDARD.encode(png));
            }
            Exhibit::Text(text) => shown.text = Some(text),
            Exhibit::Lines(lines) => shown.lines = lines,
        }
        Ok(shown)
    }
}
