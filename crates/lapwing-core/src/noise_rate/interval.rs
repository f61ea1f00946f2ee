//! Between what a noise rate lies.

use super::Likelihoods;

/// Half the 95 % quantile of χ² with one degree of freedom: how far the log-likelihood may fall
/// from its maximum.
const FALL: f64 = 1.920_729_410_347_062;

/// Halvings of [0, 1] until f64 cannot tell the ends apart.
const HALVINGS: usize = 52;

/// The 95 % interval of the noise rate of a source, by the ratio of likelihoods: all rates at which
/// its rows are no less likely than e^−1.92 of the most they can be. Without a prior, so that few
/// rows give a wide interval; (0, 1) without any.
///
/// It holds what it promises as far as the probabilities do: they must come from a network that has
/// not seen these rows, and wrong labels must be drawn from the label frequencies.
pub fn rate_interval(rows: &[Likelihoods]) -> (f64, f64) {
    // Every term is the logarithm of a line in the rate: the sum is concave, and its slope falls.
    let slope = |rate: f64| rows.iter().map(|row| row.slope(rate)).sum::<f64>();
    let best = bisect(0.0, 1.0, |rate| slope(rate) > 0.0);
    let logarithm = |rate: f64| rows.iter().map(|row| row.logarithm(rate)).sum::<f64>();
    let least = logarithm(best) - FALL;
    let low =
        if logarithm(0.0) >= least { 0.0 } else { bisect(0.0, best, |e| logarithm(e) < least) };
    let high =
        if logarithm(1.0) >= least { 1.0 } else { bisect(best, 1.0, |e| logarithm(e) >= least) };
    (low, high)
}

/// Where `before` stops to hold.
fn bisect(mut low: f64, mut high: f64, before: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if before(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

impl Likelihoods {
    /// The logarithm of the likelihood of the row, where noise has this rate.
    pub fn logarithm(self, rate: f64) -> f64 {
        libm::log(self.mixed(rate))
    }

    /// How fast that changes with the rate.
    fn slope(self, rate: f64) -> f64 {
        (self.noise() - self.truth()) / self.mixed(rate)
    }

    fn mixed(self, rate: f64) -> f64 {
        // A row that is impossible either way says nothing: the least number keeps it out of the comparison.
        (rate * self.noise() + (1.0 - rate) * self.truth()).max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn labels_that_only_noise_explains_give_the_binomial_likelihood_interval() {
        // 3 of 20 rows are noise for sure: the ends solve 3·ln e + 17·ln(1 − e) = max − 1.92.
        let row =
            |at| Likelihoods::new(if at < 3 { 0.0 } else { 1.0 }, if at < 3 { 1.0 } else { 0.0 });
        let rows: Vec<Likelihoods> = (0..20).filter_map(row).collect();
        let (low, high) = rate_interval(&rows);
        let fall = |e: f64| {
            let at = |e: f64| 3.0 * libm::log(e) + 17.0 * libm::log(1.0 - e);
            at(0.15) - at(e)
        };
        assert!(low < 0.15 && 0.15 < high);
        assert!((fall(low) - FALL).abs() < 1e-9 && (fall(high) - FALL).abs() < 1e-9);
    }

    #[test]
    fn the_ends_are_reached_and_nothing_known_is_everything() {
        assert_eq!(rate_interval(&[]), (0.0, 1.0));
        let sure = Likelihoods::new(1.0, 0.1).unwrap();
        let (low, high) = rate_interval(&[sure; 100]);
        assert!(low == 0.0 && high < 0.05, "{high}");
        let never = Likelihoods::new(0.0, 0.1).unwrap();
        let (low, high) = rate_interval(&[never; 100]);
        assert!(low > 0.95 && high == 1.0, "{low}");
        let impossible = Likelihoods::new(0.0, 0.0).unwrap();
        assert_eq!(rate_interval(&[impossible; 9]), (0.0, 1.0));
    }
}
