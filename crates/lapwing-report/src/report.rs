//! The report as data: what the program fills in and [`crate::render`] turns into a page.

use lapwing_judge::{Comparison, Evidence, Phase, SourceRow};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{ReportError, Warning};

/// Everything one page shows.
///
/// Empty lists and `None` are fine everywhere: the page says that a part was not recorded, or leaves it out.
/// Numbers that are not finite are shown as such in tables and left out of pictures.
/// The page is a function of this value alone: equal values give equal bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// The facts of the run.
    pub summary: Summary,
    /// What the reader should know before trusting the numbers.
    pub warnings: Vec<Warning>,
    /// One row per source, in any order; names are unique.
    pub sources: Vec<SourceRow>,
    /// Loss and weight per step. May be thinned, and may leave sources out.
    pub trajectories: Vec<Trajectory>,
    /// Distributions of the losses early, midway and late in training.
    pub phases: Vec<Phase>,
    /// Evidence on flagged sources.
    pub evidence: Vec<Evidence>,
    /// Rows whose labels are most likely wrong, worst first.
    pub rows: Vec<DoubtfulRow>,
    /// Metrics per epoch and split.
    pub epochs: Vec<EpochMetric>,
    /// What trees gained by splitting by each column, most first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub importance: Vec<Importance>,
    /// The configuration, defaults included, in the order in which it is to be read.
    pub configuration: Vec<Setting>,
    /// Rows that were read and not used.
    pub dropped: Vec<Dropped>,
    /// The columns of the table.
    pub schema: Vec<Column>,
}

/// The facts of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Heading of the page, such as the name of the data file.
    pub title: String,
    /// Column with the labels or targets.
    pub target: String,
    /// Column that names the source of a row.
    pub source_column: String,
    /// What was learnt.
    pub task: Task,
    /// The method, such as `lap` or `standard`.
    pub method: String,
    /// The model, such as `mlp` or `trees`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Why it is this one, where nobody asked for it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model_reason: String,
    /// Rows used for training.
    pub rows: u64,
    /// Steps (batches) trained.
    pub steps: u64,
    /// Epochs trained; with trees, rounds after the steps in which sources were judged.
    pub epochs: u64,
    /// Whether they are rounds of trees.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rounds: bool,
    /// Epoch whose model was kept.
    pub best_epoch: Option<u64>,
    /// H: losses remembered per source.
    pub history_length: u64,
    /// λ: standard deviations above the reference mean at which a source counts as departed. JSON has no infinity, and
    /// writes null.
    #[serde(deserialize_with = "null_is_infinite")]
    pub leniency: f64,
    /// δ: how fast unreliability turns into a smaller weight.
    pub depression_strength: f64,
    /// Networks that judged labels which they had not seen; 0 where verdicts rest on losses.
    pub folds: u64,
    /// Rows they judged.
    pub judged_rows: u64,
    /// The result the run is judged by.
    pub outcome: Option<Outcome>,
    /// Seed of the run.
    pub seed: Option<u64>,
    /// Version of the program.
    pub version: String,
    /// When the run was made, as it is to be shown. Leave it empty where equal runs must give equal bytes.
    pub created: String,
    /// Whose data it is and under which licence, where that has to be said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub origin: String,
}

fn null_is_infinite<'de, D: Deserializer<'de>>(value: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or(f64::INFINITY))
}

/// What was learnt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// One of several classes.
    #[default]
    Classification,
    /// A number.
    Regression,
}

/// The metric a run is judged by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// Name of the metric as in `metrics.csv`, such as `accuracy` or `mse`.
    pub metric: String,
    /// The rows it was measured on, such as `test`.
    pub split: String,
    /// Its value with the run's method.
    pub value: f64,
    /// Its value with standard training, where that was run as well.
    pub standard: Option<f64>,
}

/// One source over the steps of training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trajectory {
    /// Name of the source.
    pub source: String,
    /// Its points, by rising step.
    pub points: Vec<Point>,
}

/// One source at one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Point {
    /// The step.
    pub step: u64,
    /// Mean loss of the source in the batch; `None` when no loss was finite.
    pub loss: Option<f64>,
    /// Weight after the step.
    pub weight: f64,
}

/// A row whose label may be wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DoubtfulRow {
    /// Number of the row in the file, from 1, the header not counted.
    pub row: u64,
    /// Name of its source.
    pub source: String,
    /// Its label as given.
    pub label: String,
    /// The probability that it is wrong.
    pub wrong: Option<f64>,
    /// The probability of the label, by the network alone.
    pub label_probability: Option<f64>,
    /// The most probable other label.
    pub suggestion: String,
    /// The probability of that.
    pub suggestion_probability: f64,
    /// Where the row is a text: its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Where the row is a picture: its file, as the table names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where it is one of the first and a picture: that, as PNG in base64. Not in `rows.csv`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    /// Where it is one of the first and a series: its course in each channel that is shown. Not in `rows.csv`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Vec<f32>>,
}

