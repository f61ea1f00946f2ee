//! How many labels of a source are wrong.

use serde::{Deserialize, Serialize};

use crate::{Answered, Answers, Verdict};

/// Fewest held-out rows of reliable sources that make a baseline; with fewer, training rows have to do.
pub(crate) const FEWEST_HELD_OUT: u64 = 50;
/// Two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// An estimate with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How many rows there are and how many of them contradict the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LabelError {
    /// Rows.
    pub rows: u64,
    /// Rows whose label is not the model's.
    pub disagreeing: u64,
}

impl LabelError {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, disagreeing: self.disagreeing + other.disagreeing }
    }

    fn without(self, other: Self) -> Self {
        Self { rows: self.rows - other.rows, disagreeing: self.disagreeing - other.disagreeing }
    }

    fn share(self) -> f64 {
        self.disagreeing as f64 / self.rows.max(1) as f64
    }

    /// The baseline: held-out rows of the reliable sources where there are enough of them, because the model has learnt
    /// the training rows of those sources by heart to some degree, and those of down-weighted sources not.
    pub fn baseline(held_out: Self, training: Self) -> Option<Self> {
        if held_out.rows >= FEWEST_HELD_OUT { Some(held_out) } else { Some(training) }
            .filter(|baseline| baseline.rows > 0)
    }
}

/// The Wilson interval (95 %) of a share.
pub fn wilson(successes: u64, trials: u64) -> (f64, f64) {
    if trials == 0 {
        return (0.0, 1.0);
    }
    let n = trials as f64;
    let share = successes as f64 / n;
    let centre = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

/// The share of wrong labels in a source.
///
/// Where a label is right it contradicts the model as often as labels of reliable sources do, with probability b.
/// Where it is wrong, taken as any other of K classes, it agrees with the model only where the model is wrong in the same
/// way, with probability b / (K − 1). So a source with a share e of wrong labels contradicts the model in
/// (1 − e)·b + e·(1 − b/(K − 1)) of its rows, which gives e. The interval is Wilson's for the source's own disagreement;
/// the baseline counts as known. `None` where the model is no better than guessing on reliable sources.
///
/// Values have no classes, `None`: they contradict the model where they are further from it than those of reliable
/// sources usually are, and a wrong value is taken to do so always. One that comes close by chance is not found, so that
/// the estimate is rather too low.
pub fn label_error(
    source: LabelError,
    baseline: LabelError,
    classes: Option<usize>,
) -> Option<Interval> {
    let base = baseline.share();
    let agreeing = match classes {
        Some(0 | 1) => return None,
        Some(classes) => base / (classes as f64 - 1.0),
        None => 0.0,
    };
    let slope = 1.0 - base - agreeing;
    if source.rows == 0 || baseline.rows == 0 || slope <= 0.05 {
        return None;
    }
    let error = |share: f64| ((share - base) / slope).clamp(0.0, 1.0);
    let (low, high) = wilson(source.disagreeing, source.rows);
    Some(Interval { estimate: error(source.share()), low: error(low), high: error(high) })
}

/// For every source how many of its training labels are wrong, measured by the other sources that are reliable.
///
/// Values contradict the model where they are further from it than nine in ten values of reliable sources, on held-out
/// rows where there are enough of them. Rows of a source without a verdict are left out.
pub fn label_errors(
    verdicts: &[Verdict],
    training: &Answered<'_>,
    held_out: &Answered<'_>,
) -> Vec<Option<Interval>> {
    let (far_training, far_held_out) = (training.answers.distances(), held_out.answers.distances());
    let (classes, limit) = match training.answers {
        Answers::Classes { names, .. } => (Some(names.len()), 0.0),
        Answers::Values { .. } => {
            let of_reliable = |part: &Answered<'_>, far: &[f64]| {
                let reliable =
                    |source: u32| verdicts.get(source as usize) == Some(&Verdict::Reliable);
                let rows = part.sources.iter().zip(far);
                rows.filter(|(source, _)| reliable(**source)).map(|(_, &far)| far).collect()
            };
            (
                None,
                usual_distance(
                    of_reliable(held_out, &far_held_out),
                    of_reliable(training, &far_training),
                ),
            )
        }
    };
    let count = |part: &Answered<'_>, far: &[f64]| {
        let mut counts = vec![LabelError::default(); verdicts.len()];
        for (&source, &far) in part.sources.iter().zip(far) {
            if let Some(count) = counts.get_mut(source as usize) {
                count.rows += 1;
                count.disagreeing += u64::from(far > limit);
            }
        }
        counts
    };
    let (training, held_out) = (count(training, &far_training), count(held_out, &far_held_out));
    let reliable = |counts: &[LabelError]| {
        let own = counts.iter().zip(verdicts).filter(|(_, verdict)| **verdict == Verdict::Reliable);
        own.fold(LabelError::default(), |sum, (count, _)| sum.and(*count))
    };
    // The sums over all reliable sources, less the source itself: not a loop over pairs of sources.
    let (all_training, all_held_out) = (reliable(&training), reliable(&held_out));
    (0..verdicts.len())
        .map(|at| {
            let others = |sum: LabelError, own: LabelError| match verdicts[at] {
                Verdict::Reliable => sum.without(own),
                _ => sum,
            };
            let baseline = LabelError::baseline(
                others(all_held_out, held_out[at]),
                others(all_training, training[at]),
            )?;
            label_error(training[at], baseline, classes)
        })
        .collect()
}

