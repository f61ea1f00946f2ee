//! What a finished run amounts to: metrics, a verdict per source, and the report.

use lapwing_report::{Interval, Report, Verdict};
use lapwing_sample::Targets;
use lapwing_train::{Epoch, Predictions};

use crate::fit::SourceFacts;
use crate::verdict::{FEWEST_HELD_OUT, Facts, LabelError, label_error, verdict};
use crate::{Fit, Job, Metrics, Prepared, RunError, SourceRecord, evidence, model_file};

/// The results of a run.
#[derive(Debug)]
pub struct Results {
    /// One row per source, in the order of the table.
    pub sources: Vec<SourceRecord>,
    /// The estimated share of wrong labels (or values) per source, in the same order.
    pub label_errors: Vec<Option<Interval>>,
    /// On the test rows, if there are any.
    pub test: Option<Metrics>,
    /// On the validation rows, if there are any.
    pub validation: Option<Metrics>,
    /// Lines of `metrics.csv`.
    pub metrics: Vec<MetricLine>,
    /// The report.
    pub report: Report,
}

/// A line of `metrics.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricLine {
    /// Epoch, from 1.
    pub epoch: usize,
    /// `train`, `validation` or `test`.
    pub split: &'static str,
    /// The metric.
    pub metric: &'static str,
    /// Its value.
    pub value: f64,
}

/// What the model says of the rows of a part.
pub(crate) struct Part<'a> {
    pub(crate) rows: &'a [u32],
    pub(crate) predictions: Predictions,
}

impl Results {
    /// Judges a finished run. `standard` is the primary metric of standard training on the same data, if it was run.
    pub fn new(
        prepared: &Prepared,
        job: &Job<'_>,
        fit: &Fit,
        standard: Option<f64>,
    ) -> Result<Self, RunError> {
        let (dataset, split) = (job.dataset(), job.split());
        let bound = job.encoder.bind(&dataset.table)?;
        let part = |rows| -> Result<Part<'_>, RunError> {
            Ok(Part { rows, predictions: fit.model.predict(&bound, rows)? })
        };
        let (train, valid) = (part(&split.train)?, part(&split.validation)?);
        let metrics_of =
            |part: &Part<'_>| Metrics::of(&dataset.target.select(part.rows), &part.predictions);
        let validation = metrics_of(&valid);
        let test = match &prepared.test {
            None => metrics_of(&part(&split.test)?),
            Some(data) => {
                let (target, predictions) = model_file::test(&fit.model, &job.encoder, data)?;
                Metrics::of(&target, &predictions)
            }
        };
        let history_length = job.settings.rule().history_length;
        let judge = |facts: &SourceFacts| verdict(&facts.for_verdict(), history_length);
        let verdicts: Vec<Verdict> = fit.sources.iter().map(judge).collect();
        let label_errors =
            label_errors(&dataset.target, &dataset.sources.codes, &verdicts, &train, &valid);
        let metrics = lines(&fit.history, validation.as_ref(), test.as_ref());
        let sources: Vec<SourceRecord> = dataset
            .sources
            .names
            .iter()
            .zip(&fit.sources)
            .zip(&verdicts)
            .map(|((name, facts), &verdict)| SourceRecord::new(name, facts, verdict))
            .collect();
        let outcome = test.as_ref().map(|metrics| (metrics.primary(), standard));
        let report = evidence::report(&evidence::Run {
            job,
            fit,
            verdicts: &verdicts,
            label_errors: &label_errors,
            train: &train,
            rows: &bound,
            metrics: &metrics,
            outcome,
        })?;
        Ok(Self { sources, label_errors, test, validation, metrics, report })
    }
}

impl SourceFacts {
    fn for_verdict(&self) -> Facts {
        Facts {
            rows: self.rows,
            judged: self.judged,
            above: self.above,
            unreliability: self.unreliability,
            weight: self.rule_weight,
        }
    }
}

/// The epoch whose parameters were kept, from 1: the last that was the best so far.
pub(crate) fn best_epoch(history: &[Epoch]) -> usize {
    let best = history.iter().rposition(|epoch| epoch.best);
    best.map_or(history.len(), |at| at + 1)
}

