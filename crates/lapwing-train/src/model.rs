//! A trained network that predicts, and its files.
//!
//! `model.safetensors` holds the parameters by name, 32-bit floats, nothing else. The [`ModelSpec`] goes into
//! `model.json`: what the network is made of, what its outputs mean, and the BLAKE3 digest of `model.safetensors`. A
//! file is read only if digest, names and shapes are the expected ones.

use std::io;
use std::path::{Path, PathBuf};

use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::arrays::{Arrays, ArraysError, decode, encode};
use crate::device::{DeviceError, DeviceName};
use crate::loss::{BatchTargets, Loss};
use crate::network::{Architecture, ArchitectureError, Network};
use crate::parameters::{ParameterError, host, read, write};
use crate::rows::{Data, Rows, Targets};
use crate::{atomic, rows::DataError};

/// Version of [`ModelSpec`].
const FORMAT: u32 = 1;
/// Rows per forward pass outside training.
const BATCH: usize = 1024;

/// What outputs mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Task {
    /// One logit per class.
    Classification {
        /// Number of classes.
        classes: usize,
    },
    /// One value, in standard deviations from the mean of the training targets.
    Regression {
        /// Mean of the training targets.
        mean: f64,
        /// Their standard deviation, or 1 if they are all the same.
        std: f64,
    },
}

impl Task {
    /// The task of these targets, with mean and standard deviation over the training rows.
    pub(crate) fn of(targets: &Targets, train: &[u32]) -> Self {
        match targets {
            Targets::Classes { classes, .. } => Task::Classification { classes: *classes },
            Targets::Values(values) => {
                let rows = train.len().max(1) as f64;
                let value = |row: &u32| f64::from(values[*row as usize]);
                let mean = train.iter().map(value).sum::<f64>() / rows;
                let variance =
                    train.iter().map(|row| (value(row) - mean).powi(2)).sum::<f64>() / rows;
                Task::Regression { mean, std: if variance > 0.0 { variance.sqrt() } else { 1.0 } }
            }
        }
    }

    pub(crate) fn outputs(&self) -> usize {
        match self {
            Task::Classification { classes } => *classes,
            Task::Regression { .. } => 1,
        }
    }

    /// Targets of some rows as the loss wants them.
    pub(crate) fn targets(&self, targets: &Targets, rows: &[u32], device: &Device) -> BatchTargets {
        match (targets, self) {
            (Targets::Classes { labels, .. }, _) => {
                BatchTargets::classes(rows.iter().map(|&row| labels[row as usize]), device)
            }
            (Targets::Values(values), task) => {
                let (mean, std) = match *task {
                    Task::Regression { mean, std } => (mean, std),
                    Task::Classification { .. } => (0.0, 1.0),
                };
                let scaled =
                    rows.iter().map(|&row| ((f64::from(values[row as usize]) - mean) / std) as f32);
                BatchTargets::values(scaled.collect(), device)
            }
        }
    }
}

/// What a model is, beside its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// Version of this description.
    pub format: u32,
    /// What the network is made of.
    pub architecture: Architecture,
    /// What its outputs mean.
    pub task: Task,
    /// The loss it was trained with.
    pub loss: Loss,
    /// BLAKE3 of `model.safetensors`, in hexadecimal; empty before it is saved.
    #[serde(default)]
    pub digest: String,
}

