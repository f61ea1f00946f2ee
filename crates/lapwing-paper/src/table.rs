//! Tables: ours beside the paper's.

use lapwing_sample::Spread;
use serde::Serialize;

use crate::cell::{Cell, Form};
use crate::error::PaperError;
use crate::recipe::{Kind, PaperNumber, Recipe, Version, recipe};
use crate::record::{Record, Records};
use crate::run::settings;

/// Mean and spread of some runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation, if there are two runs or more.
    pub std: Option<f64>,
    /// How many there are.
    pub runs: usize,
}

impl Statistics {
    /// Of some numbers; nothing where there are none.
    pub fn of(numbers: &[f64]) -> Option<Self> {
        let spread = Spread::of(numbers.iter().copied())?;
        Some(Self { mean: spread.mean, std: spread.sample_std(), runs: spread.count })
    }

    /// How far this mean lies above another, as Welch's t; from three runs on both sides on, since fewer tell nothing of
    /// their spread.
    pub fn welch(&self, other: &Self) -> Option<Welch> {
        let part = |side: &Self| {
            let std = side.std.filter(|_| side.runs >= FEWEST)?;
            Some((std * std / side.runs as f64, (side.runs - 1) as f64))
        };
        let ((a, n), (b, m)) = (part(self)?, part(other)?);
        let square = a + b;
        (square > 0.0).then(|| Welch {
            t: (self.mean - other.mean) / square.sqrt(),
            degrees: square * square / (a * a / n + b * b / m),
        })
    }
}

/// Fewest runs that are compared.
pub(crate) const FEWEST: usize = 3;

/// A difference of means over its standard error, √(s²/n + s′²/n′), with the degrees of freedom of the t distribution that it
/// follows, about, where the true means are the same (Welch and Satterthwaite).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// The difference in standard errors.
    pub t: f64,
    /// The degrees of freedom.
    pub degrees: f64,
}

impl Welch {
    /// The probability of a difference as large, of either sign, by chance alone.
    pub fn probability(&self) -> f64 {
        2.0 * lapwing_core::student_tail(self.t.abs(), self.degrees)
    }
}

impl std::fmt::Display for Welch {
    /// `t = −0.4 (7.9 df)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.t < 0.0 { '−' } else { '+' };
        write!(f, "t = {sign}{:.1} ({:.1} df)", self.t.abs(), self.degrees)
    }
}

/// Least, quartiles and greatest, quartiles as NumPy's; nothing where there are no numbers.
pub(crate) fn five_numbers(numbers: &[f64]) -> Option<[f64; 5]> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some([0.0, 0.25, 0.5, 0.75, 1.0].map(|share| {
        let place = share * last as f64;
        let (below, part) = (place.floor() as usize, place.fract());
        let above = sorted[(below + 1).min(last)];
        sorted[below] + part * (above - sorted[below])
    }))
}

/// A number of ours and the paper's.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The experiment the runs are of.
    pub experiment: String,
    /// The row.
    pub condition: String,
    /// The name of the row.
    pub condition_name: String,
    /// The column.
    pub method: String,
    /// The name of the column.
    pub method_name: String,
    /// What it is.
    pub metric: String,
    /// Ours, if it was run.
    pub ours: Option<Statistics>,
    /// Runs that failed.
    pub failures: usize,
    /// The paper's, if it has one.
    pub paper: Option<Statistics>,
    /// How far ours lies above the paper's; for full runs, because smaller ones are something else.
    pub difference: Option<Welch>,
}

/// What is known of an experiment in one form.
#[derive(Clone, Debug)]
pub struct Results {
    /// The experiment.
    pub recipe: Recipe,
    /// Whom it follows.
    pub version: Version,
    /// As the paper has it, or smaller.
    pub form: Form,
    /// The records.
    pub records: Vec<Record>,
    /// The numbers: metric by metric, row by row.
    pub entries: Vec<Entry>,
}

impl Results {
    /// Gathers the records of an experiment.
    pub fn gather(
        recipe: &Recipe,
        version: Version,
        form: Form,
        records: &Records,
    ) -> Result<Self, PaperError> {
        let (records, mut entries) = match recipe.kind {
            Kind::Derived => derived(recipe, version, form, records)?,
            _ => {
                let own = own(recipe, version, form, records)?;
                let entries = entries(recipe, &own);
                (own, entries)
            }
        };
        // Times of two machines have nothing to say to each other.
        if form == Form::FULL && recipe.kind != Kind::Timing {
            for entry in &mut entries {
                entry.difference = entry.ours.zip(entry.paper).and_then(|(o, p)| o.welch(&p));
            }
        }
        Ok(Self { recipe: recipe.clone(), version, form, records, entries })
    }

