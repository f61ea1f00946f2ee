//! Samples on their way into a network, and what comes out.

use std::sync::Arc;

use burn::tensor::{Bool, Device, Tensor, TensorData};
use lapwing_ops::Bags;
use lapwing_sample::{Block, InputSpec, SampleError, Samples, Values, View, augmix};

/// A batch of samples on the device; one variant per form of [`InputSpec`].
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// `[batch, width]`.
    Vectors(Tensor<2>),
    /// `[batch, height, width, channels]`.
    Images(Tensor<4>),
    /// `[batch, longest, channels]`, and how long each is.
    Series(Tensor<3>, Vec<u32>),
    /// Texts word by word, in their order.
    Tokens(Tokens),
    /// Bags of words, and numbers beside them.
    Texts(Texts),
}

/// A batch of texts, word by word.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    /// The words of the vocabulary that the batch holds, each once.
    pub(crate) words: Arc<[u32]>,
    /// Those of each text by their place among them, padded, text after text.
    pub(crate) places: Arc<[u32]>,
    pub(crate) longest: usize,
    /// How long each text is.
    pub(crate) lengths: Vec<u32>,
}

/// The words of a batch, each once, in the order in which the batch comes to them, and the place of every token among them.
fn distinct(tokens: &[u32], vocabulary: usize) -> (Arc<[u32]>, Vec<u32>) {
    const NONE: u32 = u32::MAX;
    let mut places = vec![NONE; vocabulary];
    let mut words = Vec::new();
    let place = |&token: &u32| {
        let place = &mut places[token as usize];
        if *place == NONE {
            *place = words.len() as u32;
            words.push(token);
        }
        *place
    };
    let items = tokens.iter().map(place).collect();
    (words.into(), items)
}

/// A batch of texts.
#[derive(Clone, Debug)]
pub(crate) struct Texts {
    /// The words of the vocabulary that the batch holds, each once.
    pub(crate) words: Arc<[u32]>,
    /// Which of these each text holds, by their place among them.
    pub(crate) bags: Bags,
    /// `[batch, width]`, where there are any.
    pub(crate) numbers: Option<Tensor<2>>,
}

impl Texts {
    fn new(tokens: &[u32], lengths: &[u32], vocabulary: usize, numbers: Option<Tensor<2>>) -> Self {
        let (words, items) = distinct(tokens, vocabulary);
        Self { bags: Bags::new(items, lengths), words, numbers }
    }
}

impl Input {
    /// Gathers rows; what comes is checked against what the samples say of themselves.
    pub(crate) fn gather(
        samples: &dyn Samples,
        rows: &[u32],
        view: View,
        device: &Device,
    ) -> Result<Self, SampleError> {
        let (block, spec) = (samples.gather(rows, view)?, samples.spec());
        block.check(spec, rows.len())?;
        Ok(Self::of(block, spec, rows.len(), device))
    }

    /// Gathers rows as they are after AugMix, as a step of a run sees them.
    pub(crate) fn augmix(
        samples: &dyn Samples,
        rows: &[u32],
        (seed, step): (u64, u64),
        device: &Device,
    ) -> Result<Self, SampleError> {
        let (mut block, spec) = (samples.gather(rows, View::Plain)?, samples.spec());
        block.check(spec, rows.len())?;
        if let Values::Floats(values) = &mut block.values {
            augmix(values, rows, spec, seed, step);
        }
        Ok(Self::of(block, spec, rows.len(), device))
    }

    /// A block that was checked.
    pub(super) fn of(block: Block, spec: InputSpec, rows: usize, device: &Device) -> Self {
        let lengths = |longest: usize| vec![longest as u32; rows];
        match (block.values, spec) {
            (Values::Floats(values), InputSpec::Vector { width }) => {
                Self::Vectors(Tensor::from_data(TensorData::new(values, [rows, width]), device))
            }
            (Values::Floats(values), InputSpec::Image { height, width, channels }) => {
                let data = TensorData::new(values, [rows, height, width, channels]);
                Self::Images(Tensor::from_data(data, device))
            }
            (Values::Floats(values), InputSpec::Series { longest, channels }) => {
                let data = TensorData::new(values, [rows, longest, channels]);
                let lengths = block.lengths.unwrap_or_else(|| lengths(longest));
                Self::Series(Tensor::from_data(data, device), lengths)
            }
            (Values::Tokens(tokens), InputSpec::Tokens { longest, vocabulary }) => {
                let (words, places) = distinct(&tokens, vocabulary);
                let lengths = block.lengths.unwrap_or_else(|| lengths(longest));
                Self::Tokens(Tokens { words, places: places.into(), longest, lengths })
            }
            (Values::Texts { tokens, numbers }, InputSpec::Text { vocabulary, width, .. }) => {
                let numbers = (width > 0)
                    .then(|| Tensor::from_data(TensorData::new(numbers, [rows, width]), device));
                let lengths = block.lengths.unwrap_or_default();
                Self::Texts(Texts::new(&tokens, &lengths, vocabulary, numbers))
            }
            (Values::Floats(_), InputSpec::Tokens { .. } | InputSpec::Text { .. })
            | (Values::Tokens(_) | Values::Texts { .. }, _) => {
                unreachable!("a block is checked against its spec before it gets here")
            }
        }
    }

