//! A trained network that predicts, and its files.
//!
//! `model.safetensors` holds the parameters by name, 32-bit floats, nothing else. The [`ModelSpec`] goes into
//! `model.json`: what the network is made of, what its outputs mean, and the BLAKE3 digest of `model.safetensors`. A
//! file is read only if digest, names and shapes are the expected ones.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use lapwing_onnx::Graph;
use lapwing_sample::{
    DataError, InputSpec, Loss, Matrix, Predictions, SampleError, Samples, TargetSpec, Targets,
    Task, View, softmax,
};
use lapwing_store::StoreError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::arrays::{Arrays, ArraysError, decode, encode};
use crate::device::{DeviceError, DeviceName};
use crate::loss::{BatchTargets, per_sample};
use crate::network::{
    Architecture, ArchitectureError, Drawing, Forward, Inexpressible, Input, Network, OnnxInput,
};
use crate::parameters::{ParameterError, check, read, to_vec, write};

/// Version of [`ModelSpec`]. In the first, a perceptron's `squash` was called `clip`.
const FORMAT: u32 = 2;
const OLDEST: u32 = 1;
/// Largest file of parameters read: a billion of them.
const LARGEST: u64 = 1 << 32;
/// Rows per forward pass outside training.
pub(crate) const BATCH: usize = 1024;

