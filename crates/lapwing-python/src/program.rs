//! The program `lapwing`, from the same copy of everything that the module has.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the program with these words, the first of which is its name, and returns its exit code.
#[pyfunction]
pub(crate) fn program(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| lapwing::run(words))
}
