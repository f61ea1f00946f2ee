//! An exact number of wrong labels.

use lapwing_sample::Draws;

use crate::draws::Purpose;
use crate::error::NoiseError;
use crate::level::Level;
use crate::random_label::at_least;

/// Exact-count flip: of the n samples of a source, `int(n · level)` chosen at random get a wrong label. With two
/// classes that is the other one, with more one of the others, each as likely.
#[derive(Clone, Copy, Debug)]
pub struct ExactFlip {
    seed: u64,
    level: Level,
    classes: u32,
}

impl ExactFlip {
    /// Noise of a seed over so many classes, at least two.
    pub fn new(seed: u64, level: Level, classes: u32) -> Result<Self, NoiseError> {
        Ok(Self { seed, level, classes: at_least(2, classes)? })
    }

    /// Changes the labels of all samples of a source. Where a label is no class, nothing changes.
    pub fn apply(&self, source: u64, labels: &mut [u32]) -> Result<(), NoiseError> {
        let unknown = labels.iter().position(|&label| label >= self.classes);
        if let Some(sample) = unknown {
            let (label, classes) = (labels[sample], self.classes);
            return Err(NoiseError::UnknownClass { sample, label, classes });
        }
        let mut draws = Draws::of(self.seed, Purpose::ExactFlip, source, 0);
        let mut order: Vec<u32> = (0..labels.len() as u32).collect();
        draws.shuffle(&mut order);
        for &sample in &order[..self.level.count_of(labels.len())] {
            let label = &mut labels[sample as usize];
            let other = draws.below(self.classes - 1);
            *label = other + u32::from(other >= *label);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flipped(level: f64, classes: u32, source: u64, labels: &[u32]) -> Vec<u32> {
        let mut labels = labels.to_vec();
        let noise = ExactFlip::new(0, Level::new(level).unwrap(), classes).unwrap();
        noise.apply(source, &mut labels).unwrap();
        labels
    }

    #[test]
    fn exactly_so_many_labels_are_wrong() {
        for (level, expected) in [(0.0, 0), (0.025, 39), (0.05, 79), (0.25, 399), (1.0, 1599)] {
            for classes in [2, 5] {
                let labels: Vec<u32> = (0..1599).map(|at| at % classes).collect();
                let new = flipped(level, classes, 3, &labels);
                let wrong = new.iter().zip(&labels).filter(|(new, old)| new != old).count();
                assert_eq!(wrong, expected, "level {level}, {classes} classes");
                assert!(new.iter().all(|&label| label < classes));
            }
        }
    }

    #[test]
    fn with_more_than_two_classes_every_other_class_is_as_likely() {
        let mut counts = [0_u32; 4];
        for label in flipped(1.0, 4, 0, &[2; 12_000]) {
            counts[label as usize] += 1;
        }
        // Mean 4,000, standard deviation 52.
        assert_eq!(counts[2], 0);
        assert!([0, 1, 3].iter().all(|&at| (3740..=4260).contains(&counts[at])), "{counts:?}");
    }

    #[test]
    fn every_sample_is_as_likely_to_be_chosen_and_sources_are_chosen_apart() {
        let mut counts = [0_u32; 10];
        for source in 0..10_000 {
            for (count, label) in counts.iter_mut().zip(flipped(0.3, 2, source, &[0; 10])) {
                *count += label;
            }
        }
        // Mean 3,000, standard deviation 46.
        assert!(counts.iter().all(|count| (2770..=3230).contains(count)), "{counts:?}");
        assert_eq!(flipped(0.5, 2, 1, &[0; 50]), flipped(0.5, 2, 1, &[0; 50]));
    }

    #[test]
    fn what_cannot_be_flipped_is_refused_and_left_alone() {
        let refused = ExactFlip::new(0, Level::FULL, 1).unwrap_err();
        assert_eq!(refused, NoiseError::TooFewClasses { needed: 2, found: 1 });
        let mut labels = [0, 1, 2];
        let refused = ExactFlip::new(0, Level::FULL, 2).unwrap().apply(0, &mut labels).unwrap_err();
        assert_eq!(refused, NoiseError::UnknownClass { sample: 2, label: 2, classes: 2 });
        assert_eq!(labels, [0, 1, 2]);
    }
}
