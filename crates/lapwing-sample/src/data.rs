//! Samples, targets and sources, and which rows train.

use thiserror::Error;

use crate::{InputSpec, Samples, Targets};

/// Labels as a step sees them: noise that is drawn anew for every batch.
pub trait Relabel: Sync {
    /// Changes the labels of the rows of a batch; the same step and rows must give the same labels, and labels must stay
    /// below the number of classes.
    fn relabel(&self, step: u64, rows: &[u32], labels: &mut [u32]);

    /// What it is, in bytes that differ wherever labels would: a run goes on only with the noise it began with.
    fn identity(&self) -> Vec<u8>;
}

/// Samples, targets and sources, and which rows train and which validate.
#[derive(Clone, Copy)]
pub struct Data<'a> {
    /// What goes into the network.
    pub samples: &'a dyn Samples,
    /// What is to come out.
    pub targets: &'a Targets,
    /// The source of each row.
    pub sources: &'a [u32],
    /// Rows to train on.
    pub train: &'a [u32],
    /// Rows to validate on; may be empty, then training runs to the last epoch and keeps the last parameters.
    pub valid: &'a [u32],
    /// What becomes of the labels of training batches, if anything. Validation sees the labels as they are.
    pub relabel: Option<&'a dyn Relabel>,
    /// What each row is an answer to, numbered from 0, where several sources answer on the same item.
    pub items: Option<&'a [u32]>,
}

/// Why data cannot be trained on.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum DataError {
    /// Numbers that do not make whole samples.
    #[error("{values} numbers cannot be {spec}")]
    Ragged {
        /// Numbers given.
        values: usize,
        /// Samples asked for.
        spec: InputSpec,
    },
    /// Samples, targets and sources of different length.
    #[error("{samples} samples, {targets} targets, {sources} sources: expected as many of each")]
    Lengths {
        /// Samples.
        samples: usize,
        /// Targets.
        targets: usize,
        /// Sources.
        sources: usize,
    },
    /// Items of some rows only.
    #[error("{rows} samples, {items} items of samples: expected as many of each")]
    Items {
        /// Samples.
        rows: usize,
        /// Items of samples.
        items: usize,
    },
    /// No row to train on.
    #[error("no row to train on")]
    NoRows,
    /// Samples without a value.
    #[error("rows have no features")]
    NoFeatures,
    /// More rows than a row number can name.
    #[error("{0} rows: at most 4,294,967,295 are supported")]
    TooMany(usize),
    /// A split that names a row that does not exist.
    #[error("the split names row {row}, but there are {rows} rows")]
    NoSuchRow {
        /// The row named.
        row: u32,
        /// Rows there are.
        rows: usize,
    },
    /// Fewer than two classes.
    #[error("{0} class: expected at least 2")]
    OneClass(usize),
    /// A label outside the classes.
    #[error("row {row} has class {label}, expected a class below {classes}")]
    Label {
        /// The row.
        row: usize,
        /// Its label.
        label: u32,
        /// Number of classes.
        classes: usize,
    },
    /// A target that is not a number.
    #[error("row {row} has target {value}, expected a finite number")]
    Value {
        /// The row.
        row: usize,
        /// Its target.
        value: f64,
    },
}

