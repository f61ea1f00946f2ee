//! A store of samples: where a batch is gathered from.

use std::error::Error;

use thiserror::Error;

use crate::InputSpec;

/// Samples that can be gathered by their row: a table in memory, images on a disk. Batches are gathered on another thread
/// than they are trained on.
pub trait Samples: Sync {
    /// Number of rows.
    fn len(&self) -> usize;

    /// What a sample looks like.
    fn spec(&self) -> InputSpec;

    /// The given rows, one after another.
    fn gather(&self, rows: &[u32], view: View) -> Result<Block, SampleError>;

    /// What a person is shown of a row.
    fn exhibit(&self, row: u32) -> Result<Exhibit, SampleError>;

    /// How rows lie together, where it is much slower to gather them from everywhere: on a disk. `None` in memory.
    fn blocks(&self) -> Option<Blocks> {
        None
    }

    /// Whether training is to see [augmented](View::Augmented) views of its rows.
    fn augments(&self) -> bool {
        false
    }

    /// Whether there is no row.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// That all these rows exist.
    fn check_rows(&self, rows: &[u32]) -> Result<(), SampleError> {
        let count = self.len();
        match rows.iter().find(|&&row| row as usize >= count) {
            None => Ok(()),
            Some(&row) => Err(SampleError::NoSuchRow { row, rows: count }),
        }
    }
}

/// Rows that are read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Rows of each block.
    pub rows: usize,
    /// Blocks whose rows can be mixed at no cost.
    pub together: usize,
}

/// Which form of a sample is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// As it is.
    #[default]
    Plain,
    /// Changed at random, so that a network cannot learn it by heart: a pure function of this and of the row.
    Augmented {
        /// The seed of the run.
        seed: u64,
        /// The step that sees it.
        step: u64,
        /// Tells several views of one row in one step apart.
        copy: u32,
    },
}

/// Samples of a batch, row after row, padded to the size of the spec; [texts](Values::Texts) are not padded.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// As many values per sample as [`InputSpec::size`] says.
    pub values: Values,
    /// How much of each sample is not padding, where that differs; of texts always, without the numbers beside them.
    pub lengths: Option<Vec<u32>>,
}

/// The values of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Of vectors, images and series.
    Floats(Vec<f32>),
    /// Of sequences of tokens.
    Tokens(Vec<u32>),
    /// Of texts, one behind the other.
    Texts {
        /// What is found in each of them.
        tokens: Vec<u32>,
        /// The numbers beside each of them.
        numbers: Vec<f32>,
    },
}

impl Block {
    /// A block of samples that all have the same length.
    pub fn of(values: Vec<f32>) -> Self {
        Self { values: Values::Floats(values), lengths: None }
    }

    /// The numbers, where they are numbers.
    pub fn into_floats(self) -> Option<Vec<f32>> {
        match self.values {
            Values::Floats(values) => Some(values),
            Values::Tokens(_) | Values::Texts { .. } => None,
        }
    }

    /// That this is what `rows` samples of that form look like. A store is foreign code: what it says of itself is
    /// compared with what it gives before anything relies on it.
    pub fn check(&self, spec: InputSpec, rows: usize) -> Result<(), SampleError> {
        if let (Values::Texts { tokens, numbers }, InputSpec::Text { longest, vocabulary, width }) =
            (&self.values, spec)
        {
            let lengths = self.lengths.as_deref().unwrap_or_default();
            let whole = lengths.iter().map(|&length| length as usize).sum::<usize>();
            return if lengths.len() == rows
                && lengths.iter().all(|&length| length as usize <= longest)
                && whole == tokens.len()
                && tokens.iter().all(|&token| (token as usize) < vocabulary)
                && numbers.len() == rows.saturating_mul(width)
            {
                Ok(())
            } else {
                Err(SampleError::Block { rows, spec, found: tokens.len() + numbers.len() })
            };
        }
        let (found, kind_fits) = match (&self.values, spec) {
            (Values::Tokens(tokens), InputSpec::Tokens { vocabulary, .. }) => {
                (tokens.len(), tokens.iter().all(|&token| (token as usize) < vocabulary))
            }
            (Values::Floats(floats), InputSpec::Tokens { .. } | InputSpec::Text { .. }) => {
                (floats.len(), false)
            }
            (Values::Texts { tokens, .. }, _) => (tokens.len(), false),
            (Values::Floats(floats), _) => (floats.len(), true),
            (Values::Tokens(tokens), _) => (tokens.len(), false),
        };
        let lengths_fit = match (&self.lengths, spec) {
            (None, _) => true,
            (
                Some(lengths),
                InputSpec::Series { longest, .. } | InputSpec::Tokens { longest, .. },
            ) => lengths.len() == rows && lengths.iter().all(|&length| length as usize <= longest),
            (Some(_), _) => false,
        };
        if kind_fits && lengths_fit && found == rows.saturating_mul(spec.size()) {
            Ok(())
        } else {
            Err(SampleError::Block { rows, spec, found })
        }
    }
}

