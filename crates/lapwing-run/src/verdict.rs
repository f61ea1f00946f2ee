//! The verdict on a source, and how many of its labels are wrong.
//!
//! Every step in which a source is compared with the others is a *judgement*: its loss is above the threshold or not.
//! Unreliability C counts one up for every judgement above and one down for every other, never below zero.
//!
//! | verdict | when |
//! |---|---|
//! | `insufficient` | fewer than [`FEWEST_ROWS`] training rows, or fewer judgements than twice the history length (at least [`FEWEST_JUDGEMENTS`]) |
//! | `unreliable` | above the threshold in at least half of its judgements, and C at least a quarter of them |
//! | `suspect` | above in at least a quarter of its judgements with C above a twentieth of them, or at less than half weight |
//! | `reliable` | everything else |
//!
//! Why these. A source that is no worse than the others is above a threshold of 0.8 standard deviations rarely, and its
//! C keeps returning to zero: a share of one half is the point at which C grows in the long run instead of falling. C
//! itself says whether it still holds at the end: a source that was above early and was then learnt has a large share
//! and a small C, and is no more than suspect. C is compared with the judgements of the source, not with the steps of
//! the run, because a source that is in one batch of ten cannot collect more. Fewer rows than ten are few enough to be
//! hard by chance: their mean loss strays further than the threshold in about one clean source of ten.

use lapwing_report::{Interval, Verdict};

/// Fewest training rows for a verdict.
pub const FEWEST_ROWS: u64 = 10;
/// Fewest judgements for a verdict.
pub const FEWEST_JUDGEMENTS: u64 = 20;
/// Fewest held-out rows of reliable sources that make a baseline; with fewer, training rows have to do.
pub(crate) const FEWEST_HELD_OUT: u64 = 50;
/// Two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// What a verdict rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    /// Training rows.
    pub rows: u64,
    /// Steps in which the source was compared with the others.
    pub judged: u64,
    /// How many of these found it above the threshold.
    pub above: u64,
    /// C at the end.
    pub unreliability: u64,
    /// f(C) at the end, before the user's guards.
    pub weight: f64,
}

/// The verdict.
pub fn verdict(facts: &Facts, history_length: usize) -> Verdict {
    let Facts { rows, judged, above, unreliability, weight } = *facts;
    let enough = FEWEST_JUDGEMENTS.max(2 * history_length as u64);
    if rows < FEWEST_ROWS || judged < enough {
        return Verdict::Insufficient;
    }
    let share = above as f64 / judged as f64;
    let held = unreliability as f64 / judged as f64;
    if share >= 0.5 && held >= 0.25 {
        Verdict::Unreliable
    } else if (share >= 0.25 && held > 0.05) || weight < 0.5 {
        Verdict::Suspect
    } else {
        Verdict::Reliable
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(judged: u64, above: u64, unreliability: u64) -> Facts {
        Facts { rows: 1000, judged, above, unreliability, weight: 1.0 }
    }

    #[test]
    fn a_source_above_the_threshold_most_of_the_time_to_the_end_is_unreliable() {
        assert_eq!(verdict(&facts(1000, 1000, 1000), 25), Verdict::Unreliable);
        assert_eq!(verdict(&facts(1000, 650, 300), 25), Verdict::Unreliable);
    }

    #[test]
    fn a_source_that_recovered_or_wavers_is_suspect() {
        assert_eq!(verdict(&facts(1000, 550, 100), 25), Verdict::Suspect);
        assert_eq!(verdict(&facts(1000, 300, 60), 25), Verdict::Suspect);
        let light = Facts { weight: 0.3, ..facts(10_000, 1000, 400) };
        assert_eq!(verdict(&light, 25), Verdict::Suspect);
    }

    #[test]
    fn a_source_now_and_then_above_is_reliable() {
        assert_eq!(verdict(&facts(1000, 150, 3), 25), Verdict::Reliable);
        assert_eq!(verdict(&facts(1000, 0, 0), 25), Verdict::Reliable);
    }

    #[test]
    fn little_seen_is_little_known() {
        assert_eq!(verdict(&facts(49, 49, 49), 25), Verdict::Insufficient);
        assert_eq!(verdict(&facts(50, 50, 50), 25), Verdict::Unreliable);
        let few = Facts { rows: 9, ..facts(1000, 1000, 1000) };
        assert_eq!(verdict(&few, 25), Verdict::Insufficient);
    }

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
}
