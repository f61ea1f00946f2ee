//! Samples of numbers in memory.

use crate::{Block, DataError, Exhibit, InputSpec, SampleError, Samples, View};

/// Samples of equally many numbers, one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    values: Vec<f32>,
    spec: InputSpec,
}

impl Matrix {
    /// Takes `values`, row after row of `width` numbers.
    pub fn new(values: Vec<f32>, width: usize) -> Result<Self, DataError> {
        Self::of(values, InputSpec::Vector { width })
    }

    /// Takes `values`, sample after sample of another form: images, say.
    pub fn of(values: Vec<f32>, spec: InputSpec) -> Result<Self, DataError> {
        let width = spec.size();
        let numbers = !matches!(spec, InputSpec::Tokens { .. } | InputSpec::Text { .. });
        if numbers && width > 0 && values.len().is_multiple_of(width) {
            Ok(Self { values, spec })
        } else {
            Err(DataError::Ragged { values: values.len(), spec })
        }
    }

    /// A row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: u32) -> &[f32] {
        let width = self.spec.size();
        &self.values[row as usize * width..][..width]
    }

    /// All numbers, row after row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}

impl Samples for Matrix {
    fn len(&self) -> usize {
        self.values.len() / self.spec.size()
    }

    fn spec(&self) -> InputSpec {
        self.spec
    }

    fn gather(&self, rows: &[u32], view: View) -> Result<Block, SampleError> {
        if view != View::Plain {
            return Err(SampleError::NoViews);
        }
        self.check_rows(rows)?;
        let mut values = Vec::with_capacity(rows.len() * self.spec.size());
        rows.iter().for_each(|&row| values.extend_from_slice(self.row(row)));
        Ok(Block::of(values))
    }

    fn exhibit(&self, row: u32) -> Result<Exhibit, SampleError> {
        self.check_rows(&[row])?;
        Ok(Exhibit::Cells(self.row(row).iter().map(ToString::to_string).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gather_copies_the_named_rows_in_order_and_refuses_others() {
        let rows = Matrix::new(vec![1., 2., 3., 4., 5., 6.], 2).unwrap();
        assert_eq!(rows.gather(&[2, 0], View::Plain).unwrap(), Block::of(vec![5., 6., 1., 2.]));
        let error = rows.gather(&[2, 3], View::Plain).unwrap_err();
        assert!(matches!(error, SampleError::NoSuchRow { row: 3, rows: 3 }), "{error}");
        let view = View::Augmented { seed: 0, step: 0, copy: 0 };
        assert!(matches!(rows.gather(&[0], view), Err(SampleError::NoViews)));
        assert_eq!(rows.exhibit(1).unwrap(), Exhibit::Cells(vec!["3".into(), "4".into()]));
        assert!(rows.exhibit(3).is_err());
        let vector = |width| InputSpec::Vector { width };
        let ragged = |values, spec| Err(DataError::Ragged { values, spec });
        assert_eq!(Matrix::new(vec![0.0; 5], 2), ragged(5, vector(2)));
        assert_eq!(Matrix::new(vec![], 0), ragged(0, vector(0)));
        let text = InputSpec::Tokens { longest: 1, vocabulary: 9 };
        assert_eq!(Matrix::of(vec![0.0; 4], text), ragged(4, text));
        let image = InputSpec::Image { height: 2, width: 1, channels: 2 };
        let images = Matrix::of(vec![0.0; 8], image).unwrap();
        assert_eq!((images.len(), images.spec()), (2, image));
    }
}
