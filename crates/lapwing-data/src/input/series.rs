//! Series: each channel becomes (x − mean) / std of the training rows, moment by moment, padded behind.

use lapwing_sample::{
    Block, Exhibit, InputSpec, SampleError, Samples, Scale, Values as BlockValues, View,
};
use serde::{Deserialize, Serialize};

use super::{LIMIT, Preprocessing, Unseen};
use crate::dataset::Dataset;
use crate::error::DataError;
use crate::schema::{Kind, Schema};
use crate::series::{MOST_CHANNELS, MOST_MOMENTS};
use crate::table::{Table, Values, series_of};

/// Version of the saved form.
const VERSION: u32 = 1;
/// Channels and points that are shown of a series.
const SHOWN_CHANNELS: usize = 3;
const SHOWN_POINTS: usize = 48;

/// Mean and deviation of each channel, and how long series are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Saved")]
pub struct SeriesScale {
    version: u32,
    schema: Schema,
    /// Moments of the longest series in training; later ones of a longer series are not looked at.
    longest: usize,
    channels: Vec<Scale>,
}

/// As it stands in a file, not yet trusted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    version: u32,
    schema: Schema,
    longest: usize,
    channels: Vec<Scale>,
}

impl TryFrom<Saved> for SeriesScale {
    type Error = DataError;

    fn try_from(saved: Saved) -> Result<Self, DataError> {
        let Saved { version, schema, longest, channels } = saved;
        if version != VERSION {
            return Err(DataError::EncoderVersion { found: version, expected: VERSION });
        }
        schema.check()?;
        let kind = |name: &String| {
            schema.features().find(|column| column.name == *name).map(|column| column.kind)
        };
        let is_channel = |names: &Vec<String>| match &names[..] {
            [] => false,
            [name] if kind(name) == Some(Kind::Series) => true,
            names => {
                names.len() <= MOST_MOMENTS
                    && names.iter().all(|name| kind(name) == Some(Kind::Numeric))
            }
        };
        let named = schema.series.iter().map(Vec::len).sum::<usize>();
        if !(1..=MOST_CHANNELS).contains(&channels.len())
            || channels.len() != schema.series.len()
            || !(1..=MOST_MOMENTS).contains(&longest)
            || named != schema.features().count()
            || !schema.series.iter().all(is_channel)
            || !channels.iter().all(Scale::is_sound)
        {
            let what = "its columns are not channels of series with a scale for each of them";
            return Err(DataError::EncoderInvalid(what.to_owned()));
        }
        Ok(Self { version, schema, longest, channels })
    }
}

impl SeriesScale {
    /// Of each channel.
    pub fn channels(&self) -> &[Scale] {
        &self.channels
    }
}

impl Preprocessing for SeriesScale {
    const NAME: &'static str = "series";

    fn fit(dataset: &Dataset, rows: &[u32]) -> Result<Self, DataError> {
        let schema = dataset.schema.clone();
        let channels = channels(&schema, &dataset.table)?;
        let longest = rows.iter().map(|&row| length(&channels, row)).max().unwrap_or(1);
        let scale = |channel: &Channel<'_>| {
            let values =
                |&row: &u32| (0..channel.length(row)).map(move |moment| channel.value(row, moment));
            Scale::of(rows.iter().flat_map(values))
        };
        let scales = channels.iter().map(scale).collect();
        Ok(Self { version: VERSION, longest, channels: scales, schema })
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn spec(&self) -> InputSpec {
        InputSpec::Series { longest: self.longest, channels: self.channels.len() }
    }

    fn unseen(&self, table: &Table) -> Vec<Unseen> {
        let Ok(channels) = channels(&self.schema, table) else { return Vec::new() };
        let of = table.len() as u64;
        let long = |row: &u32| length(&channels, *row) > self.longest;
        let rows = (0..table.len() as u32).filter(long).count() as u64;
        let example = format!("more than {0} moments, of which the first {0} count", self.longest);
        let column = self.schema.series.iter().flatten().next().cloned().unwrap_or_default();
        match rows {
            0 => Vec::new(),
            _ => vec![Unseen { column, rows, of, examples: vec![example] }],
        }
    }

    fn bind<'a>(&'a self, table: &'a Table) -> Result<Box<dyn Samples + 'a>, DataError> {
        let channels = channels(&self.schema, table)?;
        Ok(Box::new(SeriesRows { scale: self, channels, len: table.len() }))
    }
}

