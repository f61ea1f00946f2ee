//! Rows with what is given and what a model says of them.

use std::borrow::Cow;

use crate::{JudgeError, SourceRow, Verdict};

/// Rows of which both the given target and the model's word are known. Lists are as long as there are rows.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// The number of each row's source.
    pub sources: &'a [u32],
    /// What is given, and what the model says.
    pub answers: Answers<'a>,
}

/// Given targets and the model's word on them, row by row.
#[derive(Clone, Copy, Debug)]
pub enum Answers<'a> {
    /// Classes.
    Classes {
        /// Their names.
        names: &'a [String],
        /// The class given to each row.
        given: &'a [u32],
        /// The probability of every class, row after row.
        probabilities: &'a [f32],
    },
    /// Numbers.
    Values {
        /// The target given to each row.
        given: &'a [f64],
        /// The prediction.
        predicted: &'a [f64],
    },
}

impl Answers<'_> {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        match self {
            Answers::Classes { given, .. } => given.len(),
            Answers::Values { given, .. } => given.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most probable class of each row, the first of equals; nothing for values.
    pub fn labels(&self) -> Vec<u32> {
        let best = |row: &[f32]| {
            let better = |best: usize, next: usize| if row[next] > row[best] { next } else { best };
            (0..row.len()).reduce(better).unwrap_or(0) as u32
        };
        match *self {
            Answers::Classes { names, probabilities, .. } => {
                probabilities.chunks_exact(names.len().max(1)).map(best).collect()
            }
            Answers::Values { .. } => Vec::new(),
        }
    }

    /// How far each target is from the model's word: 1 for another class, or the distance between the values.
    pub fn distances(&self) -> Vec<f64> {
        match *self {
            Answers::Classes { given, .. } => {
                let differ = |(&given, said): (&u32, u32)| f64::from(u8::from(given != said));
                given.iter().zip(self.labels()).map(differ).collect()
            }
            Answers::Values { given, predicted } => {
                let distance = |(given, said): (&f64, &f64)| (given - said).abs();
                given.iter().zip(predicted).map(distance).collect()
            }
        }
    }

    /// Numbers that the model says of all rows together.
    fn width(&self) -> usize {
        match self {
            Answers::Classes { names, given, .. } => names.len() * given.len(),
            Answers::Values { given, .. } => given.len(),
        }
    }
}

/// A feature column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column<'a> {
    /// Numbers; NaN where a value is missing.
    Numbers(Cow<'a, [f64]>),
    /// Categories: for each row the number of its level, if it has one.
    Levels {
        /// Names of the levels.
        names: Cow<'a, [String]>,
        /// By row.
        codes: Vec<Option<u32>>,
    },
}

/// Features of the rows, by name. A column is made when it is asked for: most examinations need none.
pub trait Features: Sync {
    /// Names of the columns.
    fn names(&self) -> Vec<String>;
    /// A column, with one value for each of the rows.
    fn column(&self, name: &str) -> Option<Column<'_>>;
    /// A number for each of the rows that is the same where all inputs are the same, and else another one; `None` where
    /// nobody knows.
    fn digests(&self) -> Option<Vec<u64>> {
        None
    }
}

/// When rows were taken.
#[derive(Clone, Copy)]
pub struct Times<'a> {
    /// A number for each of the rows, NaN where it is not known.
    pub values: &'a [f64],
    /// How such a number is written.
    pub text: &'a dyn Fn(f64) -> String,
}

/// The training rows of a run, as examinations see them.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// Sources, given targets and what the model says.
    pub answered: Answered<'a>,
    /// The number under which a person finds each row.
    pub numbers: &'a [u64],
    /// What a model says that was not trained on the row, in the layout of [`Answers`]; NaN where there is none. Of classes
    /// it is believed instead of the model, which knows by heart what it was told.
    pub out_of_sample: Option<&'a [f64]>,
    /// Rows that the model has not learnt from. Of values, those of reliable sources say how far it usually is from the truth:
    /// from rows that it has learnt by heart it is hardly any, and a source that weighed little would seem to scatter.
    pub held_out: Option<Answered<'a>>,
    /// What the model learns from.
    pub features: Option<&'a dyn Features>,
    /// When each row was taken.
    pub times: Option<Times<'a>>,
    /// For each source the places of the rows with the largest losses, largest first, where they were looked for.
    pub worst: &'a [Vec<u32>],
}

