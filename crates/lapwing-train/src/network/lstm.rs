//! Layers of long short-term memory, for texts and series: what the last layer hides at the last moment, then a linear layer.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use lapwing_onnx::Attribute;
use lapwing_ops as ops;
use lapwing_sample::{Draws, InputSpec};
use serde::{Deserialize, Serialize};

use super::layers::{Draw, Linear};
use super::sequence::{Entry, Kind, entered, last_moments};
use super::{
    Config, DataShape, Drawing, Forward, Inexpressible, Input, OnnxInput, Outputs, Refusal,
    Training, Wishes,
};
use crate::parameters::ArraySpec;

/// Numbers per word.
const WIDTH: usize = 256;
/// Units of each layer, unless others are asked for.
const UNITS: [usize; 2] = [128; 2];
/// Those of the paper.
const PAPERS_UNITS: [usize; 2] = [512; 2];
const DROPOUT: f32 = 0.25;
const MOST_UNITS: usize = 1 << 14;
const MOST_LAYERS: usize = 16;

/// Sizes of layers of long short-term memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LstmConfig {
    /// Most words of a text, or moments of a series.
    pub longest: usize,
    /// Words there are; nothing for series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
    /// Numbers per word, or per moment.
    pub width: usize,
    /// Units of each layer.
    pub units: Vec<usize>,
    /// Classes, or 1 for a value.
    pub outputs: usize,
    /// Share of what each layer hides that is set to zero at each training step, in [0, 1).
    pub dropout: f32,
    /// Whether padding is read like words, so that the last moment is mostly padding: what the paper's network does.
    pub padding: bool,
}

impl LstmConfig {
    /// The network of the paper, for texts of 256 words.
    pub fn paper(vocabulary: usize, outputs: usize) -> Self {
        Self {
            longest: 256,
            vocabulary: Some(vocabulary),
            width: WIDTH,
            units: PAPERS_UNITS.to_vec(),
            outputs,
            dropout: DROPOUT,
            padding: true,
        }
    }

    fn kind(&self) -> Kind {
        let channels = if self.vocabulary.is_some() { 0 } else { self.width };
        Kind { longest: self.longest, vocabulary: self.vocabulary, channels }
    }

    /// Numbers that come in, then those that each layer hides.
    fn sizes(&self) -> Vec<usize> {
        [&[self.width], &self.units[..]].concat()
    }
}

impl Config for LstmConfig {
    type Network = Lstm;
    const NAME: &'static str = "lstm";
    const ABOUT: &'static str = "Layers of long short-term memory, then a linear layer";
    const TAKES: &'static str = "texts word by word, and series";

    fn takes(input: &InputSpec) -> bool {
        Kind::takes(input)
    }

    fn plan(shape: &DataShape, wishes: &Wishes) -> Result<Self, Refusal> {
        let Some(kind) = Kind::of(&shape.input) else { return Err(Refusal("is for sequences")) };
        Ok(Self {
            longest: kind.longest,
            vocabulary: kind.vocabulary,
            width: if kind.vocabulary.is_some() { WIDTH } else { kind.channels },
            units: wishes.hidden.clone().unwrap_or_else(|| UNITS.to_vec()),
            outputs: shape.outputs,
            dropout: wishes.dropout.unwrap_or(DROPOUT),
            padding: false,
        })
    }

