//! Encoded rows as the trainer wants them.

use lapwing_data::{EncodedRows, Target};
use lapwing_train::{Rows, Targets};

/// A table seen through an encoder.
pub(crate) struct Encoded<'a>(pub(crate) EncodedRows<'a>);

impl Rows for Encoded<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn width(&self) -> usize {
        self.0.width()
    }
    fn gather(&self, rows: &[u32], out: &mut [f32]) {
        self.0.gather(rows, out);
    }
}

/// The target in the numbers a network is trained with.
pub(crate) fn targets(target: &Target) -> Targets {
    match target {
        Target::Classes { codes, names } => {
            Targets::Classes { labels: codes.clone(), classes: names.len() }
        }
        Target::Values(values) => {
            Targets::Values(values.iter().map(|&value| value as f32).collect())
        }
    }
}

/// The target of some rows.
pub(crate) fn select(target: &Target, rows: &[u32]) -> Target {
    let at = |row: &u32| *row as usize;
    match target {
        Target::Classes { codes, names } => Target::Classes {
            codes: rows.iter().map(|row| codes[at(row)]).collect(),
            names: names.clone(),
        },
        Target::Values(values) => Target::Values(rows.iter().map(|row| values[at(row)]).collect()),
    }
}
