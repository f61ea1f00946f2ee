//! Labels that change anew in every training batch.

use lapwing_sample::Draws;

use crate::draws::Purpose;

/// Batch Label Shuffle: the labels of a batch of mixed sources are permuted, and the noisy samples take theirs from the
/// permutation; so a noisy sample may get the label of a clean one. Drawn afresh in every step.
#[derive(Clone, Copy, Debug)]
pub struct BatchLabelShuffle {
    seed: u64,
}

impl BatchLabelShuffle {
    /// Noise of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Changes the labels of a batch at the positions that are noisy.
    pub fn apply(&self, step: u64, labels: &mut [u32], is_noisy: impl Fn(usize) -> bool) {
        let mut shuffled = labels.to_vec();
        Draws::of(self.seed, Purpose::BatchLabelShuffle, 0, step).shuffle(&mut shuffled);
        for (position, (label, new)) in labels.iter_mut().zip(shuffled).enumerate() {
            if is_noisy(position) {
                *label = new;
            }
        }
    }
}

/// Batch Label Flip: one label is drawn from those of the batch, whatever their source, and all noisy samples of the
/// batch get it. Drawn afresh in every step.
#[derive(Clone, Copy, Debug)]
pub struct BatchLabelFlip {
    seed: u64,
}

impl BatchLabelFlip {
    /// Noise of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Changes the labels of a batch at the positions that are noisy.
    pub fn apply(&self, step: u64, labels: &mut [u32], is_noisy: impl Fn(usize) -> bool) {
        let chosen =
            Draws::of(self.seed, Purpose::BatchLabelFlip, 0, step).below(labels.len() as u32);
        let Some(&new) = labels.get(chosen as usize) else { return };
        for (position, label) in labels.iter_mut().enumerate() {
            if is_noisy(position) {
                *label = new;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of the positions are noisy; their label is 1, that of the others 0.
    fn batch(size: usize) -> Vec<u32> {
        (0..size).map(|position| u32::from(is_noisy(position))).collect()
    }

    fn is_noisy(position: usize) -> bool {
        position % 2 == 1
    }

    #[test]
    fn a_shuffle_changes_noisy_samples_only_and_draws_from_the_whole_batch() {
        let (mut ones, mut noisy) = (0, 0);
        for step in 0..500 {
            let mut labels = batch(128);
            BatchLabelShuffle::new(0).apply(step, &mut labels, is_noisy);
            assert!(labels.iter().step_by(2).all(|&label| label == 0), "clean samples keep theirs");
            ones += labels.iter().sum::<u32>();
            noisy += 64;
        }
        // Were the noisy samples shuffled among themselves, all would stay 1; from the whole batch, half do.
        let share = f64::from(ones) / f64::from(noisy);
        assert!((share - 0.5).abs() < 0.014, "{share}");
    }

    #[test]
    fn shuffling_a_batch_of_noisy_samples_keeps_the_labels_it_had() {
        let mut labels: Vec<u32> = (0..100).collect();
        BatchLabelShuffle::new(0).apply(3, &mut labels, |_| true);
        assert_ne!(labels, (0..100).collect::<Vec<_>>());
        labels.sort_unstable();
        assert_eq!(labels, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_flip_gives_all_noisy_samples_one_label_that_any_sample_of_the_batch_may_give() {
        let mut from_noisy = 0;
        for step in 0..1000 {
            let mut labels = batch(128);
            BatchLabelFlip::new(0).apply(step, &mut labels, is_noisy);
            assert!(labels.iter().step_by(2).all(|&label| label == 0));
            assert!(labels.iter().skip(1).step_by(2).all(|&label| label == labels[1]));
            from_noisy += labels[1];
        }
        // Mean 500, standard deviation 16.
        assert!((420..=580).contains(&from_noisy), "{from_noisy}");
    }

    #[test]
    fn draws_are_fresh_in_every_step_and_the_same_when_a_step_is_repeated() {
        let shuffled = |step| {
            let mut labels: Vec<u32> = (0..50).collect();
            BatchLabelShuffle::new(9).apply(step, &mut labels, |_| true);
            labels
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let flipped = |step| {
            let mut labels: Vec<u32> = (0..50).collect();
            BatchLabelFlip::new(9).apply(step, &mut labels, |_| true);
            labels[0]
        };
        assert_eq!(flipped(1), flipped(1));
        assert!((0..20).any(|step| flipped(step) != flipped(0)));
    }

    #[test]
    fn an_empty_batch_is_left_alone() {
        BatchLabelShuffle::new(0).apply(0, &mut [], |_| true);
        BatchLabelFlip::new(0).apply(0, &mut [], |_| true);
    }
}
