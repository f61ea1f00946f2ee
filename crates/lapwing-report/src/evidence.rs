//! Evidence on one flagged source: its worst rows and how its labels compare with the model.

use serde::{Deserialize, Serialize};

use crate::losses::inner_range;
use crate::{Histogram, ReportError};

/// What speaks for or against a flagged source.
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
}

/// Given labels against the model's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Comparison {
    /// Of classes.
    Labels(Confusion),
    /// Of numbers.
    Targets(Residuals),
}

/// How often each given label met each predicted one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Confusion {
    /// The classes.
    pub classes: Vec<String>,
    /// `counts[given][predicted]`.
    pub counts: Vec<Vec<u64>>,
    /// Share of rows of reliable sources on which label and model agree, 0 to 1.
    pub reliable_agreement: Option<f64>,
}

/// Residuals (given − predicted) of a source, beside those of the reliable sources.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Residuals {
    /// Residuals of the source.
    pub own: Histogram,
    /// Residuals of the reliable sources over the same range.
    pub reliable: Option<Histogram>,
    /// Mean of the source's residuals.
    pub mean: Option<f64>,
    /// Standard deviation of the source's residuals.
    pub std: Option<f64>,
    /// Mean of the reliable sources' residuals.
    pub reliable_mean: Option<f64>,
    /// Standard deviation of the reliable sources' residuals.
    pub reliable_std: Option<f64>,
    /// Pearson correlation of the source's targets with the predictions.
    pub correlation: Option<f64>,
    /// Slope of the source's targets over the predictions.
    pub slope: Option<f64>,
}

impl Evidence {
    pub(crate) fn check(&self) -> Result<(), ReportError> {
        let shape = |what, expected, found| {
            if expected == found {
                return Ok(());
            }
            Err(ReportError::Shape { source_name: self.source.clone(), what, expected, found })
        };
        for row in &self.worst_rows {
            shape("features of a worst row", self.features.len(), row.features.len())?;
        }
        if let Some(Comparison::Labels(confusion)) = &self.comparison {
            shape("rows of the confusion", confusion.classes.len(), confusion.counts.len())?;
            for row in &confusion.counts {
                shape("columns of the confusion", confusion.classes.len(), row.len())?;
            }
        }
        Ok(())
    }
}

impl Residuals {
    /// Compares targets with predictions, pair by pair, and with the residuals of the reliable sources.
    /// Pairs that are not finite are left out.
    pub fn of(pairs: &[(f64, f64)], reliable: &[f64]) -> Self {
        let pairs: Vec<(f64, f64)> =
            pairs.iter().copied().filter(|(g, p)| (g - p).is_finite()).collect();
        let own: Vec<f64> = pairs.iter().map(|(given, predicted)| given - predicted).collect();
        let reliable: Vec<f64> = reliable.iter().copied().filter(|r| r.is_finite()).collect();
        let range = inner_range([own.as_slice(), &reliable].concat());
        let (low, high) = range.unwrap_or((-1.0, 1.0));
        let (mean, std) = mean_and_std(&own).unzip();
        let (reliable_mean, reliable_std) = mean_and_std(&reliable).unzip();
        let (correlation, slope) = line(&pairs).unzip();
        Self {
            own: Histogram::of(&own, low, high),
            reliable: (!reliable.is_empty()).then(|| Histogram::of(&reliable, low, high)),
            mean,
            std,
            reliable_mean,
            reliable_std,
            correlation,
            slope,
        }
    }
}

fn mean_and_std(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    Some((mean, variance.sqrt()))
}

/// Correlation and slope of given over predicted.
fn line(pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (given, predicted): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (given_mean, given_std) = mean_and_std(&given)?;
    let (predicted_mean, predicted_std) = mean_and_std(&predicted)?;
    let covariance =
        pairs.iter().map(|(g, p)| (g - given_mean) * (p - predicted_mean)).sum::<f64>()
            / pairs.len() as f64;
    let correlation = covariance / (given_std * predicted_std);
    let slope = covariance / predicted_std.powi(2);
    (correlation.is_finite() && slope.is_finite()).then_some((correlation, slope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_of_a_scaled_and_shifted_source_show_slope_and_mean() {
        let pairs: Vec<(f64, f64)> =
            (0..100).map(|i| (3.0 * f64::from(i) + 10.0, f64::from(i))).collect();
        let residuals = Residuals::of(&pairs, &[-1.0, 1.0]);
        assert!((residuals.slope.unwrap() - 3.0).abs() < 1e-12);
        assert!((residuals.correlation.unwrap() - 1.0).abs() < 1e-12);
        assert!((residuals.mean.unwrap() - 109.0).abs() < 1e-9);
        assert_eq!(residuals.reliable_std, Some(1.0));
        assert_eq!(residuals.own.total(), 100);
    }

    #[test]
    fn residuals_of_nothing_or_of_nonsense_are_empty() {
        let residuals = Residuals::of(&[(f64::NAN, 1.0), (f64::INFINITY, f64::INFINITY)], &[]);
        assert_eq!(residuals.mean, None);
        assert_eq!(residuals.slope, None);
        assert_eq!(residuals.own.total(), 0);
    }

    #[test]
    fn a_constant_prediction_has_no_slope() {
        assert_eq!(Residuals::of(&[(1.0, 2.0), (3.0, 2.0)], &[]).slope, None);
    }

    #[test]
    fn a_ragged_confusion_is_refused() {
        let confusion = Confusion {
            classes: vec!["a".into(), "b".into()],
            counts: vec![vec![1, 2], vec![3]],
            ..Default::default()
        };
        let evidence =
            Evidence { comparison: Some(Comparison::Labels(confusion)), ..Default::default() };
        let message = evidence.check().unwrap_err().to_string();
        assert!(message.contains("columns of the confusion"), "{message}");
    }
}