/// The distance that nine in ten values of reliable sources keep within; from held-out rows where there are enough.
fn usual_distance(held_out: Vec<f64>, training: Vec<f64>) -> f64 {
    let mut distances = if held_out.len() as u64 >= FEWEST_HELD_OUT { held_out } else { training };
    distances.sort_by(f64::total_cmp);
    let at = (distances.len() * 9).div_ceil(10);
    distances.get(at.saturating_sub(1)).copied().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WILSON: [(u64, u64, f64, f64); 4] = [
        (0, 10, 0.0, 0.277_532_799_862_889_26),
        (3, 40, 0.025_836_025_774_588_198, 0.198_642_335_243_105_43),
        (500, 1000, 0.469_069_600_368_104_2, 0.530_930_399_631_895_8),
        (10, 10, 0.722_467_200_137_110_9, 1.0),
    ];

    // from scipy.stats import binomtest
    // for k, n in [(0, 10), (3, 40), (500, 1000), (10, 10)]:
    //     i = binomtest(k, n).proportion_ci(method="wilson"); print(k, n, i.low, i.high)
    #[test]
    fn intervals_are_those_of_scipy() {
        for (k, n, low, high) in WILSON {
            let found = wilson(k, n);
            assert!((found.0 - low).abs() < 1e-12 && (found.1 - high).abs() < 1e-12, "{found:?}");
        }
        assert_eq!(wilson(0, 0), (0.0, 1.0));
    }

    #[test]
    fn flipped_labels_are_counted_whatever_the_models_own_errors() {
        // Two classes, the model wrong in 10 % of rows, 30 % of labels flipped: it disagrees in 0.7·0.1 + 0.3·0.9.
        let base = LabelError { rows: 10_000, disagreeing: 1000 };
        let source = LabelError { rows: 10_000, disagreeing: 3400 };
        let found = label_error(source, base, Some(2)).unwrap();
        assert!((found.estimate - 0.3).abs() < 1e-12);
        assert!(found.low < 0.3 && found.high > 0.3 && found.high - found.low < 0.03);
        let all = LabelError { rows: 100, disagreeing: 100 };
        assert_eq!(label_error(all, base, Some(2)).unwrap().estimate, 1.0);
        assert_eq!(
            label_error(LabelError { rows: 100, disagreeing: 3 }, base, Some(2)).unwrap().low,
            0.0
        );
    }

    #[test]
    fn random_labels_among_many_classes_are_counted() {
        // Ten classes, the model wrong in 18 %, half of the labels replaced by another one.
        let base = LabelError { rows: 100, disagreeing: 18 };
        let source = LabelError { rows: 10_000, disagreeing: (0.5 * 1800.0 + 0.5 * 9800.0) as u64 };
        assert!((label_error(source, base, Some(10)).unwrap().estimate - 0.5).abs() < 1e-9);
    }

    #[test]
    fn values_far_from_the_model_are_counted_beyond_the_usual() {
        // One in ten values of reliable sources is far off; of these 40 % are replaced: 0.6·0.1 + 0.4.
        let base = LabelError { rows: 1000, disagreeing: 100 };
        let found = label_error(LabelError { rows: 1000, disagreeing: 460 }, base, None).unwrap();
        assert!((found.estimate - 0.4).abs() < 1e-12);
        assert!(found.low < 0.4 && found.high > 0.4);
    }

    #[test]
    fn a_model_that_guesses_says_nothing_about_labels() {
        let base = LabelError { rows: 100, disagreeing: 49 };
        assert!(label_error(LabelError { rows: 10, disagreeing: 9 }, base, Some(2)).is_none());
        assert!(label_error(LabelError::default(), base, Some(3)).is_none());
    }

    #[test]
    fn held_out_rows_make_the_baseline_where_there_are_enough() {
        let (few, many) =
            (LabelError { rows: 49, disagreeing: 1 }, LabelError { rows: 50, disagreeing: 9 });
        let training = LabelError { rows: 900, disagreeing: 9 };
        assert_eq!(LabelError::baseline(few, training), Some(training));
        assert_eq!(LabelError::baseline(many, training), Some(many));
        assert_eq!(LabelError::baseline(few, LabelError::default()), None);
    }

    /// One row: its source, what is given and what the model says.
    type Row = (u32, u32, u32);

    /// Source by source and row by row, in the words of the definition.
    fn slow(
        verdicts: &[Verdict],
        training: &[Row],
        held_out: &[Row],
        classes: Option<usize>,
    ) -> Vec<Option<Interval>> {
        let distance = |row: &Row| f64::from(row.1.abs_diff(row.2));
        let reliable = |row: &&Row| verdicts[row.0 as usize] == Verdict::Reliable;
        let far = |row: &Row| match classes {
            Some(_) => row.1 != row.2,
            None => {
                let all = |rows: &[Row]| -> Vec<f64> {
                    rows.iter().filter(reliable).map(distance).collect()
                };
                let known = all(held_out);
                let mut known = if known.len() >= 50 { known } else { all(training) };
                known.sort_by(f64::total_cmp);
                // The least distance that at least nine in ten keep within.
                let within = |limit: f64| known.iter().filter(|far| **far <= limit).count() * 10;
                let limit = known.iter().copied().find(|&far| within(far) >= known.len() * 9);
                distance(row) > limit.unwrap_or(f64::INFINITY)
            }
        };
        let tally = |rows: &[&Row]| LabelError {
            rows: rows.len() as u64,
            disagreeing: rows.iter().filter(|row| far(row)).count() as u64,
        };
        (0..verdicts.len() as u32)
            .map(|source| {
                let others = |rows: &[Row]| {
                    let chosen: Vec<Row> = rows
                        .iter()
                        .filter(reliable)
                        .filter(|row| row.0 != source)
                        .copied()
                        .collect();
                    tally(&chosen.iter().collect::<Vec<_>>())
                };
                let own: Vec<&Row> = training.iter().filter(|row| row.0 == source).collect();
                let base = Some(others(held_out)).filter(|base| base.rows >= 50);
                let base = base.unwrap_or_else(|| others(training));
                if base.rows == 0 { None } else { label_error(tally(&own), base, classes) }
            })
            .collect()
    }

    fn fast(
        verdicts: &[Verdict],
        training: &[Row],
        held_out: &[Row],
        classes: Option<usize>,
    ) -> Vec<Option<Interval>> {
        let names: Vec<String> = (0..classes.unwrap_or(0)).map(|n| n.to_string()).collect();
        let parts = [training, held_out].map(|rows| {
            let sources: Vec<u32> = rows.iter().map(|row| row.0).collect();
            let given: Vec<u32> = rows.iter().map(|row| row.1).collect();
            let numbers: Vec<f64> = rows.iter().map(|row| f64::from(row.1)).collect();
            let said: Vec<f32> = rows
                .iter()
                .flat_map(|row| {
                    let classes = 0..classes.unwrap_or(0) as u32;
                    classes.map(move |class| f32::from(u8::from(class == row.2)))
                })
                .collect();
            let predicted: Vec<f64> = rows.iter().map(|row| f64::from(row.2)).collect();
            (sources, given, numbers, said, predicted)
        });
        let [training, held_out] =
            parts.each_ref().map(|(sources, given, numbers, said, predicted)| {
                let answers = match classes {
                    Some(_) => Answers::Classes { names: &names, given, probabilities: said },
                    None => Answers::Values { given: numbers, predicted },
                };
                Answered { sources, answers }
            });
        label_errors(verdicts, &training, &held_out)
    }

    proptest! {
        #[test]
        fn label_errors_are_those_of_the_slow_oracle(
            verdicts in prop::collection::vec(prop::sample::select(Verdict::ALL.to_vec()), 1..6),
            training in prop::collection::vec((0u32..6, 0u32..4, 0u32..4), 0..200),
            held_out in prop::collection::vec((0u32..6, 0u32..4, 0u32..4), 0..200),
            regression: bool,
        ) {
            let sources = verdicts.len() as u32;
            // A model that is mostly right, or nothing could be said.
            let tame = |rows: &[Row]| -> Vec<Row> {
                let row = |(at, row): (usize, &Row)| {
                    (row.0 % sources, row.1, if at % 4 == 0 { row.2 } else { row.1 })
                };
                rows.iter().enumerate().map(row).collect()
            };
            let (training, held_out) = (tame(&training), tame(&held_out));
            let classes = (!regression).then_some(4);
            prop_assert_eq!(
                fast(&verdicts, &training, &held_out, classes),
                slow(&verdicts, &training, &held_out, classes)
            );
        }
    }
}