impl<'a> Rows<'a> {
    /// Rows of which nothing further is known.
    pub fn new(answered: Answered<'a>, numbers: &'a [u64]) -> Self {
        Self {
            answered,
            numbers,
            out_of_sample: None,
            held_out: None,
            features: None,
            times: None,
            worst: &[],
        }
    }

    /// How far targets of reliable sources are from the model where it has not learnt them; of values, where finite.
    pub(crate) fn held_out_residuals(&self, sources: &[SourceRow]) -> Vec<f64> {
        let Some(Answered { sources: of_rows, answers: Answers::Values { given, predicted } }) =
            self.held_out
        else {
            return Vec::new();
        };
        let reliable = |source: u32| {
            let source = sources.get(source as usize);
            source.is_some_and(|source| source.verdict == Verdict::Reliable)
        };
        let rows = of_rows.iter().zip(given.iter().zip(predicted));
        rows.filter(|(source, _)| reliable(**source))
            .map(|(_, (given, predicted))| given - predicted)
            .filter(|residual| residual.is_finite())
            .collect()
    }

    /// The most probable class of each row, by a model that has not seen its label where there is one; nothing for values.
    pub(crate) fn labels(&self) -> Vec<u32> {
        let Answers::Classes { names, .. } = self.answered.answers else { return Vec::new() };
        let mut labels = self.answered.answers.labels();
        for (row, label) in labels.iter_mut().enumerate() {
            if let Some(said) = self.unseen(row, names.len()) {
                let better =
                    |best: usize, next: usize| if said[next] > said[best] { next } else { best };
                *label = (0..said.len()).reduce(better).unwrap_or(0) as u32;
            }
        }
        labels
    }

    /// What a model says of a row that has not seen it, where there is one and it says something.
    pub(crate) fn unseen(&self, row: usize, width: usize) -> Option<&'a [f64]> {
        let said = self.out_of_sample?.get(row * width..(row + 1) * width)?;
        said.iter().all(|p| p.is_finite()).then_some(said)
    }

    pub(crate) fn check(&self, sources: usize) -> Result<(), JudgeError> {
        let Answered { sources: of_rows, answers } = self.answered;
        let rows = answers.len();
        let lengths = |what, expected, found| match expected == found {
            true => Ok(()),
            false => Err(JudgeError::Lengths { what, expected, found }),
        };
        let codes = |what, codes: &[u32], count: usize| match codes
            .iter()
            .position(|&code| code as usize >= count)
        {
            Some(row) => Err(JudgeError::Code { row, what, code: codes[row], count }),
            None => Ok(()),
        };
        lengths("sources of rows", rows, of_rows.len())?;
        lengths("numbers of rows", rows, self.numbers.len())?;
        codes("source", of_rows, sources)?;
        match answers {
            Answers::Classes { names, given, probabilities } => {
                codes("class", given, names.len())?;
                lengths("probabilities", answers.width(), probabilities.len())?;
            }
            Answers::Values { predicted, .. } => lengths("predictions", rows, predicted.len())?,
        }
        if let Some(said) = self.out_of_sample {
            lengths("out-of-sample predictions", answers.width(), said.len())?;
        }
        if let Some(times) = self.times {
            lengths("times", rows, times.values.len())?;
        }
        for worst in self.worst {
            codes("place", worst, rows)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Case, SourceRow};

    #[test]
    fn lists_that_do_not_fit_are_refused() {
        let sources = [SourceRow::default()];
        let names = ["a".to_owned(), "b".to_owned()];
        let refuse = |sources_of: &[u32], given: &[u32], probabilities: &[f32], numbers: &[u64]| {
            let answers = Answers::Classes { names: &names, given, probabilities };
            let rows = Rows::new(Answered { sources: sources_of, answers }, numbers);
            Case::new(&sources, Some(rows)).err().map(|error| error.to_string())
        };
        assert_eq!(refuse(&[0], &[1], &[0.5, 0.5], &[1]), None);
        let found = [
            refuse(&[], &[1], &[0.5, 0.5], &[1]),
            refuse(&[0], &[1], &[0.5, 0.5], &[]),
            refuse(&[1], &[1], &[0.5, 0.5], &[1]),
            refuse(&[0], &[2], &[0.5, 0.5], &[1]),
            refuse(&[0], &[1], &[0.5], &[1]),
        ];
        let expected = [
            "expected 1 sources of rows, found 0",
            "expected 1 numbers of rows, found 0",
            "row 0 has source 1, expected one below 1",
            "row 0 has class 2, expected one below 2",
            "expected 2 probabilities, found 1",
        ];
        assert_eq!(found.map(Option::unwrap_or_default), expected);
    }
}
