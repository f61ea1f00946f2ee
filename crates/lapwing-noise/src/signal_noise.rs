//! Signals with interference, and diagnoses that are turned round.

use lapwing_sample::Draws;

use crate::draws::Purpose;
use crate::level::Level;

/// Signal Noise: with the probability of the source's level, normal noise of a given deviation is added to all values of a
/// sample; and with the same probability, independently, its label of two becomes the other. Fixed per sample.
#[derive(Clone, Copy, Debug)]
pub struct SignalNoise {
    seed: u64,
    level: Level,
    deviation: f64,
}

/// The stream that decides, and the one that is added.
const DECIDES: u64 = 0;
const ADDED: u64 = 1;

impl SignalNoise {
    /// Noise of a seed, a level and a deviation in the unit of the signal.
    pub fn new(seed: u64, level: Level, deviation: f64) -> Self {
        Self { seed, level, deviation }
    }

    /// Whether a sample has interference, and whether its label is turned round.
    fn reaches(&self, index: u64) -> (bool, bool) {
        let mut draws = Draws::of(self.seed, Purpose::SignalNoise, DECIDES, index);
        let level = self.level.share();
        (draws.unit() < level, draws.unit() < level)
    }

    /// Adds to the values of a sample, if they are reached; says whether they are.
    pub fn apply(&self, index: u64, values: &mut [f32]) -> bool {
        let (reached, _) = self.reaches(index);
        if reached {
            let mut draws = Draws::of(self.seed, Purpose::SignalNoise, ADDED, index);
            for pair in values.chunks_mut(2) {
                let (first, second) = draws.two_normals();
                for (value, noise) in pair.iter_mut().zip([first, second]) {
                    *value = (f64::from(*value) + self.deviation * noise) as f32;
                }
            }
        }
        reached
    }

    /// The label of a sample, of two.
    pub fn label(&self, index: u64, label: u32) -> u32 {
        match self.reaches(index) {
            (_, true) => 1 - label.min(1),
            (_, false) => label,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_and_label_are_reached_independently_with_the_probability_of_the_level() {
        let noise = SignalNoise::new(9, Level::new(0.25).unwrap(), 0.2);
        let mut counts = [0_i32; 4];
        for index in 0..4_000 {
            let reached = noise.apply(index, &mut []);
            let flipped = noise.label(index, 1) == 0;
            assert_eq!(noise.label(index, 0), u32::from(flipped));
            counts[usize::from(reached) * 2 + usize::from(flipped)] += 1;
        }
        // 9/16, 3/16, 3/16 and 1/16 of 4,000; deviations are at most 31.
        for (count, expected) in counts.iter().zip([2_250, 750, 750, 250]) {
            assert!((count - expected).abs() < 160, "{counts:?}");
        }
        assert_eq!(SignalNoise::new(9, Level::FULL, 0.2).label(5, 1), 0);
    }

    #[test]
    fn what_is_added_has_the_deviation() {
        let noise = SignalNoise::new(9, Level::FULL, 0.2);
        let mut values = vec![1.0_f32; 12_000];
        assert!(noise.apply(3, &mut values));
        let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / 12_000.0;
        let variance =
            values.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / 12_000.0;
        assert!(
            (mean - 1.0).abs() < 0.01 && (variance.sqrt() - 0.2).abs() < 0.006,
            "{mean} {variance}"
        );
    }
}
