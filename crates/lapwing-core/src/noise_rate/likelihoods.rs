//! What a label is worth as the truth and as noise.

/// How probable a label is in two cases: that it is the truth, and that it is noise. Only their
/// ratio matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likelihoods {
    truth: f64,
    noise: f64,
}

impl Likelihoods {
    /// `None` where one of them is negative or not finite: nothing can be said of such a row.
    pub fn new(truth: f64, noise: f64) -> Option<Self> {
        let usable = |value: f64| value >= 0.0 && value.is_finite();
        (usable(truth) && usable(noise)).then_some(Self { truth, noise })
    }

    /// The same from logarithms, which may be far outside the range of f64.
    pub fn from_logarithms(truth: f64, noise: f64) -> Option<Self> {
        let largest = truth.max(noise);
        Self::new(libm::exp(truth - largest), libm::exp(noise - largest))
    }

    pub(super) fn truth(self) -> f64 {
        self.truth
    }

    pub(super) fn noise(self) -> f64 {
        self.noise
    }

    /// The probability that the label is noise, where noise has this rate. A label that noise never
    /// draws is no noise.
    pub fn responsibility(self, rate: f64) -> f64 {
        let noise = rate * self.noise;
        if noise > 0.0 { noise / (noise + (1.0 - rate) * self.truth) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_responsibility_is_bayes_rule() {
        let row = Likelihoods::new(0.3, 0.1).unwrap();
        let expected = 0.2 * 0.1 / (0.2 * 0.1 + 0.8 * 0.3);
        assert!((row.responsibility(0.2) - expected).abs() < 1e-15);
        assert_eq!((row.responsibility(0.0), row.responsibility(1.0)), (0.0, 1.0));
    }

    #[test]
    fn extremes_give_probabilities_and_no_nan() {
        for truth in [0.0, f64::MIN_POSITIVE, 1.0, f64::MAX] {
            for noise in [0.0, f64::MIN_POSITIVE, 1.0, f64::MAX] {
                let row = Likelihoods::new(truth, noise).unwrap();
                for rate in [0.0, f64::MIN_POSITIVE, 0.5, 1.0] {
                    let found = row.responsibility(rate);
                    assert!((0.0..=1.0).contains(&found), "{row:?} at {rate}: {found}");
                }
            }
        }
        for bad in [f64::NAN, f64::INFINITY, -0.1] {
            assert!(Likelihoods::new(bad, 0.5).is_none() && Likelihoods::new(0.5, bad).is_none());
        }
    }

    #[test]
    fn logarithms_may_be_far_outside_the_range_of_floats() {
        let row = Likelihoods::from_logarithms(-1e5, -1e5 - 1.0).unwrap();
        let expected = libm::exp(-1.0) / (1.0 + libm::exp(-1.0));
        assert!((row.responsibility(0.5) - expected).abs() < 1e-15);
        assert!(Likelihoods::from_logarithms(f64::NAN, 0.0).is_none());
        let impossible = f64::NEG_INFINITY;
        assert!(Likelihoods::from_logarithms(impossible, impossible).is_none());
        let never = Likelihoods::from_logarithms(impossible, 0.0).unwrap();
        assert_eq!(never.responsibility(0.1), 1.0);
    }
}
