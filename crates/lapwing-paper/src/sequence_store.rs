//! The rows of an experiment with sequences: as they came, but for those that noise changed.

use std::collections::HashMap;
use std::sync::Arc;

use lapwing_sample::{Block, Exhibit, InputSpec, SampleError, Samples, Values, View};

use crate::data::Sequences;

/// Some sequences of a data set, in an order of their own, a few of them changed.
#[derive(Debug)]
pub(crate) struct SequenceStore {
    sequences: Arc<Sequences>,
    /// The sequence of each row.
    picked: Vec<u32>,
    /// Values of the rows that noise changed.
    floats: HashMap<u32, Box<[f32]>>,
    tokens: HashMap<u32, Box<[u32]>>,
}

impl SequenceStore {
    /// Sequences in the given order.
    pub(crate) fn new(sequences: Arc<Sequences>, picked: Vec<u32>) -> Self {
        Self { sequences, picked, floats: HashMap::new(), tokens: HashMap::new() }
    }

    /// All sequences in their own order.
    pub(crate) fn all(sequences: Arc<Sequences>) -> Self {
        let picked = (0..sequences.len() as u32).collect();
        Self::new(sequences, picked)
    }

    /// The class of each row.
    pub(crate) fn labels(&self) -> Vec<u32> {
        self.picked.iter().map(|&at| self.sequences.labels[at as usize]).collect()
    }

    /// The source of each row, where the data set says it.
    pub(crate) fn sources(&self) -> Option<Vec<u32>> {
        let sources = self.sequences.sources.as_ref()?;
        Some(self.picked.iter().map(|&at| sources[at as usize]).collect())
    }

    /// Changes the tokens of a row; signals have none.
    pub(crate) fn change_tokens(&mut self, row: usize, change: impl FnOnce(&mut [u32])) {
        let Values::Tokens(tokens) = &self.sequences.values else { return };
        let own = tokens.chunks_exact(self.sequences.spec.size()).nth(self.picked[row] as usize);
        let row = self.tokens.entry(row as u32);
        change(row.or_insert_with(|| own.unwrap_or_default().into()));
    }

    /// Changes the values of a row, unless `change` says that it did not; texts have none.
    pub(crate) fn change_signal(&mut self, row: usize, change: impl FnOnce(&mut [f32]) -> bool) {
        let Values::Floats(values) = &self.sequences.values else { return };
        let own = values.chunks_exact(self.sequences.spec.size()).nth(self.picked[row] as usize);
        let mut own: Box<[f32]> = own.unwrap_or_default().into();
        if change(&mut own) {
            self.floats.insert(row as u32, own);
        }
    }

    fn collect<T: Copy>(
        &self,
        rows: &[u32],
        values: &[T],
        changed: &HashMap<u32, Box<[T]>>,
    ) -> Vec<T> {
        let size = self.sequences.spec.size();
        let of_row = |&row: &u32| match changed.get(&row) {
            Some(changed) => &changed[..],
            None => &values[self.picked[row as usize] as usize * size..][..size],
        };
        rows.iter().flat_map(of_row).copied().collect()
    }
}

impl Samples for SequenceStore {
    fn len(&self) -> usize {
        self.picked.len()
    }

    fn spec(&self) -> InputSpec {
        self.sequences.spec
    }

    fn gather(&self, rows: &[u32], view: View) -> Result<Block, SampleError> {
        if view != View::Plain {
            return Err(SampleError::NoViews);
        }
        self.check_rows(rows)?;
        let values = match &self.sequences.values {
            Values::Tokens(tokens) => Values::Tokens(self.collect(rows, tokens, &self.tokens)),
            Values::Floats(values) => Values::Floats(self.collect(rows, values, &self.floats)),
            Values::Texts { .. } => return Err(SampleError::NoViews),
        };
        Ok(Block { values, lengths: None })
    }

    fn exhibit(&self, row: u32) -> Result<Exhibit, SampleError> {
        let channels = match self.sequences.spec {
            InputSpec::Series { channels, .. } => channels.max(1),
            _ => 1,
        };
        Ok(match self.gather(&[row], View::Plain)?.values {
            Values::Floats(values) => Exhibit::Lines(
                (0..channels)
                    .map(|channel| values.iter().skip(channel).step_by(channels).copied().collect())
                    .collect(),
            ),
            Values::Tokens(tokens) | Values::Texts { tokens, .. } => {
                let tokens: Vec<String> = tokens.iter().map(ToString::to_string).collect();
                Exhibit::Text(tokens.join(" "))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_picked_sequences_and_a_change_touches_one_row() {
        let sequences = |values, spec| {
            let (labels, sources) = (vec![0, 1, 0], Some(vec![5, 6, 7]));
            Arc::new(Sequences { values, spec, labels, sources })
        };
        let spec = InputSpec::Tokens { longest: 2, vocabulary: 9 };
        let texts = sequences(Values::Tokens(vec![1, 2, 3, 4, 5, 6]), spec);
        let mut store = SequenceStore::new(texts, vec![2, 0, 2]);
        assert_eq!((store.labels(), store.sources()), (vec![0, 0, 0], Some(vec![7, 5, 7])));
        store.change_tokens(2, |tokens| tokens[0] = 8);
        let found = store.gather(&[0, 1, 2], View::Plain).unwrap();
        assert_eq!(found.values, Values::Tokens(vec![5, 6, 1, 2, 8, 6]));
        assert!(store.gather(&[3], View::Plain).is_err());

        let spec = InputSpec::Series { longest: 1, channels: 2 };
        let signals = sequences(Values::Floats(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), spec);
        let mut store = SequenceStore::all(signals);
        store.change_signal(0, |values| {
            values[0] = 9.0;
            true
        });
        store.change_signal(1, |values| {
            values[0] = 9.0;
            false
        });
        let found = store.gather(&[0, 1], View::Plain).unwrap();
        assert_eq!(found.values, Values::Floats(vec![9.0, 2.0, 3.0, 4.0]));
        assert_eq!(store.exhibit(2).unwrap(), Exhibit::Lines(vec![vec![5.0], vec![6.0]]));
    }
}
