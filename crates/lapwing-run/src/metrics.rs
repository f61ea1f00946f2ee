//! How good predictions are, in double precision.

use lapwing_sample::{Targets, UNSEEN_CLASS};
use lapwing_train::Predictions;
use serde::Serialize;

/// Metrics of predictions. What cannot be had for these rows is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Metrics {
    /// Of classes.
    Classification {
        /// Rows.
        rows: u64,
        /// Share of rows whose most probable class is theirs.
        accuracy: f64,
        /// Mean over the classes present of the share of their rows that is found.
        balanced_accuracy: f64,
        /// Mean of F1 over the classes that are present or predicted.
        macro_f1: f64,
        /// Mean of minus the logarithm of the probability of the row's class. Probabilities are 32-bit numbers and are
        /// kept 1.2e−7 away from 0, as scikit-learn does.
        log_loss: f64,
        /// Probability that a row of the second class gets a higher probability for it than one of the first; two
        /// classes only.
        auc: Option<f64>,
    },
    /// Of numbers.
    Regression {
        /// Rows.
        rows: u64,
        /// Mean squared error.
        mse: f64,
        /// Mean absolute error.
        mae: f64,
        /// 1 − mse / variance; `None` where all targets are the same.
        r2: Option<f64>,
    },
}

impl Metrics {
    /// Compares predictions with what is true; `None` where there is no row or the two are of different kind.
    pub fn of(target: &Targets, predictions: &Predictions) -> Option<Self> {
        match (target, predictions) {
            (
                Targets::Classes { labels, classes: known },
                Predictions::Classes { probabilities, classes },
            ) if !labels.is_empty()
                && known == classes
                && labels.len() * classes == probabilities.len() =>
            {
                Some(classification(labels, *classes, probabilities, &predictions.labels()))
            }
            (Targets::Values(given), Predictions::Values(predicted))
                if !given.is_empty() && given.len() == predicted.len() =>
            {
                Some(regression(given, predicted))
            }
            _ => None,
        }
    }

    /// Names as in `metrics.csv` and values.
    pub fn named(&self) -> Vec<(&'static str, Option<f64>)> {
        match *self {
            Self::Classification {
                accuracy, balanced_accuracy, macro_f1, log_loss, auc, ..
            } => {
                vec![
                    ("accuracy", Some(accuracy)),
                    ("balanced_accuracy", Some(balanced_accuracy)),
                    ("macro_f1", Some(macro_f1)),
                    ("log_loss", Some(log_loss)),
                    ("auc", auc),
                ]
            }
            Self::Regression { mse, mae, r2, .. } => {
                vec![("mse", Some(mse)), ("mae", Some(mae)), ("r2", r2)]
            }
        }
    }

    /// The metric a run is judged by: accuracy or mean squared error.
    pub fn primary(&self) -> (&'static str, f64) {
        match *self {
            Self::Classification { accuracy, .. } => ("accuracy", accuracy),
            Self::Regression { mse, .. } => ("mse", mse),
        }
    }

    /// Rows.
    pub fn rows(&self) -> u64 {
        match *self {
            Self::Classification { rows, .. } | Self::Regression { rows, .. } => rows,
        }
    }
}

fn classification(codes: &[u32], classes: usize, probabilities: &[f32], labels: &[u32]) -> Metrics {
    let rows = codes.len() as f64;
    let mut given = vec![0u64; classes];
    let mut predicted = vec![0u64; classes];
    let mut found = vec![0u64; classes];
    let mut log_loss = 0.0;
    let nearest = f64::from(f32::EPSILON);
    for ((&code, &label), row) in codes.iter().zip(labels).zip(probabilities.chunks_exact(classes))
    {
        predicted[label as usize] += 1;
        // A class that training never saw has no probability; its rows are wrong whatever is predicted.
        let probability = row.get(code as usize).map_or(0.0, |&p| f64::from(p));
        log_loss -= probability.clamp(nearest, 1.0 - nearest).ln();
        if code != UNSEEN_CLASS {
            given[code as usize] += 1;
            found[code as usize] += u64::from(code == label);
        }
    }
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let recall = (0..classes)
        .filter(|&class| given[class] > 0)
        .map(|class| found[class] as f64 / given[class] as f64);
    let f1 = (0..classes)
        .filter(|&class| given[class] + predicted[class] > 0)
        .map(|class| 2.0 * found[class] as f64 / (given[class] + predicted[class]) as f64);
    Metrics::Classification {
        rows: codes.len() as u64,
        accuracy: found.iter().sum::<u64>() as f64 / rows,
        balanced_accuracy: mean(recall.collect()),
        macro_f1: mean(f1.collect()),
        log_loss: log_loss / rows,
        auc: (classes == 2).then(|| area(codes, probabilities)).flatten(),
    }
}

