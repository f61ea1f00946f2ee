//! The HTML report, from a value that Python fills.

use lapwing_report::Report;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Renders the page of a report given as JSON.
#[pyfunction]
pub(crate) fn render_report(report: &[u8]) -> PyResult<String> {
    let refuse = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let report: Report = serde_json::from_slice(report).map_err(|error| refuse(&error))?;
    lapwing_report::render(&report).map_err(|error| refuse(&error))
}
