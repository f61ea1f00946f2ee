//! Columns as numbers that can be compared, whatever they hold: a text by its length, a picture by its brightness.

use std::hash::{DefaultHasher, Hash, Hasher};

use lapwing_sample::Scale;

use crate::dataset::Dataset;
use crate::table::{Column, Table, Values};

/// Something of a column that is a number in every row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aspect {
    /// Words of a text, or moments of a series.
    Length,
    /// Mean of the numbers of a series.
    Mean,
    /// Their standard deviation.
    Spread,
    /// A number of a vector.
    Element(usize),
    /// Mean of the pixels of a picture, 0 to 1.
    Brightness,
    /// Standard deviation of the pixels of a picture.
    Contrast,
}

impl Aspect {
    fn of_series(name: &str) -> Vec<(String, Self)> {
        vec![
            (format!("length of {name}"), Self::Length),
            (format!("mean of {name}"), Self::Mean),
            (format!("spread of {name}"), Self::Spread),
        ]
    }

    /// That of the numbers of a series.
    fn of_moments(self, moments: impl Iterator<Item = f64> + Clone) -> f64 {
        let spread = |moments| Scale::spread(moments).unwrap_or((f64::NAN, f64::NAN));
        match self {
            Self::Length => moments.count() as f64,
            Self::Mean => spread(moments).0,
            _ => spread(moments).1,
        }
    }
}

impl Column {
    /// What there is to be compared of a column that holds neither numbers nor categories, each with a name.
    pub fn aspects(&self) -> Vec<(String, Aspect)> {
        let name = self.name();
        match self.values() {
            Values::Numbers { .. } | Values::Codes { .. } => Vec::new(),
            Values::Texts(_) => vec![(format!("length of {name}"), Aspect::Length)],
            Values::Vectors { width, .. } => {
                (0..*width).map(|at| (format!("{name}[{at}]"), Aspect::Element(at))).collect()
            }
            Values::Series { .. } => Aspect::of_series(name),
            Values::Pictures { .. } => vec![
                (format!("brightness of {name}"), Aspect::Brightness),
                (format!("contrast of {name}"), Aspect::Contrast),
            ],
        }
    }

    /// An aspect of some rows; `None` where the column does not have it.
    pub fn aspect(&self, aspect: Aspect, rows: &[u32]) -> Option<Vec<f64>> {
        let numbers: Vec<f64> = match (self.values(), aspect) {
            (Values::Texts(texts), Aspect::Length) => {
                rows.iter().map(|&row| texts.of(row).len() as f64).collect()
            }
            (Values::Vectors { values, width }, Aspect::Element(at)) if at < *width => {
                rows.iter().map(|&row| f64::from(values[row as usize * width + at])).collect()
            }
            (Values::Series { values, ends }, Aspect::Length | Aspect::Mean | Aspect::Spread) => {
                let own = |&row: &u32| moments(values, ends, row).iter().map(|&v| f64::from(v));
                rows.iter().map(|row| aspect.of_moments(own(row))).collect()
            }
            (Values::Pictures(gallery), Aspect::Brightness | Aspect::Contrast) => {
                let of_picture = |&row: &u32| {
                    // One that has gone since is neither bright nor dark.
                    let Ok(own) = gallery.gather(&[row]) else { return f64::NAN };
                    let mean = |of: &dyn Fn(f64) -> f64| {
                        own.iter().map(|&p| of(f64::from(p) / 255.0)).sum::<f64>()
                            / own.len() as f64
                    };
                    let brightness = mean(&|p| p);
                    match aspect {
                        Aspect::Contrast => mean(&|p| (p - brightness).powi(2)).sqrt(),
                        _ => brightness,
                    }
                };
                rows.iter().map(of_picture).collect()
            }
            _ => return None,
        };
        Some(numbers)
    }

    fn add_to(&self, row: u32, digest: &mut DefaultHasher) {
        let at = row as usize;
        match self.values() {
            Values::Numbers { values, .. } => values[at].to_bits().hash(digest),
            Values::Codes { codes, .. } => codes[at].hash(digest),
            Values::Texts(texts) => {
                texts.of(row).hash(digest);
                texts.shown(row).hash(digest);
            }
            Values::Vectors { values, width } => {
                let own = &values[at * width..(at + 1) * width];
                own.iter().for_each(|value| value.to_bits().hash(digest));
            }
            Values::Series { values, ends } => {
                let own = moments(values, ends, row);
                own.iter().for_each(|value| value.to_bits().hash(digest));
            }
            Values::Pictures(gallery) => match gallery.gather(&[row]) {
                Ok(pixels) => pixels.hash(digest),
                Err(_) => gallery.path(row).hash(digest),
            },
        }
    }
}

/// The numbers of a row.
fn moments<'a>(values: &'a [f32], ends: &[usize], row: u32) -> &'a [f32] {
    let begin = row.checked_sub(1).map_or(0, |before| ends[before as usize]);
    &values[begin..ends[row as usize]]
}

/// A channel of series that has a column for each moment.
#[derive(Debug, Clone, Copy)]
pub struct WideChannel<'a> {
    table: &'a Table,
    columns: &'a [String],
}

impl<'a> WideChannel<'a> {
    /// The columns of its moments, in their order.
    pub fn columns(&self) -> &'a [String] {
        self.columns
    }

    /// What there is to be compared of it, each with a name: one moment by itself says nothing.
    pub fn aspects(&self) -> Vec<(String, Aspect)> {
        match self.columns {
            [] => Vec::new(),
            [only] => Aspect::of_series(only),
            [first, .., last] => Aspect::of_series(&format!("{first} to {last}")),
        }
    }

    /// An aspect of some rows; `None` where a column of it is not there.
    pub fn aspect(&self, aspect: Aspect, rows: &[u32]) -> Option<Vec<f64>> {
        let moments: Option<Vec<Vec<f64>>> =
            self.columns.iter().map(|name| self.table.column(name)?.numbers(rows)).collect();
        let moments = moments?;
        let own = |at: usize| moments.iter().map(move |moment| moment[at]);
        let present = |at: usize| own(at).take_while(|value: &f64| value.is_finite());
        Some((0..rows.len()).map(|at| aspect.of_moments(present(at))).collect())
    }
}

impl Dataset {
    /// The channels of series that have a column for each moment.
    pub fn wide_channels(&self) -> impl Iterator<Item = WideChannel<'_>> {
        let table = &self.table;
        let is_wide = |name: &String| {
            table
                .column(name)
                .is_some_and(|column| matches!(column.values(), Values::Numbers { .. }))
        };
        let channels = self.schema.series.iter().filter(move |names| names.iter().all(is_wide));
        channels.map(move |columns| WideChannel { table, columns })
    }
}

impl Table {
    /// A number for each of some rows that is the same where all features are the same, and else another one.
    pub fn digests(&self, rows: &[u32]) -> Vec<u64> {
        let digest = |&row: &u32| {
            let mut digest = DefaultHasher::new();
            self.columns().iter().for_each(|column| column.add_to(row, &mut digest));
            digest.finish()
        };
        rows.iter().map(digest).collect()
    }
}
