//! Random numbers as a function of the seed and of what they are for.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// What numbers are for; each purpose has streams of its own, so that no two kinds of noise share their draws.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Level = 1,
    ChunkShuffle = 2,
    RandomLabel = 3,
    RandomLabelPerSample = 4,
    BatchLabelShuffle = 5,
    BatchLabelFlip = 6,
    ChunkLabelShuffle = 7,
    ChunkLabelFlip = 8,
    AddedNoise = 9,
    ReplaceWithNoise = 10,
    ExactFlip = 11,
    UniformTarget = 12,
    HumanLabels = 13,
    Free = 14,
    ClassSwap = 15,
}

/// A seeded stream with the few draws that noise needs.
///
/// The draws are written out here, not taken from a general library, because saved files and results depend on them.
#[derive(Clone, Debug)]
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// A stream that no kind of noise uses, for what an experiment draws beside its noise.
    pub fn free(seed: u64, index: u64) -> Self {
        Self::new(seed, Purpose::Free, index)
    }

    /// The stream of one sample, step or chunk.
    pub(crate) fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        Self::of_source(seed, purpose, 0, index)
    }

    /// The stream of an index within a source.
    pub(crate) fn of_source(seed: u64, purpose: Purpose, source: u64, index: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&(purpose as u64).to_le_bytes());
        key[16..24].copy_from_slice(&source.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(index);
        Self(generator)
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in [0, bound) without bias (multiply, and draw again in the uneven part); 0 where `bound` is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        if bound < 2 {
            return 0;
        }
        let reject = bound.wrapping_neg() % bound;
        loop {
            let product = u64::from(self.0.next_u32()) * u64::from(bound);
            if product as u32 >= reject {
                return (product >> 32) as u32;
            }
        }
    }

    /// Fisher–Yates. Slices of more than 2³² items are beyond anything this crate is given.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }

    /// Two independent numbers of the standard normal distribution (Box and Muller), the same on every machine.
    pub fn two_normals(&mut self) -> (f64, f64) {
        // 1 − unit lies in (0, 1], where the logarithm is finite.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        let (sine, cosine) = libm::sincos(std::f64::consts::TAU * self.unit());
        (radius * cosine, radius * sine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_address_counts() {
        let draw = |seed, purpose, source, index| {
            let mut draws = Draws::of_source(seed, purpose, source, index);
            [(); 4].map(|()| draws.unit())
        };
        let here = draw(1, Purpose::ExactFlip, 2, 3);
        assert_eq!(here, draw(1, Purpose::ExactFlip, 2, 3));
        assert_ne!(here, draw(2, Purpose::ExactFlip, 2, 3));
        assert_ne!(here, draw(1, Purpose::ChunkShuffle, 2, 3));
        assert_ne!(here, draw(1, Purpose::ExactFlip, 3, 3));
        assert_ne!(here, draw(1, Purpose::ExactFlip, 2, 2));
    }

    #[test]
    fn every_permutation_is_equally_likely() {
        const TRIALS: u64 = 24_000;
        let mut counts = std::collections::BTreeMap::new();
        for index in 0..TRIALS {
            let mut items = [0_u8, 1, 2, 3];
            Draws::new(0, Purpose::ChunkShuffle, index).shuffle(&mut items);
            *counts.entry(items).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 24);
        // Binomial with mean 1,000 and standard deviation 31; five deviations either way.
        assert!(counts.values().all(|count| (845..=1155).contains(count)), "{counts:?}");
    }

    #[test]
    fn normals_have_the_moments_and_the_tails_of_the_standard_normal() {
        let numbers: Vec<f64> = (0..100_000)
            .flat_map(|index| {
                let (a, b) = Draws::new(7, Purpose::AddedNoise, index).two_normals();
                [a, b]
            })
            .collect();
        let count = numbers.len() as f64;
        let moment = |power| numbers.iter().map(|x: &f64| x.powi(power)).sum::<f64>() / count;
        // Standard errors 1/√n, √2/√n, √15/√n, √96/√n; five of them.
        for (power, expected, error) in
            [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)]
        {
            let allowed = 5.0 * f64::sqrt(error / count);
            assert!(
                (moment(power) - expected).abs() < allowed,
                "moment {power}: {}",
                moment(power)
            );
        }
        let beyond = numbers.iter().filter(|x| x.abs() > 1.959_963_985).count() as f64 / count;
        assert!((beyond - 0.05).abs() < 0.0025, "{beyond}");
        let product = numbers.chunks(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / (count / 2.0);
        assert!(product.abs() < 0.016, "the two of a pair are related: {product}");
    }
}