    fn input(&self) -> InputSpec {
        self.kind().input()
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn wishes(&self) -> Wishes {
        let (hidden, dropout) = (Some(self.units.clone()), Some(self.dropout));
        Wishes { hidden, dropout, ..Wishes::default() }
    }

    fn summary(&self) -> String {
        let units: Vec<String> = self.units.iter().map(ToString::to_string).collect();
        format!("{} {}-{}-{}", Self::NAME, self.width, units.join("-"), self.outputs)
    }

    fn check(&self) -> Result<(), String> {
        self.kind().check()?;
        if !(1..=MOST_LAYERS).contains(&self.units.len())
            || self.sizes().iter().any(|size| !(1..=MOST_UNITS).contains(size))
        {
            let sizes = self.sizes();
            return Err(format!("1 to {MOST_LAYERS} layers of 1 to 2^14 units, found {sizes:?}"));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(format!("a dropout from 0 to below 1, found {}", self.dropout));
        }
        Ok(())
    }

    fn arrays(&self) -> Vec<ArraySpec> {
        let mut arrays = Entry::arrays(self.kind(), self.width, false);
        for (at, pair) in self.sizes().windows(2).enumerate() {
            let (name, gates) = (format!("layers.{at}"), 4 * pair[1]);
            arrays.push(ArraySpec::learnt(&name, "inputs", [pair[0], gates]));
            arrays.push(ArraySpec::learnt(&name, "memory", [pair[1], gates]));
            arrays.push(ArraySpec::learnt(&name, "input_bias", [gates]));
            arrays.push(ArraySpec::learnt(&name, "memory_bias", [gates]));
        }
        let last = self.units.last().copied().unwrap_or_default();
        arrays.extend(Linear::arrays("linear", [last, self.outputs]));
        arrays
    }

    fn init(&self, draws: &mut Draws, device: &Device) -> Lstm {
        let entry = Entry::init(self.kind(), self.width, false, draws, device);
        let layer = |pair: &[usize]| Layer::init([pair[0], pair[1]], draws, device);
        let layers = self.sizes().windows(2).map(layer).collect();
        let last = self.units.last().copied().unwrap_or_default();
        Lstm {
            entry,
            layers,
            linear: Linear::init([last, self.outputs], Draw::Uniform, draws, device),
            dropout: self.dropout,
            padding: self.padding,
        }
    }

    fn onnx(&self, to: &mut Drawing<'_>, input: &OnnxInput) -> Result<String, Inexpressible> {
        if self.padding {
            return Err(Inexpressible("a network that reads padding is not exported".to_owned()));
        }
        let (x, lengths) = entered(to, input, false)?;
        // ONNX has moments before rows.
        let mut x = to.transpose(&x, &[1, 0, 2]);
        for (depth, &units) in self.units.iter().enumerate() {
            let array = |part: &str| to.array(&format!("layers.{depth}.{part}"));
            let (inputs, memory) = (array("inputs")?, array("memory")?);
            let (biases, more) = (array("input_bias")?, array("memory_bias")?);
            let weights = [inputs, memory].map(|array| gates_first(&array.values, units));
            let biases = [biases, more].map(|array| gates_first(&array.values, units)).concat();
            let width = inputs.shape[0];
            let inputs = to.graph.floats(&weights[0], &[1, 4 * units, width]);
            let memory = to.graph.floats(&weights[1], &[1, 4 * units, units]);
            let biases = to.graph.floats(&biases, &[1, 8 * units]);
            let size = [("hidden_size", Attribute::Int(units as i64))];
            x = to.graph.node_with("LSTM", &[&x, &inputs, &memory, &biases], &size);
            let axes = to.graph.ints(&[1], &[1]);
            x = to.graph.node("Squeeze", &[&x, &axes]);
        }
        let x = to.transpose(&x, &[1, 0, 2]);
        let (places, one) = (to.places(&x, 1), to.graph.ints(&[1], &[1]));
        let last = to.graph.node("Sub", &[&lengths, &one]);
        let counts = to.graph.node("Equal", &[&places, &last]);
        let x = to.sum_where(&x, &counts);
        to.linear("linear", &x)
    }
}

/// Weights `[inputs, gates]` as ONNX has them, `[gates, inputs]`, and its order of the gates: of inputs, outputs,
/// forgetting, cells.
fn gates_first(weights: &[f32], units: usize) -> Vec<f32> {
    let columns = [0, 3, 1, 2].into_iter().flat_map(|gate| gate * units..(gate + 1) * units);
    columns.flat_map(|column| weights.iter().skip(column).step_by(4 * units)).copied().collect()
}

/// One layer. PyTorch has two biases, which are added; with Adam that is not the same as one.
#[derive(Module, Debug)]
struct Layer {
    inputs: Param<Tensor<2>>,
    memory: Param<Tensor<2>>,
    input_bias: Param<Tensor<1>>,
    memory_bias: Param<Tensor<1>>,
}

impl Layer {
    /// All uniform in ±1/√units.
    fn init([inputs, units]: [usize; 2], draws: &mut Draws, device: &Device) -> Self {
        let gates = 4 * units;
        let mut numbers = |count: usize| Draw::Uniform.numbers(units, count, draws);
        let (of_inputs, of_memory) = (numbers(inputs * gates), numbers(units * gates));
        let biases = [numbers(gates), numbers(gates)];
        let [input_bias, memory_bias] =
            biases.map(|bias| Param::from_data(TensorData::new(bias, [gates]), device));
        Self {
            inputs: Param::from_data(TensorData::new(of_inputs, [inputs, gates]), device),
            memory: Param::from_data(TensorData::new(of_memory, [units, gates]), device),
            input_bias,
            memory_bias,
        }
    }

    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let bias = self.input_bias.val() + self.memory_bias.val();
        ops::lstm(x, self.inputs.val(), self.memory.val(), bias)
    }
}

/// The parameters of layers of long short-term memory.
#[derive(Module, Debug)]
pub(crate) struct Lstm {
    entry: Entry,
    layers: Vec<Layer>,
    linear: Linear,
    dropout: f32,
    padding: bool,
}

impl Forward for Lstm {
    fn forward(&self, input: &Input, mut training: Option<&mut Training>) -> Outputs {
        let batch = self.entry.forward(input, self.padding, training.as_deref_mut());
        let mut x = batch.x;
        for (depth, layer) in self.layers.iter().enumerate() {
            if depth > 0
                && let Some((share, seed)) = Training::chance(&mut training, self.dropout)
            {
                x = ops::drop_out(x, share, seed);
            }
            x = layer.forward(x);
        }
        let mut x = last_moments(x, &batch.lengths);
        if let Some((share, seed)) = Training::chance(&mut training, self.dropout) {
            x = ops::drop_out(x, share, seed);
        }
        Outputs { logits: self.linear.forward(x.clone()), embedding: Some(x) }
    }
}
