//! What is to be predicted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Scale;

/// Label of a class that training never saw, in data read later.
pub const UNSEEN_CLASS: u32 = u32::MAX;

/// What is learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// A class.
    Classification,
    /// A number.
    Regression,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Classification => "classification",
            Self::Regression => "regression",
        })
    }
}

/// A word that names no [`Task`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is not a task; expected classification or regression")]
pub struct UnknownTask(pub String);

impl FromStr for Task {
    type Err = UnknownTask;

    fn from_str(word: &str) -> Result<Self, UnknownTask> {
        match word {
            "classification" => Ok(Self::Classification),
            "regression" => Ok(Self::Regression),
            _ => Err(UnknownTask(word.to_owned())),
        }
    }
}

/// What is to be predicted, one entry per row.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// A class per row.
    Classes {
        /// One label per row, below `classes`; in data read after training also [`UNSEEN_CLASS`].
        labels: Vec<u32>,
        /// Number of classes.
        classes: usize,
    },
    /// A number per row, in the user's units and in double precision: a moment in seconds, an amount in cents.
    Values(Vec<f64>),
}

impl Targets {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Classes { labels, .. } => labels.len(),
            Self::Values(values) => values.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is learnt.
    pub fn task(&self) -> Task {
        match self {
            Self::Classes { .. } => Task::Classification,
            Self::Values(_) => Task::Regression,
        }
    }

    /// What a network has to put out for them.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Classes { classes, .. } => *classes,
            Self::Values(_) => 1,
        }
    }

    /// What the outputs of a network mean that learns from these rows.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn spec(&self, train: &[u32]) -> TargetSpec {
        match self {
            Self::Classes { classes, .. } => TargetSpec::Classes { classes: *classes },
            Self::Values(values) => {
                TargetSpec::Values(Scale::of(train.iter().map(|&row| values[row as usize])))
            }
        }
    }

    /// The targets of some rows.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn select(&self, rows: &[u32]) -> Self {
        match self {
            Self::Classes { labels, classes } => Self::Classes {
                labels: rows.iter().map(|&row| labels[row as usize]).collect(),
                classes: *classes,
            },
            Self::Values(values) => {
                Self::Values(rows.iter().map(|&row| values[row as usize]).collect())
            }
        }
    }
}

/// What the outputs of a network mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum TargetSpec {
    /// One logit per class.
    #[serde(rename = "classification")]
    Classes {
        /// Number of classes.
        classes: usize,
    },
    /// One value, in standard deviations from the mean of the training targets.
    #[serde(rename = "regression")]
    Values(Scale),
}

impl TargetSpec {
    /// What is learnt.
    pub fn task(&self) -> Task {
        match self {
            Self::Classes { .. } => Task::Classification,
            Self::Values(_) => Task::Regression,
        }
    }

    /// Numbers that a network puts out.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Classes { classes } => *classes,
            Self::Values(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_that_of_the_training_rows() {
        let targets = Targets::Values(vec![1.0, 3.0, 100.0]);
        assert_eq!(targets.spec(&[0, 1]), TargetSpec::Values(Scale { mean: 2.0, std: 1.0 }));
        assert_eq!(targets.select(&[2, 0]), Targets::Values(vec![100.0, 1.0]));
        assert_eq!((targets.len(), targets.outputs(), targets.task()), (3, 1, Task::Regression));
        let targets = Targets::Classes { labels: vec![0, 2, 1], classes: 3 };
        assert_eq!(targets.spec(&[]), TargetSpec::Classes { classes: 3 });
        assert_eq!(targets.select(&[1]), Targets::Classes { labels: vec![2], classes: 3 });
        assert_eq!(targets.outputs(), 3);
    }

    #[test]
    fn what_outputs_mean_is_written_as_it_always_was() {
        for (spec, text) in [
            (TargetSpec::Classes { classes: 2 }, r#"{"kind":"classification","classes":2}"#),
            (
                TargetSpec::Values(Scale { mean: 0.5, std: 2.0 }),
                r#"{"kind":"regression","mean":0.5,"std":2.0}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&spec).unwrap(), text);
            assert_eq!(serde_json::from_str::<TargetSpec>(text).unwrap(), spec);
        }
        for task in [Task::Classification, Task::Regression] {
            assert_eq!(task.to_string().parse(), Ok(task));
        }
        assert_eq!("ranking".parse::<Task>(), Err(UnknownTask("ranking".to_owned())));
    }
}
