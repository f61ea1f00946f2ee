//! Training on arrays: what the scikit-learn estimators are made of.

use lapwing_judge::{SourceRow, TrajectoryPoint};
use lapwing_run::JudgedLabels;
use lapwing_train::{
    Audience, Data, Epoch, METHODS, Matrix, MethodKind, Parameter, Samples, Targets,
};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::findings::{self, Given, Inputs};
use crate::fit::{FitError, Outcome, Settings, fit, judge_labels};
use crate::model::{Network, matrix};
use crate::sources::judged_table;
use crate::table::{Table, counts, integers, numbers, texts};

/// A finished training run.
#[pyclass(module = "lapwing._lapwing", frozen, get_all)]
pub(crate) struct Trained {
    /// The network of the best epoch.
    network: Py<Network>,
    /// One row per source.
    sources: Py<Table>,
    /// Loss, unreliability and weight per step and source, thinned.
    steps: Py<Table>,
    /// Losses per epoch.
    epochs: Py<Table>,
    /// Labels that networks judged which had not seen them, those first that are most likely wrong, where they were asked.
    rows: Option<Py<Table>>,
    /// How many such networks there were.
    folds: usize,
    /// Everything that is known of the sources, as JSON.
    judged: String,
    /// What is wrong with the sources, as JSON.
    findings: String,
    /// The rule, planned where it was not given: history length, leniency and depression strength.
    rule: (usize, f64, f64),
    /// The name of the model.
    model: &'static str,
    /// Why it is this one, where it was to be chosen.
    model_reason: Option<String>,
}

/// Trains a model on rows from many sources. `targets` holds classes (uint32, numbers of `labels`)
/// or, where there are no `labels`, values (float64); `names` are those of the sources. `inputs` are the rows as they came,
/// with the names of their columns.
#[pyfunction]
#[pyo3(signature = (rows, inputs, columns, targets, labels, sources, names, train, valid, settings))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn train_network(
    py: Python<'_>,
    rows: PyReadonlyArray2<'_, f32>,
    inputs: PyReadonlyArray2<'_, f64>,
    columns: Vec<String>,
    targets: &Bound<'_, PyAny>,
    labels: Vec<String>,
    sources: PyReadonlyArray1<'_, u32>,
    names: Vec<String>,
    train: PyReadonlyArray1<'_, u32>,
    valid: PyReadonlyArray1<'_, u32>,
    settings: Settings,
) -> PyResult<Trained> {
    // Networks that judge labels take the mean where a value is missing, which trees do not need.
    let missing = rows.as_slice()?.iter().any(|value| value.is_nan());
    let filled = missing.then(|| rows.as_slice().map(filled)).transpose()?;
    let rows = matrix(&rows)?;
    let classes = labels.len();
    let targets = if classes > 0 {
        Targets::Classes { labels: targets.cast::<PyArray1<u32>>()?.to_vec()?, classes }
    } else {
        Targets::Values(targets.cast::<PyArray1<f64>>()?.to_vec()?)
    };
    let sources = sources.as_slice()?.to_vec();
    if sources.iter().any(|&source| source as usize >= names.len()) {
        return Err(PyValueError::new_err("a row has a source without a name"));
    }
    let (train, valid) = (train.as_slice()?.to_vec(), valid.as_slice()?.to_vec());
    let values = inputs.as_array();
    if values.nrows() != rows.len() || values.ncols() != columns.len() {
        return Err(PyValueError::new_err("inputs, rows and columns differ in number"));
    }
    let class_names = labels.clone();
    let (outcome, reason, judged, by_networks) = py.detach(|| -> Result<_, FitError> {
        let data = Data {
            samples: &rows,
            targets: &targets,
            sources: &sources,
            train: &train,
            valid: &valid,
            relabel: None,
            items: None,
        };
        let (outcome, reason) = fit(&settings, &data, names.len())?;
        let of_rows: Vec<u32> = train.iter().map(|&row| sources[row as usize]).collect();
        let mut judged = outcome.judged(&names, &of_rows);
        let filled = filled.map(|values| Matrix::new(values, columns.len())).transpose()?;
        let by_networks = match &filled {
            Some(filled) => {
                let data = Data { samples: filled, ..data };
                judge_labels(&settings, outcome.kind, &data, names.len())?
            }
            None => judge_labels(&settings, outcome.kind, &data, names.len())?,
        };
        if let Some(labels) = &by_networks {
            let known = judged.iter_mut().zip(&labels.noise.sources);
            known.for_each(|(source, known)| source.judge_by(known.clone()));
        }
        let given = match &targets {
            Targets::Classes { labels: codes, .. } => Given::Classes {
                names: labels,
                labels: train.iter().map(|&row| codes[row as usize]).collect(),
            },
            Targets::Values(values) => {
                Given::Values(train.iter().map(|&row| values[row as usize]).collect())
            }
        };
        let predictions = outcome.model.predict(&rows, &train)?;
        let inputs = Inputs { names: &columns, values, train: &train };
        let unseen = by_networks.as_ref().map(|labels| labels.said_of(&train));
        let found = findings::findings(
            &judged,
            &of_rows,
            &inputs,
            &given,
            &predictions,
            unseen.as_deref(),
        )?;
        for (source, found) in judged.iter_mut().zip(found) {
            source.findings = found;
        }
        Ok((outcome, reason, judged, by_networks))
    })?;
    let Outcome { model, kind, epochs, points, lap, method, .. } = outcome;
    let name = |source: u32| names.get(source as usize).cloned().unwrap_or_default();
    let seen: Vec<SourceRow> =
        lap.sources().map(|status| judged[*status.source as usize].clone()).collect();
    let table = |table: Table| Py::new(py, table);
    let rule = method.rule();
    let rows = match (&by_networks, &targets) {
        (Some(labels), Targets::Classes { labels: given, .. }) => {
            let source = |row: u32| name(sources[row as usize]);
            Some(table(row_table(labels, given, &class_names, source)?)?)
        }
        _ => None,
    };
    Ok(Trained {
        network: Py::new(py, Network { model: Box::new(model) })?,
        sources: table(judged_table(&seen)?)?,
        steps: table(step_table(&points, name)?)?,
        epochs: table(epoch_table(&epochs)?)?,
        rows,
        folds: by_networks.as_ref().map_or(0, |labels| labels.networks),
        judged: serde_json::to_string(&seen).map_err(FitError::from)?,
        findings: findings::json(&judged).map_err(FitError::from)?,
        rule: (rule.history_length, rule.leniency, rule.depression_strength),
        model: kind.name(),
        model_reason: reason,
    })
}