fn lines(
    history: &[Epoch],
    validation: Option<&Metrics>,
    test: Option<&Metrics>,
) -> Vec<MetricLine> {
    let mut lines = Vec::new();
    for (at, epoch) in history.iter().enumerate() {
        let mut line = |split, metric, value: Option<f64>| {
            lines.extend(value.map(|value| MetricLine { epoch: at + 1, split, metric, value }));
        };
        line("train", "loss", Some(epoch.train_loss));
        line("validation", "loss", epoch.valid_loss);
        line("validation", "loss_unweighted", epoch.valid_loss_unweighted);
    }
    let epoch = best_epoch(history);
    for (split, metrics) in [("validation", validation), ("test", test)] {
        for (metric, value) in metrics.into_iter().flat_map(Metrics::named) {
            lines.extend(value.map(|value| MetricLine { epoch, split, metric, value }));
        }
    }
    lines
}

/// For every source how many of its labels are wrong.
fn label_errors(
    target: &Targets,
    sources: &[u32],
    verdicts: &[Verdict],
    train: &Part<'_>,
    valid: &Part<'_>,
) -> Vec<Option<Interval>> {
    let distances = |part: &Part<'_>| distances(target, part);
    let (far_train, far_valid) = (distances(train), distances(valid));
    let reliable = |part: &Part<'_>, distances: &[f64]| {
        let rows = part.rows.iter().zip(distances);
        let chosen = |row: &u32| verdicts[sources[*row as usize] as usize] == Verdict::Reliable;
        rows.filter(|(row, _)| chosen(row)).map(|(_, &distance)| distance).collect()
    };
    let (classes, limit) = match target {
        Targets::Classes { classes, .. } => (Some(*classes), 0.0),
        Targets::Values(_) => {
            (None, usual_distance(reliable(valid, &far_valid), reliable(train, &far_train)))
        }
    };
    let count = |part: &Part<'_>, distances: &[f64]| {
        let mut counts = vec![LabelError::default(); verdicts.len()];
        for (&row, &distance) in part.rows.iter().zip(distances) {
            let count = &mut counts[sources[row as usize] as usize];
            count.rows += 1;
            count.disagreeing += u64::from(distance > limit);
        }
        counts
    };
    let (train, valid) = (count(train, &far_train), count(valid, &far_valid));
    let reliable = |counts: &[LabelError], but: usize| {
        let chosen = |at: &usize| *at != but && verdicts[*at] == Verdict::Reliable;
        (0..counts.len()).filter(chosen).fold(LabelError::default(), |sum, at| sum.and(counts[at]))
    };
    // The sums over all reliable sources, less the source itself: not a loop over pairs of sources.
    let nobody = verdicts.len();
    let (all_train, all_valid) = (reliable(&train, nobody), reliable(&valid, nobody));
    (0..verdicts.len())
        .map(|at| {
            let own = |sum: LabelError, own: LabelError| match verdicts[at] {
                Verdict::Reliable => LabelError {
                    rows: sum.rows - own.rows,
                    disagreeing: sum.disagreeing - own.disagreeing,
                },
                _ => sum,
            };
            let baseline =
                LabelError::baseline(own(all_valid, valid[at]), own(all_train, train[at]))?;
            label_error(train[at], baseline, classes)
        })
        .collect()
}

/// How far each row's target is from what the model says: 1 for another class, or the distance between the values.
fn distances(target: &Targets, part: &Part<'_>) -> Vec<f64> {
    let rows = part.rows.iter().map(|&row| row as usize);
    match (target, &part.predictions) {
        (Targets::Classes { labels, .. }, predictions) => rows
            .zip(predictions.labels())
            .map(|(row, label)| f64::from(u8::from(labels[row] != label)))
            .collect(),
        (Targets::Values(values), Predictions::Values(predicted)) => {
            rows.zip(predicted).map(|(row, said)| (values[row] - said).abs()).collect()
        }
        (Targets::Values(_), Predictions::Classes { .. }) => Vec::new(),
    }
}

/// The distance that nine in ten values of reliable sources keep within; from held-out rows where there are enough.
fn usual_distance(held_out: Vec<f64>, training: Vec<f64>) -> f64 {
    let mut distances = if held_out.len() as u64 >= FEWEST_HELD_OUT { held_out } else { training };
    distances.sort_by(f64::total_cmp);
    let at = (distances.len() * 9).div_ceil(10);
    distances.get(at.saturating_sub(1)).copied().unwrap_or(f64::INFINITY)
}
