//! Tables whose features are pixels, so that a person can be shown the picture instead of its numbers.
//!
//! A column is a pixel if it is called `pixel_ROW_COLUMN`, counted from 0, as scikit-learn calls them. The rows of a table
//! are pictures if all of its features are pixels. It is trained on like any other.

use std::sync::OnceLock;

use lapwing_sample::Exhibit;

use crate::schema::Storage;
use crate::table::{Column, Values};

/// Share of the frame that must be there. Pixels that are the same in every picture are no features: the rim is often
/// missing.
const LEAST_SHARE: usize = 4;

/// Where each pixel is.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    width: usize,
    height: usize,
    /// Place in the picture, line by line, and the values.
    pixels: Vec<(usize, &'a [f32], Storage)>,
    /// Values of black and white.
    range: OnceLock<(f64, f64)>,
}

impl<'a> Frame<'a> {
    /// The frame of these columns, if all of them are pixels.
    pub(crate) fn of(columns: &[&'a Column]) -> Option<Self> {
        let places = columns.iter().map(|column| place(column.name()));
        let places: Vec<(usize, usize)> = places.collect::<Option<_>>()?;
        let height = places.iter().map(|(row, _)| row + 1).max()?;
        let width = places.iter().map(|(_, column)| column + 1).max()?;
        if height < 2 || width < 2 || LEAST_SHARE * places.len() < height * width {
            return None;
        }
        let pixel = |(&(row, across), column): (&(usize, usize), &&'a Column)| {
            let Values::Numbers { values, storage, is_date: false } = column.values() else {
                return None;
            };
            Some((row * width + across, &values[..], *storage))
        };
        let pixels = places.iter().zip(columns).map(pixel).collect::<Option<_>>()?;
        Some(Self { width, height, pixels, range: OnceLock::new() })
    }

    /// The picture of a row: its largest value is white in all of them, the smallest black, and so is what is missing.
    pub(crate) fn picture(&self, row: u32) -> Exhibit {
        let (black, white) = *self.range.get_or_init(|| self.range());
        let mut rgb = vec![0; 3 * self.width * self.height];
        for &(place, values, storage) in &self.pixels {
            let value = number(values[row as usize], storage);
            // NaN becomes 0, and so does everything in a table of one value.
            let grey = (255.0 * (value - black) / (white - black)).round() as u8;
            rgb[3 * place..][..3].fill(grey);
        }
        Exhibit::Picture { width: self.width as u32, height: self.height as u32, rgb }
    }

    fn range(&self) -> (f64, f64) {
        let values = self.pixels.iter().flat_map(|&(_, values, storage)| {
            values.iter().map(move |&value| number(value, storage))
        });
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        })
    }
}

fn number(value: f32, storage: Storage) -> f64 {
    (f64::from(value) + storage.offset) * storage.unit
}

/// Row and column in the name of a pixel, of at most four digits each.
fn place(name: &str) -> Option<(usize, usize)> {
    let (row, column) = name.strip_prefix("pixel_")?.split_once('_')?;
    let number = |text: &str| {
        let digits = (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|_| digits)
    };
    number(row).zip(number(column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_told_by_their_names() {
        assert_eq!(place("pixel_0_0"), Some((0, 0)));
        assert_eq!(place("pixel_12_7"), Some((12, 7)));
        for other in ["pixel_0", "pixel_0_", "pixel_+1_2", "pixel_0_12345", "pixel 0 0", "x_0_0"] {
            assert_eq!(place(other), None, "{other}");
        }
    }
}
