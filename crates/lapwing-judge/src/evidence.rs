//! What a person is shown of a source: its worst rows, and how its labels compare with the model.

use serde::{Deserialize, Serialize};

use crate::{Confusion, Histogram};

/// What speaks for or against a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Name of the source.
    pub source: String,
    /// Names of the features shown with every row.
    pub features: Vec<String>,
    /// Its rows with the largest losses, largest first.
    pub worst_rows: Vec<WorstRow>,
    /// Its labels against the model.
    pub comparison: Option<Comparison>,
}

/// A row the model disagrees with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorstRow {
    /// Number of the row in the file, from 1, the header not counted.
    pub row: u64,
    /// Its label or target as given.
    pub given: String,
    /// What the model says.
    pub predicted: String,
    /// Probability the model gives to that; classification only.
    pub probability: Option<f64>,
    /// Its loss.
    pub loss: Option<f64>,
    /// One value per name in [`Evidence::features`].
    pub features: Vec<String>,
    /// Where the row is a picture: that, as PNG in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    /// Where the row is a text: its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Where the row is a series: its course in each channel that is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Vec<f32>>,
    /// The same of a row that has its label, and of which the model is surest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub typical: Vec<Vec<f32>>,
}

/// Given labels against the model's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Comparison {
    /// Of classes.
    Labels(Confusion),
    /// Of numbers: residuals (given − predicted).
    Targets {
        /// Those of the source.
        own: Histogram,
        /// Those of the reliable sources over the same range.
        reliable: Option<Histogram>,
    },
}
