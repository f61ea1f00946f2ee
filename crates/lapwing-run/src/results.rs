//! What a finished run amounts to: metrics, a verdict per source, and the report.

use lapwing_judge::SourceRow;
use lapwing_report::{Report, Warning};
use lapwing_train::{Epoch, Predictions};

use crate::{
    Fit, ItemRow, Job, Metrics, Prepared, RunError, items_file, judgement, limits, report,
};

/// The results of a run.
#[derive(Debug)]
pub struct Results {
    /// On the test rows, if there are any.
    pub test: Option<Metrics>,
    /// On the validation rows, if there are any.
    pub validation: Option<Metrics>,
    /// Lines of `metrics.csv`.
    pub metrics: Vec<MetricLine>,
    /// What all answers on each item amount to, where items were named.
    pub items: Option<Vec<ItemRow>>,
    /// Where no method can know; these are among the warnings of the report.
    pub limits: Vec<Warning>,
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
    /// Judges a finished run, and takes the sources out of it: a million of them are not held twice. `standard` is the
    /// primary metric of standard training on the same data, if it was run.
    pub fn new(
        prepared: &Prepared,
        job: &Job<'_>,
        fit: &mut Fit,
        standard: Option<f64>,
    ) -> Result<Self, RunError> {
        let items = items_file::items(job, fit, &*job.dataset().bind(&job.input)?)?;
        let sources = std::mem::take(&mut fit.sources);
        let labels = fit.labels.as_mut();
        let judged = labels.map_or_else(|_| Vec::new(), |l| std::mem::take(&mut l.noise.sources));
        let fit = &*fit;
        let (dataset, split) = (job.dataset(), job.split());
        let bound = dataset.bind(&job.input)?;
        let part = |rows| -> Result<Part<'_>, RunError> {
            Ok(Part { rows, predictions: fit.model.predict(&*bound, rows)? })
        };
        // Of a table on disk a sample is looked at.
        let (train, valid) =
            (part(dataset.held(&split.train))?, part(dataset.held(&split.validation))?);
        let validation = Metrics::of(&dataset.target.select(valid.rows), &valid.predictions);
        let test = job.test(&fit.model, prepared)?;
        let metrics = lines(&fit.history, validation.as_ref(), test.as_ref());
        let judgement = judgement::judge(job, fit, sources, judged, &*bound, &train, &valid)?;
        let limits = limits::limits(job, &judgement.sources);
        let report = report::report(report::Run {
            job,
            limits: &limits,
            fit,
            samples: &*bound,
            judgement,
            metrics: &metrics,
            outcome: test.as_ref().map(|metrics| (metrics.primary(), standard)),
        });
        Ok(Self { test, validation, metrics, items, limits, report })
    }

    /// One row per source, in the order of the table.
    pub fn sources(&self) -> &[SourceRow] {
        &self.report.sources
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
