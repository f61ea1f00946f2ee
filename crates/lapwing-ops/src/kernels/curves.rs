//! Functions of one number from plain arithmetic, which the compiler can do for many numbers at once.

/// Of `x`, to about two units in the last place; of what is too large or too small for the result, the nearest that is not.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // 2^n · e^r with whole n and |r| ≤ ln 2 / 2. Adding 1.5 · 2^23 rounds to whole numbers, which stand in the last bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts, of which the first has few digits, so that n times it is exact.
    let r = x - n * 0.693_145_75 - n * 1.428_606_8e-6;
    let p = 4.166_655e-2 + r * (8.333_7e-3 + r * 1.388_9e-3);
    let p = 1.0 + r * (1.0 + r * (0.5 + r * (0.166_666_67 + r * p)));
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    p * f32::from_bits(exponent)
}

/// 1 / (1 + e^−x).
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (1.0 + exp(2.0 * x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_what_the_library_says() {
        for i in -7_900..7_900_i16 {
            let x = f32::from(i) / 91.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 3e-7, "{x}");
            let exact = f64::from(x).tanh();
            assert!((f64::from(tanh(x)) - exact).abs() < 2e-7, "{x}");
            let exact = 1.0 / (1.0 + (-f64::from(x)).exp());
            assert!((f64::from(sigmoid(x)) - exact).abs() < 1e-7, "{x}");
        }
        assert!(exp(f32::NAN).is_nan() && tanh(f32::NAN).is_nan());
        assert!(exp(-1e9) > 0.0 && exp(1e9).is_finite() && tanh(1e9) == 1.0 && tanh(-1e9) == -1.0);
    }
}
