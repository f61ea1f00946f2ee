//! Pictures: each channel becomes (x − mean) / std of the training rows.

use lapwing_sample::{Block, Exhibit, InputSpec, SampleError, Samples, Scale, View};
use serde::{Deserialize, Serialize};

use super::Preprocessing;
use crate::dataset::Dataset;
use crate::error::DataError;
use crate::picture::{NUMBERS, SIDE};
use crate::schema::{Kind, Schema};
use crate::table::{Table, Values};

/// Version of the saved form.
const VERSION: u32 = 1;
const CHANNELS: usize = 3;
const SPEC: InputSpec = InputSpec::Image { height: SIDE, width: SIDE, channels: CHANNELS };

/// Mean and deviation of red, green and blue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Saved")]
pub struct PictureScale {
    version: u32,
    schema: Schema,
    channels: [Scale; CHANNELS],
}

/// As it stands in a file, not yet trusted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    version: u32,
    schema: Schema,
    channels: [Scale; CHANNELS],
}

impl TryFrom<Saved> for PictureScale {
    type Error = DataError;

    fn try_from(Saved { version, schema, channels }: Saved) -> Result<Self, DataError> {
        if version != VERSION {
            return Err(DataError::EncoderVersion { found: version, expected: VERSION });
        }
        schema.check()?;
        let kinds: Vec<Kind> = schema.features().map(|column| column.kind).collect();
        if kinds != [Kind::Image] || !channels.iter().all(Scale::is_sound) {
            let what = "there is not one column of pictures with a scale for each of its channels";
            return Err(DataError::EncoderInvalid(what.to_owned()));
        }
        Ok(Self { version, schema, channels })
    }
}

impl Preprocessing for PictureScale {
    const NAME: &'static str = "image";

    fn fit(dataset: &Dataset, rows: &[u32]) -> Result<Self, DataError> {
        let schema = dataset.schema.clone();
        let pixels = pixels(&schema, &dataset.table)?;
        let mut counts = [[0_u64; 256]; CHANNELS];
        for &row in rows {
            for pixel in pixels[NUMBERS * row as usize..][..NUMBERS].chunks_exact(CHANNELS) {
                for (counts, &colour) in counts.iter_mut().zip(pixel) {
                    counts[usize::from(colour)] += 1;
                }
            }
        }
        Ok(Self { version: VERSION, schema, channels: counts.map(|counts| scale(&counts)) })
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn spec(&self) -> InputSpec {
        SPEC
    }

    fn bind<'a>(&'a self, table: &'a Table) -> Result<Box<dyn Samples + 'a>, DataError> {
        Ok(Box::new(Pictures {
            pixels: pixels(&self.schema, table)?,
            channels: self.channels,
            len: table.len(),
        }))
    }
}

/// Of values from 0 to 255 that were counted.
fn scale(counts: &[u64; 256]) -> Scale {
    let of = |value: fn(f64, f64) -> f64, mean: f64| {
        let all = counts.iter().zip(0_u32..);
        all.map(|(&count, colour)| count as f64 * value(f64::from(colour), mean)).sum::<f64>()
    };
    let count = of(|_, _| 1.0, 0.0).max(1.0);
    let mean = of(|colour, _| colour, 0.0) / count;
    let std = (of(|colour, mean| (colour - mean).powi(2), mean) / count).sqrt();
    Scale { mean, std: if std > 0.0 { std } else { 1.0 } }
}

/// The pixels of the pictures of a table.
fn pixels<'a>(schema: &Schema, table: &'a Table) -> Result<&'a [u8], DataError> {
    let invalid = |what: &str| DataError::EncoderInvalid(what.to_owned());
    let column = schema.features().next().ok_or_else(|| invalid("there is no picture"))?;
    match table.column(&column.name).map(crate::table::Column::values) {
        Some(Values::Pictures { pixels, .. }) => Ok(pixels),
        _ => Err(invalid("the table was read without its pictures")),
    }
}

/// The rows of a table as pictures.
struct Pictures<'a> {
    pixels: &'a [u8],
    channels: [Scale; CHANNELS],
    len: usize,
}

impl Pictures<'_> {
    fn picture(&self, row: u32) -> &[u8] {
        &self.pixels[NUMBERS * row as usize..][..NUMBERS]
    }
}

impl Samples for Pictures<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn spec(&self) -> InputSpec {
        SPEC
    }

    fn gather(&self, rows: &[u32], view: View) -> Result<Block, SampleError> {
        if view != View::Plain {
            return Err(SampleError::NoViews);
        }
        self.check_rows(rows)?;
        let tables = self.channels.map(|scale| {
            let scaled = |colour: u32| (f64::from(colour) - scale.mean) / scale.std;
            (0..256).map(|colour| scaled(colour) as f32).collect::<Vec<f32>>()
        });
        let mut values = Vec::with_capacity(NUMBERS * rows.len());
        for &row in rows {
            let pixels = self.picture(row).chunks_exact(CHANNELS);
            values.extend(pixels.flat_map(|pixel| {
                [0, 1, 2].map(|channel| tables[channel][usize::from(pixel[channel])])
            }));
        }
        Ok(Block::of(values))
    }

    fn exhibit(&self, row: u32) -> Result<Exhibit, SampleError> {
        self.check_rows(&[row])?;
        let (width, height) = (SIDE as u32, SIDE as u32);
        Ok(Exhibit::Picture { width, height, rgb: self.picture(row).to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_values_have_the_scale_of_the_values() {
        let values = [0_u8, 255, 17, 17, 200, 3];
        let mut counts = [0; 256];
        values.iter().for_each(|&value| counts[usize::from(value)] += 1);
        let (found, oracle) = (scale(&counts), Scale::of(values.iter().copied().map(f64::from)));
        assert!((found.mean - oracle.mean).abs() < 1e-12 && (found.std - oracle.std).abs() < 1e-12);
        assert_eq!(scale(&[0; 256]), Scale { mean: 0.0, std: 1.0 });
    }
}
