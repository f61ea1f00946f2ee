//! Softmax on the host.

/// Logits into probabilities.
pub fn softmax(row: &mut [f32]) {
    let highest = highest(row);
    row.iter_mut().for_each(|logit| *logit = libm::expf(*logit - highest));
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|value| *value /= sum);
}

/// The probability that logits give to a class, in double precision.
pub fn probability(logits: &[f32], class: usize) -> f64 {
    let (power, sum) = powers(logits, class);
    power.exp() / sum
}

/// Minus its logarithm: the cross-entropy, in double precision.
pub fn negative_log_probability(logits: &[f32], class: usize) -> f64 {
    let (power, sum) = powers(logits, class);
    sum.ln() - power
}

/// The logit of a class, and the sum of the powers of all, less the highest: no power is above 1, and one is 1.
fn powers(logits: &[f32], class: usize) -> (f64, f64) {
    let highest = highest(logits);
    let power = |logit: f32| f64::from(logit - highest);
    (power(logits[class]), logits.iter().map(|&logit| power(logit).exp()).sum())
}

fn highest(logits: &[f32]) -> f32 {
    logits.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_agree_and_large_logits_do_not_overflow() {
        for logits in [[0.5, -1.25, 2.0], [1e30, 1e30, -1e30], [-300.0, 300.0, 0.0]] {
            let mut row = logits;
            softmax(&mut row);
            let sum: f32 = row.iter().sum();
            assert!((sum - 1.0).abs() < 1e-6, "{row:?}");
            for (class, &single) in row.iter().enumerate() {
                let double = probability(&logits, class);
                assert!((double - f64::from(single)).abs() < 1e-6, "{double} {single}");
                let entropy = negative_log_probability(&logits, class);
                assert!((double - (-entropy).exp()).abs() < 1e-12, "{double} {entropy}");
            }
        }
        let thirds = negative_log_probability(&[4.0; 3], 1);
        assert!((thirds - 3.0f64.ln()).abs() < 1e-15, "{thirds}");
        assert!(probability(&[f32::NAN, 0.0], 1).is_nan());
    }
}
