//! Samples that are sequences: texts as tokens, signals over time.

use std::collections::BTreeSet;

use lapwing_sample::{InputSpec, Values};

/// Sequences of equal length, the class of each, and the source where the data set says it.
#[derive(Clone, Debug)]
pub struct Sequences {
    /// Values, sample after sample.
    pub values: Values,
    /// What a sample looks like.
    pub spec: InputSpec,
    /// The class of each sample.
    pub labels: Vec<u32>,
    /// The source of each sample, where the data set has sources of its own.
    pub sources: Option<Vec<u32>>,
}

impl Sequences {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// How many classes each source has samples of, as the data set has them; nothing where it has no sources.
    pub(crate) fn classes_by_source(&self) -> Vec<u32> {
        let sources = self.sources.as_deref().unwrap_or_default();
        let mut found =
            vec![BTreeSet::new(); sources.iter().max().map_or(0, |&last| last as usize + 1)];
        for (&source, &class) in sources.iter().zip(&self.labels) {
            found[source as usize].insert(class);
        }
        found.iter().map(|classes| classes.len() as u32).collect()
    }

    /// The first moments of every sequence, all where there are no more.
    pub(crate) fn cut(self, length: usize) -> Self {
        let size = self.spec.size();
        let spec = match self.spec {
            InputSpec::Tokens { longest, vocabulary } => {
                InputSpec::Tokens { longest: longest.min(length), vocabulary }
            }
            InputSpec::Series { longest, channels } => {
                InputSpec::Series { longest: longest.min(length), channels }
            }
            whole => whole,
        };
        let kept = spec.size();
        let values = match self.values {
            Values::Tokens(tokens) => Values::Tokens(heads(&tokens, size, kept)),
            Values::Floats(values) => Values::Floats(heads(&values, size, kept)),
            texts @ Values::Texts { .. } => texts,
        };
        Self { values, spec, ..self }
    }
}

/// The first `kept` of every `size` values.
fn heads<T: Copy>(values: &[T], size: usize, kept: usize) -> Vec<T> {
    values.chunks_exact(size.max(1)).flat_map(|row| &row[..kept]).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_counted_once_per_source() {
        let (values, spec) =
            (Values::Floats(vec![0.0; 5]), InputSpec::Series { longest: 1, channels: 1 });
        let sources = Some(vec![0, 2, 2, 0, 2]);
        let all = Sequences { values, spec, labels: vec![4, 1, 4, 4, 0], sources };
        assert_eq!(all.classes_by_source(), [1, 0, 3]);
        assert!(Sequences { sources: None, ..all }.classes_by_source().is_empty());
    }

    #[test]
    fn sequences_are_cut_behind_their_first_moments() {
        let of = |values, spec| Sequences { values, spec, labels: vec![0, 1], sources: None };
        let spec = InputSpec::Series { longest: 3, channels: 2 };
        let signals = of(Values::Floats((0..12).map(|at| at as f32).collect()), spec).cut(2);
        assert_eq!(signals.spec, InputSpec::Series { longest: 2, channels: 2 });
        assert_eq!(signals.values, Values::Floats(vec![0., 1., 2., 3., 6., 7., 8., 9.]));

        let spec = InputSpec::Tokens { longest: 2, vocabulary: 9 };
        let texts = of(Values::Tokens(vec![1, 2, 3, 0]), spec).cut(5);
        assert_eq!((texts.spec, texts.values), (spec, Values::Tokens(vec![1, 2, 3, 0])));
    }
}