    /// Seconds of a run: the mean of ours, or what the recipe says.
    pub fn seconds_each(&self) -> Option<f64> {
        let seconds: Vec<f64> = self.records.iter().map(|record| record.seconds).collect();
        Statistics::of(&seconds).map(|statistics| statistics.mean).or(self.recipe.seconds)
    }

    /// Whether anything was run.
    pub fn is_empty(&self) -> bool {
        self.entries.iter().all(|entry| entry.ours.is_none() && entry.failures == 0)
    }
}

/// The records of an experiment that were made with its settings as they are now.
fn own(
    recipe: &Recipe,
    version: Version,
    form: Form,
    records: &Records,
) -> Result<Vec<Record>, PaperError> {
    let mut own = Vec::new();
    for record in records.all(&recipe.id, form, version)? {
        let known = recipe.condition(&record.cell.condition).is_some()
            && recipe.method(&record.cell.method).is_some();
        if known && record.agrees(&settings(recipe, &record.cell, form)?) {
            own.push(record);
        }
    }
    own.sort_by(|a, b| a.cell.cmp(&b.cell));
    Ok(own)
}

fn entries(recipe: &Recipe, records: &[Record]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for metric in recipe.metrics() {
        for condition in &recipe.conditions {
            for method in &recipe.methods {
                let is_it =
                    |cell: &Cell| cell.condition == condition.id && cell.method == method.id;
                let runs: Vec<&Record> = records.iter().filter(|r| is_it(&r.cell)).collect();
                let numbers: Vec<f64> = runs.iter().filter_map(|r| r.metric(metric)).collect();
                let paper = recipe.number(&condition.id, &method.id, metric);
                if numbers.is_empty() && paper.is_none() {
                    continue;
                }
                entries.push(Entry {
                    experiment: recipe.id.clone(),
                    condition: condition.id.clone(),
                    condition_name: condition.name.clone(),
                    method: method.id.clone(),
                    method_name: method.name.clone(),
                    metric: metric.to_owned(),
                    ours: Statistics::of(&numbers),
                    failures: runs.iter().filter(|record| record.failure.is_some()).count(),
                    paper: paper.map(|number| number.statistics(recipe)),
                    difference: None,
                });
            }
        }
    }
    entries
}

impl PaperNumber {
    fn statistics(&self, recipe: &Recipe) -> Statistics {
        Statistics {
            mean: self.mean,
            std: self.std,
            runs: self.runs.unwrap_or(recipe.paper.runs).max(1),
        }
    }
}

/// What methods gain over another in per cent of that, run by run, from the records of other experiments.
fn derived(
    recipe_of_gains: &Recipe,
    version: Version,
    form: Form,
    records: &Records,
) -> Result<(Vec<Record>, Vec<Entry>), PaperError> {
    let mut entries = Vec::new();
    for id in &recipe_of_gains.from {
        let source = recipe(id, version)?;
        let own = own(&source, version, form, records)?;
        let value = |condition: &str, method: &str, run: usize| {
            own.iter()
                .find(|r| {
                    let Cell { condition: c, method: m, run: n, .. } = &r.cell;
                    (c.as_str(), m.as_str(), *n) == (condition, method, run)
                })?
                .metric(&source.metric)
        };
        let runs = own.iter().map(|record| record.cell.run + 1).max().unwrap_or(0);
        for condition in &source.conditions {
            let than = recipe_of_gains.over.as_str();
            for method in source.methods.iter().skip_while(|method| method.id != than).skip(1) {
                let gain = |run| {
                    let ours = value(&condition.id, &method.id, run)?;
                    Some(100.0 * (ours / value(&condition.id, than, run)? - 1.0))
                };
                let gains: Vec<f64> = (0..runs).filter_map(gain).collect();
                let paper = recipe_of_gains.paper.numbers.iter().find(|number| {
                    number.of.as_ref() == Some(id)
                        && number.condition == condition.id
                        && number.method == method.id
                });
                entries.push(Entry {
                    experiment: id.clone(),
                    condition: condition.id.clone(),
                    condition_name: format!("{}, {}", title(&source), condition.name),
                    method: method.id.clone(),
                    method_name: method.name.clone(),
                    metric: recipe_of_gains.metric.clone(),
                    ours: Statistics::of(&gains),
                    failures: 0,
                    paper: paper.map(|number| number.statistics(recipe_of_gains)),
                    difference: None,
                });
            }
        }
    }
    Ok((Vec::new(), entries))
}