/// What a person is shown of a sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Exhibit {
    /// A value per column, in the order of the features.
    Cells(Vec<String>),
    /// A text.
    Text(String),
    /// Courses over time, one for each channel that is shown, thinned to a few points.
    Lines(Vec<Vec<f32>>),
    /// A picture.
    Picture {
        /// Pixels from left to right.
        width: u32,
        /// Pixels from top to bottom.
        height: u32,
        /// Red, green and blue of each pixel.
        rgb: Vec<u8>,
    },
}

/// Why samples cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SampleError {
    /// A row that does not exist.
    #[error("there is no row {row}, as there are {rows} rows, counted from 0")]
    NoSuchRow {
        /// The row asked for.
        row: u32,
        /// Rows there are.
        rows: usize,
    },
    /// A row that cannot be read (any more).
    #[error("cannot read sample {row} (counted from 0): {reason}")]
    Unreadable {
        /// The row, counted from 0.
        row: u32,
        /// Why.
        reason: Box<dyn Error + Send + Sync>,
    },
    /// A view that the samples do not have.
    #[error("these samples have no augmented views")]
    NoViews,
    /// A block that is not what the spec promises.
    #[error("{found} values were gathered for {rows} samples, which are {spec}")]
    Block {
        /// Samples asked for.
        rows: usize,
        /// What they should look like.
        spec: InputSpec,
        /// Values that came.
        found: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_must_be_what_the_spec_promises() {
        let vector = InputSpec::Vector { width: 2 };
        let tokens = InputSpec::Tokens { longest: 2, vocabulary: 10 };
        let series = InputSpec::Series { longest: 2, channels: 1 };
        let floats = |values: &[f32], lengths: Option<Vec<u32>>| Block {
            values: Values::Floats(values.to_vec()),
            lengths,
        };
        let text =
            |values: &[u32]| Block { values: Values::Tokens(values.to_vec()), lengths: None };
        assert!(floats(&[0.0; 4], None).check(vector, 2).is_ok());
        assert!(floats(&[0.0; 3], None).check(vector, 2).is_err());
        assert!(floats(&[0.0; 4], Some(vec![2, 2])).check(vector, 2).is_err());
        assert!(floats(&[0.0; 4], Some(vec![1, 2])).check(series, 2).is_ok());
        assert!(floats(&[0.0; 4], Some(vec![1, 3])).check(series, 2).is_err());
        assert!(floats(&[0.0; 4], Some(vec![1])).check(series, 2).is_err());
        assert!(floats(&[0.0; 4], None).check(tokens, 2).is_err());
        assert!(text(&[0, 9, 3, 4]).check(tokens, 2).is_ok());
        assert!(text(&[0, 10, 3, 4]).check(tokens, 2).is_err());
        assert!(text(&[0, 9, 3, 4]).check(vector, 2).is_err());

        let spec = InputSpec::Text { longest: 3, vocabulary: 10, width: 1 };
        let bags = |tokens: &[u32], numbers: &[f32], lengths: Option<&[u32]>| Block {
            values: Values::Texts { tokens: tokens.to_vec(), numbers: numbers.to_vec() },
            lengths: lengths.map(<[u32]>::to_vec),
        };
        assert!(bags(&[0, 9, 3], &[0.0; 2], Some(&[0, 3])).check(spec, 2).is_ok());
        assert!(bags(&[0, 10, 3], &[0.0; 2], Some(&[0, 3])).check(spec, 2).is_err());
        assert!(bags(&[0, 9, 3], &[0.0; 3], Some(&[0, 3])).check(spec, 2).is_err());
        assert!(bags(&[0, 9, 3], &[0.0; 2], Some(&[1, 3])).check(spec, 2).is_err());
        assert!(bags(&[0, 9, 3, 1], &[0.0; 2], Some(&[0, 4])).check(spec, 2).is_err());
        assert!(bags(&[0, 9, 3], &[0.0; 2], Some(&[3])).check(spec, 2).is_err());
        assert!(bags(&[], &[0.0; 2], None).check(spec, 2).is_err());
        assert!(bags(&[0, 9], &[], Some(&[1, 1])).check(tokens, 2).is_err());
        assert!(floats(&[0.0; 8], None).check(spec, 2).is_err());
    }
}
