//! What a method says of itself, and the list of all of them.

use std::fmt::Debug;

use lapwing_sample::{InputSpec, Task};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{METHODS, Method, MethodConfig, MethodError, Parameter, Weighs};
use crate::config::TrainConfig;
use crate::error::TrainError;
use crate::learner::Learner;
use crate::network::NetworkKind;

/// A kind of method: everything that anybody must know of it before it runs. Flags, help, configuration files, recipes,
/// Python and range checks are made from the kinds in [`METHODS`].
pub trait MethodKind: Debug + Sync {
    /// Its name everywhere (`label-smoothing`).
    fn name(&self) -> &'static str;

    /// What it does, in one line of help.
    fn about(&self) -> &'static str;

    /// What it is about to do with these parameters, said before training, after "method NAME: ".
    fn sentence(&self, method: &MethodConfig) -> String;

    /// Its parameters.
    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    /// Whether it is for classification only.
    fn needs_classes(&self) -> bool {
        false
    }

    /// What it decides on; it is owed to the user's guards.
    fn weighs(&self) -> Weighs {
        Weighs::Nothing
    }

    /// Whether it weighs by the rule of LAP itself, so that nobody else need judge.
    fn runs_rule(&self) -> bool {
        false
    }

    /// Whether rows of blocked sources stay in the batches, at weight 0 (which it must see to), rather than being left
    /// out before anybody sees them.
    fn keeps_blocked_rows(&self) -> bool {
        false
    }

    /// In how many ways it wants to see each row of a batch: as it is, or (2, and of pictures only) after AugMix, too.
    fn views(&self) -> usize {
        1
    }

    /// The network that it needs, where it is not content with any.
    fn network(&self) -> Option<NetworkKind> {
        None
    }

    /// Whether it can learn from a batch in shards, of which each worker sees some: what it sums up per source goes
    /// through [`Observed::sum_up`](super::Observed::sum_up), and it needs nothing else of rows that it does not see.
    fn runs_in_shards(&self) -> bool {
        false
    }

    /// How many networks it trains: a measure of the work of a step.
    fn networks(&self) -> usize {
        1
    }

    /// Epochs in all where so many are asked for.
    fn epochs(&self, planned: usize) -> usize {
        planned
    }

    /// The method at its first step. Parameters are in range, guards hold together, and the task is one for it.
    ///
    /// # Errors
    /// Where it cannot start.
    fn start<'a>(&self, start: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError>;
}

/// What a method starts with.
pub struct Start<'s, 'a> {
    /// Its parameters, the rule and the guards.
    pub method: &'s MethodConfig,
    /// The settings of the run.
    pub config: &'s TrainConfig,
    /// The network that it will teach.
    pub learner: &'s Learner<'a>,
}

impl<'a> Start<'_, 'a> {
    /// Another network of the same kind with other first parameters; `number` (from 1) tells them apart.
    ///
    /// # Errors
    /// Where it cannot be built.
    pub fn network(&self, number: u64) -> Result<Learner<'a>, TrainError> {
        self.learner.another(self.config, number)
    }
}

/// The method of a name.
///
/// # Errors
/// Where no method has this name.
pub fn method_named(name: &str) -> Result<&'static dyn MethodKind, MethodError> {
    METHODS
        .iter()
        .copied()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| MethodError::Unknown(name.to_owned()))
}

/// The methods that have a parameter of this name.
pub fn owners(parameter: &str) -> impl Iterator<Item = &'static str> {
    let has = move |kind: &&&'static dyn MethodKind| {
        kind.parameters().iter().any(|own| own.name == parameter)
    };
    METHODS.iter().filter(has).map(|kind| kind.name())
}

impl dyn MethodKind {
    /// That it is for such a task and such samples.
    ///
    /// # Errors
    /// Where it is not.
    pub fn check(&self, task: Task, input: InputSpec) -> Result<(), MethodError> {
        if self.needs_classes() && task != Task::Classification {
            return Err(MethodError::NeedsClasses(self.name()));
        }
        if self.views() != 1 && !matches!(input, InputSpec::Image { .. }) {
            return Err(MethodError::Views(self.name(), input));
        }
        Ok(())
    }
}

impl PartialEq for dyn MethodKind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Serialize for dyn MethodKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for &'static dyn MethodKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        method_named(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_different_and_made_for_flags() {
        let fit = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        let mut names = BTreeSet::new();
        for kind in METHODS {
            assert!(fit(kind.name()) && names.insert(kind.name()), "{}", kind.name());
            assert!(!kind.about().is_empty() && !kind.about().ends_with('.'), "{}", kind.name());
            assert!(!kind.sentence(&MethodConfig::new(*kind)).is_empty());
            for parameter in kind.parameters() {
                let Parameter { name, default, range, .. } = parameter;
                assert!(fit(name), "{name}");
                assert!(default.is_none_or(|default| range.holds(default)), "{name}");
            }
        }
    }

    #[test]
    fn a_kind_is_read_by_its_name() {
        for kind in METHODS {
            let text = serde_json::to_string(kind).unwrap();
            let read: &'static dyn MethodKind = serde_json::from_str(&text).unwrap();
            assert!(read == *kind);
        }
        let error = serde_json::from_str::<&'static dyn MethodKind>("\"magic\"").unwrap_err();
        assert!(error.to_string().contains("label-smoothing"), "{error}");
    }
}
