//! What networks for sequences have in common: where their numbers come from, and what they make of different lengths.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use lapwing_ops as ops;
use lapwing_ops::Bags;
use lapwing_sample::{Draws, InputSpec};

use super::layers::{Draw, Linear};
use super::{Drawing, Inexpressible, Input, OnnxInput, Touched, Training};
use crate::parameters::ArraySpec;

/// Most moments, channels and words that a network may be asked for.
pub(super) const MOST: usize = 1 << 20;

/// What a sequence consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) longest: usize,
    /// Words of a text; otherwise there are `channels`.
    pub(super) vocabulary: Option<usize>,
    pub(super) channels: usize,
}

impl Kind {
    pub(super) fn takes(input: &InputSpec) -> bool {
        Self::of(input).is_some()
    }

    pub(super) fn of(input: &InputSpec) -> Option<Self> {
        match *input {
            InputSpec::Series { longest, channels } => {
                Some(Self { longest, vocabulary: None, channels })
            }
            InputSpec::Tokens { longest, vocabulary } => {
                Some(Self { longest, vocabulary: Some(vocabulary), channels: 0 })
            }
            _ => None,
        }
    }

    pub(super) fn input(&self) -> InputSpec {
        let (longest, channels) = (self.longest, self.channels);
        match self.vocabulary {
            Some(vocabulary) => InputSpec::Tokens { longest, vocabulary },
            None => InputSpec::Series { longest, channels },
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=MOST).contains(&self.longest)
            || self.channels > MOST
            || self.vocabulary.is_some_and(|words| !(1..=1 << 30).contains(&words))
        {
            return Err("sequences of 1 to 2^20 moments and channels".to_owned());
        }
        Ok(())
    }
}

/// Words by their embeddings.
#[derive(Module, Debug)]
pub(super) struct Embedding {
    pub(super) table: Param<Tensor<2>>,
}

impl Embedding {
    /// Numbers of the standard normal distribution, as PyTorch draws them.
    pub(super) fn init(words: usize, width: usize, draws: &mut Draws, device: &Device) -> Self {
        let numbers: Vec<f32> = (0..words * width).map(|_| draws.normal_single()).collect();
        Self { table: Param::from_data(TensorData::new(numbers, [words, width]), device) }
    }

    pub(super) fn arrays(name: &str, words: usize, width: usize) -> Vec<ArraySpec> {
        vec![ArraySpec::learnt(name, "table", [words, width])]
    }

    /// The rows of the words in a batch, each once; no other row has a gradient.
    fn rows(&self, words: &std::sync::Arc<[u32]>, training: Option<&mut Training>) -> Tensor<2> {
        embedded(&self.table, words, training)
    }
}

/// The rows of a table for the words of a batch, each once, and the note that no other has a gradient.
pub(super) fn embedded(
    table: &Param<Tensor<2>>,
    words: &std::sync::Arc<[u32]>,
    training: Option<&mut Training>,
) -> Tensor<2> {
    let rows = ops::rows_of(table.val(), words);
    let Some(training) = training else { return rows };
    let rows = Tensor::from_inner(rows).require_grad();
    training.touched.push(Touched { id: table.id, rows: words.clone(), values: rows.clone() });
    rows
}

/// What comes into a network: embeddings of words, or the numbers of a series, as they are or by a layer of their own.
#[derive(Module, Debug)]
pub(super) struct Entry {
    words: Option<Embedding>,
    layer: Option<Linear>,
}

/// A batch of sequences `[n, moments, width]`, not longer than the longest of them where that is asked for.
pub(super) struct Batch {
    pub(super) x: Tensor<3>,
    pub(super) lengths: Vec<u32>,
}

impl Entry {
    /// For sequences of a kind. Texts have embeddings of `width` numbers; series have a layer to that, where `layered`.
    pub(super) fn init(
        kind: Kind,
        width: usize,
        layered: bool,
        draws: &mut Draws,
        device: &Device,
    ) -> Self {
        let layer = kind.vocabulary.is_none() && layered;
        Self {
            words: kind.vocabulary.map(|words| Embedding::init(words, width, draws, device)),
            layer: layer
                .then(|| Linear::init([kind.channels, width], Draw::Uniform, draws, device)),
        }
    }

