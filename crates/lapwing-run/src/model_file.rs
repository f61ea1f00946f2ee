//! `model.json` and `model.safetensors`, or `model.ubj` for trees: enough to predict anywhere.
//!
//! `model.json` holds the description of network or trees, the digest of the other file, the fitted preprocessing, the
//! classes and the scale of the target. Both files are data and nothing else; what they say is checked before it is used.

use std::path::Path;

use lapwing_data::{DataError, Input, Kind, NewData, NewDataOptions, NewRows, Schema, Unseen};
use lapwing_sample::{InputSpec, TargetSpec, Targets};
use lapwing_store::replace;
use lapwing_train::{DeviceName, Model, ModelSpec, Predictions};
use lapwing_trees::{Forest, ForestSpec};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::directory::settle;
use crate::{Learnt, Metrics, RunError};

/// The second names its input; in the first it was always a table. The third has trees in place of a network.
const FORMAT: u32 = 3;
const OF_NETWORKS: u32 = 2;
const OLDEST: u32 = 1;
const TABLE: &str = "table";
/// Largest description read. A hundred thousand columns with their levels take a few dozen megabytes.
const LARGEST: u64 = 1 << 28;
pub(crate) const WEIGHTS: &str = "model.safetensors";
pub(crate) const TREES: &str = "model.ubj";
pub(crate) const DESCRIPTION: &str = "model.json";

#[derive(Serialize)]
struct Written<'a> {
    format: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<ModelSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trees: Option<ForestSpec>,
    input: &'static str,
    preprocessing: &'a Input,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    format: u32,
    network: Option<ModelSpec>,
    trees: Option<ForestSpec>,
    input: Option<String>,
    preprocessing: Box<RawValue>,
}

/// A model with its preprocessing: predicts tables.
#[derive(Debug)]
pub struct Predictor {
    model: Learnt,
    input: Input,
}

/// Predictions for rows that follow each other.
#[derive(Debug)]
pub struct Predicted {
    /// Data row of the first, counted from 1.
    pub first: u64,
    /// The predictions.
    pub predictions: Predictions,
    /// How much of the table has been read, in the unit of [`NewRows::length`].
    pub read: u64,
    /// The file of each row, where rows are pictures.
    pub files: Vec<String>,
}

/// Metrics of a table, and of each group of its rows.
#[derive(Debug)]
pub struct Evaluation {
    /// Of all rows.
    pub all: Metrics,
    /// By group, in order of first appearance.
    pub groups: Vec<(String, Metrics)>,
    /// Rows left out because their target is missing or infinite.
    pub dropped: u64,
    /// Columns with values that training never saw.
    pub unseen: Vec<Unseen>,
}

/// Writes both files, the description last: it names the digest of the other. Gives the description back.
pub(crate) fn write(directory: &Path, model: &Learnt, input: &Input) -> Result<Vec<u8>, RunError> {
    let (format, network, trees) = match model {
        Learnt::Network(model) => (OF_NETWORKS, Some(model.save(&directory.join(WEIGHTS))?), None),
        Learnt::Trees(forest) => (FORMAT, None, Some(forest.save(&directory.join(TREES))?)),
    };
    let path = directory.join(DESCRIPTION);
    let kind = input.kind().name();
    let written = Written { format, network, trees, input: kind, preprocessing: input };
    let mut text = serde_json::to_vec_pretty(&written)
        .map_err(|error| RunError::Damaged { path: path.clone(), reason: error.to_string() })?;
    text.push(b'\n');
    replace(&path, &[&text])?;
    Ok(text)
}

impl Predictor {
    /// Reads the model of a run.
    pub fn load(directory: &Path, device: DeviceName) -> Result<Self, RunError> {
        let path = directory.join(DESCRIPTION);
        settle(directory)?;
        let text = match lapwing_store::read(&path, LARGEST) {
            Err(error) if error.is_missing() => {
                let path = directory.to_owned();
                return Err(match path.exists() {
                    true => RunError::NotARun { path, missing: DESCRIPTION },
                    false => RunError::NoRun(path),
                });
            }
            text => text?,
        };
        let damaged = |reason: String| RunError::Damaged { path: path.clone(), reason };
        let read: Read = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
        if !(OLDEST..=FORMAT).contains(&read.format) {
            return Err(damaged(format!(
                "format {}, this program reads {OLDEST} to {FORMAT}",
                read.format
            )));
        }
        let kind = read.input.as_deref().unwrap_or(TABLE);
        let input = Input::from_json(kind, read.preprocessing.get())
            .map_err(|error| damaged(error.to_string()))?;
        let schema = input.schema();
        let fits = |task: &TargetSpec, takes: InputSpec| {
            let classes = match task {
                TargetSpec::Classes { classes } => *classes == schema.classes.len(),
                TargetSpec::Values(_) => schema.classes.is_empty(),
            };
            match classes && task.task() == schema.task && takes == input.spec() {
                true => Ok(()),
                false => Err(damaged("model and preprocessing do not fit each other".to_owned())),
            }
        };
        let model = match (read.network, read.trees) {
            (Some(network), None) => {
                fits(&network.task, network.architecture.input())?;
                Learnt::Network(Model::load(&directory.join(WEIGHTS), network, device)?)
            }
            (None, Some(trees)) => {
                fits(&trees.task, InputSpec::Vector { width: trees.features })?;
                Learnt::Trees(Forest::load(&directory.join(TREES), trees)?)
            }
            _ => return Err(damaged("expected either a network or trees".to_owned())),
        };
        Ok(Self { model, input })
    }

