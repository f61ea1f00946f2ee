//! What the report shows of a finished run.

use std::collections::BTreeMap;

use lapwing_data::Warning as DataWarning;
use lapwing_judge::{Phase, Ruling, TrajectoryPoint, mean_loss, phases};
use lapwing_report::{
    Column, DoubtfulRow, Dropped, EpochMetric, Importance, Outcome, Point, Report, Setting,
    Summary, Task, Trajectory, Warning,
};

use lapwing_sample::{Samples, Targets};

use crate::judgement::Judgement;
use crate::results::{MetricLine, best_epoch};
use crate::shown::Shown;
use crate::{Fit, Job, Learnt, Unjudged, rows_file};

/// Points of a line in a picture: more than there are pixels for is waste.
const MOST_POINTS: usize = 240;
/// Lines in a picture; flagged sources come first.
const MOST_LINES: usize = 200;
/// Rows whose labels may be wrong.
const MOST_ROWS: usize = 100;
/// Columns that trees split by.
const MOST_COLUMNS: usize = 100;

/// What is known when a run is over.
pub(crate) struct Run<'a> {
    pub(crate) job: &'a Job<'a>,
    pub(crate) fit: &'a Fit,
    pub(crate) samples: &'a dyn Samples,
    pub(crate) judgement: Judgement,
    pub(crate) limits: &'a [Warning],
    pub(crate) metrics: &'a [MetricLine],
    /// The metric on the test rows, and that of standard training.
    pub(crate) outcome: Option<((&'static str, f64), Option<f64>)>,
}

pub(crate) fn report(run: Run<'_>) -> Report {
    let sources = &run.judgement.sources;
    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.sort_by(|&a, &b| sources[a].worst_first(&sources[b]));
    let shown = order.iter().take(MOST_LINES).map(|&at| (sources[at].source.as_str(), at));
    let shown: Vec<(&str, usize)> = shown.collect();
    let courses = run.courses();
    let rule = run.job.settings.rule();
    let (history_length, leniency) = (rule.history_length, rule.leniency);
    let phases = phases(&courses, &shown, run.fit.steps, history_length, leniency);
    Report {
        summary: run.summary(),
        warnings: run.warnings(),
        trajectories: trajectories(&courses, &shown),
        phases: Phase::count(&phases),
        rows: run.doubtful_rows(),
        epochs: run.metrics.iter().map(epoch_metric).collect(),
        importance: run.importance(),
        configuration: run.configuration(),
        dropped: run.dropped(),
        schema: run.schema(),
        evidence: run.judgement.evidence,
        sources: run.judgement.sources,
    }
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
            method: settings.method().name().to_owned(),
            model: job.model().name().to_owned(),
            model_reason: settings.model_reason.clone().unwrap_or_default(),
            rows: job.split().train.len() as u64,
            steps: self.fit.steps,
            epochs: self.fit.history.len() as u64,
            rounds: job.trees().is_some(),
            best_epoch: Some(best_epoch(&self.fit.history) as u64),
            history_length: settings.rule().history_length as u64,
            leniency: settings.rule().leniency,
            depression_strength: match settings.method().runs_rule() {
                true => job.plan.depression_strength,
                false => 0.0,
            },
            folds: self.fit.labels.as_ref().map_or(0, |labels| labels.networks as u64),
            judged_rows: self.fit.labels.as_ref().map_or(0, |labels| labels.rows.len() as u64),
            outcome: self.outcome.map(|((metric, value), standard)| Outcome {
                metric: metric.to_owned(),
                split: "test".to_owned(),
                value,
                standard,
            }),
            seed: Some(settings.seed()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            created: String::new(),
            origin: String::new(),
        }
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for warning in &self.job.dataset().warnings {
            warnings.push(match warning {
                DataWarning::OneSource(_) => Warning::SingleSource,
                DataWarning::TextNotUsed { .. } => Warning::Other {
                    text: format!("{}; --text would use it.", capitalised(&warning.to_string())),
                },
                other => Warning::Other { text: format!("{}.", capitalised(&other.to_string())) },
            });
        }
        let (method, labels) = (self.job.settings.method(), &self.fit.labels);
        if method.runs_rule() || labels.is_err() {
            warnings.extend(self.windows_never_filled());
        }
        warnings.extend(self.limits.iter().cloned());
        warnings.extend(self.classes_weighted_down());
        match method {
            method if method.runs_rule() || labels.is_ok() => {}
            method if method.name() == "standard" => warnings.push(Warning::Other {
                text: "Training was standard: every row kept its full weight. The verdicts say what the losses of \
                       the sources look like without any of them being weighted down."
                    .to_owned(),
            }),
            other => warnings.push(Warning::Other {
                text: format!(
                    "Training was by {}, not by LAP, whose rule only looked on. The verdicts say what the losses \
                     of the sources look like without LAP weighting any of them down.",
                    other.name()
                ),
            }),
        }
        if let Err(why @ (Unjudged::FewRows(_) | Unjudged::Diverged)) = labels {
            warnings.push(Warning::Other {
                text: format!(
                    "Labels were not judged by networks that have not seen them: {why}. The verdicts rest on losses, \
                     which cannot tell difficult rows from wrong labels."
                ),
            });
        }
        warnings
    }

    /// Labels that are more likely wrong than right.
    fn doubtful_rows(&self) -> Vec<DoubtfulRow> {
        let Ok(labels) = &self.fit.labels else { return Vec::new() };
        let worst = labels.worst_first().into_iter().take(MOST_ROWS);
        // What cannot be read is an error where rows.csv is written.
        let row = |place| {
            let row = rows_file::row(self.job.dataset(), labels, place).ok()?;
            Some((labels.rows[place as usize], row))
        };
        let rows = worst.filter_map(row);
        let rows = rows.take_while(|(_, row)| row.wrong.is_some_and(|wrong| wrong >= 0.5));
        let shown = rows.enumerate().map(|(at, (place, row))| {
            // A picture whose file has gone since is not shown; the row is.
            let shown = (at < DoubtfulRow::SHOWN).then(|| Shown::of(self.samples, place).ok());
            let Shown { picture, lines, .. } = shown.flatten().unwrap_or_default();
            DoubtfulRow { picture, lines, ..row }
        });
        shown.collect()
    }

    fn windows_never_filled(&self) -> Option<Warning> {
        let history_length = self.job.settings.rule().history_length as u64;
        let facts = &self.judgement.sources;
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
        for &row in &self.job.split().train {
            let (class, source) =
                (labels[row as usize] as usize, dataset.sources.codes[row as usize]);
            all[class] += 1;
            if self.judgement.sources[source as usize].weight < 0.5 {
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
    fn courses(&self) -> Vec<Vec<TrajectoryPoint>> {
        let mut courses = vec![Vec::new(); self.judgement.sources.len()];
        for point in &self.fit.trajectory {
            courses[point.source as usize].push(*point);
        }
        courses
    }

    /// What the trees gained by each column, most first; nothing of networks.
    fn importance(&self) -> Vec<Importance> {
        let Learnt::Trees(forest) = &self.fit.model else { return Vec::new() };
        let input = &self.job.input;
        let mut gains = forest.importance().into_iter();
        let names = input.schema().features().map(|column| column.name.clone());
        let columns = names
            .zip(input.numbers())
            .map(|(name, numbers)| Importance { name, share: gains.by_ref().take(numbers).sum() });
        let mut columns: Vec<Importance> = columns.collect();
        columns.sort_by(|a, b| b.share.total_cmp(&a.share));
        columns.truncate(MOST_COLUMNS);
        columns
    }

    fn configuration(&self) -> Vec<Setting> {
        let mut usual = self.job.usual.clone();
        if self.job.settings.model_reason.is_some() {
            // Nobody asked for it.
            usual.model = self.job.settings.model;
            usual.model_reason.clone_from(&self.job.settings.model_reason);
        }
        let usual: BTreeMap<String, String> = usual.entries().into_iter().collect();
        let setting = |(key, value): (String, String)| Setting {
            chosen: usual.get(&key) != Some(&value),
            key,
            value,
        };
        // Where a table lies is nobody's business who reads the report, and changes when a run is taken up elsewhere.
        let name = |path: &Option<std::path::PathBuf>| Some(path.as_ref()?.file_name()?.into());
        let settings = &self.job.settings;
        let (data, test) = (name(&settings.data), name(&settings.test));
        let shown = crate::Settings { data, test, ..settings.clone() };
        shown.entries().into_iter().map(setting).collect()
    }

    fn dropped(&self) -> Vec<Dropped> {
        let dropped = &self.job.dataset().dropped;
        dropped
            .reasons()
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

/// Lines that fit into a picture: the mean loss of neighbouring points and the weight at the last of them.
fn trajectories(courses: &[Vec<TrajectoryPoint>], shown: &[(&str, usize)]) -> Vec<Trajectory> {
    let thinned = |points: &[TrajectoryPoint]| -> Vec<Point> {
        let size = points.len().div_ceil(MOST_POINTS).max(1);
        let point = |group: &[TrajectoryPoint]| {
            let last = group[group.len() - 1];
            Point { step: last.step, loss: mean_loss(group), weight: last.weight }
        };
        points.chunks(size).map(point).collect()
    };
    shown
        .iter()
        .map(|&(name, source)| (name, &courses[source]))
        .filter(|(_, course)| !course.is_empty())
        .map(|(name, course)| Trajectory { source: name.to_owned(), points: thinned(course) })
        .collect()
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