/// Why a model cannot be made, saved or loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not the one that the description was written for.
    #[error("{}: damaged or exchanged: its BLAKE3 digest is {found}, expected {expected}", path.display())]
    Digest {
        /// The file.
        path: PathBuf,
        /// Digest of the file.
        found: String,
        /// Digest in the description.
        expected: String,
    },
    /// The file is not a container of arrays.
    #[error("{}: {source}", path.display())]
    Arrays {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ArraysError,
    },
    /// The arrays do not fit the network.
    #[error("the parameters do not fit the network: {0}")]
    Parameters(#[from] ParameterError),
    /// A parameter that is not a finite number.
    #[error("the network has parameters that are not finite numbers")]
    NotFinite,
    /// A description of another version.
    #[error("the model has format {0}, this program reads format {FORMAT}")]
    Format(u32),
    /// A description that contradicts itself.
    #[error("the network has {outputs} outputs, but the task needs {expected}")]
    Outputs {
        /// Outputs of the network.
        outputs: usize,
        /// Outputs that the task needs.
        expected: usize,
    },
    /// A network that cannot be built.
    #[error(transparent)]
    Architecture(#[from] ArchitectureError),
    /// A device that is not to be had.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Rows of the wrong width.
    #[error("rows have {found} features, the model was trained on {expected}")]
    Width {
        /// Features of the rows.
        found: usize,
        /// Features of the model.
        expected: usize,
    },
    /// Targets that do not fit.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// Predictions for rows, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Predictions {
    /// Probabilities, row after row.
    Classes {
        /// `rows · classes` numbers.
        probabilities: Vec<f32>,
        /// Number of classes.
        classes: usize,
    },
    /// A value per row, in the user's units.
    Values(Vec<f32>),
}

impl Predictions {
    /// The most probable class of each row (the first of equals), or nothing for values.
    pub fn labels(&self) -> Vec<u32> {
        let best = |row: &[f32]| {
            let better = |best: usize, next: usize| if row[next] > row[best] { next } else { best };
            (0..row.len()).reduce(better).unwrap_or(0) as u32
        };
        match self {
            Predictions::Classes { probabilities, classes } => {
                probabilities.chunks_exact(*classes).map(best).collect()
            }
            Predictions::Values(_) => Vec::new(),
        }
    }
}

/// A trained network.
#[derive(Debug)]
pub struct Model {
    spec: ModelSpec,
    network: Network,
    device: Device,
}

impl Model {
    pub(crate) fn new(
        architecture: Architecture,
        task: Task,
        loss: Loss,
        network: Network,
        device: Device,
    ) -> Self {
        let spec = ModelSpec { format: FORMAT, architecture, task, loss, digest: String::new() };
        Self { spec, network, device }
    }

    /// What it is.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// Writes the parameters to `path`, whole or not at all, and returns the description to keep with them.
    pub fn save(&self, path: &Path) -> Result<ModelSpec, ModelError> {
        let arrays = Arrays { parameters: read(&self.network), ..Arrays::default() };
        let bytes = encode(&arrays)
            .map_err(|source| ModelError::Arrays { path: path.to_owned(), source })?;
        atomic::replace(path, &[&bytes])
            .map_err(|source| ModelError::File { path: path.to_owned(), source })?;
        Ok(ModelSpec { digest: blake3::hash(&bytes).to_hex().to_string(), ..self.spec.clone() })
    }

    /// Reads the parameters that `spec` was written for.
    pub fn load(path: &Path, spec: ModelSpec, device: DeviceName) -> Result<Self, ModelError> {
        if spec.format != FORMAT {
            return Err(ModelError::Format(spec.format));
        }
        let (outputs, expected) = (spec.architecture.outputs(), spec.task.outputs());
        if outputs != expected {
            return Err(ModelError::Outputs { outputs, expected });
        }
        let bytes = std::fs::read(path)
            .map_err(|source| ModelError::File { path: path.to_owned(), source })?;
        let found = blake3::hash(&bytes).to_hex().to_string();
        if found != spec.digest {
            return Err(ModelError::Digest { path: path.to_owned(), found, expected: spec.digest });
        }
        let arrays = decode(&bytes)
            .map_err(|source| ModelError::Arrays { path: path.to_owned(), source })?;
        if arrays.parameters.iter().any(|p| p.values.iter().any(|v| !v.is_finite())) {
            return Err(ModelError::NotFinite);
        }
        spec.architecture.check(&arrays.parameters)?;
        let device = device.open()?;
        let network = write(spec.architecture.init(0, 0, &device)?, &arrays.parameters)?;
        Ok(Self { spec, network, device })
    }

    /// Predicts the given rows.
    pub fn predict(&self, rows: &dyn Rows, indices: &[u32]) -> Result<Predictions, ModelError> {
        let mut outputs = self.outputs(rows, indices)?;
        Ok(match self.spec.task {
            Task::Classification { classes } => {
                if !self.spec.architecture.probabilities() {
                    outputs.chunks_exact_mut(classes).for_each(soften);
                }
                Predictions::Classes { probabilities: outputs, classes }
            }
            Task::Regression { mean, std } => Predictions::Values(
                outputs.into_iter().map(|v| (f64::from(v) * std + mean) as f32).collect(),
            ),
        })
    }

    /// What the network puts out for the given rows, row after row: logits (probabilities where it ends in a softmax), or
    /// values in standard deviations from the mean.
    pub fn outputs(&self, rows: &dyn Rows, indices: &[u32]) -> Result<Vec<f32>, ModelError> {
        self.check_width(rows)?;
        Ok(outputs(&self.network, rows, indices, &self.device))
    }

    /// The loss of each given row, in the units of training (values in standard deviations).
    pub fn losses(
        &self,
        rows: &dyn Rows,
        targets: &Targets,
        indices: &[u32],
    ) -> Result<Vec<f32>, ModelError> {
        self.check_width(rows)?;
        if let (Targets::Classes { labels, .. }, Task::Classification { classes }) =
            (targets, self.spec.task)
            && let Some(&row) =
                indices.iter().find(|&&row| labels[row as usize] as usize >= classes)
        {
            return Err(DataError::Label {
                row: row as usize,
                label: labels[row as usize],
                classes,
            }
            .into());
        }
        let Self { network, device, spec } = self;
        let data = Data { rows, targets, sources: &[], train: &[], valid: &[], relabel: None };
        Ok(losses(network, &data, &spec.task, &spec.loss, indices, device))
    }

    fn check_width(&self, rows: &dyn Rows) -> Result<(), ModelError> {
        let (found, expected) = (rows.width(), self.spec.architecture.inputs());
        if found == expected { Ok(()) } else { Err(ModelError::Width { found, expected }) }
    }
}

/// Rows as a tensor.
pub(crate) fn features(rows: &dyn Rows, indices: &[u32], device: &Device) -> Tensor<2> {
    let shape = [indices.len(), rows.width()];
    let mut values = vec![0.0; shape[0] * shape[1]];
    rows.gather(indices, &mut values);
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Logits into probabilities.
fn soften(row: &mut [f32]) {
    let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.iter_mut().for_each(|logit| *logit = libm::expf(*logit - highest));
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|value| *value /= sum);
}

/// What the network puts out for each row, without gradients or dropout.
pub(crate) fn outputs(
    network: &Network,
    rows: &dyn Rows,
    indices: &[u32],
    device: &Device,
) -> Vec<f32> {
    let one = |batch: &[u32]| host(network.forward(features(rows, batch, device), None));
    indices.chunks(BATCH).flat_map(one).collect()
}

/// The loss of each row, without gradients or dropout.
pub(crate) fn losses(
    network: &Network,
    data: &Data<'_>,
    task: &Task,
    loss: &Loss,
    indices: &[u32],
    device: &Device,
) -> Vec<f32> {
    let one = |batch: &[u32]| {
        let outputs = network.forward(features(data.rows, batch, device), None);
        host(loss.per_sample(outputs, task.targets(data.targets, batch, device)))
    };
    indices.chunks(BATCH).flat_map(one).collect()
}