    pub(crate) fn model(&self) -> &Learnt {
        &self.model
    }

    pub(crate) fn input(&self) -> &Input {
        &self.input
    }

    /// The columns it was trained on.
    pub fn schema(&self) -> &Schema {
        self.input.schema()
    }

    /// Predicts every row of a table, part by part in bounded memory, and calls `visit` with each part. Returns the
    /// columns with values that training never saw.
    pub fn predict<E: From<DataError> + From<RunError>>(
        &self,
        table: NewRows<'_>,
        mut visit: impl FnMut(&Predicted) -> Result<(), E>,
    ) -> Result<Vec<Unseen>, E> {
        let (mut unseen, mut total) = (Vec::<Unseen>::new(), 0);
        table.each_part(|part| {
            let rows: Vec<u32> = (0..part.table.len() as u32).collect();
            let bound = self.input.bind(&part.table).map_err(RunError::from)?;
            let predictions = self.model.predict(&*bound, &rows)?;
            total += rows.len() as u64;
            for found in self.input.unseen(&part.table) {
                match unseen.iter_mut().find(|known| known.column == found.column) {
                    Some(known) => known.extend(found),
                    None => unseen.push(found),
                }
            }
            let files = match self.schema().features().find(|column| column.kind == Kind::Image) {
                Some(column) => {
                    rows.iter().map(|&row| part.table.display(row, &column.name)).collect()
                }
                None => Vec::new(),
            };
            visit(&Predicted { first: part.first, predictions, read: part.read, files })
        })?;
        // Of all rows, those of parts in which nothing was new included.
        unseen.iter_mut().for_each(|column| column.of = total);
        Ok(unseen)
    }

    /// Compares predictions with the target of a table, over all rows and by the values of a column.
    pub fn evaluate(&self, path: &Path, by: Option<&str>) -> Result<Evaluation, RunError> {
        let options = NewDataOptions { target: true, group: by.map(str::to_owned) };
        let data = NewData::read(path, self.schema(), &options)?;
        let (target, predictions) = test(&self.model, &self.input, &data)?;
        let none = || RunError::TooFewRows { rows: 0, least: 1 };
        let all = Metrics::of(&target, &predictions).ok_or_else(none)?;
        let mut groups = Vec::new();
        if let Some(found) = &data.groups {
            let mut rows = vec![Vec::new(); found.names.len()];
            for (row, &group) in found.codes.iter().enumerate() {
                rows[group as usize].push(row as u32);
            }
            for (name, rows) in found.names.iter().zip(rows) {
                let part = part(&predictions, &rows);
                let metrics = Metrics::of(&target.select(&rows), &part).ok_or_else(none)?;
                groups.push((name.clone(), metrics));
            }
        }
        let unseen = self.input.unseen(&data.table);
        Ok(Evaluation { all, groups, dropped: data.dropped.total(), unseen })
    }
}

/// Target and predictions of a table read after training. A class that training never saw is an error.
pub(crate) fn test(
    model: &Learnt,
    input: &Input,
    data: &NewData,
) -> Result<(Targets, Predictions), RunError> {
    let column = || input.schema().target().map(|c| c.name.clone()).unwrap_or_default();
    if !data.unseen_classes.is_empty() {
        return Err(RunError::UnseenClasses {
            path: data.table.path().to_owned(),
            column: column(),
            classes: data.unseen_classes.clone(),
        });
    }
    let Some(target) = data.target.clone() else {
        return Err(RunError::Missing("target column"));
    };
    let rows: Vec<u32> = (0..data.table.len() as u32).collect();
    let bound = input.bind(&data.table)?;
    let predictions = model.predict(&*bound, &rows)?;
    Ok((target, predictions))
}

fn part(predictions: &Predictions, rows: &[u32]) -> Predictions {
    match predictions {
        Predictions::Values(values) => {
            Predictions::Values(rows.iter().map(|&row| values[row as usize]).collect())
        }
        Predictions::Classes { probabilities, classes } => {
            let row = |row: &u32| {
                let start = *row as usize * classes;
                &probabilities[start..start + classes]
            };
            Predictions::Classes {
                probabilities: rows.iter().flat_map(row).copied().collect(),
                classes: *classes,
            }
        }
    }
}
