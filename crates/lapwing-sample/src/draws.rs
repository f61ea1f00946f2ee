//! Random numbers as a function of the seed and of what they are for.
//!
//! Nothing carries state from one step to the next: the order of epoch 7 and the noise of step 1,234 can be drawn again by
//! anybody who knows the seed. The draws are written out here, not taken from a general library, because saved runs,
//! files and results depend on their bits; that is also why there are two of some.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The purpose of streams that no part of the project uses by itself.
const FREE: u64 = 14;
/// Draws of a mask that are made at once.
const DRAWN: usize = 256;

/// A seeded stream of random numbers.
#[derive(Clone, Debug)]
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// The stream of a purpose; `number` and `index` tell its streams apart (a source and a row, a network and a step).
    pub fn of(seed: u64, purpose: impl Into<u64>, number: u64, index: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&purpose.into().to_le_bytes());
        key[16..24].copy_from_slice(&number.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(index);
        Self(generator)
    }

    /// A stream for what an experiment draws by itself.
    pub fn free(seed: u64, index: u64) -> Self {
        Self::of(seed, FREE, 0, index)
    }

    /// The one stream of a seed.
    pub fn seeded(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// 64 bits: a seed for somebody else.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in (0, 1], a multiple of 2⁻⁵³: a number that has a logarithm.
    pub fn unit_above_zero(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in [0, 1) in single precision, a multiple of 2⁻²⁴.
    pub fn unit_single(&mut self) -> f32 {
        single(self.0.next_u32())
    }

    /// For each of `count` numbers 0 where [`unit_single`](Self::unit_single) is below `share`, else `kept`: what drops out of
    /// a layer, many draws at a time.
    pub fn dropped(&mut self, count: usize, share: f32, kept: f32) -> Vec<f32> {
        let mut mask = Vec::with_capacity(count);
        let mut words = [0_u8; 4 * DRAWN];
        while mask.len() < count {
            let words = &mut words[..4 * DRAWN.min(count - mask.len())];
            self.0.fill_bytes(words);
            let (words, _) = words.as_chunks::<4>();
            mask.extend(
                words.iter().map(
                    |&word| {
                        if single(u32::from_le_bytes(word)) < share { 0.0 } else { kept }
                    },
                ),
            );
        }
        mask
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

    /// The same from 64 bits at once, with a bias of at most `bound` · 2⁻⁶⁴.
    pub fn below_wide(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Fisher–Yates. Slices of more than 2³² items are beyond anything that is given here.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }

    /// The same by [`below_wide`](Self::below_wide).
    pub fn shuffle_wide<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below_wide(last + 1));
        }
    }

    /// Two independent numbers of the standard normal distribution.
    pub fn two_normals(&mut self) -> (f64, f64) {
        box_muller(1.0 - self.unit(), self.unit())
    }

    /// One such number in single precision, from 64 bits.
    pub fn normal_single(&mut self) -> f32 {
        let mut unit = || (f64::from(self.0.next_u32()) + 1.0) / (1_u64 << 32) as f64;
        box_muller(unit(), unit()).0 as f32
    }
}

fn single(word: u32) -> f32 {
    (word >> 8) as f32 / (1 << 24) as f32
}

