//! Where rows come from, what is to be predicted, and who said so.

use thiserror::Error;

/// A store of rows of equal width: a table in memory, or images. Rows are gathered on another thread than they are
/// trained on.
pub trait Rows: Sync {
    /// Number of rows.
    fn len(&self) -> usize;
    /// Numbers per row.
    fn width(&self) -> usize;
    /// Writes the given rows one after another into `out`, which holds `rows.len() * width` numbers.
    fn gather(&self, rows: &[u32], out: &mut [f32]);
    /// Whether there is no row.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A dense row-major matrix in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    values: Vec<f32>,
    width: usize,
}

impl Matrix {
    /// Takes `values`, row after row of `width` numbers.
    pub fn new(values: Vec<f32>, width: usize) -> Result<Self, DataError> {
        if width == 0 || !values.len().is_multiple_of(width) {
            return Err(DataError::Ragged { values: values.len(), width });
        }
        Ok(Self { values, width })
    }
}

impl Rows for Matrix {
    fn len(&self) -> usize {
        self.values.len() / self.width
    }
    fn width(&self) -> usize {
        self.width
    }
    fn gather(&self, rows: &[u32], out: &mut [f32]) {
        for (&row, out) in rows.iter().zip(out.chunks_exact_mut(self.width)) {
            let start = row as usize * self.width;
            out.copy_from_slice(&self.values[start..start + self.width]);
        }
    }
}

/// What is to be predicted, one entry per row.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// A class per row, below `classes`.
    Classes {
        /// One label per row.
        labels: Vec<u32>,
        /// Number of classes.
        classes: usize,
    },
    /// A number per row, in the user's units.
    Values(Vec<f32>),
}

impl Targets {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Targets::Classes { labels, .. } => labels.len(),
            Targets::Values(values) => values.len(),
        }
    }
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Labels as a step sees them: noise that is drawn anew for every batch.
pub trait Relabel: Sync {
    /// Changes the labels of the rows of a batch; the same step and rows must give the same labels.
    fn relabel(&self, step: u64, rows: &[u32], labels: &mut [u32]);
}

/// Rows, targets and sources, and which rows train and which validate.
#[derive(Clone, Copy)]
pub struct Data<'a> {
    /// The features.
    pub rows: &'a dyn Rows,
    /// The targets.
    pub targets: &'a Targets,
    /// The source of each row.
    pub sources: &'a [u32],
    /// Rows to train on.
    pub train: &'a [u32],
    /// Rows to validate on; may be empty, then training runs to the last epoch and keeps the last parameters.
    pub valid: &'a [u32],
    /// What becomes of the labels of training batches, if anything. Validation sees the labels as they are.
    pub relabel: Option<&'a dyn Relabel>,
}

/// Why data cannot be trained on.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum DataError {
    /// A matrix that is not rows times columns.
    #[error("{values} numbers cannot be rows of {width}")]
    Ragged {
        /// Numbers given.
        values: usize,
        /// Width asked for.
        width: usize,
    },
    /// Features, targets and sources of different length.
    #[error(
        "{rows} rows of features, {targets} targets, {sources} sources: expected as many of each"
    )]
    Lengths {
        /// Rows of features.
        rows: usize,
        /// Targets.
        targets: usize,
        /// Sources.
        sources: usize,
    },
    /// No row to train on.
    #[error("no row to train on")]
    NoRows,
    /// Rows without features.
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
        value: f32,
    },
}