/// Rows with the mean, which is 0, where a value is missing.
fn filled(values: &[f32]) -> Vec<f32> {
    values.iter().map(|value| if value.is_nan() { 0.0 } else { *value }).collect()
}

/// Labels that were judged, those first that are most likely wrong; rows are numbered as in the array they came in.
fn row_table(
    labels: &JudgedLabels,
    given: &[u32],
    classes: &[String],
    source: impl Fn(u32) -> String,
) -> PyResult<Table> {
    let order = labels.worst_first();
    let places = || order.iter().map(|&place| place as usize);
    let row = |place: usize| labels.rows[place];
    let noise = |place: usize| &labels.noise.rows[place];
    let class = |class: u32| classes.get(class as usize).cloned().unwrap_or_default();
    let label = |place: usize| class(given[row(place) as usize]);
    Table::new([
        ("row", counts(places().map(|place| row(place).into()))),
        ("source", texts(places().map(|place| source(row(place))))),
        ("label", texts(places().map(label))),
        ("wrong", numbers(places().map(|place| noise(place).wrong))),
        ("label_probability", numbers(places().map(|place| noise(place).label))),
        ("suggestion", texts(places().map(|place| class(noise(place).suggestion.0)))),
        ("suggestion_probability", numbers(places().map(|place| Some(noise(place).suggestion.1)))),
    ])
}

/// The methods for rows of numbers, which is what estimators take (those for pictures are refused): name, what it does, whether it is for classification only, and its parameters, each
/// a name, what it does, the default and the range.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(crate) fn methods()
-> Vec<(&'static str, &'static str, bool, Vec<(String, &'static str, Option<f64>, String)>)> {
    let parameters = |kind: &&dyn MethodKind| {
        let told = kind.parameters().iter().filter(|own| own.audience == Audience::Everybody);
        let tell =
            |own: &Parameter| (own.identifier(), own.about, own.default, own.range.to_string());
        told.map(tell).collect()
    };
    let tell = |kind: &&'static dyn MethodKind| {
        (kind.name(), kind.about(), kind.needs_classes(), parameters(kind))
    };
    METHODS.iter().filter(|kind| kind.views() == 1).map(tell).collect()
}

fn step_table(points: &[TrajectoryPoint], name: impl Fn(u32) -> String) -> PyResult<Table> {
    let all = || points.iter();
    Table::new([
        ("step", integers(all().map(|point| point.step as i64).collect())),
        ("source", texts(all().map(|point| name(point.source)))),
        ("loss", numbers(all().map(|point| Some(point.loss).filter(|loss| !loss.is_nan())))),
        ("unreliability", counts(all().map(|point| point.unreliability))),
        ("weight", numbers(all().map(|point| Some(point.weight)))),
    ])
}

fn epoch_table(epochs: &[Epoch]) -> PyResult<Table> {
    let all = || epochs.iter();
    Table::new([
        ("epoch", counts(all().map(|epoch| epoch.epoch as u64 + 1))),
        ("train_loss", numbers(all().map(|epoch| Some(epoch.train_loss)))),
        ("valid_loss", numbers(all().map(|epoch| epoch.valid_loss))),
        ("valid_score", numbers(all().map(|epoch| epoch.valid_score))),
        ("best", counts(all().map(|epoch| u64::from(epoch.best)))),
    ])
}