    pub(super) fn arrays(kind: Kind, width: usize, layered: bool) -> Vec<ArraySpec> {
        match kind.vocabulary {
            Some(words) => Embedding::arrays("entry.words", words, width),
            None if layered => Linear::arrays("entry.layer", [kind.channels, width]),
            None => Vec::new(),
        }
    }

    /// The numbers of each moment. What is padding in all sequences is left out, unless it is to be seen.
    pub(super) fn forward(
        &self,
        input: &Input,
        padding: bool,
        training: Option<&mut Training>,
    ) -> Batch {
        let (n, longest, lengths) = input.lengths();
        let most = lengths.iter().max().map_or(longest, |&most| (most as usize).max(1));
        let moments = if padding { longest } else { most.min(longest) };
        let lengths = if padding { vec![longest as u32; n] } else { lengths.to_vec() };
        let x = match (input, &self.words) {
            (Input::Tokens(tokens), Some(words)) => {
                let rows = words.rows(&tokens.words, training);
                let [_, width] = rows.dims();
                let places = tokens.places.chunks_exact(longest.max(1));
                let items: Vec<u32> = places.flat_map(|row| &row[..moments]).copied().collect();
                let ones = vec![1; items.len()];
                ops::bag_means(rows, &Bags::new(items, &ones)).reshape([n, moments, width])
            }
            _ => {
                let (x, _) = input.series();
                let [_, _, channels] = x.dims();
                let x = x.narrow(1, 0, moments);
                match &self.layer {
                    None => x,
                    Some(layer) => {
                        let rows = layer.forward(x.reshape([n * moments, channels]));
                        let [_, width] = rows.dims();
                        rows.reshape([n, moments, width])
                    }
                }
            }
        };
        Batch { x, lengths }
    }
}

/// What comes into a network as operators of ONNX, `[rows, moments, width]`, and lengths `[rows, 1]`.
pub(super) fn entered(
    to: &mut Drawing<'_>,
    input: &OnnxInput,
    layered: bool,
) -> Result<(String, String), Inexpressible> {
    match input {
        OnnxInput::Tokens { words, lengths } => {
            let table = to.constant("entry.words.table")?;
            Ok((to.graph.node("Gather", &[&table, words]), lengths.clone()))
        }
        OnnxInput::Series { values, lengths } => {
            let x = to.transpose(values, &[0, 2, 1]);
            let x = if layered { to.linear("entry.layer", &x)? } else { x };
            Ok((x, lengths.clone()))
        }
        _ => Err(input.misfit()),
    }
}

/// The last moment of each sequence: `[n, moments, width]` to `[n, width]`.
pub(super) fn last_moments(x: Tensor<3>, lengths: &[u32]) -> Tensor<2> {
    let [n, moments, width] = x.dims();
    let last = |(row, &length): (usize, &u32)| {
        let last = (length.max(1) as usize).min(moments) - 1;
        (row * moments + last) as u32
    };
    let items = lengths.iter().enumerate().map(last).collect();
    ops::bag_means(x.reshape([n * moments, width]), &Bags::new(items, &vec![1; n]))
}

/// The mean over the first moments of each sequence, as many as it has.
pub(super) fn mean_of_moments(x: Tensor<3>, lengths: &[u32]) -> Tensor<2> {
    let [n, moments, width] = x.dims();
    let shares = lengths.iter().flat_map(|&length| {
        let length = length.clamp(1, moments.max(1) as u32);
        let share = 1.0 / length as f32;
        (0..moments as u32).map(move |moment| if moment < length { share } else { 0.0 })
    });
    let shares = TensorData::new(shares.collect::<Vec<f32>>(), [n, moments, 1]);
    let shares = Tensor::<3>::from_data(shares, &x.device());
    (x * shares).sum_dim(1).reshape([n, width])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_neither_the_last_moment_nor_averaged() {
        let x = Tensor::<3>::from_data(
            [[[1.0], [3.0], [50.0]], [[1.0], [3.0], [5.0]], [[7.0], [8.0], [9.0]]],
            &Device::flex(),
        );
        let values = |x: Tensor<2>| x.into_data().try_to_vec::<f32>().unwrap();
        assert_eq!(values(mean_of_moments(x.clone(), &[2, 3, 0])), [2.0, 3.0, 7.0]);
        assert_eq!(values(last_moments(x, &[2, 3, 0])), [3.0, 5.0, 7.0]);
    }
}
