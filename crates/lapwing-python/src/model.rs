//! Trained models: what they predict, and how they are pickled.

use std::path::Path;

use lapwing_run::Learnt;
use lapwing_train::{DeviceName, Matrix, Model, ModelSpec, Predictions, Samples};
use lapwing_trees::{Forest, ForestSpec};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::fit::FitError;

/// A trained network, or trees.
#[pyclass(module = "lapwing._lapwing", frozen)]
pub(crate) struct Network {
    /// In a box, as it wants to be aligned more strictly than Python objects are.
    pub(crate) model: Box<Learnt>,
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

    /// Sizes of the hidden layers; none of trees.
    #[getter]
    fn hidden(&self) -> Vec<usize> {
        match &*self.model {
            Learnt::Network(model) => model.spec().architecture.wishes().hidden.unwrap_or_default(),
            Learnt::Trees(_) => Vec::new(),
        }
    }

    /// What trees gained by each feature: shares that sum to 1; nothing of networks.
    #[getter]
    fn importance(&self) -> Option<Vec<f64>> {
        match &*self.model {
            Learnt::Network(_) => None,
            Learnt::Trees(forest) => Some(forest.importance()),
        }
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let (spec, parameters) = slf.get().save()?;
        let restore = match &*slf.get().model {
            Learnt::Network(_) => "_restore_network",
            Learnt::Trees(_) => "_restore_trees",
        };
        let restore = py.import("lapwing._lapwing")?.getattr(restore)?;
        Ok((restore, (spec, PyBytes::new(py, &parameters)).into_pyobject(py)?))
    }
}

impl Network {
    /// The model's two files, as they are in a run directory.
    fn save(&self) -> Result<(String, Vec<u8>), FitError> {
        in_directory(|path| {
            let spec = match &*self.model {
                Learnt::Network(model) => serde_json::to_string(&model.save(path)?)?,
                Learnt::Trees(forest) => serde_json::to_string(&forest.save(path)?)?,
            };
            Ok((spec, std::fs::read(path)?))
        })
    }
}

/// The inverse of pickling a network.
#[pyfunction]
pub(crate) fn _restore_network(spec: &str, parameters: &[u8]) -> PyResult<Network> {
    restore(parameters, |path| {
        let spec: ModelSpec = serde_json::from_str(spec)?;
        Ok(Learnt::Network(Model::load(path, spec, DeviceName::Cpu)?))
    })
}

/// The inverse of pickling trees.
#[pyfunction]
pub(crate) fn _restore_trees(spec: &str, parameters: &[u8]) -> PyResult<Network> {
    restore(parameters, |path| {
        let spec: ForestSpec = serde_json::from_str(spec)?;
        Ok(Learnt::Trees(Forest::load(path, spec)?))
    })
}

fn restore(
    parameters: &[u8],
    load: impl FnOnce(&Path) -> Result<Learnt, FitError>,
) -> PyResult<Network> {
    let model = in_directory(|path| {
        std::fs::write(path, parameters)?;
        load(path)
    })?;
    Ok(Network { model: Box::new(model) })
}

fn in_directory<T>(use_path: impl FnOnce(&Path) -> Result<T, FitError>) -> Result<T, FitError> {
    let directory = tempfile::tempdir()?;
    use_path(&directory.path().join("model"))
}

pub(crate) fn matrix(rows: &PyReadonlyArray2<'_, f32>) -> PyResult<Matrix> {
    let width = rows.as_array().ncols();
    Ok(Matrix::new(rows.as_slice()?.to_vec(), width).map_err(FitError::from)?)
}
