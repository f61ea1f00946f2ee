//! Pictures: each channel becomes (x − mean) / std of the training rows.

use lapwing_sample::{Block, Exhibit, InputSpec, SampleError, Samples, Scale, View};
use serde::{Deserialize, Serialize};

use super::Preprocessing;
use crate::dataset::Dataset;
use crate::error::{DataError, Place};
use crate::gallery::Gallery;
use crate::picture::{ALLOWED, CHANNELS, SIDES, numbers};
use crate::schema::{Kind, Schema};
use crate::table::{Table, Values};

/// Version of the saved form.
const VERSION: u32 = 1;
/// Most pictures that the scale of the channels is measured on; more do not change it.
const MEASURED: usize = 1 << 14;
/// Pictures that are looked at together.
const TOGETHER: usize = 256;

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
        let side_is_sound = schema.features().all(|column| {
            column.storage.width == 0 || ALLOWED.contains(&column.storage.width)
        });
        if kinds != [Kind::Image] || !side_is_sound || !channels.iter().all(Scale::is_sound) {
            let what = "there is not one column of pictures with a scale for each of its channels";
            return Err(DataError::EncoderInvalid(what.to_owned()));
        }
        Ok(Self { version, schema, channels })
    }
}

impl PictureScale {
    /// Of red, green and blue, from 0 to 255.
    pub fn channels(&self) -> &[Scale] {
        &self.channels
    }
}

impl Preprocessing for PictureScale {
    const NAME: &'static str = "image";

    fn fit(dataset: &Dataset, rows: &[u32]) -> Result<Self, DataError> {
        let schema = dataset.schema.clone();
        let gallery = gallery(&schema, &dataset.table)?;
        let mut counts = [[0_u64; 256]; CHANNELS];
        let every = rows.len().div_ceil(MEASURED).max(1);
        let measured: Vec<u32> = rows.iter().copied().step_by(every).collect();
        for rows in measured.chunks(TOGETHER) {
            for pixel in gallery.gather(rows)?.chunks_exact(CHANNELS) {
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
        let side = self.schema.features().next().map_or(0, |column| column.storage.width);
        let side = if side == 0 { SIDES[0] } else { side };
        InputSpec::Image { height: side, width: side, channels: CHANNELS }
    }

    fn bind<'a>(&'a self, table: &'a Table) -> Result<Box<dyn Samples + 'a>, DataError> {
        let pictures = gallery(&self.schema, table)?;
        if numbers(pictures.gallery.side()) != self.spec().size() {
            let what = "the pictures of the table were read in another size";
            return Err(DataError::EncoderInvalid(what.to_owned()));
        }
        Ok(Box::new(Pictures {
            pictures,
            spec: self.spec(),
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

/// The pictures of a table.
fn gallery<'a>(schema: &Schema, table: &'a Table) -> Result<Hung<'a>, DataError> {
    let invalid = |what: &str| DataError::EncoderInvalid(what.to_owned());
    let column = schema.features().next().ok_or_else(|| invalid("there is no picture"))?;
    match table.column(&column.name).map(crate::table::Column::values) {
        Some(Values::Pictures(gallery)) => Ok(Hung { gallery, table, column: column.name.clone() }),
        _ => Err(invalid("the table was read without its pictures")),
    }
}

/// The pictures of a table, which knows where each of them stands.
struct Hung<'a> {
    gallery: &'a Gallery,
    table: &'a Table,
    column: String,
}

impl Hung<'_> {
    fn gather(&self, rows: &[u32]) -> Result<Vec<u8>, SampleError> {
        self.gallery.gather(rows).map_err(|(row, source)| {
            let (path, number) = (self.table.path().to_owned(), self.table.row_number(row));
            let place = Place { path, line: None, row: number };
            let reason = DataError::Picture { place, column: self.column.clone(), source };
            SampleError::Unreadable { row, reason: Box::new(reason) }
        })
    }
}

/// The rows of a table as pictures.
struct Pictures<'a> {
    pictures: Hung<'a>,
    spec: InputSpec,
    channels: [Scale; CHANNELS],
    len: usize,
}

impl Samples for Pictures<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn spec(&self) -> InputSpec {
        self.spec
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
        let pixels = self.pictures.gather(rows)?;
        let scaled = |pixel: &[u8]| {
            [0, 1, 2].map(|channel| tables[channel][usize::from(pixel[channel])])
        };
        let values = pixels.chunks_exact(CHANNELS).flat_map(scaled).collect();
        Ok(Block::of(values))
    }

    fn exhibit(&self, row: u32) -> Result<Exhibit, SampleError> {
        self.check_rows(&[row])?;
        let (side, rgb) = shrunk(self.pictures.gallery.side(), self.pictures.gather(&[row])?);
        Ok(Exhibit::Picture { width: side as u32, height: side as u32, rgb })
    }
}

/// Most pixels of a side of what a person is shown.
const SHOWN: usize = 64;

/// A picture by the means of equal squares of its pixels, as few that it is small enough to be shown; rows and columns left
/// over are cut off.
fn shrunk(side: usize, rgb: Vec<u8>) -> (usize, Vec<u8>) {
    let step = side.div_ceil(SHOWN);
    if step <= 1 {
        return (side, rgb);
    }
    let small = side / step;
    let mean = |row: usize, column: usize, channel: usize| {
        let places = (0..step * step).map(|at| (row * step + at / step, column * step + at % step));
        let sum: usize =
            places.map(|(y, x)| usize::from(rgb[(y * side + x) * CHANNELS + channel])).sum();
        (sum / (step * step)) as u8
    };
    let cells = (0..small * small * CHANNELS)
        .map(|at| (at / CHANNELS / small, at / CHANNELS % small, at % CHANNELS));
    (small, cells.map(|(row, column, channel)| mean(row, column, channel)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_shown_a_picture_that_is_not_larger_than_needed() {
        assert_eq!(shrunk(2, vec![7; 12]), (2, vec![7; 12]));
        let rgb: Vec<u8> = (0..130 * 130).flat_map(|at| [(at % 130 / 3 * 3) as u8, 1, 2]).collect();
        let (side, small) = shrunk(130, rgb);
        assert_eq!((side, small.len()), (43, 43 * 43 * 3));
        assert_eq!(small[..6], [0, 1, 2, 3, 1, 2]);
    }

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
