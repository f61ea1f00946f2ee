//! Labels that change once, within chunks of consecutive samples of one noisy source.

use lapwing_sample::Draws;

use crate::draws::Purpose;
use crate::error::NoiseError;
use crate::level::Level;

/// The fixed form of Batch Label Shuffle: labels change places within a chunk of one noisy source. The draw belongs to
/// the first sample of the chunk; at a level below 1 each sample takes its new label with that probability.
#[derive(Clone, Copy, Debug)]
pub struct ChunkLabelShuffle {
    seed: u64,
    level: Level,
}

impl ChunkLabelShuffle {
    /// Noise of a seed.
    pub fn new(seed: u64, level: Level) -> Self {
        Self { seed, level }
    }

    /// Changes the labels of a chunk; `samples` are the indices of its samples in the data set.
    pub fn apply(&self, samples: &[u64], labels: &mut [u32]) -> Result<(), NoiseError> {
        let Some(first) = first(samples, labels)? else { return Ok(()) };
        let mut shuffled = labels.to_vec();
        Draws::of(self.seed, Purpose::ChunkLabelShuffle, 0, first).shuffle(&mut shuffled);
        for ((&sample, label), new) in samples.iter().zip(labels).zip(shuffled) {
            if self.level.reaches(self.seed, sample) {
                *label = new;
            }
        }
        Ok(())
    }
}

/// The fixed form of Batch Label Flip: all samples of a chunk of one noisy source get one label, drawn from those of
/// the chunk. The draw belongs to the first sample of the chunk; at a level below 1 each sample takes the new label with
/// that probability.
#[derive(Clone, Copy, Debug)]
pub struct ChunkLabelFlip {
    seed: u64,
    level: Level,
}

impl ChunkLabelFlip {
    /// Noise of a seed.
    pub fn new(seed: u64, level: Level) -> Self {
        Self { seed, level }
    }

    /// Changes the labels of a chunk; `samples` are the indices of its samples in the data set.
    pub fn apply(&self, samples: &[u64], labels: &mut [u32]) -> Result<(), NoiseError> {
        let Some(first) = first(samples, labels)? else { return Ok(()) };
        let mut draws = Draws::of(self.seed, Purpose::ChunkLabelFlip, 0, first);
        let new = labels[draws.below(labels.len() as u32) as usize];
        for (&sample, label) in samples.iter().zip(labels) {
            if self.level.reaches(self.seed, sample) {
                *label = new;
            }
        }
        Ok(())
    }
}

/// The first sample of a chunk, where there is one.
fn first(samples: &[u64], labels: &[u32]) -> Result<Option<u64>, NoiseError> {
    if samples.len() != labels.len() {
        return Err(NoiseError::Lengths { expected: samples.len(), found: labels.len() });
    }
    Ok(samples.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(first: u64, count: u64) -> Vec<u64> {
        (first..first + count).collect()
    }

    #[test]
    fn a_shuffle_keeps_the_labels_of_its_chunk() {
        let mut labels: Vec<u32> = (0..128).collect();
        ChunkLabelShuffle::new(0, Level::FULL).apply(&samples(256, 128), &mut labels).unwrap();
        assert_ne!(labels, (0..128).collect::<Vec<_>>());
        labels.sort_unstable();
        assert_eq!(labels, (0..128).collect::<Vec<_>>());
    }

    #[test]
    fn a_flip_gives_a_chunk_one_of_its_labels_in_proportion_to_how_often_it_holds_them() {
        let mut threes = 0;
        for chunk in 0..2000 {
            let mut labels = [3, 3, 3, 8];
            ChunkLabelFlip::new(1, Level::FULL).apply(&samples(chunk * 4, 4), &mut labels).unwrap();
            assert!(labels == [3; 4] || labels == [8; 4], "{labels:?}");
            threes += u32::from(labels[0] == 3);
        }
        // Mean 1,500, standard deviation 19; drawn from the distinct labels it would be 1,000.
        assert!((1403..=1597).contains(&threes), "{threes}");
    }

    #[test]
    fn chunks_are_drawn_apart_and_the_same_every_time() {
        let shuffled = |first| {
            let mut labels: Vec<u32> = (0..50).collect();
            ChunkLabelShuffle::new(5, Level::FULL).apply(&samples(first, 50), &mut labels).unwrap();
            labels
        };
        assert_eq!(shuffled(100), shuffled(100), "fixed, unlike the form that draws per batch");
        assert_ne!(shuffled(100), shuffled(150));
    }

    #[test]
    fn at_a_level_each_sample_takes_its_new_label_or_keeps_the_true_one() {
        let level = Level::new(0.25).unwrap();
        let chunk = samples(0, 20_000);
        let mut full: Vec<u32> = (0..20_000).collect();
        let mut part = full.clone();
        ChunkLabelShuffle::new(0, Level::FULL).apply(&chunk, &mut full).unwrap();
        ChunkLabelShuffle::new(0, level).apply(&chunk, &mut part).unwrap();
        let taken = (0..20_000).filter(|&at| part[at] == full[at]).count();
        let kept = (0..20_000).filter(|&at| part[at] == at as u32).count();
        // Mean 5,000, standard deviation 61; the permutation itself has about one fixed point.
        assert!((4695..=5305).contains(&taken), "{taken}");
        assert!(taken + kept >= 20_000 && taken + kept < 20_010);
    }

    #[test]
    fn lists_that_do_not_belong_together_are_refused() {
        let refused = ChunkLabelFlip::new(0, Level::FULL).apply(&[1, 2], &mut [0]);
        assert_eq!(refused, Err(NoiseError::Lengths { expected: 2, found: 1 }));
        assert_eq!(ChunkLabelShuffle::new(0, Level::FULL).apply(&[], &mut []), Ok(()));
    }
}
