//! A column of a recipe's table.

use std::collections::BTreeMap;

use lapwing_train::{Init, METHODS, MethodKind, method_named};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::Rule;
use crate::faults;

/// A column of the table: a method, its parameters, and what else it changes.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Table")]
pub struct MethodRecipe {
    keys: MethodKeys,
    /// Parameters of the method, by name.
    pub parameters: BTreeMap<&'static str, f64>,
}

/// What a column says beside the parameters of its method.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MethodKeys {
    /// Its name on the command line.
    pub id: String,
    /// Its name in the table.
    pub name: String,
    /// What it is, where its name does not say so.
    pub kind: Option<String>,
    /// The only conditions it is run in.
    pub conditions: Option<Vec<String>>,
    /// Epochs, runs, rows held out, sources, chunks, noisy sources, classes of random labels, weight decay, softmax and first
    /// parameters, where they are not the experiment's.
    pub epochs: Option<usize>,
    /// See `epochs`.
    pub hold_out: Option<f64>,
    /// See `epochs`.
    pub runs: Option<usize>,
    /// See `epochs`.
    pub sources: Option<usize>,
    /// See `epochs`.
    pub chunk: Option<usize>,
    /// See `epochs`.
    pub noisy: Option<usize>,
    /// See `epochs`.
    pub random_classes: Option<u32>,
    /// See `epochs`.
    pub weight_decay: Option<f64>,
    /// See `epochs`.
    pub softmax: Option<bool>,
    /// See `epochs`.
    pub init: Option<Init>,
    /// Whether the stem is followed by a rectifier.
    pub stem_relu: Option<bool>,
    /// The form of batch label noise.
    #[serde(default)]
    pub batch_labels: BatchLabels,
    /// Parameters of the rule.
    #[serde(default)]
    pub lap: Rule,
    /// Of CDR: conditions in which it is told that there is none.
    #[serde(default)]
    pub noise_rate_zero: Vec<String>,
}

impl TryFrom<Table> for MethodRecipe {
    type Error = String;

    /// What is no parameter of a method is a key of the recipe, and must be one of its own.
    fn try_from(table: Table) -> Result<Self, String> {
        let parameter = |key: &str| {
            let kinds = METHODS.iter().copied().chain([&faults::Kind as &dyn MethodKind]);
            let all = kinds.flat_map(MethodKind::parameters);
            all.map(|parameter| parameter.name).find(|name| *name == key)
        };
        let (mut parameters, mut keys) = (BTreeMap::new(), Table::new());
        for (key, value) in table {
            match (parameter(&key), &value) {
                (None, _) => {
                    keys.insert(key, value);
                }
                (Some(name), Value::Float(number)) => {
                    parameters.insert(name, *number);
                }
                (Some(name), Value::Integer(number)) => {
                    parameters.insert(name, *number as f64);
                }
                (Some(name), Value::Boolean(yes)) => {
                    parameters.insert(name, f64::from(u8::from(*yes)));
                }
                (Some(name), other) => {
                    return Err(format!("{name} is {other}, expected a number"));
                }
            }
        }
        let keys: MethodKeys = keys.try_into().map_err(|error| error.to_string())?;
        Ok(Self { keys, parameters })
    }
}

impl MethodRecipe {
    /// What it is.
    pub fn kind(&self) -> Result<&'static dyn MethodKind, String> {
        // One is for experiments alone, and no method that anybody is offered.
        let named = |name: &str| match name == faults::Kind.name() {
            true => Ok(&faults::Kind as &'static dyn MethodKind),
            false => method_named(name).map_err(|error| error.to_string()),
        };
        match &self.keys.kind {
            Some(kind) => named(kind),
            None => named(&self.id).map_err(|_| format!("method {:?} needs a kind", self.id)),
        }
    }
}

impl std::ops::Deref for MethodRecipe {
    type Target = MethodKeys;

    fn deref(&self) -> &MethodKeys {
        &self.keys
    }
}

/// The forms of batch label noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatchLabels {
    /// Drawn anew for every batch.
    #[default]
    Fresh,
    /// Drawn once, within chunks of one source.
    Chunk,
}
