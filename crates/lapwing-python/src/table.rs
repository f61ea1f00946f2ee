//! Tables that go out to pandas, polars and whatever else reads Arrow.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt64Array,
};
use arrow_schema::{ArrowError, DataType};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};

/// The name that the Arrow PyCapsule interface gives to a stream.
pub(crate) const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// A table in memory, to be read column by column or handed to a data-frame library by the Arrow
/// PyCapsule interface: `polars.DataFrame(table)`, `pyarrow.table(table)`.
#[pyclass(module = "lapwing", frozen)]
pub(crate) struct Table {
    batch: RecordBatch,
}

impl Table {
    pub(crate) fn new<const N: usize>(columns: [(&str, ArrayRef); N]) -> PyResult<Self> {
        Self::of(columns.into_iter())
    }

    pub(crate) fn of<'a>(columns: impl Iterator<Item = (&'a str, ArrayRef)>) -> PyResult<Self> {
        let batch = RecordBatch::try_from_iter(columns);
        Ok(Self { batch: batch.map_err(internal)? })
    }

    fn column(&self, name: &str) -> PyResult<&ArrayRef> {
        self.batch.column_by_name(name).ok_or_else(|| {
            let names = self.column_names().join(", ");
            PyKeyError::new_err(format!("no column {name:?}; there are {names}"))
        })
    }
}

pub(crate) fn texts(values: impl Iterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

pub(crate) fn integers(values: Vec<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}

pub(crate) fn counts(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

pub(crate) fn numbers(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(Float64Array::from_iter(values))
}

/// Tables are made here, so that nothing of this can fail but by a fault of ours.
fn internal(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<lapwing.Table: {} rows of {}>", self.__len__(), self.column_names().join(", "))
    }

    /// A column: a NumPy array, with NaN where there is no value, or a list of texts.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let column = self.column(name)?;
        Ok(match column.data_type() {
            DataType::Utf8 => texts_of(py, column)?.into_any(),
            DataType::Int64 => {
                PyArray1::from_slice(py, column.as_primitive::<Int64Type>().values()).into_any()
            }
            DataType::UInt64 => {
                PyArray1::from_slice(py, column.as_primitive::<UInt64Type>().values()).into_any()
            }
            _ => {
                let values = column.as_primitive::<Float64Type>().iter();
                let values: Vec<f64> = values.map(|value| value.unwrap_or(f64::NAN)).collect();
                PyArray1::from_vec(py, values).into_any()
            }
        })
    }

    /// A dictionary with a list per column, with None where there is no value.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let table = PyDict::new(py);
        for (name, column) in self.column_names().iter().zip(self.batch.columns()) {
            match column.data_type() {
                DataType::Utf8 => table.set_item(name, texts_of(py, column)?)?,
                DataType::Float64 => {
                    let values = column.as_primitive::<Float64Type>().iter();
                    table.set_item(name, values.collect::<Vec<_>>())?;
                }
                _ => table.set_item(name, self.__getitem__(py, name)?.call_method0("tolist")?)?,
            }
        }
        Ok(table)
    }

    /// The table as a `pandas.DataFrame`.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let columns = PyDict::new(py);
        for name in self.column_names() {
            columns.set_item(&name, self.__getitem__(py, &name)?)?;
        }
        py.import("pandas")?.getattr("DataFrame")?.call1((columns,))
    }

    /// The table as a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.getattr("DataFrame")?.call1((slf,))
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let column = |name: String| Ok((self.__getitem__(py, &name)?, name));
        let columns: PyResult<Vec<(Bound<'py, PyAny>, String)>> =
            self.column_names().into_iter().map(column).collect();
        let restore = py.import("lapwing._lapwing")?.getattr("_restore_table")?;
        Ok((restore, (columns?,).into_pyobject(py)?))
    }

    /// The Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A request is a wish: the interface lets producers answer in their own types.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }
}

/// The inverse of pickling.
#[pyfunction]
pub(crate) fn _restore_table(columns: Vec<(Bound<'_, PyAny>, String)>) -> PyResult<Table> {
    let mut arrays: Vec<(String, ArrayRef)> = Vec::new();
    for (column, name) in columns {
        let array = if let Ok(values) = column.cast::<PyArray1<i64>>() {
            integers(values.to_vec()?)
        } else if let Ok(values) = column.cast::<PyArray1<u64>>() {
            counts(values.to_vec()?.into_iter())
        } else if let Ok(values) = column.cast::<PyArray1<f64>>() {
            numbers(values.to_vec()?.into_iter().map(|value| Some(value).filter(|v| !v.is_nan())))
        } else {
            texts(column.extract::<Vec<String>>()?.into_iter())
        };
        arrays.push((name, array));
    }
    Ok(Table { batch: RecordBatch::try_from_iter(arrays).map_err(internal)? })
}

fn texts_of<'py>(py: Python<'py>, column: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, column.as_string::<i32>().iter().flatten().collect::<Vec<_>>())
}
