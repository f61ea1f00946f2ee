//! What a model explains of the values of a source.

use crate::{Answered, Answers, FEWEST_ROWS};

/// For every source the share of the spread of its values that the model explains: 1 − Σ(y − p)² / Σ(y − ȳ)² over its rows,
/// with ȳ its own mean. Rows that are difficult leave some of it, values that are wrong next to nothing, however wide they
/// spread. `None` for classes, for fewer than [`FEWEST_ROWS`] rows, and where all values are the same.
pub fn explained(rows: &Answered<'_>, sources: usize) -> Vec<Option<f64>> {
    let Answers::Values { given, predicted } = rows.answers else { return vec![None; sources] };
    let pairs = || {
        let known = rows.sources.iter().zip(given.iter().zip(predicted));
        known.filter(|(_, (given, predicted))| given.is_finite() && predicted.is_finite())
    };
    let mut spreads = vec![Spread::default(); sources];
    for (&source, (&given, _)) in pairs() {
        if let Some(spread) = spreads.get_mut(source as usize) {
            spread.rows += 1;
            spread.mean += (given - spread.mean) / spread.rows as f64;
        }
    }
    for (&source, (&given, &predicted)) in pairs() {
        if let Some(spread) = spreads.get_mut(source as usize) {
            spread.own += (given - spread.mean).powi(2);
            spread.left += (given - predicted).powi(2);
        }
    }
    spreads.iter().map(Spread::explained).collect()
}

#[derive(Clone, Default)]
struct Spread {
    rows: u64,
    mean: f64,
    /// Squares around the mean, and around the model.
    own: f64,
    left: f64,
}

impl Spread {
    fn explained(&self) -> Option<f64> {
        let share = 1.0 - self.left / self.own;
        (self.rows >= FEWEST_ROWS && self.own > 0.0 && share.is_finite()).then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_the_definition() {
        let given: Vec<f64> = (0..12).map(|at| f64::from(at * at % 7)).collect();
        let predicted: Vec<f64> = given.iter().map(|y| 0.5 * y + 1.0).collect();
        let mean = given.iter().sum::<f64>() / 12.0;
        let squares = |from: &dyn Fn(usize) -> f64| {
            (0..12).map(|at| (given[at] - from(at)).powi(2)).sum::<f64>()
        };
        let slow = 1.0 - squares(&|at| predicted[at]) / squares(&|_| mean);
        for shift in [0.0, 1e6] {
            let (given, predicted): (Vec<f64>, Vec<f64>) = (
                given.iter().map(|y| y + shift).collect(),
                predicted.iter().map(|y| y + shift).collect(),
            );
            let answers = Answers::Values { given: &given, predicted: &predicted };
            let found = explained(&Answered { sources: &[1; 12], answers }, 3);
            assert_eq!((found[0], found[2]), (None, None));
            assert!((found[1].unwrap() - slow).abs() < 1e-9, "{found:?} is not {slow}");
        }
    }

    #[test]
    fn few_rows_equal_values_and_classes_say_nothing() {
        let share = |given: &[f64]| {
            let predicted = vec![1.0; given.len()];
            let answers = Answers::Values { given, predicted: &predicted };
            explained(&Answered { sources: &vec![0; given.len()], answers }, 1)[0]
        };
        assert_eq!(share(&[1.0, 2.0, 3.0]), None);
        assert_eq!(share(&[2.0; 20]), None);
        assert!(share(&[&[2.0; 19][..], &[f64::NAN, 5.0]].concat()).is_some());
        let names = ["a".to_owned(), "b".to_owned()];
        let answers = Answers::Classes { names: &names, given: &[0], probabilities: &[0.5, 0.5] };
        assert_eq!(explained(&Answered { sources: &[0], answers }, 1), [None]);
    }
}
