//! Given values against predicted ones.

use lapwing_sample::Scale;

/// What the residuals (given − predicted) of a source amount to, beside those of the reliable sources.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Residuals {
    /// Rows whose residual is finite.
    pub rows: u64,
    /// Mean of the source's residuals.
    pub mean: f64,
    /// Standard deviation of the source's residuals.
    pub std: f64,
    /// Mean and standard deviation of the reliable sources' residuals.
    pub reliable: Option<(f64, f64)>,
    /// Pearson correlation of the source's targets with the predictions, and slope of their line.
    pub line: Option<(f64, f64)>,
}

impl Residuals {
    /// Compares targets with predictions, pair by pair. Pairs that are not finite are left out; `None` where none is
    /// left, or their spread is beyond all numbers.
    pub fn of(pairs: &[(f64, f64)], reliable: Option<(f64, f64)>) -> Option<Self> {
        let pairs: Vec<(f64, f64)> =
            pairs.iter().copied().filter(|(g, p)| (g - p).is_finite()).collect();
        let own: Vec<f64> = pairs.iter().map(|(given, predicted)| given - predicted).collect();
        let (mean, std) = Scale::spread(own.iter().copied()).filter(finite)?;
        Some(Self {
            rows: own.len() as u64,
            mean,
            std,
            reliable: reliable.filter(finite),
            line: line(&pairs),
        })
    }
}

fn finite((mean, std): &(f64, f64)) -> bool {
    mean.is_finite() && std.is_finite()
}

/// Correlation and slope of given over predicted.
pub(crate) fn line(pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (given, predicted): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (given_mean, given_std) = Scale::spread(given.iter().copied())?;
    let (predicted_mean, predicted_std) = Scale::spread(predicted.iter().copied())?;
    let covariance =
        pairs.iter().map(|(g, p)| (g - given_mean) * (p - predicted_mean)).sum::<f64>()
            / pairs.len() as f64;
    let correlation = covariance / (given_std * predicted_std);
    let slope = covariance / predicted_std.powi(2);
    Some((correlation, slope)).filter(finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_of_a_scaled_and_shifted_source_show_slope_and_mean() {
        let pairs: Vec<(f64, f64)> =
            (0..100).map(|i| (3.0 * f64::from(i) + 10.0, f64::from(i))).collect();
        let residuals = Residuals::of(&pairs, Some((0.0, 1.0))).unwrap();
        let (correlation, slope) = residuals.line.unwrap();
        assert!((slope - 3.0).abs() < 1e-12);
        assert!((correlation - 1.0).abs() < 1e-12);
        assert!((residuals.mean - 109.0).abs() < 1e-9);
        assert_eq!((residuals.reliable, residuals.rows), (Some((0.0, 1.0)), 100));
    }

    #[test]
    fn residuals_of_nothing_or_of_nonsense_are_none() {
        let nonsense = [(f64::NAN, 1.0), (f64::INFINITY, f64::INFINITY)];
        assert_eq!(Residuals::of(&nonsense, None), None);
        assert_eq!(Residuals::of(&[(1e308, -0.5e308), (-1e308, 0.5e308)], None), None);
    }

    #[test]
    fn a_constant_prediction_has_no_slope() {
        assert_eq!(Residuals::of(&[(1.0, 2.0), (3.0, 2.0)], None).unwrap().line, None);
    }
}