/// Two independent standard normal numbers from two uniform ones in (0, 1], by Box and Muller; the same on every machine.
pub fn box_muller(radius: f64, angle: f64) -> (f64, f64) {
    let radius = libm::sqrt(-2.0 * libm::log(radius));
    let (sine, cosine) = libm::sincos(std::f64::consts::TAU * angle);
    (radius * cosine, radius * sine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_address_counts() {
        let draw = |seed, purpose: u64, number, index| {
            let mut draws = Draws::of(seed, purpose, number, index);
            [(); 4].map(|()| draws.unit())
        };
        let here = draw(1, 11, 2, 3);
        assert_eq!(here, draw(1, 11, 2, 3));
        for other in [draw(2, 11, 2, 3), draw(1, 2, 2, 3), draw(1, 11, 3, 3), draw(1, 11, 2, 2)] {
            assert_ne!(here, other);
        }
    }

    // Saved splits, runs and results hang on these bits. Those of ChaCha with eight rounds, key
    // struct.pack("<QQQQ", 5, 3, 1, 0) and stream 7, and of rand's seed_from_u64(9), by a script of its own in Python:
    //
    // u64 = lambda: u32() | u32() << 32; unit = lambda: (u64() >> 11) / 2**53
    // bm = lambda r, a: (r := math.sqrt(-2 * math.log(r)), (r * math.cos(2 * math.pi * a), r * math.sin(2 * math.pi * a)))[1]
    // print(unit(), unit() + 2**-53, (u32() >> 8) / 2**24, u32() * 1000 >> 32, u64() * 1000 >> 64, bm(1 - unit(), unit()),
    //       bm((u32() + 1) / 2**32, (u32() + 1) / 2**32)[0], seeded.u64() * 1000000 >> 64, seeded.unit() + 2**-53)
    #[test]
    fn the_bits_are_those_of_saved_files() {
        let mut draws = Draws::of(5, 3_u64, 1, 7);
        let mut seeded = Draws::seeded(9);
        let found = format!(
            "{:?} {:?} {:?} {} {} {:?} {:?} {} {:?}",
            draws.unit(),
            draws.unit_above_zero(),
            draws.unit_single(),
            draws.below(1000),
            draws.below_wide(1000),
            draws.two_normals(),
            draws.normal_single(),
            seeded.below_wide(1_000_000),
            seeded.unit_above_zero(),
        );
        let expected = "0.5507718905016786 0.8718225456201967 0.20403612 251 633 \
                        (1.4830299015511779, -0.29553465787350225) 1.139066 \
                        114122 0.7820086364988243";
        assert_eq!(found, expected);
    }

    #[test]
    fn what_drops_out_is_what_single_draws_would_say_and_leaves_the_stream_where_they_would() {
        let (mut many, mut one) = (Draws::of(4, 2_u64, 0, 1), Draws::of(4, 2_u64, 0, 1));
        for count in [1, 0, 3, DRAWN, DRAWN + 5, 2 * DRAWN + 17] {
            let mask = many.dropped(count, 0.3, 1.5);
            let single = |_| if one.unit_single() < 0.3 { 0.0 } else { 1.5 };
            assert_eq!(mask, (0..count).map(single).collect::<Vec<f32>>());
        }
        assert_eq!(many.bits(), one.bits());
    }

    #[test]
    fn every_permutation_is_equally_likely() {
        const TRIALS: u64 = 24_000;
        for wide in [false, true] {
            let mut counts = std::collections::BTreeMap::new();
            for index in 0..TRIALS {
                let mut items = [0_u8, 1, 2, 3];
                let mut draws = Draws::of(0, 2_u64, 0, index);
                if wide {
                    draws.shuffle_wide(&mut items);
                } else {
                    draws.shuffle(&mut items);
                }
                *counts.entry(items).or_insert(0) += 1;
            }
            assert_eq!(counts.len(), 24);
            // Binomial with mean 1,000 and standard deviation 31; five deviations either way.
            assert!(counts.values().all(|count| (845..=1155).contains(count)), "{counts:?}");
        }
    }

    #[test]
    fn normals_have_the_moments_and_the_tails_of_the_standard_normal() {
        let pairs: Vec<(f64, f64)> =
            (0..100_000).map(|index| Draws::of(7, 9_u64, 0, index).two_normals()).collect();
        let single = |index| f64::from(Draws::of(7, 9_u64, 0, index).normal_single());
        let singles: Vec<f64> = (0..200_000).map(single).collect();
        for numbers in [pairs.iter().flat_map(|&(a, b)| [a, b]).collect(), singles] {
            let count = numbers.len() as f64;
            let moment = |power| numbers.iter().map(|x: &f64| x.powi(power)).sum::<f64>() / count;
            // Standard errors 1/√n, √2/√n, √15/√n, √96/√n; five of them.
            for (power, expected, error) in
                [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)]
            {
                let allowed = 5.0 * f64::sqrt(error / count);
                let found = moment(power);
                assert!((found - expected).abs() < allowed, "moment {power}: {found}");
            }
            let beyond = numbers.iter().filter(|x| x.abs() > 1.959_963_985).count() as f64 / count;
            assert!((beyond - 0.05).abs() < 0.0025, "{beyond}");
        }
        let product = pairs.iter().map(|(a, b)| a * b).sum::<f64>() / pairs.len() as f64;
        assert!(product.abs() < 0.016, "the two of a pair are related: {product}");
    }
}
