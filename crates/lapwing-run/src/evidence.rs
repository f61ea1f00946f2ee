//! The evidence of a finished run, as the report wants it.

use std::collections::BTreeMap;

use lapwing_data::{EncodedRows, Warning as DataWarning};
use lapwing_report::{
    Column, Comparison, Confusion, Dropped, EpochMetric, Evidence, Interval, Outcome, Phase,
    PhaseLosses, Point, Report, Residuals, Ruling, Setting, SourceRow, Summary, Task, Trajectory,
    Verdict, Warning, WorstRow,
};
use lapwing_sample::Targets;
use lapwing_train::Predictions;

use crate::recorder::TrajectoryPoint;
use crate::results::{MetricLine, Part, best_epoch};
use crate::{Fit, Job, MethodName, RunError};

/// Points of a line in a picture: more than there are pixels for is waste.
const MOST_POINTS: usize = 240;
/// Lines in a picture; flagged sources come first.
const MOST_LINES: usize = 200;
/// Flagged sources whose rows are shown, worst first.
const MOST_EVIDENCE: usize = 50;
const WORST_ROWS: usize = 10;
const SHOWN_FEATURES: usize = 8;
/// Classes up to which a confusion can be read.
const MOST_CLASSES: usize = 40;

/// What is known when a run is over.
pub(crate) struct Run<'a> {
    pub(crate) job: &'a Job<'a>,
    pub(crate) fit: &'a Fit,
    pub(crate) verdicts: &'a [Verdict],
    pub(crate) label_errors: &'a [Option<Interval>],
    pub(crate) train: &'a Part<'a>,
    pub(crate) rows: &'a EncodedRows<'a>,
    pub(crate) metrics: &'a [MetricLine],
    /// The metric on the test rows, and that of standard training.
    pub(crate) outcome: Option<((&'static str, f64), Option<f64>)>,
}

pub(crate) fn report(run: &Run<'_>) -> Result<Report, RunError> {
    let order = run.worst_first();
    Ok(Report {
        summary: run.summary(),
        warnings: run.warnings(),
        sources: order.iter().map(|&source| run.source(source)).collect(),
        trajectories: run.trajectories(&order),
        phases: Phase::count(&run.phases(&order)),
        evidence: run.evidence(&order)?,
        epochs: run.metrics.iter().map(epoch_metric).collect(),
        configuration: run.configuration(),
        dropped: run.dropped(),
        schema: run.schema(),
    })
}

fn epoch_metric(line: &MetricLine) -> EpochMetric {
    EpochMetric {
        epoch: line.epoch as u64,
        split: line.split.to_owned(),
        metric: line.metric.to_owned(),
        value: Some(line.value),
    }
}

impl Run<'_> {
    fn name(&self, source: usize) -> String {
        self.job.dataset().sources.names[source].clone()
    }

    fn worst_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.verdicts.len()).collect();
        let facts = &self.fit.sources;
        order.sort_by(|&a, &b| {
            self.verdicts[a]
                .cmp(&self.verdicts[b])
                .then(facts[a].weight.total_cmp(&facts[b].weight))
                .then(facts[b].unreliability.cmp(&facts[a].unreliability))
                .then(a.cmp(&b))
        });
        order
    }

    fn summary(&self) -> Summary {
        let (job, settings) = (self.job, &self.job.settings);
        let path = job.dataset().table.path();
        let name = path.file_name().unwrap_or(path.as_os_str());
        Summary {
            title: name.to_string_lossy().into_owned(),
            target: settings.target.clone().unwrap_or_default(),
            source_column: settings.source.clone().unwrap_or_default(),
            task: match job.dataset().schema.task {
                lapwing_data::Task::Classification => Task::Classification,
                lapwing_data::Task::Regression => Task::Regression,
            },
            method: settings.method().word().to_owned(),
            rows: job.split().train.len() as u64,
            steps: self.fit.steps,
            epochs: self.fit.history.len() as u64,
            best_epoch: Some(best_epoch(&self.fit.history) as u64),
            history_length: settings.rule().history_length as u64,
            leniency: settings.rule().leniency,
            depression_strength: match settings.method() {
                MethodName::Lap => job.plan.depression_strength,
                _ => 0.0,
            },
            outcome: self.outcome.map(|((metric, value), standard)| Outcome {
                metric: metric.to_owned(),
                split: "test".to_owned(),
                value,
                standard,
            }),
            seed: Some(settings.seed()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            created: String::new(),
        }
    }

    fn source(&self, source: usize) -> SourceRow {
        let facts = &self.fit.sources[source];
        SourceRow {
            source: self.name(source),
            verdict: self.verdicts[source],
            ruling: facts.ruling,
            rows: facts.rows,
            batches: facts.batches,
            unreliability: facts.unreliability as f64,
            weight: facts.weight,
            mean_loss: facts.mean_loss,
            reference_loss: facts.reference_loss,
            reference_std: facts.reference_std,
            share_above: (facts.judged > 0).then(|| facts.above as f64 / facts.judged as f64),
            label_error: self.label_errors[source],
            nonfinite: facts.nonfinite,
            first_departure_step: facts.first_departure_step,
        }
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for warning in &self.job.dataset().warnings {
            warnings.push(match warning {
                DataWarning::OneSource(_) => Warning::SingleSource,
                other => Warning::Other { text: format!("{}.", capitalised(&other.to_string())) },
            });
        }
        warnings.extend(self.windows_never_filled());
        warnings.extend(self.classes_weighted_down());
        match self.job.settings.method() {
            MethodName::Lap => {}
            MethodName::Standard => warnings.push(Warning::Other {
                text: "Training was standard: every row kept its full weight. The verdicts say what the losses of \
                       the sources look like without any of them being weighted down."
                    .to_owned(),
            }),
            other => warnings.push(Warning::Other {
                text: format!(
                    "Training was by {}, not by LAP, whose rule only looked on. The verdicts say what the losses \
                     of the sources look like without LAP weighting any of them down.",
                    other.word()
                ),
            }),
        }
        warnings
    }

    fn windows_never_filled(&self) -> Option<Warning> {
        let history_length = self.job.settings.rule().history_length as u64;
        let facts = &self.fit.sources;
        let unfilled: Vec<usize> = (0..facts.len())
            .filter(|&source| {
                let facts = &facts[source];
                facts.rows > 0
                    && facts.batches < history_length
                    && facts.ruling != Some(Ruling::Blocked)
            })
            .collect();
        let most_batches = unfilled.iter().map(|&source| facts[source].batches).max()?;
        let sources = unfilled.iter().map(|&source| self.name(source)).collect();
        Some(Warning::WindowsNeverFilled { sources, history_length, most_batches })
    }

    /// Classes most of whose training rows come from sources below half weight.
    fn classes_weighted_down(&self) -> Vec<Warning> {
        let dataset = self.job.dataset();
        let Targets::Classes { labels, .. } = &dataset.target else { return Vec::new() };
        let names = &dataset.schema.classes;
        let mut all = vec![0u64; names.len()];
        let mut down: Vec<BTreeMap<u32, u64>> = vec![BTreeMap::new(); names.len()];
        for &row in self.train.rows {
            let (class, source) =
                (labels[row as usize] as usize, dataset.sources.codes[row as usize]);
            all[class] += 1;
            if self.fit.sources[source as usize].weight < 0.5 {
                *down[class].entry(source).or_default() += 1;
            }
        }
        let mut warnings = Vec::new();
        for (class, held) in down.iter().enumerate() {
            let rows: u64 = held.values().sum();
            if 2 * rows > all[class] {
                let mut sources: Vec<(&u32, &u64)> = held.iter().collect();
                sources.sort_by_key(|&(source, rows)| (std::cmp::Reverse(*rows), *source));
                warnings.push(Warning::ClassWeightedDown {
                    class: names[class].clone(),
                    share: rows as f64 / all[class] as f64,
                    sources: sources.iter().map(|(s, _)| self.name(**s as usize)).collect(),
                });
            }
        }
        if warnings.len() > 1 && warnings.len() == names.len() {
            // No class stands out: saying it once is enough.
            let rows: u64 = down.iter().flat_map(BTreeMap::values).sum();
            let share = 100.0 * rows as f64 / all.iter().sum::<u64>() as f64;
            return vec![Warning::Other {
                text: format!(
                    "Sources that were weighted down hold {share:.0} % of the training rows, and most rows of every \
                     class. The model rests on the others: look whether these are the ones to be believed; --trust \
                     keeps a source at full weight."
                ),
            }];
        }
        warnings
    }

    /// The recorded points of every source.
    fn courses(&self) -> Vec<Vec<&TrajectoryPoint>> {
        let mut courses = vec![Vec::new(); self.verdicts.len()];
        for point in &self.fit.trajectory {
            courses[point.source as usize].push(point);
        }
        courses
    }

    /// Lines that fit into a picture: the mean loss of neighbouring points and the weight at the last of them.
    fn trajectories(&self, order: &[usize]) -> Vec<Trajectory> {
        let courses = self.courses();
        let thinned = |points: &[&TrajectoryPoint]| -> Vec<Point> {
            let size = points.len().div_ceil(MOST_POINTS).max(1);
            let point = |group: &[&TrajectoryPoint]| {
                let last = group[group.len() - 1];
                Point { step: last.step, loss: mean(group), weight: last.weight }
            };
            points.chunks(size).map(point).collect()
        };
        order
            .iter()
            .take(MOST_LINES)
            .filter(|&&source| !courses[source].is_empty())
            .map(|&source| Trajectory {
                source: self.name(source),
                points: thinned(&courses[source]),
            })
            .collect()
    }

    /// The first, second and last third of the run. Reference and threshold are those of all sources together over
    /// their last recorded histories: the rule itself leaves out the source that it judges.
    fn phases(&self, order: &[usize]) -> Vec<PhaseLosses> {
        let courses = self.courses();
        let rule = self.job.settings.rule();
        let third = |n: u64| self.fit.steps * n / 3;
        let shown: Vec<usize> = order.iter().copied().take(MOST_LINES).collect();
        ["early", "middle", "late"]
            .iter()
            .enumerate()
            .filter(|(at, _)| third(*at as u64 + 1) > third(*at as u64))
            .map(|(at, name)| {
                let (first, end) = (third(at as u64), third(at as u64 + 1));
                let within = |source: usize| -> Vec<&TrajectoryPoint> {
                    let course = &courses[source];
                    let from = course.partition_point(|point| point.step < first);
                    let to = course.partition_point(|point| point.step < end);
                    course[from..to].to_vec()
                };
                let mut pooled = Pooled::default();
                for source in 0..courses.len() {
                    let points = within(source);
                    let recent = &points[points.len().saturating_sub(rule.history_length)..];
                    pooled.add(recent);
                }
                let (reference_mean, std) = pooled.mean_and_std().unzip();
                PhaseLosses {
                    name: (*name).to_owned(),
                    first_step: first,
                    last_step: end - 1,
                    reference_mean,
                    threshold: reference_mean
                        .zip(std)
                        .map(|(mean, std)| mean + rule.leniency * std),
                    sources: shown
                        .iter()
                        .map(|&source| (source, within(source)))
                        .filter(|(_, points)| !points.is_empty())
                        .map(|(source, points)| {
                            let weight = points.last().map_or(1.0, |point| point.weight);
                            let losses = points.iter().map(|point| point.loss).collect();
                            (self.name(source), weight, losses)
                        })
                        .collect(),
                }
            })
            .collect()
    }

    fn evidence(&self, order: &[usize]) -> Result<Vec<Evidence>, RunError> {
        let dataset = self.job.dataset();
        let flagged: Vec<usize> = order
            .iter()
            .copied()
            .filter(|&source| self.verdicts[source].is_flagged())
            .take(MOST_EVIDENCE)
            .collect();
        let features: Vec<String> =
            dataset.schema.features().take(SHOWN_FEATURES).map(|c| c.name.clone()).collect();
        let mut places: Vec<Vec<usize>> = vec![Vec::new(); self.verdicts.len()];
        for (place, &row) in self.train.rows.iter().enumerate() {
            places[dataset.sources.codes[row as usize] as usize].push(place);
        }
        let comparisons = self.comparisons(&places);
        flagged
            .iter()
            .map(|&source| {
                let rows: Vec<u32> =
                    places[source].iter().map(|&place| self.train.rows[place]).collect();
                let losses = self.fit.model.losses(self.rows, &dataset.target, &rows)?;
                let mut worst: Vec<usize> = (0..rows.len()).collect();
                worst.sort_by(|&a, &b| losses[b].total_cmp(&losses[a]).then(a.cmp(&b)));
                let worst_rows = worst
                    .into_iter()
                    .take(WORST_ROWS)
                    .map(|at| self.worst_row(places[source][at], losses[at], &features))
                    .collect();
                Ok(Evidence {
                    source: self.name(source),
                    features: features.clone(),
                    worst_rows,
                    comparison: comparisons(source),
                })
            })
            .collect()
    }

    fn worst_row(&self, place: usize, loss: f32, features: &[String]) -> WorstRow {
        let dataset = self.job.dataset();
        let row = self.train.rows[place];
        let (given, predicted, probability) = match (&dataset.target, &self.train.predictions) {
            (Targets::Classes { labels, .. }, Predictions::Classes { probabilities, classes }) => {
                let names = &dataset.schema.classes;
                let row_of = &probabilities[place * classes..(place + 1) * classes];
                let best = (1..row_of.len())
                    .fold(0, |best, next| if row_of[next] > row_of[best] { next } else { best });
                (
                    names[labels[row as usize] as usize].clone(),
                    names[best].clone(),
                    Some(f64::from(row_of[best])),
                )
            }
            (Targets::Values(given), Predictions::Values(predicted)) => {
                (format!("{}", given[row as usize]), format!("{}", predicted[place]), None)
            }
            _ => (String::new(), String::new(), None),
        };
        WorstRow {
            row: dataset.table.row_number(row),
            given,
            predicted,
            probability,
            loss: Some(f64::from(loss)),
            features: features.iter().map(|name| dataset.table.display(row, name)).collect(),
        }
    }

    /// How the labels or targets of a source compare with the model, beside those of the reliable sources.
    fn comparisons(&self, places: &[Vec<usize>]) -> impl Fn(usize) -> Option<Comparison> {
        let dataset = self.job.dataset();
        let (target, names) = (&dataset.target, &dataset.schema.classes);
        let predicted = self.train.predictions.labels();
        let reliable: Vec<usize> = (0..places.len())
            .filter(|&source| self.verdicts[source] == Verdict::Reliable)
            .flat_map(|source| places[source].iter().copied())
            .collect();
        let pair = move |place: usize| match (target, &self.train.predictions) {
            (Targets::Values(given), Predictions::Values(predicted)) => {
                (given[self.train.rows[place] as usize], predicted[place])
            }
            _ => (f64::NAN, f64::NAN),
        };
        let residuals: Vec<f64> = reliable
            .iter()
            .map(|&place| pair(place))
            .map(|(given, predicted)| given - predicted)
            .collect();
        let agreement = match target {
            Targets::Classes { labels, .. } if !reliable.is_empty() => {
                let agree =
                    |&&place: &&usize| labels[self.train.rows[place] as usize] == predicted[place];
                Some(reliable.iter().filter(agree).count() as f64 / reliable.len() as f64)
            }
            _ => None,
        };
        move |source| match target {
            Targets::Classes { classes, .. } if *classes > MOST_CLASSES => None,
            Targets::Classes { labels, .. } => {
                let mut counts = vec![vec![0; names.len()]; names.len()];
                for &place in &places[source] {
                    let given = labels[self.train.rows[place] as usize] as usize;
                    counts[given][predicted[place] as usize] += 1;
                }
                Some(Comparison::Labels(Confusion {
                    classes: names.clone(),
                    counts,
                    reliable_agreement: agreement,
                }))
            }
            Targets::Values(_) => {
                let pairs: Vec<(f64, f64)> =
                    places[source].iter().map(|&place| pair(place)).collect();
                Some(Comparison::Targets(Residuals::of(&pairs, &residuals)))
            }
        }
    }

    fn configuration(&self) -> Vec<Setting> {
        let usual: BTreeMap<String, String> = self.job.usual.entries().into_iter().collect();
        let setting = |(key, value): (String, String)| Setting {
            chosen: usual.get(&key) != Some(&value),
            key,
            value,
        };
        self.job.settings.entries().into_iter().map(setting).collect()
    }

    fn dropped(&self) -> Vec<Dropped> {
        let dropped = &self.job.dataset().dropped;
        [("target missing", dropped.target_missing), ("source missing", dropped.source_missing)]
            .into_iter()
            .filter(|(_, rows)| *rows > 0)
            .map(|(reason, rows)| Dropped { reason: reason.to_owned(), rows })
            .collect()
    }

    fn schema(&self) -> Vec<Column> {
        let column = |column: &lapwing_data::ColumnSchema| Column {
            name: column.name.clone(),
            kind: column.kind.to_string(),
            role: column.role.to_string(),
            missing: column.missing,
            note: column.note.clone().unwrap_or_default(),
        };
        self.job.dataset().schema.columns.iter().map(column).collect()
    }
}

fn mean(points: &[&TrajectoryPoint]) -> Option<f64> {
    let finite: Vec<f64> = points.iter().map(|p| p.loss).filter(|loss| loss.is_finite()).collect();
    (!finite.is_empty()).then(|| finite.iter().sum::<f64>() / finite.len() as f64)
}

/// Losses of many sources, each source counting as much as it weighs.
#[derive(Default)]
struct Pooled {
    weight: f64,
    sum: f64,
    squares: f64,
}

impl Pooled {
    fn add(&mut self, points: &[&TrajectoryPoint]) {
        let Some(mean) = mean(points) else { return };
        let weight = points.last().map_or(0.0, |point| point.weight);
        let finite = points.iter().map(|p| p.loss).filter(|loss| loss.is_finite());
        let square = finite.clone().map(|loss| loss * loss).sum::<f64>() / finite.count() as f64;
        self.weight += weight;
        self.sum += weight * mean;
        self.squares += weight * square;
    }

    fn mean_and_std(&self) -> Option<(f64, f64)> {
        let mean = self.sum / self.weight;
        (self.weight > 0.0)
            .then(|| (mean, (self.squares / self.weight - mean * mean).max(0.0).sqrt()))
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
