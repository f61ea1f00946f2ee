//! A bag of words: embeddings of the words and word pairs of a text, averaged, beside numbers, then linear layers.
//!
//! A batch touches a small part of the vocabulary. Only the rows of these are taken out of the table, have a gradient and
//! are moved by the optimiser, so that a step costs what the batch holds, however large the vocabulary is.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use lapwing_onnx::{Attribute, Element};
use lapwing_ops as ops;
use lapwing_sample::{Draws, InputSpec};
use serde::{Deserialize, Serialize};

use super::layers::{Draw, Linear, drop_out};
use super::sequence::embedded;
use super::{
    Config, DataShape, Drawing, Forward, Inexpressible, Input, OnnxInput, Outputs, Refusal,
    Training, Wishes,
};
use crate::parameters::ArraySpec;

/// Numbers per word.
const WIDTH: usize = 64;
/// First embeddings are drawn from ± this: small beside what they become, so that a word that is hardly ever seen says
/// hardly anything.
const BOUND: f32 = 0.05;
const DROPOUT: f32 = 0.3;
/// Numbers beside the text are squashed into so many standard deviations.
const SQUASH: f32 = 3.0;
const MOST_UNITS: usize = 1 << 20;
const MOST_LAYERS: usize = 64;

/// Sizes of a bag of words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BagConfig {
    /// Words and word pairs of a text, at most.
    pub longest: usize,
    /// Words and word pairs there are.
    pub vocabulary: usize,
    /// Numbers beside the text.
    pub numbers: usize,
    /// Numbers per word.
    pub width: usize,
    /// Units of each hidden layer.
    pub hidden: Vec<usize>,
    /// Classes, or 1 for a value.
    pub outputs: usize,
    /// Share of the averages and of hidden units set to zero at each training step, in [0, 1).
    pub dropout: f32,
}

impl BagConfig {
    /// Of the layers behind the embeddings.
    fn sizes(&self) -> Vec<usize> {
        [&[self.width + self.numbers], &self.hidden[..], &[self.outputs]].concat()
    }
}

impl Config for BagConfig {
    type Network = Bag;
    const NAME: &'static str = "bag";
    const ABOUT: &'static str =
        "The mean of embeddings of words and word pairs, beside numbers, then linear layers";
    const TAKES: &'static str = "texts";

    fn takes(input: &InputSpec) -> bool {
        matches!(input, InputSpec::Text { .. })
    }

    fn plan(shape: &DataShape, wishes: &Wishes) -> Result<Self, Refusal> {
        let InputSpec::Text { longest, vocabulary, width: numbers } = shape.input else {
            return Err(Refusal("is for texts"));
        };
        Ok(Self {
            longest,
            vocabulary,
            numbers,
            width: WIDTH,
            hidden: wishes.hidden.clone().unwrap_or_default(),
            outputs: shape.outputs,
            dropout: wishes.dropout.unwrap_or(DROPOUT),
        })
    }

