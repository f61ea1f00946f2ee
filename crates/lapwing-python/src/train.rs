//! Training on arrays: what the scikit-learn estimators are made of.

use lapwing_judge::{SourceRow, TrajectoryPoint};
use lapwing_train::{Audience, Data, Epoch, METHODS, MethodKind, Parameter, Targets};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::findings::{self, Given};
use crate::fit::{FitError, Outcome, Settings, fit};
use crate::model::{Network, matrix};
use crate::sources::source_table;
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
/// or, where there are no `labels`, values (float64); `names` are those of the sources.
#[pyfunction]
#[pyo3(signature = (rows, targets, labels, sources, names, train, valid, settings))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn train_network(
    py: Python<'_>,
    rows: PyReadonlyArray2<'_, f32>,
    targets: &Bound<'_, PyAny>,
    labels: Vec<String>,
    sources: PyReadonlyArray1<'_, u32>,
    names: Vec<String>,
    train: PyReadonlyArray1<'_, u32>,
    valid: PyReadonlyArray1<'_, u32>,
    settings: Settings,
) -> PyResult<Trained> {
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
    let (outcome, reason, judged, findings) = py.detach(|| -> Result<_, FitError> {
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
        let judged = outcome.judged(&names, &of_rows);
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
        let findings = findings::findings(&judged, &of_rows, &train, &given, &predictions)?;
        Ok((outcome, reason, judged, findings))
    })?;
    let Outcome { model, kind, epochs, points, lap, method, .. } = outcome;
    let name = |source: u32| names.get(source as usize).cloned().unwrap_or_default();
    let seen: Vec<SourceRow> =
        lap.sources().map(|status| judged[*status.source as usize].clone()).collect();
    let table = |table: Table| Py::new(py, table);
    let rule = method.rule();
    Ok(Trained {
        network: Py::new(py, Network { model: Box::new(model) })?,
        sources: table(source_table(&seen)?)?,
        steps: table(step_table(&points, name)?)?,
        epochs: table(epoch_table(&epochs)?)?,
        findings: findings::json(&judged, &findings).map_err(FitError::from)?,
        rule: (rule.history_length, rule.leniency, rule.depression_strength),
        model: kind.name(),
        model_reason: reason,
    })
}

/// The methods: name, what it does, whether it is for classification only, and its parameters, each
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
    METHODS.iter().map(tell).collect()
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
