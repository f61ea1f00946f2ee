//! The words of a text.

use pyo3::prelude::*;

/// The first 1,000 words of a text, in small letters, as models of texts see them.
#[pyfunction]
pub(crate) fn words(text: &str) -> Vec<String> {
    lapwing_data::words(text).map(std::borrow::Cow::into_owned).collect()
}
