//! Random numbers as a pure function of the seed, the purpose and an index.
//!
//! Nothing here carries state from one step to the next: the order of epoch 7 and the dropout masks of step 1,234 can
//! be drawn again by anybody who knows the seed. A checkpoint therefore needs the seed, the epoch and the step, and no
//! position inside a generator.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// What a stream of numbers is for; each purpose has streams of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// First parameters of the network (index 0).
    Parameters = 1,
    /// Order of the training rows (index: epoch).
    Order = 2,
    /// Dropout masks (index: step).
    Dropout = 3,
}

/// A seeded stream with the few draws this crate needs.
///
/// The draws are written out here, not taken from a general library, because the bytes of a saved run depend on them.
#[derive(Clone, Debug)]
pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    pub(crate) fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        Self::numbered(seed, 0, purpose, index)
    }

    /// The stream of one of several networks of a run.
    pub(crate) fn numbered(seed: u64, number: u64, purpose: Purpose, index: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&(purpose as u64).to_le_bytes());
        key[16..24].copy_from_slice(&number.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(index);
        Self(generator)
    }

    /// Uniform in [0, 1), a multiple of 2⁻²⁴.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.0.next_u32() >> 8) as f32 / (1 << 24) as f32
    }

    /// Normal with mean 0 and variance 1, by Box and Muller; the same on every machine.
    pub(crate) fn normal(&mut self) -> f32 {
        let mut unit = || (f64::from(self.0.next_u32()) + 1.0) / (1u64 << 32) as f64;
        let radius = (-2.0 * libm::log(unit())).sqrt();
        (radius * libm::cos(2.0 * std::f64::consts::PI * unit())) as f32
    }

    /// Uniform in [0, bound) without bias (multiply, and draw again in the uneven part).
    fn below(&mut self, bound: u32) -> u32 {
        let reject = bound.wrapping_neg() % bound;
        loop {
            let product = u64::from(self.0.next_u32()) * u64::from(bound);
            if product as u32 >= reject {
                return (product >> 32) as u32;
            }
        }
    }

    /// Fisher–Yates.
    pub(crate) fn shuffle(&mut self, items: &mut [u32]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_purpose_and_index_give_the_same_numbers_and_any_other_does_not() {
        let draw = |seed, purpose, index| {
            let mut stream = Stream::new(seed, purpose, index);
            (0..8).map(|_| stream.unit()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, Purpose::Order, 2), draw(1, Purpose::Order, 2));
        assert_ne!(draw(1, Purpose::Order, 2), draw(2, Purpose::Order, 2));
        assert_ne!(draw(1, Purpose::Order, 2), draw(1, Purpose::Dropout, 2));
        assert_ne!(draw(1, Purpose::Order, 2), draw(1, Purpose::Order, 3));
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_every_place_is_equally_likely() {
        const ITEMS: usize = 6;
        const TRIALS: u64 = 12_000;
        let mut first = [0u32; ITEMS];
        for index in 0..TRIALS {
            let mut items: Vec<u32> = (0..ITEMS as u32).collect();
            Stream::new(0, Purpose::Order, index).shuffle(&mut items);
            first[items[0] as usize] += 1;
            items.sort_unstable();
            assert_eq!(items, (0..ITEMS as u32).collect::<Vec<_>>());
        }
        // Each count is binomial with mean 2,000 and standard deviation 41; five deviations either way.
        assert!(first.iter().all(|&n| (1_795..=2_205).contains(&n)), "{first:?}");
    }
}