    fn input(&self) -> InputSpec {
        let Self { longest, vocabulary, numbers: width, .. } = *self;
        InputSpec::Text { longest, vocabulary, width }
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn wishes(&self) -> Wishes {
        let (hidden, dropout) = (Some(self.hidden.clone()), Some(self.dropout));
        Wishes { hidden, dropout, ..Wishes::default() }
    }

    fn summary(&self) -> String {
        let beside = match self.numbers {
            0 => String::new(),
            numbers => format!("+{numbers}"),
        };
        let layers: Vec<String> = self.sizes()[1..].iter().map(ToString::to_string).collect();
        format!("{} {}×{}{beside}-{}", Self::NAME, self.vocabulary, self.width, layers.join("-"))
    }

    fn check(&self) -> Result<(), String> {
        let sizes = [&self.sizes()[..], &[self.width]].concat();
        if self.hidden.len() >= MOST_LAYERS
            || self.numbers > MOST_UNITS
            || sizes.iter().any(|size| !(1..=2 * MOST_UNITS).contains(size))
        {
            return Err(format!(
                "1 to 2^21 units per layer and at most {MOST_LAYERS} layers, found {sizes:?}"
            ));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(format!("a dropout from 0 to below 1, found {}", self.dropout));
        }
        if u32::try_from(self.longest).is_err() || i32::try_from(self.vocabulary).is_err() {
            return Err("texts and a vocabulary of less than 2^31 words".to_owned());
        }
        Ok(())
    }

    fn arrays(&self) -> Vec<ArraySpec> {
        let table = ArraySpec {
            name: "table".to_owned(),
            shape: vec![self.vocabulary, self.width],
            learnt: true,
        };
        let layer = |(depth, pair): (usize, &[usize])| {
            Linear::arrays(&format!("layers.{depth}"), [pair[0], pair[1]])
        };
        let layers = self.sizes();
        [table].into_iter().chain(layers.windows(2).enumerate().flat_map(layer)).collect()
    }

    fn init(&self, draws: &mut Draws, device: &Device) -> Bag {
        let mut number = || BOUND * (2.0 * draws.unit_single() - 1.0);
        let table: Vec<f32> = (0..self.vocabulary * self.width).map(|_| number()).collect();
        let shape = [self.vocabulary, self.width];
        let layer = |pair: &[usize]| Linear::init([pair[0], pair[1]], Draw::Uniform, draws, device);
        Bag {
            table: Param::from_data(TensorData::new(table, shape), device),
            layers: self.sizes().windows(2).map(layer).collect(),
            dropout: self.dropout,
        }
    }

    fn onnx(&self, to: &mut Drawing<'_>, input: &OnnxInput) -> Result<String, Inexpressible> {
        let OnnxInput::Texts { words, numbers } = input else { return Err(input.misfit()) };
        // Behind the words stands a row of zeros, for nothing.
        let table = to.array("table")?;
        let rows = [&table.values[..], &vec![0.0; self.width]].concat();
        let table = to.graph.floats(&rows, &[self.vocabulary + 1, self.width]);
        let found = to.graph.node("Gather", &[&table, words]);
        let sum = to.sum(&found, 1);
        let (one, axes) = (to.graph.floats(&[1.0], &[1]), to.graph.ints(&[1], &[1]));
        let nothing = to.graph.ints(&[self.vocabulary as i64], &[1]);
        let something = to.graph.node("Less", &[words, &nothing]);
        let something = to.graph.cast(&something, Element::Float);
        let count = to.graph.node("ReduceSum", &[&something, &axes]);
        let count = to.graph.node("Max", &[&count, &one]);
        let mut x = to.graph.node("Div", &[&sum, &count]);
        if let Some(numbers) = numbers {
            let numbers = to.squash(numbers, SQUASH);
            x = to.graph.node_with("Concat", &[&x, &numbers], &[("axis", Attribute::Int(1))]);
        }
        for depth in 0..self.hidden.len() {
            let sum = to.linear(&format!("layers.{depth}"), &x)?;
            x = to.relu(&sum);
        }
        to.linear(&format!("layers.{}", self.hidden.len()), &x)
    }
}

/// The parameters of a bag of words.
#[derive(Module, Debug)]
pub(crate) struct Bag {
    table: Param<Tensor<2>>,
    layers: Vec<Linear>,
    dropout: f32,
}

impl Forward for Bag {
    fn forward(&self, input: &Input, mut training: Option<&mut Training>) -> Outputs {
        let text = input.texts();
        let Some((last, hidden)) = self.layers.split_last() else {
            unreachable!("a bag of words has an output layer")
        };
        let rows = embedded(&self.table, &text.words, training.as_deref_mut());
        let mut x = ops::bag_means(rows, &text.bags);
        x = drop_out(x, self.dropout, training.as_deref_mut());
        if let Some(numbers) = &text.numbers {
            x = Tensor::cat(vec![x, ops::squash(numbers.clone(), SQUASH)], 1);
        }
        let mut embedding = Some(x.clone());
        for layer in hidden {
            x = layer.relu(x);
            embedding = Some(x.clone());
            x = drop_out(x, self.dropout, training.as_deref_mut());
        }
        Outputs { logits: last.forward(x), embedding }
    }
}