    /// The same batch, in which the rows that are not `kept` are zero.
    pub(crate) fn only(&self, kept: &[bool]) -> Self {
        let mask = |device: &Device| {
            let dropped: Vec<bool> = kept.iter().map(|kept| !kept).collect();
            Tensor::<1, Bool>::from_data(TensorData::new(dropped, [kept.len()]), device)
        };
        let rows = kept.len();
        // Not by multiplication: zero times NaN is NaN.
        match self {
            Self::Vectors(x) => {
                let mask = mask(&x.device()).reshape([rows, 1]).expand(x.dims());
                Self::Vectors(x.clone().mask_fill(mask, 0.0))
            }
            Self::Images(x) => {
                let mask = mask(&x.device()).reshape([rows, 1, 1, 1]).expand(x.dims());
                Self::Images(x.clone().mask_fill(mask, 0.0))
            }
            Self::Series(x, lengths) => {
                let mask = mask(&x.device()).reshape([rows, 1, 1]).expand(x.dims());
                Self::Series(x.clone().mask_fill(mask, 0.0), lengths.clone())
            }
            Self::Tokens(tokens) => {
                let rows = tokens.places.chunks(tokens.longest.max(1)).zip(kept);
                let only = rows
                    .flat_map(|(row, kept)| row.iter().map(|place| if *kept { *place } else { 0 }));
                Self::Tokens(Tokens { places: only.collect(), ..tokens.clone() })
            }
            Self::Texts(texts) => {
                let blank = |x: &Tensor<2>| {
                    let mask = mask(&x.device()).reshape([rows, 1]).expand(x.dims());
                    x.clone().mask_fill(mask, 0.0)
                };
                Self::Texts(Texts {
                    words: texts.words.clone(),
                    bags: texts.bags.only(kept),
                    numbers: texts.numbers.as_ref().map(blank),
                })
            }
        }
    }

    /// The batch as rows of numbers.
    pub(super) fn vectors(&self) -> Tensor<2> {
        match self {
            Self::Vectors(x) => x.clone(),
            _ => unreachable!("a network for rows of numbers was given {self:?}"),
        }
    }

    /// The batch as series, and how long each is.
    pub(super) fn series(&self) -> (Tensor<3>, &[u32]) {
        match self {
            Self::Series(x, lengths) => (x.clone(), lengths),
            _ => unreachable!("a network for series was given {self:?}"),
        }
    }

    /// How many sequences there are, how long they are with padding, and how long each is without.
    pub(super) fn lengths(&self) -> (usize, usize, &[u32]) {
        match self {
            Self::Series(x, lengths) => (lengths.len(), x.dims()[1], lengths),
            Self::Tokens(tokens) => (tokens.lengths.len(), tokens.longest, &tokens.lengths),
            _ => unreachable!("a network for sequences was given {self:?}"),
        }
    }

    /// The batch as texts.
    pub(super) fn texts(&self) -> &Texts {
        match self {
            Self::Texts(texts) => texts,
            _ => unreachable!("a network for texts was given {self:?}"),
        }
    }

    /// The batch as images.
    pub(crate) fn images(&self) -> Tensor<4> {
        match self {
            Self::Images(x) => x.clone(),
            _ => unreachable!("a network for images was given {self:?}"),
        }
    }
}

/// What a network puts out for a batch.
#[derive(Clone, Debug)]
pub(crate) struct Outputs {
    /// `[batch, outputs]`: logits, or values in standard deviations from the mean.
    pub(crate) logits: Tensor<2>,
    /// `[batch, width]`: what the last layer sees, where there is a layer before it.
    pub(crate) embedding: Option<Tensor<2>>,
}

/// What the further heads of a network make of what its last layer sees.
#[derive(Clone, Debug)]
pub(crate) struct Projection {
    /// `[batch, few]`: the embedding, each row of length 1.
    pub(crate) embedding: Tensor<2>,
    /// `[batch, width]`: what the last layer sees, rebuilt from the embedding as it was before it was given that length.
    pub(crate) rebuilt: Tensor<2>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(values: Values, spec: InputSpec, lengths: Option<Vec<u32>>) -> Input {
        let block = Block { values, lengths };
        block.check(spec, 2).unwrap();
        Input::of(block, spec, 2, &Device::flex())
    }

    #[test]
    fn every_form_has_its_tensor_and_rows_can_be_blanked() {
        let floats = |count: usize| {
            let mut values: Vec<f32> = (1..=count).map(|i| i as f32).collect();
            values[0] = f32::NAN;
            Values::Floats(values)
        };
        let kept = [false, true];
        let spec = InputSpec::Vector { width: 3 };
        let Input::Vectors(x) = input(floats(6), spec, None).only(&kept) else { unreachable!() };
        assert_eq!(x.into_data().try_to_vec::<f32>().unwrap(), [0., 0., 0., 4., 5., 6.]);
        let spec = InputSpec::Image { height: 2, width: 1, channels: 2 };
        let Input::Images(x) = input(floats(8), spec, None).only(&kept) else { unreachable!() };
        assert_eq!(x.dims(), [2, 2, 1, 2]);
        assert_eq!(x.into_data().try_to_vec::<f32>().unwrap()[..5], [0., 0., 0., 0., 5.]);
        let spec = InputSpec::Series { longest: 2, channels: 2 };
        let series = input(floats(8), spec, Some(vec![1, 2])).only(&kept);
        let Input::Series(x, lengths) = series else { unreachable!() };
        assert_eq!((x.dims(), lengths), ([2, 2, 2], vec![1, 2]));
        let spec = InputSpec::Tokens { longest: 2, vocabulary: 9 };
        let text = input(Values::Tokens(vec![1, 2, 3, 4]), spec, None).only(&kept);
        let Input::Tokens(tokens) = text else { unreachable!() };
        assert_eq!((&tokens.lengths[..], &tokens.words[..]), (&[2, 2][..], &[1, 2, 3, 4][..]));
        assert_eq!(tokens.places[..], [0, 0, 2, 3]);
    }
}
