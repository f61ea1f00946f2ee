//! Training on arrays: what the scikit-learn estimators are made of.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use lapwing_core::LapConfig;
use lapwing_judge::{Finding, JudgeError, SourceRow, TrajectoryPoint};
use lapwing_run::{MOST_POINTS, Recorder};
use lapwing_train::{
    Audience, Data, DataError, DataShape, DeviceName, Epoch, Finish, METHODS, Matrix, MethodConfig,
    MethodKind, Model, ModelError, ModelSpec, Observer, Parameter, PlanError, Predictions, Samples,
    Step, Targets, TrainConfig, TrainError, Trainer, Wishes, plan,
};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::findings::{self, Given};
use crate::sources::source_table;
use crate::table::{Table, counts, integers, numbers, texts};

/// Time between two looks at whether the user has had enough.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(50);

#[derive(Debug, thiserror::Error)]
enum FitError {
    #[error(transparent)]
    Train(#[from] TrainError),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("the model cannot be written or read: {0}")]
    File(#[from] std::io::Error),
    #[error("the model cannot be written or read: {0}")]
    Spec(#[from] serde_json::Error),
    #[error("the model cannot be read: it is damaged")]
    Damaged,
    #[error(transparent)]
    Judge(#[from] JudgeError),
    #[error("interrupted")]
    Python(#[from] PyErr),
}

impl From<FitError> for PyErr {
    fn from(error: FitError) -> Self {
        match error {
            FitError::Python(error) => error,
            FitError::Train(TrainError::Diverged { .. }) | FitError::File(_) => {
                PyRuntimeError::new_err(error.to_string())
            }
            _ => PyValueError::new_err(error.to_string()),
        }
    }
}

/// The parameters of an estimator; those left out are planned for the data.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    seed: u64,
    history_length: usize,
    leniency: f64,
    depression_strength: Option<f64>,
    warmup: u64,
    hidden: Option<Vec<usize>>,
    dropout: Option<f32>,
    weight_decay: Option<f64>,
    learning_rate: Option<f64>,
    batch_size: Option<usize>,
    epochs: Option<usize>,
    patience: Option<usize>,
    method: String,
    method_parameters: BTreeMap<String, f64>,
}

impl Settings {
    /// Settings of the loop and of the rule for this data: the plan with what was asked for.
    fn over_plan(
        &self,
        data: &Data<'_>,
        sources: usize,
    ) -> Result<(TrainConfig, MethodConfig), FitError> {
        let wishes = Wishes {
            hidden: self.hidden.clone(),
            dropout: self.dropout,
            weight_decay: self.weight_decay,
            learning_rate: self.learning_rate,
            batch_size: self.batch_size,
            epochs: self.epochs,
            patience: self.patience,
            depression_strength: self.depression_strength,
            ..Wishes::default()
        };
        let plan = plan(&DataShape::of(data, sources), self.history_length, &wishes)?;
        let rule = LapConfig {
            history_length: self.history_length,
            leniency: self.leniency,
            depression_strength: plan.depression_strength,
            warmup: self.warmup,
            ..LapConfig::default()
        };
        let mut method = MethodConfig::named(&self.method).map_err(TrainError::from)?;
        for (name, &value) in &self.method_parameters {
            method = method.with(&name.replace('_', "-"), value).map_err(TrainError::from)?;
        }
        Ok((plan.config(self.seed), method.judged_by(rule)))
    }
}

/// A trained network.
#[pyclass(module = "lapwing._lapwing", frozen)]
pub(crate) struct Network {
    /// In a box, as it wants to be aligned more strictly than Python objects are.
    model: Box<Model>,
}

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
    /// The depression strength, planned if not given.
    depression_strength: f64,
}

/// What comes out of the loop.
struct Outcome {
    model: Model,
    epochs: Vec<Epoch>,
    points: Vec<TrajectoryPoint>,
    lap: lapwing_core::Lap<u32>,
    method: MethodConfig,
    /// By number, with what was found in them.
    judged: Vec<SourceRow>,
    findings: Vec<Vec<Finding>>,
}

/// Records, and listens for Ctrl-C.
struct Watcher {
    recorder: Recorder,
    looked: Instant,
    interrupted: Option<PyErr>,
}

impl Observer for Watcher {
    fn on_step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.recorder.record(step);
        if self.looked.elapsed() >= BETWEEN_SIGNALS {
            self.looked = Instant::now();
            let checked: PyResult<()> = Python::attach(|py| {
                py.check_signals()?;
                Ok(())
            });
            self.interrupted = checked.err();
        }
        if self.interrupted.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Trains a network on rows from many sources. `targets` holds classes (uint32, numbers of `labels`)
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
    let outcome = py.detach(|| -> Result<Outcome, FitError> {
        let data = Data {
            samples: &rows,
            targets: &targets,
            sources: &sources,
            train: &train,
            valid: &valid,
            relabel: None,
        };
        let (config, method) = settings.over_plan(&data, names.len())?;
        let mut trainer = Trainer::new(config, &method, data, DeviceName::Cpu)?;
        let (recorder, looked) = (Recorder::new(MOST_POINTS), Instant::now());
        let mut watcher = Watcher { recorder, looked, interrupted: None };
        if trainer.run(&mut watcher, None)? == Finish::Interrupted
            && let Some(interruption) = watcher.interrupted
        {
            return Err(interruption.into());
        }
        let (model, lap) = (trainer.model()?, trainer.method().lap().ok_or(FitError::Damaged)?);
        let judged =
            judged(&trainer, &method, lap, &names, train.iter().map(|&row| sources[row as usize]));
        let given = match &targets {
            Targets::Classes { labels: codes, .. } => Given::Classes {
                names: labels,
                labels: train.iter().map(|&row| codes[row as usize]).collect(),
            },
            Targets::Values(values) => {
                Given::Values(train.iter().map(|&row| values[row as usize]).collect())
            }
        };
        let of_rows: Vec<u32> = train.iter().map(|&row| sources[row as usize]).collect();
        let predictions = model.predict(&rows, &train)?;
        let findings = findings::findings(&judged, &of_rows, &train, &given, &predictions)?;
        Ok(Outcome {
            epochs: trainer.history().to_vec(),
            points: watcher.recorder.into_points(),
            lap: lap.clone(),
            model,
            method,
            judged,
            findings,
        })
    })?;
    let Outcome { model, epochs, points, lap, method, judged, findings } = outcome;
    let name = |source: u32| names.get(source as usize).cloned().unwrap_or_default();
    let seen: Vec<SourceRow> =
        lap.sources().map(|status| judged[*status.source as usize].clone()).collect();
    let table = |table: Table| Py::new(py, table);
    Ok(Trained {
        network: Py::new(py, Network { model: Box::new(model) })?,
        sources: table(source_table(&seen)?)?,
        steps: table(step_table(&points, name)?)?,
        epochs: table(epoch_table(&epochs)?)?,
        findings: findings::json(&judged, &findings).map_err(FitError::from)?,
        depression_strength: method.rule().depression_strength,
    })
}

/// All sources by number, judged; `of_rows` are those of the training rows.
fn judged(
    trainer: &Trainer<'_>,
    method: &MethodConfig,
    lap: &lapwing_core::Lap<u32>,
    names: &[String],
    of_rows: impl Iterator<Item = u32>,
) -> Vec<SourceRow> {
    let unseen =
        |name: &String| SourceRow { source: name.clone(), weight: 1.0, ..Default::default() };
    let mut all: Vec<SourceRow> = names.iter().map(unseen).collect();
    for status in lap.sources() {
        if let Some(row) = all.get_mut(*status.source as usize) {
            // Where another method weighs, the rule has looked on without a say.
            *row = SourceRow {
                rows: 0,
                weight: trainer.standing(*status.source).weight,
                rule_weight: method.rule_weight(status.unreliability),
                ..SourceRow::seen(std::mem::take(&mut row.source), &status)
            };
        }
    }
    for source in of_rows {
        all[source as usize].rows += 1;
    }
    for row in &mut all {
        row.judge(lap.config().history_length);
    }
    all
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

fn matrix(rows: &PyReadonlyArray2<'_, f32>) -> PyResult<Matrix> {
    let width = rows.as_array().ncols();
    Ok(Matrix::new(rows.as_slice()?.to_vec(), width).map_err(FitError::from)?)
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

#[pymethods]
impl Network {
    /// Probabilities `[rows, classes]`, or values `[rows, 1]`.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let matrix = matrix(&rows)?;
        let all: Vec<u32> = (0..matrix.len() as u32).collect();
        let predict = || self.model.predict(&matrix, &all).map_err(FitError::from);
        let (values, width) = match py.detach(predict)? {
            Predictions::Classes { probabilities, classes } => {
                (probabilities.into_iter().map(f64::from).collect(), classes)
            }
            Predictions::Values(values) => (values, 1),
        };
        PyArray1::from_vec(py, values).reshape([all.len(), width])
    }

    /// Sizes of the hidden layers.
    #[getter]
    fn hidden(&self) -> Vec<usize> {
        self.model.spec().architecture.wishes().hidden.unwrap_or_default()
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let (spec, parameters) = slf.get().save()?;
        let restore = py.import("lapwing._lapwing")?.getattr("_restore_network")?;
        Ok((restore, (spec, PyBytes::new(py, &parameters)).into_pyobject(py)?))
    }
}

impl Network {
    /// The model's two files, as they are in a run directory.
    fn save(&self) -> Result<(String, Vec<u8>), FitError> {
        in_directory(|path| {
            let spec = self.model.save(path)?;
            Ok((serde_json::to_string(&spec)?, std::fs::read(path)?))
        })
    }
}

/// The inverse of pickling.
#[pyfunction]
pub(crate) fn _restore_network(spec: &str, parameters: &[u8]) -> PyResult<Network> {
    let load = || -> Result<Network, FitError> {
        let spec: ModelSpec = serde_json::from_str(spec)?;
        in_directory(|path| {
            std::fs::write(path, parameters)?;
            Ok(Network { model: Box::new(Model::load(path, spec, DeviceName::Cpu)?) })
        })
    };
    Ok(load()?)
}

fn in_directory<T>(use_path: impl FnOnce(&Path) -> Result<T, FitError>) -> Result<T, FitError> {
    let directory = tempfile::tempdir()?;
    use_path(&directory.path().join("model.safetensors"))
}