impl DoubtfulRow {
    /// Of so many rows the page shows what they hold.
    pub const SHOWN: usize = 25;
}

/// One line of `metrics.csv`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EpochMetric {
    /// Epoch, from 1.
    pub epoch: u64,
    /// `train`, `validation`, `test`…
    pub split: String,
    /// `loss`, `accuracy`, `mse`…
    pub metric: String,
    /// The value; `None` where it could not be had.
    pub value: Option<f64>,
}

/// What trees gained by a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Importance {
    /// The column.
    pub name: String,
    /// Its share of what all splits gained.
    pub share: f64,
}

/// One setting of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setting {
    /// Key as in `config.toml`.
    pub key: String,
    /// Value as in `config.toml`.
    pub value: String,
    /// Whether the user chose it; otherwise it is a default.
    pub chosen: bool,
}

/// Rows dropped for one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dropped {
    /// The reason, such as `target missing`.
    pub reason: String,
    /// How many rows.
    pub rows: u64,
}

/// One column of the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Column {
    /// Name in the file.
    pub name: String,
    /// `numeric`, `categorical`, `date`…
    pub kind: String,
    /// `feature`, `target`, `source`, `ignored`…
    pub role: String,
    /// Missing values among the rows read.
    pub missing: u64,
    /// What was done with it or found in it: `standardised`, `7 levels, 2 rare`, `constant`…
    pub note: String,
}

impl Report {
    /// Checks that the parts fit each other, so that nothing can be drawn under a wrong name.
    pub(crate) fn check(&self) -> Result<(), ReportError> {
        let mut known = std::collections::HashSet::new();
        for row in &self.sources {
            if !known.insert(row.source.as_str()) {
                return Err(ReportError::DuplicateSource { source_name: row.source.clone() });
            }
        }
        let trajectories = self.trajectories.iter().map(|t| ("trajectories", &t.source));
        let phases =
            self.phases.iter().flat_map(|p| p.sources.iter().map(|s| ("phases", &s.source)));
        let evidence = self.evidence.iter().map(|e| ("evidence", &e.source));
        let rows = self.rows.iter().map(|row| ("rows", &row.source));
        for (part, source) in trajectories.chain(phases).chain(evidence).chain(rows) {
            if !known.contains(source.as_str()) {
                return Err(ReportError::UnknownSource { part, source_name: source.clone() });
            }
        }
        for row in &self.rows {
            check_picture(&row.source, row.row, row.picture.as_deref())?;
        }
        self.evidence.iter().try_for_each(check)
    }
}

/// That the picture of a row, if it has one, can stand in the page.
fn check_picture(source: &str, row: u64, picture: Option<&str>) -> Result<(), ReportError> {
    let of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    match picture.is_none_or(|picture| picture.bytes().all(of_base64)) {
        true => Ok(()),
        false => Err(ReportError::Picture { source_name: source.to_owned(), row }),
    }
}

/// Lists of one piece of evidence that belong together.
fn check(evidence: &Evidence) -> Result<(), ReportError> {
    let shape = |what, expected, found| {
        if expected == found {
            return Ok(());
        }
        Err(ReportError::Shape { source_name: evidence.source.clone(), what, expected, found })
    };
    for row in &evidence.worst_rows {
        shape("features of a worst row", evidence.features.len(), row.features.len())?;
        check_picture(&evidence.source, row.row, row.picture.as_deref())?;
    }
    if let Some(Comparison::Labels(confusion)) = &evidence.comparison {
        shape("rows of the confusion", confusion.classes.len(), confusion.counts.len())?;
        for row in &confusion.counts {
            shape("columns of the confusion", confusion.classes.len(), row.len())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use lapwing_judge::Confusion;

    use super::*;

    #[test]
    fn a_leniency_without_end_reads_back() {
        for leniency in [0.8, f64::INFINITY] {
            let report = Report {
                summary: Summary { leniency, ..Default::default() },
                ..Default::default()
            };
            let text = serde_json::to_string(&report).unwrap();
            assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
        }
    }

    #[test]
    fn a_ragged_confusion_is_refused() {
        let confusion = Confusion {
            classes: vec!["a".into(), "b".into()],
            counts: vec![vec![1, 2], vec![3]],
            ..Default::default()
        };
        let evidence =
            Evidence { comparison: Some(Comparison::Labels(confusion)), ..Default::default() };
        let message = check(&evidence).unwrap_err().to_string();
        assert!(message.contains("columns of the confusion"), "{message}");
    }
}
