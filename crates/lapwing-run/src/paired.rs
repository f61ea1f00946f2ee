//! Whether one list of results is better than another, run by run.

/// Mean and sample standard deviation of a few results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// Absent for a single result, which has no spread.
    pub std: Option<f64>,
}

impl Spread {
    /// Of at least one result; of none the mean is NaN.
    pub fn of(results: &[f64]) -> Self {
        let spread = lapwing_sample::Spread::of(results.iter().copied());
        let mean = spread.map_or(f64::NAN, |spread| spread.mean);
        Self { mean, std: spread.and_then(|spread| spread.sample_std()) }
    }
}

/// A mean difference of pairs with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The mean.
    pub mean: f64,
    /// Student's t interval of the paired differences; absent for a single pair.
    pub interval: Option<(f64, f64)>,
}

impl Difference {
    /// `results` less `reference`, pair by pair.
    pub fn of(results: &[f64], reference: &[f64]) -> Self {
        let differences: Vec<f64> = results.iter().zip(reference).map(|(a, b)| a - b).collect();
        let Spread { mean, std } = Spread::of(&differences);
        let count = differences.len();
        let interval = std.map(|std| {
            let half = student_t_975(count as u32 - 1) * std / (count as f64).sqrt();
            (mean - half, mean + half)
        });
        Self { mean, interval }
    }
}

/// The 97.5 % quantile of Student's t distribution: ± that holds 95 % of it.
///
/// For whole degrees of freedom the distribution function is a finite sum (Abramowitz and Stegun 26.7.3 and 26.7.4),
/// which is inverted by bisection.
fn student_t_975(degrees: u32) -> f64 {
    if degrees == 0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    // Halved until neighbouring numbers are left.
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if central_probability(middle, degrees) < 0.95 { low = middle } else { high = middle }
    }
    f64::from(degrees).sqrt() * high.tan()
}

/// P(|T| < t) for t = √ν · tan θ.
fn central_probability(angle: f64, degrees: u32) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    let odd = degrees % 2 == 1;
    let mut term = if odd { cosine } else { 1.0 };
    let mut sum = if degrees == 1 { 0.0 } else { term };
    let first = if odd { 3 } else { 2 };
    for at in (first..degrees.saturating_sub(1)).step_by(2) {
        term *= cosine * cosine * f64::from(at - 1) / f64::from(at);
        sum += term;
    }
    if odd { (angle + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_scipy() {
        // scipy 1.17.1: [(df, scipy.stats.t.ppf(0.975, df)) for df in (1, 2, 3, 4, 5, 9, 10, 29, 30, 100, 1000)]
        for (degrees, expected) in [
            (1, 12.706204736174694),
            (2, 4.302652729749462),
            (3, 3.1824463052837078),
            (4, 2.7764451051977934),
            (5, 2.5705818356363146),
            (9, 2.262157162798205),
            (10, 2.228138851986274),
            (29, 2.045229642132703),
            (30, 2.0422724563012378),
            (100, 1.9839715185235518),
            (1000, 1.9623390808264083),
        ] {
            let found = student_t_975(degrees);
            assert!((found / expected - 1.0).abs() < 1e-9, "{degrees}: {found}");
        }
    }

    #[test]
    fn the_spread_is_that_of_a_sample() {
        assert_eq!(Spread::of(&[1.0, 3.0]), Spread { mean: 2.0, std: Some(2.0_f64.sqrt()) });
        assert_eq!(Spread::of(&[7.0]), Spread { mean: 7.0, std: None });
    }

    #[test]
    fn differences_are_taken_pair_by_pair() {
        // Runs that differ widely among themselves, and always by about 1 from their partner.
        let (a, b) = ([11.0, 52.0, 31.5], [10.0, 51.0, 30.0]);
        let difference = Difference::of(&a, &b);
        // Differences 1, 1, 1.5: mean 7/6, sample deviation 1/√12, half width 4.30265… / 6.
        let half = 4.302652729749462 / 6.0;
        let (low, high) = difference.interval.unwrap();
        assert!((difference.mean - 7.0 / 6.0).abs() < 1e-12);
        assert!(
            (low - (7.0 / 6.0 - half)).abs() < 1e-9 && (high - (7.0 / 6.0 + half)).abs() < 1e-9
        );
        assert!(low > 0.0, "unpaired, the spread of the runs would hide the difference");
    }

    #[test]
    fn one_pair_has_no_interval() {
        assert_eq!(Difference::of(&[2.0], &[1.5]), Difference { mean: 0.5, interval: None });
    }
}
