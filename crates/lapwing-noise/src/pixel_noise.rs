//! Bytes of pixels that are moved, and go round at the ends.

use lapwing_sample::Draws;

use crate::draws::Purpose;

/// Pixel Noise: a whole number from −64 to 63 is added to every byte of a picture, and what falls out at one end of the
/// range comes in at the other. Fixed per sample.
#[derive(Clone, Copy, Debug)]
pub struct PixelNoise {
    seed: u64,
}

/// How many numbers are drawn from, half of them below zero.
const RANGE: u32 = 128;

impl PixelNoise {
    /// Noise of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Changes the bytes of a picture.
    pub fn apply(&self, index: u64, bytes: &mut [u8]) {
        let mut draws = Draws::of(self.seed, Purpose::PixelNoise, 0, index);
        for byte in bytes {
            *byte = byte.wrapping_add(draws.below(RANGE) as u8).wrapping_sub(RANGE as u8 / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_move_by_up_to_64_and_go_round() {
        let moved = |start: u8, index| {
            let mut bytes = vec![start; 20_000];
            PixelNoise::new(2).apply(index, &mut bytes);
            bytes
        };
        let by: Vec<i32> = moved(100, 1).into_iter().map(|byte| i32::from(byte) - 100).collect();
        assert_eq!((by.iter().min(), by.iter().max()), (Some(&-64), Some(&63)));
        // A mean of −0.5; the deviation of the mean is 36.9 / √20,000 = 0.26.
        let mean = by.iter().sum::<i32>() as f64 / by.len() as f64;
        assert!((mean + 0.5).abs() < 1.3, "{mean}");
        assert!(moved(0, 1).contains(&192) && moved(255, 1).contains(&62));
        assert!(moved(0, 1) == moved(0, 1) && moved(0, 1) != moved(0, 2));
    }
}