/// One channel of the series of a table.
enum Channel<'a> {
    List {
        values: &'a [f32],
        ends: &'a [usize],
    },
    /// A column for each moment, and what was taken off its numbers.
    Moments(Vec<(&'a [f32], f64)>),
}

impl Channel<'_> {
    fn length(&self, row: u32) -> usize {
        match self {
            Self::List { values, ends } => series_of(values, ends, row).map_or(0, <[f32]>::len),
            Self::Moments(columns) => {
                columns.iter().take_while(|(values, _)| !values[row as usize].is_nan()).count()
            }
        }
    }

    fn value(&self, row: u32, moment: usize) -> f64 {
        match self {
            Self::List { values, ends } => {
                let series = series_of(values, ends, row);
                series.and_then(|series| series.get(moment)).map_or(0.0, |&value| value.into())
            }
            Self::Moments(columns) => {
                let (values, offset) = columns[moment];
                f64::from(values[row as usize]) + offset
            }
        }
    }
}

/// Moments of the series of a row; all its channels have as many, which was checked when they were read.
fn length(channels: &[Channel<'_>], row: u32) -> usize {
    channels.first().map_or(0, |channel| channel.length(row))
}

/// The channels of a table.
fn channels<'a>(schema: &Schema, table: &'a Table) -> Result<Vec<Channel<'a>>, DataError> {
    let column = |name: &String| {
        table.column(name).map(crate::table::Column::values).ok_or_else(|| {
            DataError::MissingColumn {
                path: table.path().to_owned(),
                column: name.clone(),
                available: table.columns().iter().map(|column| column.name().to_owned()).collect(),
            }
        })
    };
    let channel = |names: &Vec<String>| {
        let mut moments = Vec::with_capacity(names.len());
        for name in names {
            match column(name)? {
                Values::Series { values, ends } if names.len() == 1 => {
                    return Ok(Channel::List { values, ends });
                }
                Values::Numbers { values, storage, .. } => {
                    moments.push((&values[..], storage.offset));
                }
                _ => {
                    let what = format!("column {name:?} was not read as a series");
                    return Err(DataError::EncoderInvalid(what));
                }
            }
        }
        Ok(Channel::Moments(moments))
    };
    schema.series.iter().map(channel).collect()
}

/// The rows of a table as series.
struct SeriesRows<'a> {
    scale: &'a SeriesScale,
    channels: Vec<Channel<'a>>,
    len: usize,
}

impl Samples for SeriesRows<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn spec(&self) -> InputSpec {
        self.scale.spec()
    }

    fn gather(&self, rows: &[u32], view: View) -> Result<Block, SampleError> {
        if view != View::Plain {
            return Err(SampleError::NoViews);
        }
        self.check_rows(rows)?;
        let width = self.channels.len();
        let size = self.scale.longest * width;
        let mut values = vec![0.0; rows.len() * size];
        let mut lengths = Vec::with_capacity(rows.len());
        for (&row, values) in rows.iter().zip(values.chunks_exact_mut(size.max(1))) {
            let length = length(&self.channels, row).min(self.scale.longest);
            lengths.push(length as u32);
            for (at, (channel, scale)) in self.channels.iter().zip(&self.scale.channels).enumerate()
            {
                let factor = 1.0 / scale.std;
                let places = values[at..].iter_mut().step_by(width);
                for (moment, place) in places.take(length).enumerate() {
                    let value = (channel.value(row, moment) - scale.mean) * factor;
                    *place = value.clamp(-LIMIT, LIMIT) as f32;
                }
            }
        }
        Ok(Block { values: BlockValues::Floats(values), lengths: Some(lengths) })
    }

    fn exhibit(&self, row: u32) -> Result<Exhibit, SampleError> {
        self.check_rows(&[row])?;
        let line = |channel: &Channel<'_>| {
            let values = (0..channel.length(row)).map(|moment| channel.value(row, moment) as f32);
            thinned(&values.collect::<Vec<f32>>())
        };
        Ok(Exhibit::Lines(self.channels.iter().take(SHOWN_CHANNELS).map(line).collect()))
    }
}

/// A line of few points that still shows every peak: of each stretch, the point farthest from the mean.
fn thinned(line: &[f32]) -> Vec<f32> {
    if line.len() <= SHOWN_POINTS {
        return line.to_vec();
    }
    let mean = line.iter().map(|&value| f64::from(value)).sum::<f64>() / line.len() as f64;
    let far = |value: f32| (f64::from(value) - mean).abs();
    let bound = |at: usize| at * line.len() / SHOWN_POINTS;
    let farthest = |stretch: &[f32]| {
        stretch[1..].iter().fold(stretch[0], |a, &b| if far(b) > far(a) { b } else { a })
    };
    (0..SHOWN_POINTS).map(|at| farthest(&line[bound(at)..bound(at + 1)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_line_keeps_its_peaks() {
        let short = [1.0, 2.0];
        assert_eq!(thinned(&short), short);
        let mut line = vec![0.0_f32; 1000];
        (line[517], line[901]) = (9.0, -7.0);
        let thin = thinned(&line);
        assert_eq!(thin.len(), SHOWN_POINTS);
        assert!(thin.contains(&9.0) && thin.contains(&-7.0));
        assert_eq!(thin.iter().filter(|value| **value == 0.0).count(), SHOWN_POINTS - 2);
    }
}