impl Data<'_> {
    /// Checks once what the loop relies on at every step.
    pub(crate) fn check(&self) -> Result<(), DataError> {
        let rows = self.rows.len();
        if rows != self.targets.len() || rows != self.sources.len() {
            return Err(DataError::Lengths {
                rows,
                targets: self.targets.len(),
                sources: self.sources.len(),
            });
        }
        if self.train.is_empty() {
            return Err(DataError::NoRows);
        }
        if self.rows.width() == 0 {
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
                match labels.iter().position(|&l| l as usize >= *classes) {
                    Some(row) => {
                        Err(DataError::Label { row, label: labels[row], classes: *classes })
                    }
                    None => Ok(()),
                }
            }
            Targets::Values(values) => match values.iter().position(|v| !v.is_finite()) {
                Some(row) => Err(DataError::Value { row, value: values[row] }),
                None => Ok(()),
            },
        }
    }

    /// The labels of some training rows as a step sees them; nothing where targets are values.
    pub(crate) fn labels(&self, step: u64, rows: &[u32]) -> Vec<u32> {
        let Targets::Classes { labels, classes } = self.targets else { return Vec::new() };
        let mut labels: Vec<u32> = rows.iter().map(|&row| labels[row as usize]).collect();
        if let Some(relabel) = self.relabel {
            relabel.relabel(step, rows, &mut labels);
            // Classes index arrays from here on.
            labels.iter_mut().for_each(|label| *label = (*label).min(*classes as u32 - 1));
        }
        labels
    }

    /// A digest of the features of all rows that are trained or validated on.
    pub(crate) fn feature_digest(&self) -> blake3::Hash {
        let (mut hasher, width) = (blake3::Hasher::new(), self.rows.width());
        let mut numbers = Vec::new();
        let mut bytes = Vec::new();
        for rows in [self.train, self.valid] {
            for rows in rows.chunks(1024) {
                numbers.resize(rows.len() * width, 0.0);
                self.rows.gather(rows, &mut numbers);
                bytes.clear();
                bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
                hasher.update(&bytes);
            }
        }
        hasher.finalize()
    }

    /// A digest of everything but the features.
    pub(crate) fn digest(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        let mut numbers = |values: &mut dyn Iterator<Item = u32>| {
            let mut count = 0u64;
            for value in values {
                hasher.update(&value.to_le_bytes());
                count += 1;
            }
            hasher.update(&count.to_le_bytes());
        };
        numbers(&mut [self.rows.len() as u32, self.rows.width() as u32].into_iter());
        numbers(&mut self.sources.iter().copied());
        numbers(&mut self.train.iter().copied());
        numbers(&mut self.valid.iter().copied());
        match self.targets {
            Targets::Classes { labels, classes } => {
                numbers(&mut labels.iter().copied().chain([*classes as u32]));
            }
            Targets::Values(values) => numbers(&mut values.iter().map(|v| v.to_bits())),
        }
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(targets: &Targets, sources: &[u32], train: &[u32]) -> Result<(), DataError> {
        let rows = Matrix::new(vec![0.0; 6], 2).unwrap();
        Data { rows: &rows, targets, sources, train, valid: &[], relabel: None }.check()
    }

    #[test]
    fn gather_copies_the_named_rows_in_order() {
        let rows = Matrix::new(vec![1., 2., 3., 4., 5., 6.], 2).unwrap();
        let mut out = [0.0; 4];
        rows.gather(&[2, 0], &mut out);
        assert_eq!(out, [5., 6., 1., 2.]);
        assert_eq!(Matrix::new(vec![0.0; 5], 2), Err(DataError::Ragged { values: 5, width: 2 }));
    }

    #[test]
    fn bad_data_is_refused_with_the_row() {
        let classes =
            |labels: [u32; 3], classes| Targets::Classes { labels: labels.to_vec(), classes };
        assert_eq!(check(&classes([0, 1, 0], 2), &[0; 3], &[0, 1, 2]), Ok(()));
        assert_eq!(
            check(&classes([0, 1, 0], 2), &[0; 2], &[0]),
            Err(DataError::Lengths { rows: 3, targets: 3, sources: 2 })
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
        let values = Targets::Values(vec![0.0, 1.0, f32::INFINITY]);
        assert_eq!(
            check(&values, &[0; 3], &[0]),
            Err(DataError::Value { row: 2, value: f32::INFINITY })
        );
    }
}
