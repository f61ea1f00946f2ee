//! Inputs that drown in normal noise.

use lapwing_sample::Draws;

use crate::draws::Purpose;

/// Added Noise: every value of a sample is given independent normal noise of mean 0 and standard deviation 1 on top,
/// without clipping. Fixed per sample.
#[derive(Clone, Copy, Debug)]
pub struct AddedNoise {
    seed: u64,
}

impl AddedNoise {
    /// Noise of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Changes the values of a sample.
    pub fn apply<T: Real>(&self, index: u64, values: &mut [T]) {
        each(self.seed, Purpose::AddedNoise, index, values, T::plus);
    }
}

/// Replace With Noise: every value of a sample becomes independent normal noise of mean 0 and standard deviation 1.
/// Fixed per sample.
#[derive(Clone, Copy, Debug)]
pub struct ReplaceWithNoise {
    seed: u64,
}

impl ReplaceWithNoise {
    /// Noise of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Changes the values of a sample.
    pub fn apply<T: Real>(&self, index: u64, values: &mut [T]) {
        each(self.seed, Purpose::ReplaceWithNoise, index, values, |_, noise| T::of(noise));
    }
}

fn each<T: Real>(
    seed: u64,
    purpose: Purpose,
    index: u64,
    values: &mut [T],
    change: impl Fn(T, f64) -> T,
) {
    let mut draws = Draws::of(seed, purpose, 0, index);
    for pair in values.chunks_mut(2) {
        let (first, second) = draws.two_normals();
        for (value, noise) in pair.iter_mut().zip([first, second]) {
            *value = change(*value, noise);
        }
    }
}

/// The numbers that inputs are made of: `f32` and `f64`.
pub trait Real: Copy + sealed::Sealed {
    /// Rounded to this type.
    fn of(value: f64) -> Self;
    /// The sum, computed in double precision.
    fn plus(self, value: f64) -> Self;
}

impl Real for f32 {
    fn of(value: f64) -> Self {
        value as Self
    }

    fn plus(self, value: f64) -> Self {
        (f64::from(self) + value) as Self
    }
}

impl Real for f64 {
    fn of(value: f64) -> Self {
        value
    }

    fn plus(self, value: f64) -> Self {
        self + value
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[f32]) -> (f64, f64) {
        let count = values.len() as f64;
        let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / count;
        let variance = values.iter().map(|&value| (f64::from(value) - mean).powi(2)).sum::<f64>();
        (mean, (variance / count).sqrt())
    }

    #[test]
    fn added_noise_keeps_the_image_beneath_and_is_not_clipped() {
        let mut values = vec![0.5_f32; 30_000];
        AddedNoise::new(0).apply(1, &mut values);
        let (mean, std) = moments(&values);
        assert!((mean - 0.5).abs() < 0.03 && (std - 1.0).abs() < 0.02, "{mean} {std}");
        let outside = values.iter().filter(|&&value| !(0.0..=1.0).contains(&value)).count();
        // P(|N| > 0.5) = 0.617.
        assert!((18_000..19_000).contains(&outside), "{outside}");
    }

    #[test]
    fn replaced_inputs_say_nothing_of_what_they_were() {
        let replaced = |start: f32| {
            let mut values = vec![start; 30_000];
            ReplaceWithNoise::new(0).apply(1, &mut values);
            values
        };
        assert_eq!(replaced(0.0), replaced(100.0));
        let (mean, std) = moments(&replaced(100.0));
        assert!(mean.abs() < 0.03 && (std - 1.0).abs() < 0.02, "{mean} {std}");
    }

    #[test]
    fn noise_is_fixed_per_sample_and_differs_between_samples_values_and_kinds() {
        let added = |index| {
            let mut values = [0.0_f64; 5];
            AddedNoise::new(3).apply(index, &mut values);
            values
        };
        assert_eq!(added(1), added(1));
        assert_ne!(added(1), added(2));
        assert!(added(1).windows(2).all(|pair| pair[0] != pair[1]));
        let mut replaced = [0.0_f64; 5];
        ReplaceWithNoise::new(3).apply(1, &mut replaced);
        assert_ne!(added(1), replaced);
    }
}
