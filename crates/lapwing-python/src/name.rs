//! What sources are called.

use foldhash::fast::RandomState;
use indexmap::IndexSet;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

/// Codes from here on stand for themselves; those below for texts.
const FIRST_NUMBER: i64 = i64::MIN + (1 << 32);

/// The names of sources as numbers, which is what the rule runs on.
///
/// A name is a text, as in the authors' package, where 5 and "5" are one source and 5.0 is another.
/// A text that is a whole number is that number, so that sources that come as integers are used as
/// they are; other texts are numbered from the lowest number up as they appear.
#[derive(Clone, Default)]
pub(crate) struct Names {
    texts: IndexSet<Box<str>, RandomState>,
}

impl Names {
    /// Whether these numbers are their own codes.
    pub(crate) fn are_codes(numbers: &[i64]) -> bool {
        numbers.iter().fold(true, |all, &number| all & (number >= FIRST_NUMBER))
    }

    pub(crate) fn code_of_number(&mut self, number: i64) -> i64 {
        if number >= FIRST_NUMBER { number } else { self.code_of_text(&number.to_string()) }
    }

    pub(crate) fn code(&mut self, text: &str) -> i64 {
        match whole_number(text) {
            Some(number) => self.code_of_number(number),
            None => self.code_of_text(text),
        }
    }

    fn code_of_text(&mut self, text: &str) -> i64 {
        let at = match self.texts.get_index_of(text) {
            Some(at) => at,
            None => self.texts.insert_full(text.into()).0,
        };
        i64::MIN + at as i64
    }

    /// The code of any object: that of what `str()` says of it.
    pub(crate) fn code_of(&mut self, object: &Bound<'_, PyAny>) -> PyResult<i64> {
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(self.code(text.to_str()?));
        }
        if object.is_exact_instance_of::<PyInt>()
            && let Ok(number) = object.extract()
        {
            return Ok(self.code_of_number(number));
        }
        Ok(self.code(object.str()?.to_str()?))
    }

    /// The name behind a code.
    pub(crate) fn name(&self, code: i64) -> String {
        let text = usize::try_from(code.wrapping_sub(i64::MIN)).ok();
        match text.and_then(|at| self.texts.get_index(at)) {
            Some(text) if code < FIRST_NUMBER => text.to_string(),
            _ => code.to_string(),
        }
    }
}

/// The number, where the text is exactly what printing that number gives.
fn whole_number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let plain = match digits {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if plain { text.parse().ok() } else { None }
}
