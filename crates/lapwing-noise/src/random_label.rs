//! Labels that are drawn anew.

use lapwing_sample::Draws;

use crate::draws::Purpose;
use crate::error::NoiseError;

/// Random Label, as a map: in each source every class becomes one class drawn uniformly, maybe itself. All samples of
/// a class in a source get the same new label, so a noisy source is as learnable as a clean one, only wrong; two classes
/// may become one.
#[derive(Clone, Copy, Debug)]
pub struct RandomLabel {
    seed: u64,
    classes: u32,
}

impl RandomLabel {
    /// Noise of a seed over so many classes.
    pub fn new(seed: u64, classes: u32) -> Result<Self, NoiseError> {
        Ok(Self { seed, classes: at_least(1, classes)? })
    }

    /// The class that a class becomes in a source.
    pub fn label(&self, source: u64, label: u32) -> u32 {
        Draws::of(self.seed, Purpose::RandomLabel, source, u64::from(label)).below(self.classes)
    }
}

/// Random Label, sample by sample: every sample gets a class drawn uniformly, maybe its own. Fixed per sample.
#[derive(Clone, Copy, Debug)]
pub struct RandomLabelPerSample {
    seed: u64,
    classes: u32,
}

impl RandomLabelPerSample {
    /// Noise of a seed over so many classes.
    pub fn new(seed: u64, classes: u32) -> Result<Self, NoiseError> {
        Ok(Self { seed, classes: at_least(1, classes)? })
    }

    /// The label of a sample.
    pub fn label(&self, index: u64) -> u32 {
        Draws::of(self.seed, Purpose::RandomLabelPerSample, 0, index).below(self.classes)
    }
}

pub(crate) fn at_least(needed: u32, classes: u32) -> Result<u32, NoiseError> {
    if classes < needed {
        return Err(NoiseError::TooFewClasses { needed, found: classes });
    }
    Ok(classes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pearson's statistic against equal counts.
    fn chi_square(counts: &[u32]) -> f64 {
        let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum()
    }

    #[test]
    fn a_source_maps_classes_and_sources_map_them_differently() {
        let noise = RandomLabel::new(0, 10).unwrap();
        let map = |source| (0..10).map(|class| noise.label(source, class)).collect::<Vec<_>>();
        assert_eq!(map(4), map(4), "every sample of a class gets the same label");
        assert_ne!(map(4), map(5));
        let distinct = map(4).into_iter().collect::<std::collections::BTreeSet<_>>();
        assert!(distinct.len() < 10, "a map of random classes, not a permutation: {distinct:?}");
    }

    #[test]
    fn a_class_becomes_any_class_equally_often_itself_included() {
        let noise = RandomLabel::new(1, 10).unwrap();
        for class in [0, 7] {
            let mut counts = [0; 10];
            for source in 0..10_000 {
                counts[noise.label(source, class) as usize] += 1;
            }
            // 9 degrees of freedom: beyond 39.3 once in 100,000.
            assert!(chi_square(&counts) < 39.3, "{counts:?}");
            assert!(counts[class as usize] > 850, "itself included");
        }
    }

    #[test]
    fn the_share_kept_varies_between_sources_as_it_does_for_maps_only() {
        let noise = RandomLabel::new(2, 10).unwrap();
        let kept: Vec<f64> = (0..2000)
            .map(|source| {
                (0..10).filter(|&class| noise.label(source, class) == class).count() as f64
            })
            .map(|classes| classes / 10.0)
            .collect();
        let mean = kept.iter().sum::<f64>() / 2000.0;
        let variance = kept.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / 2000.0;
        // 10 % stay on average; the standard deviation is √(0.1·0.9/10) = 9.5 points, whatever the number of samples.
        assert!((mean - 0.1).abs() < 0.011, "{mean}");
        assert!((variance.sqrt() - 0.095).abs() < 0.01, "{variance}");
    }

    #[test]
    fn samples_of_one_class_get_every_class_when_drawn_one_by_one() {
        let noise = RandomLabelPerSample::new(0, 10).unwrap();
        let mut counts = [0; 10];
        for index in 0..10_000 {
            assert_eq!(noise.label(index), noise.label(index));
            counts[noise.label(index) as usize] += 1;
        }
        assert!(chi_square(&counts) < 39.3, "{counts:?}");
        let other = RandomLabelPerSample::new(1, 10).unwrap();
        assert!((0..100).any(|index| other.label(index) != noise.label(index)));
    }

    #[test]
    fn no_class_is_an_error() {
        assert!(RandomLabel::new(0, 0).is_err() && RandomLabelPerSample::new(0, 0).is_err());
    }
}
