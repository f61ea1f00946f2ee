//! What a part of a run must know to go on after a pause.

use std::sync::Arc;

use serde_json::Value;

use crate::method::MethodError;
use crate::parameters::Parameter;

/// A state: something small that JSON can hold, arrays and columns by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saved {
    pub(crate) state: Value,
    pub(crate) arrays: Vec<Parameter>,
    pub(crate) columns: Vec<Column>,
}

/// A long list of numbers, such as one for each of a million sources, which would take gigabytes as JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) numbers: Numbers,
}

/// Shared, so that a part of a state costs nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Numbers {
    Counts(Arc<Vec<u64>>),
    Values(Arc<Vec<f64>>),
}

impl Saved {
    /// A state without arrays and columns.
    pub fn of(state: Value) -> Self {
        Self { state, ..Self::default() }
    }

    /// The state without its arrays and columns.
    pub fn state(&self) -> &Value {
        &self.state
    }

    /// Adds a column of counts.
    #[must_use]
    pub fn with_counts(self, name: &str, counts: Vec<u64>) -> Self {
        self.with_column(name, Numbers::Counts(counts.into()))
    }

    /// Adds a column of values.
    #[must_use]
    pub fn with_values(self, name: &str, values: Vec<f64>) -> Self {
        self.with_column(name, Numbers::Values(values.into()))
    }

    fn with_column(mut self, name: &str, numbers: Numbers) -> Self {
        self.columns.push(Column { name: name.to_owned(), numbers });
        self
    }

    /// A column of counts.
    ///
    /// # Errors
    /// Where there is none of this name.
    pub fn counts(&self, name: &str) -> Result<&[u64], MethodError> {
        let found = self.columns.iter().find_map(|column| match &column.numbers {
            Numbers::Counts(counts) if column.name == name => Some(counts.as_slice()),
            _ => None,
        });
        found.ok_or_else(|| MethodError::Column(name.to_owned()))
    }

    /// A column of values.
    ///
    /// # Errors
    /// Where there is none of this name.
    pub fn values(&self, name: &str) -> Result<&[f64], MethodError> {
        let found = self.columns.iter().find_map(|column| match &column.numbers {
            Numbers::Values(values) if column.name == name => Some(values.as_slice()),
            _ => None,
        });
        found.ok_or_else(|| MethodError::Column(name.to_owned()))
    }

    /// Adds the state of a part under its name.
    #[must_use]
    pub fn with(mut self, name: &str, part: Saved) -> Self {
        if self.state.is_null() {
            self.state = Value::Object(serde_json::Map::new());
        }
        if let Value::Object(map) = &mut self.state {
            map.insert(name.to_owned(), part.state);
        }
        self.arrays.extend(
            part.arrays.into_iter().map(|p| Parameter { name: format!("{name}.{}", p.name), ..p }),
        );
        self.columns.extend(
            part.columns.into_iter().map(|c| Column { name: format!("{name}.{}", c.name), ..c }),
        );
        self
    }

    /// The state of a part; nothing where it is missing, which whoever loads it will refuse.
    #[must_use]
    pub fn part(&self, name: &str) -> Saved {
        let prefix = format!("{name}.");
        let own = |p: &Parameter| {
            let name = p.name.strip_prefix(&prefix)?.to_owned();
            Some(Parameter { name, ..p.clone() })
        };
        let own_column = |c: &Column| {
            let name = c.name.strip_prefix(&prefix)?.to_owned();
            Some(Column { name, ..c.clone() })
        };
        Saved {
            state: self.state.get(name).cloned().unwrap_or_default(),
            arrays: self.arrays.iter().filter_map(own).collect(),
            columns: self.columns.iter().filter_map(own_column).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_by_name() {
        let array = |name: &str| Parameter {
            name: name.into(),
            shape: vec![1],
            values: vec![name.len() as f32],
        };
        let inner =
            Saved { state: 3.into(), arrays: vec![array("a"), array("b.c")], ..Saved::default() }
                .with_counts("n", vec![u64::MAX])
                .with_values("n", vec![0.1]);
        let middle = Saved::default().with("one", inner.clone()).with("two", Saved::of("x".into()));
        let outer = Saved::default().with("middle", middle.clone());
        assert_eq!(outer.part("middle"), middle);
        assert_eq!(outer.part("middle").part("one"), inner);
        assert_eq!(outer.part("middle").part("two"), Saved::of("x".into()));
        assert_eq!(outer.part("none"), Saved::default());
        let part = outer.part("middle").part("one");
        assert_eq!(
            (part.counts("n").unwrap(), part.values("n").unwrap()),
            (&[u64::MAX][..], &[0.1][..])
        );
        let said = part.counts("m").unwrap_err().to_string();
        assert_eq!(said, "the saved state of the method cannot be used: it has no column \"m\"");
    }
}
