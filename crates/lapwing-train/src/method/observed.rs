//! What a method sees of a batch before it says what each row counts for.

use std::fmt;
use std::ops::Range;

use lapwing_core::BatchSums;
use lapwing_sample::probability;

/// A batch as the network sees it, as plain numbers: nothing here knows of tensors.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    /// Steps before this one.
    pub step: u64,
    /// Epochs before this one.
    pub epoch: usize,
    /// The rows.
    pub rows: &'a [u32],
    /// The source of each row.
    pub sources: &'a [u32],
    /// The class of each row as this step sees it; empty where targets are values.
    pub labels: &'a [u32],
    /// The loss of each row; may be NaN or infinite.
    pub losses: &'a [f32],
    pub(crate) outputs: &'a dyn Fn() -> Vec<f32>,
    /// What the whole batch says of each source, where other workers have parts of it.
    pub(crate) sums: Option<&'a BatchSums<u32>>,
    /// Where the rows of each shard are; none where they are one.
    pub(crate) shards: &'a [Range<usize>],
}

impl fmt::Debug for Observed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").field("step", &self.step).finish_non_exhaustive()
    }
}

impl<'a> Observed<'a> {
    /// Losses and sources, and nothing else that is known.
    pub fn new(losses: &'a [f32], sources: &'a [u32]) -> Self {
        let (rows, labels, outputs) = (&[][..], &[][..], &Vec::new);
        let (sums, shards) = (None, &[][..]);
        Self { step: 0, epoch: 0, rows, sources, labels, losses, outputs, sums, shards }
    }

    /// The same with the outputs of the network, which are fetched when somebody asks for them.
    #[must_use]
    pub fn with_outputs(self, outputs: &'a dyn Fn() -> Vec<f32>) -> Self {
        Self { outputs, ..self }
    }

    /// What the losses of the whole batch, of which other workers may have parts, say of each source that `counts`.
    pub fn sum_up(&self, sums: &mut BatchSums<u32>, counts: impl Fn(u32) -> bool) {
        sums.clear();
        match self.sums {
            Some(whole) => {
                let counted = whole.iter().filter(|(source, _)| counts(**source));
                counted.for_each(|(source, sum)| sums.add_sum(source, sum));
            }
            None => {
                let rows = self.losses.iter().zip(self.sources);
                let counted = rows.filter(|(_, source)| counts(**source));
                counted.for_each(|(&loss, source)| sums.add(source, f64::from(loss)));
            }
        }
    }

    /// Where the rows of each shard of the batch are among these. What is summed up shard by shard and merged in this
    /// order does not depend on the number of workers.
    pub fn shards(&self) -> Vec<Range<usize>> {
        match self.shards {
            [] => vec![Range { start: 0, end: self.len() }],
            shards => shards.to_vec(),
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.losses.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.losses.is_empty()
    }

    /// The probability that the network gives to the label of each row: e to the minus cross-entropy, so it costs
    /// nothing. NaN where the loss is; `None` where targets are values.
    pub fn probabilities_of_labels(&self) -> Option<Vec<f64>> {
        let probability = |&loss: &f32| (-f64::from(loss)).exp();
        (self.labels.len() == self.losses.len())
            .then(|| self.losses.iter().map(probability).collect())
    }

    /// The network's outputs, row after row: logits, or values in units of their standard deviation. They come from
    /// wherever tensors live, so ask only if losses do not do.
    pub fn outputs(&self) -> Vec<f32> {
        (self.outputs)()
    }

    /// The probability of every class, row after row; `None` where targets are values.
    pub fn probabilities(&self) -> Option<Vec<f64>> {
        if self.labels.len() != self.losses.len() || self.is_empty() {
            return None;
        }
        let outputs = self.outputs();
        let classes = outputs.len() / self.len();
        let of_row = |row: &[f32]| (0..classes).map(|class| probability(row, class)).collect();
        Some(outputs.chunks_exact(classes).flat_map(|row| -> Vec<f64> { of_row(row) }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_of_labels_come_from_losses_and_agree_with_those_of_all_classes() {
        let outputs = || vec![0.5f32, -1.0, 2.0, 100.0, 0.0, -100.0];
        let each = |row: &[f32]| [0, 1, 2].map(|class| probability(row, class));
        let all: Vec<f64> = outputs().chunks_exact(3).flat_map(each).collect();
        let (labels, sources) = ([2, 1], [0, 0]);
        let losses = [-(all[2].ln()) as f32, -(all[4].ln()) as f32];
        let observed = Observed::new(&losses, &sources).with_outputs(&outputs);
        assert_eq!(observed.probabilities_of_labels(), None);
        let observed = Observed { labels: &labels, ..observed };
        assert_eq!(observed.probabilities().unwrap(), all);
        let given = observed.probabilities_of_labels().unwrap();
        assert!((given[0] - all[2]).abs() < 1e-7 && (given[1] / all[4] - 1.0).abs() < 1e-5);
        assert!(all.chunks_exact(3).all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-12));
    }
}
