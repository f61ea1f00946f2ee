//! From unreliability to weight.

use serde::{Deserialize, Serialize};

use crate::mass::Mass;

/// Where 1 − tanh² reaches one half: artanh √½.
const HALF_WEIGHT: f64 = 0.881_373_587_019_543;

/// The monotone function f that turns unreliability C into the weight of a source.
///
/// All of them are functions of the *depression* x = 0.005·δ·C ≥ 0, with f(0) = 1.
///
/// ```
/// use lapwing_core::Weighting;
/// assert_eq!(Weighting::TanhSquared.weight(0.0), 1.0);
/// // Any other monotone function, given by its logarithm so that it cannot underflow:
/// let gentle = Weighting::Custom(|x| -0.5 * (1.0 + x).ln());
/// assert!((gentle.weight(3.0) - 0.5).abs() < 1e-15);
/// ```
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Weighting {
    /// 1 − tanh² x, the paper's: flat at 0, so that small fluctuations of C cost nothing, then
    /// falling like 4·e^−2x.
    #[default]
    TanhSquared,
    /// e^−x: the first point of unreliability costs as much as any other.
    Exponential,
    /// 1 as long as tanh² would still give more than one half (C < 176/δ), then 0: a source is in
    /// or out.
    Cut,
    /// The natural logarithm of any other monotone function (0 at x = 0, falling; −∞ for weight
    /// 0). It cannot be serialised.
    #[serde(skip)]
    Custom(fn(f64) -> f64),
}

impl Weighting {
    /// The weight at a depression of x = 0.005·δ·C. For `TanhSquared` and `Exponential` it is
    /// above 0 for every x: the smallest positive normal f64 stands for anything below it.
    pub fn weight(self, depression: f64) -> f64 {
        self.mass(depression).to_f64()
    }

    /// The weight with the exponent that f64 lacks, for the statistics.
    pub(crate) fn mass(self, depression: f64) -> Mass {
        match self {
            Self::TanhSquared => {
                let e = Mass::exp(-2.0 * depression);
                let damping = if e.block == 0 { 1.0 + e.mantissa } else { 1.0 };
                Mass { mantissa: 4.0 * e.mantissa / (damping * damping), ..e }
            }
            Self::Exponential => Mass::exp(-depression),
            Self::Cut if depression < HALF_WEIGHT => Mass::ONE,
            Self::Cut => Mass::LAST_RESORT,
            Self::Custom(logarithm) => {
                let exponent = logarithm(depression).min(0.0);
                if exponent > f64::NEG_INFINITY { Mass::exp(exponent) } else { Mass::LAST_RESORT }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tanh_squared_is_the_papers_formula() {
        for c in 0..3000 {
            let x = 0.005 * f64::from(c);
            let expected = 1.0 - libm::tanh(x) * libm::tanh(x);
            let got = Weighting::TanhSquared.weight(x);
            assert!((got - expected).abs() < 1e-15, "C = {c}: {got} is not {expected}");
        }
    }

    #[test]
    fn weights_start_at_one_fall_and_stay_positive() {
        for f in [Weighting::TanhSquared, Weighting::Exponential] {
            assert_eq!(f.weight(0.0), 1.0);
            let mut last = 1.0;
            for x in [0.01, 0.1, 1.0, 10.0, 100.0, 170.0, 180.0, 400.0, 5e3, 5e6, 1e300] {
                let weight = f.weight(x);
                assert!(weight > 0.0 && weight <= last, "{f:?} at {x}: {weight} after {last}");
                last = weight;
            }
        }
    }

    #[test]
    fn a_cut_is_all_or_nothing_at_half_weight() {
        let half = Weighting::TanhSquared.weight(HALF_WEIGHT);
        assert!((half - 0.5).abs() < 1e-15);
        assert_eq!(Weighting::Cut.weight(0.88), 1.0);
        assert_eq!(Weighting::Cut.weight(0.89), 0.0);
    }

    #[test]
    fn a_custom_function_that_misbehaves_cannot_poison_anything() {
        assert_eq!(Weighting::Custom(|_| f64::NAN).weight(1.0), 1.0);
        assert_eq!(Weighting::Custom(|_| 3.0).weight(1.0), 1.0);
        assert_eq!(Weighting::Custom(|_| f64::NEG_INFINITY).weight(1.0), 0.0);
    }
}
