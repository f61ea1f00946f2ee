//! Trees that predict, and their file.
//!
//! The file is XGBoost's own format in UBJSON, which XGBoost 2 and later load; it holds trees and nothing executable. The
//! [`ForestSpec`] goes into `model.json`: what the margins mean, and the BLAKE3 digest of the file. A value is written in
//! standard deviations from the mean of the training rows.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use hessboost::model::{BoostedModel, ImportanceType, ModelFormat};
use lapwing_sample::{
    DataError, InputSpec, Loss, Predictions, Samples, TargetSpec, Targets, View, softmax,
};
use serde::{Deserialize, Serialize};

use crate::TreesError;
use crate::boost::losses;
use crate::config::TreesConfig;
use crate::objective::{Objective, margins};

/// Version of [`ForestSpec`].
const FORMAT: u32 = 1;
/// Largest file read: a hundred million nodes.
const LARGEST: u64 = 1 << 32;
/// Rows predicted at once.
const BATCH: usize = 1 << 13;

/// What trees are, beside the trees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForestSpec {
    /// Version of this description.
    pub format: u32,
    /// Numbers of a row.
    pub features: usize,
    /// Rounds that were kept.
    pub rounds: usize,
    /// Most leaves of a tree.
    pub leaves: usize,
    /// What the margins mean.
    pub task: TargetSpec,
    /// The loss they were grown with.
    pub loss: Loss,
    /// BLAKE3 of the file, in hexadecimal; empty before it is saved.
    #[serde(default)]
    pub digest: String,
}

/// Trees that predict.
#[derive(Clone, Debug)]
pub struct Forest {
    spec: ForestSpec,
    trees: BoostedModel,
}

impl Forest {
    /// Of trees grown with a loss that only this crate knows: they are given the name of the XGBoost objective that makes
    /// the same of margins.
    pub(crate) fn new(
        config: &TreesConfig,
        task: TargetSpec,
        trees: BoostedModel,
    ) -> Result<Self, TreesError> {
        let (objective, classes) = match &task {
            TargetSpec::Values(_) => ("reg:squarederror", 0),
            TargetSpec::Classes { classes: 2 } => ("binary:logistic", 0),
            TargetSpec::Classes { classes } => ("multi:softprob", *classes),
        };
        let library = |error: serde_json::Error| TreesError::Library(error.to_string());
        let mut value = serde_json::to_value(&trees).map_err(library)?;
        value["objective"] = objective.into();
        value["num_class"] = classes.into();
        let rounds = trees.num_boost_rounds();
        let trees: BoostedModel = serde_json::from_value(value).map_err(library)?;
        let features = trees.n_features();
        let (leaves, loss, digest) = (config.leaves, config.loss, String::new());
        let spec = ForestSpec { format: FORMAT, features, rounds, leaves, task, loss, digest };
        Ok(Self { spec, trees })
    }

    /// Trees that say the mean of what these and others of the same data say.
    pub(crate) fn mean(&self, other: &Self) -> Result<Self, TreesError> {
        let trees = BoostedModel::average([&self.trees, &other.trees])?;
        let spec = ForestSpec { rounds: trees.num_boost_rounds(), ..self.spec.clone() };
        Ok(Self { spec, trees })
    }

    /// What they are.
    pub fn spec(&self) -> &ForestSpec {
        &self.spec
    }

    pub(crate) fn trees(&self) -> &BoostedModel {
        &self.trees
    }

    /// Writes the trees to `path`, whole or not at all, and returns the description to keep with them.
    pub fn save(&self, path: &Path) -> Result<ForestSpec, TreesError> {
        let bytes = self.trees.encode(ModelFormat::XgboostUbjson)?;
        lapwing_store::replace(path, &[&bytes])?;
        Ok(ForestSpec { digest: blake3::hash(&bytes).to_hex().to_string(), ..self.spec.clone() })
    }

    /// Reads the trees that `spec` was written for.
    pub fn load(path: &Path, spec: ForestSpec) -> Result<Self, TreesError> {
        if spec.format != FORMAT {
            return Err(TreesError::Format { found: spec.format, expected: FORMAT });
        }
        if spec.loss.task() != spec.task.task() {
            return Err(TreesError::Loss(spec.loss));
        }
        match spec.task {
            TargetSpec::Values(scale) if !scale.is_sound() => {
                return Err(TreesError::Description("the scale of the target is no number"));
            }
            TargetSpec::Classes { classes } if classes < 2 => {
                return Err(TreesError::Description("there are fewer than two classes"));
            }
            _ => {}
        }
        let bytes = lapwing_store::read(path, LARGEST)?;
        let found = blake3::hash(&bytes).to_hex().to_string();
        if found != spec.digest {
            return Err(TreesError::Digest { path: path.to_owned(), found, expected: spec.digest });
        }
        let damaged = |reason: String| TreesError::Damaged { path: path.to_owned(), reason };
        // The reader checks what it reads; whatever it should forget is the file's fault all the same.
        let read = || BoostedModel::decode(&bytes, ModelFormat::XgboostUbjson);
        let trees = catch_unwind(AssertUnwindSafe(read))
            .map_err(|_| damaged("the trees cannot be read".to_owned()))?
            .map_err(|error| damaged(error.to_string()))?;
        let fits = trees.n_features() == spec.features
            && trees.n_outputs() == margins(&spec.task)
            && trees.num_boost_rounds() == spec.rounds;
        if !fits {
            return Err(damaged("the trees are not the ones described".to_owned()));
        }
        Ok(Self { spec, trees })
    }