/// The data set of an experiment, by the first words of its title.
fn title(recipe: &Recipe) -> &str {
    recipe.title.split(':').next().unwrap_or(&recipe.title)
}

/// What a metric is called in a table.
pub fn metric_name(metric: &str) -> String {
    let words = |which: &str, what: &str| format!("{which} {what}");
    let (which, series) = metric.split_once('-').unwrap_or(("", metric));
    let which = match which {
        "max" => "greatest",
        "min" => "least",
        "final" => "last",
        "late" => "mean of the last ten epochs of",
        _ => {
            return match metric {
                "top-1-by-valid-top-1" => "test accuracy where validation is best, %".to_owned(),
                "top-1-by-weighted-valid-top-1" => {
                    "test accuracy where weighted validation is best, %".to_owned()
                }
                "microseconds" => "time, µs".to_owned(),
                "gain" => "gain, %".to_owned(),
                "threshold" => "threshold".to_owned(),
                "estimate" => "share of noisy samples, estimated".to_owned(),
                "unreliability-clean" => "greatest C of a clean source".to_owned(),
                "pooled-mean" => "mean of all losses".to_owned(),
                "pooled-sd" => "their standard deviation".to_owned(),
                _ => metric.replace("unreliability-", "C of source "),
            };
        }
    };
    match series {
        "top-1" => words(which, "test accuracy, %"),
        "top-5" => words(which, "top-5 test accuracy, %"),
        "valid-top-1" => words(which, "validation accuracy, %"),
        "weighted-valid-top-1" => words(which, "weighted validation accuracy, %"),
        "loss" => words(which, "test loss"),
        "mse" => words(which, "test MSE"),
        "auc-pr" => words(which, "test AUC-PR"),
        _ => match series.strip_prefix("recall-") {
            Some(class) => words(which, &format!("recall of class {class}, %")),
            None => metric.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_that_of_a_sample() {
        let three = Statistics::of(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((three.mean, three.std, three.runs), (2.0, Some(1.0), 3));
        assert_eq!(Statistics::of(&[5.0]).unwrap().std, None);
        assert_eq!(Statistics::of(&[]), None);
    }

    // from scipy.stats import ttest_ind_from_stats as t
    // t(82, 1, 4, 81, 2, 16, equal_var=False)
    #[test]
    fn differences_are_welchs() {
        let statistics = |mean, std, runs| Statistics { mean, std, runs };
        let (ours, paper) = (statistics(82.0, Some(1.0), 4), statistics(81.0, Some(2.0), 16));
        let welch = ours.welch(&paper).unwrap();
        // √(1/4 + 4/16) = 0.7071; (1/2)² / ((1/4)²/3 + (1/4)²/15) = 10
        assert!((welch.t - std::f64::consts::SQRT_2).abs() < 1e-12);
        assert!((welch.degrees - 10.0).abs() < 1e-12);
        assert!(
            (welch.probability() - 0.187_669_870_869_603_1).abs() < 1e-9,
            "{}",
            welch.probability()
        );
        assert_eq!(welch.to_string(), "t = +1.4 (10.0 df)");
        assert_eq!(paper.welch(&ours).unwrap().to_string(), "t = −1.4 (10.0 df)");
        for few in [statistics(82.0, None, 1), statistics(82.0, Some(1.0), 2)] {
            assert_eq!((few.welch(&paper), paper.welch(&few)), (None, None));
        }
        let exact = statistics(1.0, Some(0.0), 3);
        assert_eq!(exact.welch(&exact), None);
    }

    // numpy.percentile([4, 1, 3, 2, 10, 7], [0, 25, 50, 75, 100])
    #[test]
    fn quartiles_are_numpys() {
        assert_eq!(
            five_numbers(&[4.0, 1.0, 3.0, 2.0, 10.0, 7.0]),
            Some([1.0, 2.25, 3.5, 6.25, 10.0])
        );
        assert_eq!(five_numbers(&[2.0]), Some([2.0; 5]));
        assert_eq!(five_numbers(&[]), None);
    }

    #[test]
    fn metrics_have_names_for_readers() {
        assert_eq!(metric_name("max-top-5"), "greatest top-5 test accuracy, %");
        assert_eq!(metric_name("max-recall-11"), "greatest recall of class 11, %");
        assert_eq!(metric_name("final-mse"), "last test MSE");
        assert_eq!(metric_name("max-valid-top-1"), "greatest validation accuracy, %");
        assert_eq!(metric_name("unreliability-3"), "C of source 3");
    }
}
