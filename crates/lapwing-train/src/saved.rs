//! What a part of a run must know to go on after a pause.

use serde_json::Value;

use crate::parameters::Parameter;

/// A state: something that JSON can hold, and arrays by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saved {
    pub(crate) state: Value,
    pub(crate) arrays: Vec<Parameter>,
}

impl Saved {
    /// A state without arrays.
    pub fn of(state: Value) -> Self {
        Self { state, arrays: Vec::new() }
    }

    /// The state without its arrays.
    pub fn state(&self) -> &Value {
        &self.state
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
        Saved {
            state: self.state.get(name).cloned().unwrap_or_default(),
            arrays: self.arrays.iter().filter_map(own).collect(),
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
        let inner = Saved { state: 3.into(), arrays: vec![array("a"), array("b.c")] };
        let middle = Saved::default().with("one", inner.clone()).with("two", Saved::of("x".into()));
        let outer = Saved::default().with("middle", middle.clone());
        assert_eq!(outer.part("middle"), middle);
        assert_eq!(outer.part("middle").part("one"), inner);
        assert_eq!(outer.part("middle").part("two"), Saved::of("x".into()));
        assert_eq!(outer.part("none"), Saved::default());
    }
}
