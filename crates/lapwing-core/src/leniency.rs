//! Choosing the leniency.

use core::f64::consts::{FRAC_1_SQRT_2, PI};

use crate::LapError;

/// The leniency λ at which a clean source is accused in a given share of the steps.
///
/// From the paper's appendix ("Maximum tempered likelihood estimation on clean data"): if **all
/// sources are clean**, the batch is large enough for **mean losses to be normal**, the difference
/// between a source's mean and that of the others is compared with λ times **its own standard
/// deviation**, and the **history is one batch long**, then the unreliability of a clean source
/// rises in a step with probability P(Z > λ), Z standard normal. (The paper's equation ends in
/// "> 0.5"; for λ > 0 the probability is below one half.) This function inverts it.
///
/// It is an upper bound in practice. With H > 1 the rule compares a mean over H batches with the
/// spread of single batches, so that clean sources are accused far less often; and since
/// unreliability falls again in every other step, any rate below one half keeps a clean source
/// near weight 1. What the bound does not cover is a source that is merely *harder*: its losses
/// are higher for a reason, and more leniency is the remedy.
///
/// # Errors
/// Where the probability is not between 1e−300 and 0.5: a leniency is never negative.
///
/// ```
/// use lapwing_core::leniency_for_false_alarm;
/// let leniency = leniency_for_false_alarm(0.05)?;
/// assert!((leniency - 1.6448536269514722).abs() < 1e-14);
/// # Ok::<(), lapwing_core::LapError>(())
/// ```
pub fn leniency_for_false_alarm(probability: f64) -> Result<f64, LapError> {
    if !(1e-300..=0.5).contains(&probability) {
        return Err(LapError::Parameter {
            parameter: "false-alarm probability",
            value: probability,
            expected: "above 0 and at most 0.5",
        });
    }
    // Newton's method on ln P(Z > λ), which is concave: from a start above the root it comes down
    // to it without ever passing it. P(Z > λ) < exp(−λ²/2) says where "above" is.
    let mut leniency = libm::sqrt(-2.0 * libm::log(probability));
    for _ in 0..100 {
        let tail = false_alarm_rate(leniency);
        let density = libm::exp(-0.5 * leniency * leniency) / libm::sqrt(2.0 * PI);
        let excess = libm::log(probability / tail) * tail / density;
        leniency -= excess;
        if excess <= 1e-16 * leniency {
            break;
        }
    }
    Ok(leniency.max(0.0))
}

/// The probability that a clean source is accused in a step, given the leniency: the inverse of
/// [`leniency_for_false_alarm`], under the same assumptions.
pub fn false_alarm_rate(leniency: f64) -> f64 {
    0.5 * libm::erfc(leniency * FRAC_1_SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leniencies_are_quantiles_of_the_normal_distribution() {
        // from scipy.stats import norm
        // for p in (0.5, 0.4, 0.2118553985833966, 0.1, 0.05, 0.01, 1e-3, 1e-6, 1e-12, 1e-100): print(norm.isf(p))
        let quantiles = [
            (0.5, 0.0),
            (0.4, 0.2533471031357997),
            (0.2118553985833966, 0.8000000000000002),
            (0.1, 1.2815515655446004),
            (0.05, 1.6448536269514729),
            (0.01, 2.3263478740408408),
            (1e-3, 3.090232306167813),
            (1e-6, 4.753424308822899),
            (1e-12, 7.034483825301131),
            (1e-100, 21.273453560965322),
        ];
        for (probability, expected) in quantiles {
            let got = leniency_for_false_alarm(probability).unwrap();
            assert!(
                (got - expected).abs() < 1e-13 * (1.0 + expected),
                "{probability}: {got} is not {expected}"
            );
            assert!((false_alarm_rate(got) / probability - 1.0).abs() < 1e-11);
        }
    }

    #[test]
    fn probabilities_that_no_leniency_gives_are_refused() {
        for probability in [0.0, -0.1, 0.500001, 1.0, f64::NAN, f64::INFINITY] {
            assert!(leniency_for_false_alarm(probability).is_err(), "{probability}");
        }
    }
}