    /// Predicts the given rows.
    pub fn predict(&self, samples: &dyn Samples, rows: &[u32]) -> Result<Predictions, TreesError> {
        let mut margins = self.margins(samples, rows)?;
        Ok(match self.spec.task {
            TargetSpec::Values(scale) => Predictions::Values(
                margins.into_iter().map(|value| scale.restored(f64::from(value))).collect(),
            ),
            TargetSpec::Classes { classes: 2 } => {
                let both = |margin: f32| {
                    let second = 1.0 / (1.0 + libm::exp(-f64::from(margin)));
                    [(1.0 - second) as f32, second as f32]
                };
                let probabilities = margins.into_iter().flat_map(both).collect();
                Predictions::Classes { probabilities, classes: 2 }
            }
            TargetSpec::Classes { classes } => {
                margins.chunks_exact_mut(classes).for_each(softmax);
                Predictions::Classes { probabilities: margins, classes }
            }
        })
    }

    /// The loss of each given row, in the units of training (values in standard deviations).
    pub fn losses(
        &self,
        samples: &dyn Samples,
        targets: &Targets,
        rows: &[u32],
    ) -> Result<Vec<f32>, TreesError> {
        if let Some(&row) = rows.iter().find(|&&row| row as usize >= targets.len()) {
            return Err(DataError::NoSuchRow { row, rows: targets.len() }.into());
        }
        let given: Vec<f32> = match (targets, &self.spec.task) {
            (Targets::Classes { labels, .. }, TargetSpec::Classes { classes }) => {
                let known = |&row: &u32| match labels[row as usize] {
                    label if (label as usize) < *classes => Ok(label as f32),
                    label => Err(DataError::Label { row: row as usize, label, classes: *classes }),
                };
                rows.iter().map(known).collect::<Result<_, _>>()?
            }
            (Targets::Values(values), TargetSpec::Values(scale)) => {
                let standardised = |&row: &u32| scale.standardised(values[row as usize]) as f32;
                rows.iter().map(standardised).collect()
            }
            (targets, task) => {
                return Err(TreesError::Targets { found: targets.task(), expected: task.task() });
            }
        };
        let objective = Objective::new(self.spec.loss, &self.spec.task);
        Ok(losses(&objective, &self.margins(samples, rows)?, &given))
    }

    /// How much of what the trees gained each number of a row was good for: shares that sum to 1, or zeros.
    pub fn importance(&self) -> Vec<f64> {
        let mut gains = vec![0.0; self.spec.features];
        for (feature, gain) in self.trees.feature_importance(ImportanceType::TotalGain) {
            if let Some(place) = gains.get_mut(feature) {
                *place = gain;
            }
        }
        let sum: f64 = gains.iter().sum();
        if sum > 0.0 && sum.is_finite() {
            gains.iter_mut().for_each(|gain| *gain /= sum);
        }
        gains
    }

    pub(crate) fn margins(
        &self,
        samples: &dyn Samples,
        rows: &[u32],
    ) -> Result<Vec<f32>, TreesError> {
        let width = self.spec.features;
        let found = samples.spec();
        if found != (InputSpec::Vector { width }) {
            return Err(TreesError::Input { found, expected: format!("rows of {width} numbers") });
        }
        let mut margins = Vec::with_capacity(rows.len() * self.trees.n_outputs());
        for rows in rows.chunks(BATCH) {
            let values = numbers(samples, rows)?;
            margins.extend(self.trees.predict_margin_rows(&values, ..)?.into_vec());
        }
        Ok(margins)
    }
}

/// The numbers of rows; one that is missing is NaN, and an infinite one as large as can be.
pub(crate) fn numbers(samples: &dyn Samples, rows: &[u32]) -> Result<Vec<f32>, TreesError> {
    let (found, expected) = (samples.spec(), "rows of numbers".to_owned());
    let block = samples.gather(rows, View::Plain)?;
    block.check(found, rows.len())?;
    let mut values = block.into_floats().ok_or(TreesError::Input { found, expected })?;
    for value in &mut values {
        if value.is_infinite() {
            *value = f32::MAX.copysign(*value);
        }
    }
    Ok(values)
}