/// What a model is, beside its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// Version of this description.
    pub format: u32,
    /// What the network is made of.
    pub architecture: Architecture,
    /// What its outputs mean.
    pub task: TargetSpec,
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
    #[error(transparent)]
    File(#[from] StoreError),
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
    #[error("the model has format {0}, this program reads {OLDEST} to {FORMAT}")]
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
    /// A loss that is for the other kind of targets.
    #[error("{0:?} is not a loss for such outputs")]
    Loss(Loss),
    /// Values in units that cannot be.
    #[error("the mean or the standard deviation of the target is no number that can be used")]
    Scale,
    /// Samples of another form.
    #[error("the samples are {found}, the model was trained on {expected}")]
    Input {
        /// What the samples are.
        found: InputSpec,
        /// What the model takes.
        expected: InputSpec,
    },
    /// Classes where values are expected, or the other way round.
    #[error("the targets are for {found}, the model was trained for {expected}")]
    Targets {
        /// What the targets are for.
        found: Task,
        /// What the model is for.
        expected: Task,
    },
    /// Targets that do not fit.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A sample cannot be had.
    #[error(transparent)]
    Sample(#[from] SampleError),
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
        task: TargetSpec,
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
        lapwing_store::replace(path, &[&bytes])?;
        Ok(ModelSpec { digest: blake3::hash(&bytes).to_hex().to_string(), ..self.spec.clone() })
    }

    /// Reads the parameters that `spec` was written for.
    pub fn load(path: &Path, spec: ModelSpec, device: DeviceName) -> Result<Self, ModelError> {
        if !(OLDEST..=FORMAT).contains(&spec.format) {
            return Err(ModelError::Format(spec.format));
        }
        let (outputs, expected) = (spec.architecture.outputs(), spec.task.outputs());
        if outputs != expected {
            return Err(ModelError::Outputs { outputs, expected });
        }
        if spec.loss.task() != spec.task.task() {
            return Err(ModelError::Loss(spec.loss));
        }
        if matches!(spec.task, TargetSpec::Values(scale) if !scale.is_sound()) {
            return Err(ModelError::Scale);
        }
        let bytes = lapwing_store::read(path, LARGEST)?;
        let found = blake3::hash(&bytes).to_hex().to_string();
        if found != spec.digest {
            return Err(ModelError::Digest { path: path.to_owned(), found, expected: spec.digest });
        }
        let parameters = decode(&bytes)
            .and_then(Arrays::into_parameters)
            .map_err(|source| ModelError::Arrays { path: path.to_owned(), source })?;
        if parameters.iter().any(|p| p.values.iter().any(|v| !v.is_finite())) {
            return Err(ModelError::NotFinite);
        }
        check(&spec.architecture.arrays()?, &parameters)?;
        let device = device.open()?;
        let network = write(spec.architecture.init(0, 0, &device)?, &parameters)?;
        Ok(Self { spec, network, device })
    }

    /// What it does as operators of ONNX, which are added to a graph: the name of its outputs `[rows, outputs]`, logits
    /// (probabilities where it ends in a softmax), or values in standard deviations from the mean.
    pub fn onnx(&self, graph: &mut Graph, input: &OnnxInput) -> Result<String, Inexpressible> {
        let arrays = read(&self.network);
        self.spec.architecture.onnx(&mut Drawing::new(graph, &arrays), input)
    }

    /// Predicts the given rows.
    pub fn predict(&self, samples: &dyn Samples, rows: &[u32]) -> Result<Predictions, ModelError> {
        let mut outputs = self.outputs(samples, rows)?;
        Ok(match self.spec.task {
            TargetSpec::Classes { classes } => {
                if !self.spec.architecture.probabilities() {
                    outputs.chunks_exact_mut(classes).for_each(softmax);
                }
                Predictions::Classes { probabilities: outputs, classes }
            }
            TargetSpec::Values(scale) => Predictions::Values(
                outputs.into_iter().map(|value| scale.restored(f64::from(value))).collect(),
            ),
        })
    }

    /// What the network puts out for the given rows, row after row: logits (probabilities where it ends in a softmax), or
    /// values in standard deviations from the mean.
    pub fn outputs(&self, samples: &dyn Samples, rows: &[u32]) -> Result<Vec<f32>, ModelError> {
        self.check_input(samples)?;
        Ok(outputs(&self.network, samples, rows, &self.device)?)
    }

    /// What the last layer sees of the given rows; nothing where the network has but one layer.
    pub fn embeddings(
        &self,
        samples: &dyn Samples,
        rows: &[u32],
    ) -> Result<Option<Matrix>, ModelError> {
        self.check_input(samples)?;
        let (mut values, mut width) = (Vec::new(), None);
        for rows in rows.chunks(BATCH) {
            let input = Input::gather(samples, rows, View::Plain, &self.device)?;
            let Some(embedding) = self.network.forward(&input, None).embedding else {
                return Ok(None);
            };
            width = Some(embedding.dims()[1]);
            values.extend(to_vec(embedding));
        }
        width.map(|width| Matrix::new(values, width)).transpose().map_err(ModelError::from)
    }

    /// The loss of each given row, in the units of training (values in standard deviations).
    pub fn losses(
        &self,
        samples: &dyn Samples,
        targets: &Targets,
        rows: &[u32],
    ) -> Result<Vec<f32>, ModelError> {
        self.check_input(samples)?;
        if let Some(&row) = rows.iter().find(|&&row| row as usize >= targets.len()) {
            return Err(DataError::NoSuchRow { row, rows: targets.len() }.into());
        }
        if let (Targets::Classes { labels, .. }, TargetSpec::Classes { classes }) =
            (targets, self.spec.task)
            && let Some(&row) = rows.iter().find(|&&row| labels[row as usize] as usize >= classes)
        {
            let (row, label) = (row as usize, labels[row as usize]);
            return Err(DataError::Label { row, label, classes }.into());
        }
        let Self { network, device, spec } = self;
        losses(network, (samples, targets), (&spec.task, &spec.loss), rows, device)
    }

    fn check_input(&self, samples: &dyn Samples) -> Result<(), ModelError> {
        let (found, expected) = (samples.spec(), self.spec.architecture.input());
        if found == expected { Ok(()) } else { Err(ModelError::Input { found, expected }) }
    }
}

/// What the network puts out for each row, without gradients or dropout.
pub(crate) fn outputs(
    network: &Network,
    samples: &dyn Samples,
    rows: &[u32],
    device: &Device,
) -> Result<Vec<f32>, SampleError> {
    let mut found = Vec::new();
    for rows in rows.chunks(BATCH) {
        let input = Input::gather(samples, rows, View::Plain, device)?;
        found.extend(to_vec(network.forward(&input, None).logits));
    }
    Ok(found)
}

/// The loss of each row, without gradients or dropout.
pub(crate) fn losses(
    network: &Network,
    (samples, targets): (&dyn Samples, &Targets),
    (target, loss): (&TargetSpec, &Loss),
    rows: &[u32],
    device: &Device,
) -> Result<Vec<f32>, ModelError> {
    let mut found = Vec::new();
    for rows in rows.chunks(BATCH) {
        let input = Input::gather(samples, rows, View::Plain, device)?;
        let outputs = network.forward(&input, None).logits;
        let targets = BatchTargets::of(targets, target, rows, device)?;
        found.extend(to_vec(per_sample(loss, outputs, targets)));
    }
    Ok(found)
}
