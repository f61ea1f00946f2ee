//! Positive numbers far below the range of f64.

use core::f64::consts::LN_2;

/// log₂ of the factor between neighbouring blocks.
const BLOCK_BITS: f64 = 512.0;
const BLOCK_LN: f64 = BLOCK_BITS * LN_2;
/// 2⁻⁵¹².
const BLOCK: f64 = f64::from_bits((1023 - 512) << 52);

/// The number `mantissa · 2^(512·block)`.
///
/// A source with C = 100,000 weighs e^−1000, which f64 rounds to 0. If all the others of a source
/// weigh that little, their weighted mean must still be theirs and not 0/0, so weights inside the
/// statistics carry a coarse exponent of their own. Mantissas lie in (2⁻⁵¹², 2⁵⁰), so two numbers
/// of one block add without scaling, which is by far the most frequent case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mass {
    pub(crate) mantissa: f64,
    pub(crate) block: i32,
}

impl Mass {
    /// Nothing at all: an absent source.
    pub(crate) const NONE: Self = Self { mantissa: 0.0, block: i32::MIN };
    /// A weight of 1.
    pub(crate) const ONE: Self = Self { mantissa: 1.0, block: 0 };
    /// Less than any power of e a weighting function can give, yet not nothing: sources cut to
    /// weight 0 are compared with when everybody else is cut too.
    pub(crate) const LAST_RESORT: Self = Self { mantissa: 1.0, block: i32::MIN / 2 };

    /// e^exponent, for an exponent of at most 0; below −10¹¹ all are alike.
    pub(crate) fn exp(exponent: f64) -> Self {
        let exponent = exponent.max(-1e11);
        let block = libm::trunc(exponent / BLOCK_LN);
        Self { mantissa: libm::exp(exponent - block * BLOCK_LN), block: block as i32 }
    }

    pub(crate) fn is_none(self) -> bool {
        self.mantissa == 0.0
    }

    /// The nearest f64: the smallest normal one for anything below it, 0 for the last resort.
    pub(crate) fn to_f64(self) -> f64 {
        let nearest = match self.block {
            0 => return self.mantissa,
            -1 => self.mantissa * BLOCK,
            -2 => self.mantissa * BLOCK * BLOCK,
            _ if self == Self::LAST_RESORT => return 0.0,
            _ => 0.0,
        };
        nearest.max(f64::MIN_POSITIVE)
    }

    /// Both numbers in units of the larger one's block.
    pub(crate) fn align(self, other: Self) -> (f64, f64, i32) {
        if self.block == other.block {
            (self.mantissa, other.mantissa, self.block)
        } else if self.block > other.block {
            (self.mantissa, other.in_block(self.block), self.block)
        } else {
            (self.in_block(other.block), other.mantissa, other.block)
        }
    }

    /// The mantissa in a higher block; 0 where it is beyond f64's precision there.
    fn in_block(self, block: i32) -> f64 {
        if block.wrapping_sub(self.block) == 1 { self.mantissa * BLOCK } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_agree_with_f64_where_f64_can_hold_them() {
        for exponent in [0.0, -1e-9, -1.0, -300.0, -354.8, -354.9, -600.0, -700.0] {
            let (ours, exact) = (Mass::exp(exponent).to_f64(), libm::exp(exponent));
            assert!((ours / exact - 1.0).abs() < 1e-12, "e^{exponent}: {ours} is not {exact}");
        }
        assert_eq!(Mass::exp(0.0), Mass::ONE);
    }

    #[test]
    fn ratios_survive_where_f64_would_be_zero() {
        for exponent in [-1e3, -1e4, -354.7 * 7.0, -1e9] {
            let (a, b, _) = Mass::exp(exponent).align(Mass::exp(exponent - 1.0));
            // The exponent itself is only known to 2^-53 of its size.
            let tolerance = 1e-12 + exponent.abs() * 1e-15;
            assert!((b / a - libm::exp(-1.0)).abs() < tolerance, "e^{exponent}: {b} / {a}");
        }
        assert_eq!(Mass::exp(f64::NEG_INFINITY), Mass::exp(-1e12));
        assert!(Mass::exp(f64::NEG_INFINITY).block > Mass::LAST_RESORT.block);
    }
}
