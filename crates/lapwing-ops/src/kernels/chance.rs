//! Zeroes by chance: a pure function of a seed and of the place of a number, so that a mask need not be kept.
#![allow(unsafe_code, reason = "vector instructions")]

use rayon::prelude::*;

use super::level::vectorised;

/// Numbers of a task.
const TASK: usize = 1 << 15;

/// Which numbers are zeroed, and what the others are multiplied by, so that the expectation stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Chance {
    low: u32,
    high: u32,
    /// Draws below this are zeroed.
    below: u32,
    factor: f32,
}

impl Chance {
    /// Zeroes this share, from 0 to below 1.
    pub(crate) fn new(share: f32, seed: u64) -> Self {
        assert!((0.0..1.0).contains(&share), "a share from 0 to below 1");
        let below = (f64::from(share) * 4_294_967_296.0) as u32;
        Self { low: seed as u32, high: (seed >> 32) as u32, below, factor: 1.0 / (1.0 - share) }
    }

    /// What the number at a place is multiplied by.
    #[inline(always)]
    pub(crate) fn factor(&self, place: u32) -> f32 {
        let drawn =
            mixed(mixed(place.wrapping_mul(0x9E37_79B9).wrapping_add(self.low)) ^ self.high);
        if drawn < self.below { 0.0 } else { self.factor }
    }

    /// Multiplies all numbers.
    pub(crate) fn apply(&self, x: &mut [f32]) {
        x.par_chunks_mut(TASK).enumerate().for_each(|(task, x)| {
            apply_part(x, *self, (task * TASK) as u32);
        });
    }
}

/// Bits that depend on all bits: the finaliser of a hash, one to one.
#[inline(always)]
fn mixed(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x7FEB_352D);
    x = (x ^ (x >> 15)).wrapping_mul(0x846C_A68B);
    x ^ (x >> 16)
}

vectorised! {
    fn apply_part(x: &mut [f32], chance: Chance, from: u32) {
        for (place, x) in x.iter_mut().enumerate() {
            *x *= chance.factor(from.wrapping_add(place as u32));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_zeroed_and_the_rest_scaled_whatever_the_seed() {
        for (share, seed) in [(0.0, 1), (0.1, 2), (0.5, 3), (0.9, u64::MAX)] {
            let mut x = vec![1.0; 100_000];
            Chance::new(share, seed).apply(&mut x);
            let zeros = x.iter().filter(|x| **x == 0.0).count() as f64 / 1e5;
            assert!((zeros - f64::from(share)).abs() < 0.006, "{share}: {zeros}");
            assert!(x.iter().all(|x| *x == 0.0 || *x == 1.0 / (1.0 - share)));
        }
        let of =
            |seed: u64| (0..64).map(|at| Chance::new(0.5, seed).factor(at)).collect::<Vec<_>>();
        assert_eq!(of(5), of(5));
        // Neighbouring seeds, in either half, agree as often as chance has it.
        for (a, b) in [(5, 6), (5, 5 + (1 << 32)), (0, 1)] {
            let same = of(a).iter().zip(of(b)).filter(|(a, b)| **a == *b).count();
            assert!((14..=50).contains(&same), "{a} {b}: {same}");
        }
    }
}