impl Data<'_> {
    /// Checks once what training relies on at every step.
    pub fn check(&self) -> Result<(), DataError> {
        let rows = self.samples.len();
        if rows != self.targets.len() || rows != self.sources.len() {
            return Err(DataError::Lengths {
                samples: rows,
                targets: self.targets.len(),
                sources: self.sources.len(),
            });
        }
        if let Some(items) = self.items.filter(|items| items.len() != rows) {
            return Err(DataError::Items { rows, items: items.len() });
        }
        if self.train.is_empty() {
            return Err(DataError::NoRows);
        }
        if self.samples.spec().size() == 0 {
            return Err(DataError::NoFeatures);
        }
        if u32::try_from(rows).is_err() {
            return Err(DataError::TooMany(rows));
        }
        if let Some(&row) = self.train.iter().chain(self.valid).find(|&&row| row as usize >= rows) {
            return Err(DataError::NoSuchRow { row, rows });
        }
        match self.targets {
            Targets::Classes { classes, .. } if *classes < 2 => Err(DataError::OneClass(*classes)),
            Targets::Classes { labels, classes } => {
                match labels.iter().position(|&label| label as usize >= *classes) {
                    Some(row) => {
                        Err(DataError::Label { row, label: labels[row], classes: *classes })
                    }
                    None => Ok(()),
                }
            }
            Targets::Values(values) => match values.iter().position(|value| !value.is_finite()) {
                Some(row) => Err(DataError::Value { row, value: values[row] }),
                None => Ok(()),
            },
        }
    }

    /// The labels of some training rows as a step sees them; nothing where targets are values.
    pub fn labels(&self, step: u64, rows: &[u32]) -> Result<Vec<u32>, DataError> {
        let Targets::Classes { labels, classes } = self.targets else { return Ok(Vec::new()) };
        let mut labels: Vec<u32> = rows.iter().map(|&row| labels[row as usize]).collect();
        if let Some(relabel) = self.relabel {
            relabel.relabel(step, rows, &mut labels);
            // Classes index arrays from here on.
            if let Some(at) = labels.iter().position(|&label| label as usize >= *classes) {
                let (row, label) = (rows[at] as usize, labels[at]);
                return Err(DataError::Label { row, label, classes: *classes });
            }
        }
        Ok(labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;

    fn check(targets: &Targets, sources: &[u32], train: &[u32]) -> Result<(), DataError> {
        let samples = Matrix::new(vec![0.0; 6], 2).unwrap();
        Data { samples: &samples, targets, sources, train, valid: &[], relabel: None, items: None }
            .check()
    }

    fn classes(labels: [u32; 3], classes: usize) -> Targets {
        Targets::Classes { labels: labels.to_vec(), classes }
    }

    #[test]
    fn bad_data_is_refused_with_the_row() {
        assert_eq!(check(&classes([0, 1, 0], 2), &[0; 3], &[0, 1, 2]), Ok(()));
        assert_eq!(
            check(&classes([0, 1, 0], 2), &[0; 2], &[0]),
            Err(DataError::Lengths { samples: 3, targets: 3, sources: 2 })
        );
        assert_eq!(check(&classes([0, 1, 0], 2), &[0; 3], &[]), Err(DataError::NoRows));
        assert_eq!(
            check(&classes([0, 1, 0], 2), &[0; 3], &[3]),
            Err(DataError::NoSuchRow { row: 3, rows: 3 })
        );
        assert_eq!(check(&classes([0, 0, 0], 1), &[0; 3], &[0]), Err(DataError::OneClass(1)));
        assert_eq!(
            check(&classes([0, 2, 0], 2), &[0; 3], &[0]),
            Err(DataError::Label { row: 1, label: 2, classes: 2 })
        );
        let values = Targets::Values(vec![0.0, 1.0, f64::INFINITY]);
        assert_eq!(
            check(&values, &[0; 3], &[0]),
            Err(DataError::Value { row: 2, value: f64::INFINITY })
        );
    }

    #[test]
    fn every_row_has_an_item_or_none_has() {
        let (samples, targets) = (Matrix::new(vec![0.0; 6], 2).unwrap(), classes([0, 1, 0], 2));
        let (sources, train, relabel) = (&[0; 3], &[0, 1, 2], None);
        let check = |items: &[u32]| {
            let (samples, targets, items) = (&samples, &targets, Some(items));
            Data { samples, targets, sources, train, valid: &[], relabel, items }.check()
        };
        assert_eq!(check(&[0, 1, 0]), Ok(()));
        assert_eq!(check(&[0, 1]), Err(DataError::Items { rows: 3, items: 2 }));
    }

    #[test]
    fn labels_are_those_of_the_noise_and_noise_out_of_range_is_an_error() {
        struct Next;
        impl Relabel for Next {
            fn relabel(&self, step: u64, _: &[u32], labels: &mut [u32]) {
                labels.iter_mut().for_each(|label| *label += step as u32);
            }
            fn identity(&self) -> Vec<u8> {
                Vec::new()
            }
        }
        let (samples, targets) = (Matrix::new(vec![0.0; 6], 2).unwrap(), classes([0, 1, 0], 2));
        let (sources, train) = ([0; 3], [0, 1, 2]);
        let data = Data {
            samples: &samples,
            targets: &targets,
            sources: &sources,
            train: &train,
            valid: &[],
            relabel: Some(&Next),
            items: None,
        };
        assert_eq!(data.labels(0, &[2, 1]), Ok(vec![0, 1]));
        assert_eq!(data.labels(1, &[2, 0]), Ok(vec![1, 1]));
        assert_eq!(data.labels(1, &[2, 1]), Err(DataError::Label { row: 1, label: 2, classes: 2 }));
    }
}
