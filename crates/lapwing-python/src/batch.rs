//! Losses and sources of a batch as they come from Python.

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::name::Names;

/// The losses of a batch, in the precision in which they came.
pub(crate) enum Losses<'py> {
    Single(PyReadonlyArray1<'py, f32>),
    Double(PyReadonlyArray1<'py, f64>),
}

impl<'py> Losses<'py> {
    /// Views an array.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<PyArray1<f32>>() {
            return Ok(Self::Single(array.try_readonly()?));
        }
        if let Ok(array) = object.cast::<PyArray1<f64>>() {
            return Ok(Self::Double(array.try_readonly()?));
        }
        Err(PyTypeError::new_err("losses must be a one-dimensional array of float32 or float64"))
    }

    pub(crate) fn to_f64(&self) -> PyResult<Vec<f64>> {
        Ok(match self {
            Self::Single(losses) => losses.as_slice()?.iter().map(|&loss| loss.into()).collect(),
            Self::Double(losses) => losses.as_slice()?.to_vec(),
        })
    }
}

/// The sources of a batch as codes.
pub(crate) enum Sources<'py> {
    /// An array of integers that are their own codes, where it lies.
    Array(PyReadonlyArray1<'py, i64>),
    Codes(Vec<i64>),
}

impl<'py> Sources<'py> {
    /// Reads an array of int64, a list or a tuple.
    pub(crate) fn of(object: &Bound<'py, PyAny>, names: &mut Names) -> PyResult<Self> {
        let codes: PyResult<Vec<i64>> = if let Ok(array) = object.cast::<PyArray1<i64>>() {
            let array = array.try_readonly()?;
            if array.as_slice().is_ok_and(Names::are_codes) {
                return Ok(Self::Array(array));
            }
            Ok(array.as_array().iter().map(|&number| names.code_of_number(number)).collect())
        } else if let Ok(list) = object.cast::<PyList>() {
            list.iter().map(|item| names.code_of(&item)).collect()
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            tuple.iter().map(|item| names.code_of(&item)).collect()
        } else {
            Err(PyTypeError::new_err(
                "sources must be a one-dimensional array of int64, or a list or tuple",
            ))
        };
        codes.map(Self::Codes)
    }

    pub(crate) fn codes(&self) -> PyResult<&[i64]> {
        match self {
            Self::Array(array) => Ok(array.as_slice()?),
            Self::Codes(codes) => Ok(codes),
        }
    }
}