/// Area under the ROC curve by mean ranks, ties counting half.
fn area(codes: &[u32], probabilities: &[f32]) -> Option<f64> {
    let mut scored: Vec<(f32, bool)> = codes
        .iter()
        .zip(probabilities.chunks_exact(2))
        .filter(|(code, _)| **code < 2)
        .map(|(&code, row)| (row[1], code == 1))
        .collect();
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    let positives = scored.iter().filter(|(_, positive)| *positive).count() as f64;
    let negatives = scored.len() as f64 - positives;
    let mut ranks = 0.0;
    let mut before = 0;
    for ties in scored.chunk_by(|a, b| a.0 == b.0) {
        let rank = before as f64 + (ties.len() + 1) as f64 / 2.0;
        ranks += rank * ties.iter().filter(|(_, positive)| *positive).count() as f64;
        before += ties.len();
    }
    let area = (ranks - positives * (positives + 1.0) / 2.0) / (positives * negatives);
    (positives > 0.0 && negatives > 0.0).then_some(area)
}

fn regression(given: &[f64], predicted: &[f64]) -> Metrics {
    let rows = given.len() as f64;
    let mean = given.iter().sum::<f64>() / rows;
    let (mut squares, mut distances, mut spread) = (0.0, 0.0, 0.0);
    for (given, &predicted) in given.iter().zip(predicted) {
        let difference = given - predicted;
        squares += difference * difference;
        distances += difference.abs();
        spread += (given - mean) * (given - mean);
    }
    Metrics::Regression {
        rows: given.len() as u64,
        mse: squares / rows,
        mae: distances / rows,
        r2: (spread > 0.0).then(|| 1.0 - squares / spread),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn classes(labels: &[u32], classes: usize) -> Targets {
        Targets::Classes { labels: labels.to_vec(), classes }
    }

    fn close(found: Option<f64>, expected: f64) {
        let found = found.unwrap();
        assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0), "{found} {expected}");
    }

    // The numbers of the next two tests are scikit-learn's:
    //
    // import numpy as np
    // from sklearn import metrics as m
    // y = np.array([0, 2, 1, 2, 0, 1, 2, 2]); p = np.array(P, dtype=np.float32).reshape(-1, 3); l = p.argmax(1)
    // print(m.accuracy_score(y, l), m.balanced_accuracy_score(y, l), m.f1_score(y, l, average="macro"),
    //       m.log_loss(y, p))
    // y = np.array([0, 1, 1, 0, 1]); q = np.array([.2, .9, .4, .4, .05], dtype=np.float32)
    // print(m.roc_auc_score(y, q), m.balanced_accuracy_score(y, q > .5), m.f1_score(y, q > .5, average="macro"),
    //       m.log_loss(y, np.stack([1 - q, q], 1)))
    // g = np.array([1., 2., 4., 8.]); f = np.array([1.5, 2., 3., 9.])
    // print(m.mean_squared_error(g, f), m.mean_absolute_error(g, f), m.r2_score(g, f))
    const P: [f32; 24] = [
        0.7, 0.2, 0.1, 0.1, 0.3, 0.6, 0.5, 0.4, 0.1, 0.2, 0.2, 0.6, 0.1, 0.8, 0.1, 0.3, 0.5, 0.2,
        0.0, 0.0, 1.0, 1.0, 0.0, 0.0,
    ];

    #[test]
    fn metrics_of_classes_are_those_of_scikit_learn() {
        let predictions = Predictions::Classes { probabilities: P.to_vec(), classes: 3 };
        let metrics = Metrics::of(&classes(&[0, 2, 1, 2, 0, 1, 2, 2], 3), &predictions).unwrap();
        let values: Vec<Option<f64>> = metrics.named().into_iter().map(|(_, v)| v).collect();
        close(values[0], 0.625);
        close(values[1], 0.583_333_333_333_333_4);
        close(values[2], 0.585_714_285_714_285_7);
        close(values[3], 2.654_091_835_021_972_7);
        assert_eq!(values[4], None);

        let q = [0.2f32, 0.9, 0.4, 0.4, 0.05];
        let probabilities = q.iter().flat_map(|q| [1.0 - q, *q]).collect();
        let predictions = Predictions::Classes { probabilities, classes: 2 };
        let metrics = Metrics::of(&classes(&[0, 1, 1, 0, 1], 2), &predictions).unwrap();
        let values: Vec<Option<f64>> = metrics.named().into_iter().map(|(_, v)| v).collect();
        close(values[4], 0.583_333_333_333_333_3);
        close(values[1], 0.666_666_666_666_666_6);
        close(values[2], 0.583_333_333_333_333_3);
        close(values[3], 0.950_270_533_561_706_5);
    }

    #[test]
    fn metrics_of_numbers_are_those_of_scikit_learn() {
        let target = Targets::Values(vec![1.0, 2.0, 4.0, 8.0]);
        let metrics = Metrics::of(&target, &Predictions::Values(vec![1.5, 2.0, 3.0, 9.0])).unwrap();
        let values: Vec<Option<f64>> = metrics.named().into_iter().map(|(_, v)| v).collect();
        close(values[0], 0.5625);
        close(values[1], 0.625);
        close(values[2], 0.921_739_130_434_782_6);
        let constant = Metrics::of(&Targets::Values(vec![1.0]), &Predictions::Values(vec![2.0]));
        assert_eq!(constant.unwrap().named()[2], ("r2", None));
    }

    #[test]
    fn rows_of_a_class_never_seen_are_wrong() {
        let probabilities = vec![0.1, 0.9, 0.8, 0.2];
        let predictions = Predictions::Classes { probabilities, classes: 2 };
        let metrics = Metrics::of(&classes(&[UNSEEN_CLASS, 0], 2), &predictions).unwrap();
        assert_eq!(metrics.primary(), ("accuracy", 0.5));
        assert_eq!(metrics.named()[4], ("auc", None));
    }

    #[test]
    fn no_rows_have_no_metrics() {
        let none = Predictions::Classes { probabilities: Vec::new(), classes: 2 };
        assert_eq!(Metrics::of(&classes(&[], 2), &none), None);
        assert_eq!(Metrics::of(&Targets::Values(vec![1.0]), &none), None);
    }

    proptest! {
        #[test]
        fn the_area_is_the_share_of_pairs_in_order(
            rows in prop::collection::vec((0u32..2, 0u8..6), 1..40)
        ) {
            let codes: Vec<u32> = rows.iter().map(|row| row.0).collect();
            let score = |row: &(u32, u8)| f32::from(row.1) / 8.0;
            let probabilities: Vec<f32> =
                rows.iter().flat_map(|row| [1.0 - score(row), score(row)]).collect();
            let (mut pairs, mut ordered) = (0.0, 0.0);
            for a in rows.iter().filter(|row| row.0 == 1) {
                for b in rows.iter().filter(|row| row.0 == 0) {
                    pairs += 1.0;
                    ordered += match a.1.cmp(&b.1) {
                        std::cmp::Ordering::Greater => 1.0,
                        std::cmp::Ordering::Equal => 0.5,
                        std::cmp::Ordering::Less => 0.0,
                    };
                }
            }
            match area(&codes, &probabilities) {
                None => prop_assert_eq!(pairs, 0.0),
                Some(area) => prop_assert!((area - ordered / pairs).abs() < 1e-12),
            }
        }
    }
}
