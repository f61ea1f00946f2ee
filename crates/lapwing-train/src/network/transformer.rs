//! A Transformer's encoder, for texts and series: layers of attention and of two linear layers, normalised behind their
//! residual sums; then the mean over moments and a linear layer.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use lapwing_onnx::Attribute;
use lapwing_ops as ops;
use lapwing_ops::Heads;
use lapwing_sample::{Draws, InputSpec};
use serde::{Deserialize, Serialize};

use super::layers::{Draw, Linear};
use super::sequence::{Entry, Kind, entered, mean_of_moments};
use super::{
    Config, DataShape, Drawing, Forward, Inexpressible, Input, OnnxInput, Outputs, Refusal,
    Training, Wishes,
};
use crate::parameters::ArraySpec;

/// Numbers per moment.
const WIDTH: usize = 256;
const HEADS: usize = 4;
/// Units between the two linear layers of each layer, unless others are asked for.
const UNITS: [usize; 2] = [512; 2];
/// Those of the paper.
const PAPERS_UNITS: [usize; 2] = [2048; 2];
const DROPOUT: f32 = 0.1;
const EPSILON: f32 = 1e-5;
/// The longest wave of positions, in moments, over 2π.
const BASE: f64 = 10_000.0;
const MOST_UNITS: usize = 1 << 16;
const MOST_LAYERS: usize = 64;

/// Sizes of a Transformer's encoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformerConfig {
    /// Most words of a text, or moments of a series.
    pub longest: usize,
    /// Words there are; nothing for series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
    /// Numbers per moment of a series; 0 for texts.
    pub channels: usize,
    /// Numbers per moment inside.
    pub width: usize,
    /// Parts of them that look at other moments by themselves.
    pub heads: usize,
    /// Units between the two linear layers of each layer.
    pub units: Vec<usize>,
    /// Classes, or 1 for a value.
    pub outputs: usize,
    /// Share of numbers set to zero at each training step, in [0, 1).
    pub dropout: f32,
    /// Whether padding is looked at and averaged like words: what the paper's network does.
    pub padding: bool,
    /// Whether all layers start as copies of the first: likewise.
    pub copies: bool,
}

impl TransformerConfig {
    /// The network of the paper, for texts of 128 words.
    pub fn paper(vocabulary: usize, outputs: usize) -> Self {
        Self {
            longest: 128,
            vocabulary: Some(vocabulary),
            channels: 0,
            width: WIDTH,
            heads: HEADS,
            units: PAPERS_UNITS.to_vec(),
            outputs,
            dropout: DROPOUT,
            padding: true,
            copies: true,
        }
    }

    fn kind(&self) -> Kind {
        let Self { longest, vocabulary, channels, .. } = *self;
        Kind { longest, vocabulary, channels }
    }
}

impl Config for TransformerConfig {
    type Network = Transformer;
    const NAME: &'static str = "transformer";
    const ABOUT: &'static str =
        "The encoder of a Transformer, the mean over moments, then a linear layer";
    const TAKES: &'static str = "texts word by word, and series";

    fn takes(input: &InputSpec) -> bool {
        Kind::takes(input)
    }

    fn plan(shape: &DataShape, wishes: &Wishes) -> Result<Self, Refusal> {
        let Some(kind) = Kind::of(&shape.input) else { return Err(Refusal("is for sequences")) };
        Ok(Self {
            longest: kind.longest,
            vocabulary: kind.vocabulary,
            channels: kind.channels,
            width: WIDTH,
            heads: HEADS,
            units: wishes.hidden.clone().unwrap_or_else(|| UNITS.to_vec()),
            outputs: shape.outputs,
            dropout: wishes.dropout.unwrap_or(DROPOUT),
            padding: false,
            copies: false,
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
        format!(
            "{} {}×{}-{}",
            Self::NAME,
            self.heads,
            self.width / self.heads.max(1),
            units.join("-")
        )
    }

    fn check(&self) -> Result<(), String> {
        self.kind().check()?;
        if !(1..=MOST_LAYERS).contains(&self.units.len())
            || self.units.iter().chain([&self.width]).any(|size| !(1..=MOST_UNITS).contains(size))
        {
            return Err(format!("1 to {MOST_LAYERS} layers of 1 to 2^16 units"));
        }
        if self.heads == 0 || !self.width.is_multiple_of(self.heads) {
            return Err(format!(
                "heads that divide the width {}, found {}",
                self.width, self.heads
            ));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(format!("a dropout from 0 to below 1, found {}", self.dropout));
        }
        Ok(())
    }

    fn arrays(&self) -> Vec<ArraySpec> {
        let mut arrays = Entry::arrays(self.kind(), self.width, true);
        let width = self.width;
        for (at, &units) in self.units.iter().enumerate() {
            let name = |part: &str| format!("layers.{at}.{part}");
            arrays.extend(Linear::arrays(&name("attention"), [width, 3 * width]));
            arrays.extend(Linear::arrays(&name("projection"), [width, width]));
            arrays.extend(Norm::arrays(&name("norm1"), width));
            arrays.extend(Linear::arrays(&name("first"), [width, units]));
            arrays.extend(Linear::arrays(&name("second"), [units, width]));
            arrays.extend(Norm::arrays(&name("norm2"), width));
        }
        arrays.extend(Linear::arrays("linear", [width, self.outputs]));
        arrays
    }

    fn init(&self, draws: &mut Draws, device: &Device) -> Transformer {
        let entry = Entry::init(self.kind(), self.width, true, draws, device);
        let again = draws.clone();
        let mut layers = Vec::with_capacity(self.units.len());
        for &units in &self.units {
            if self.copies {
                *draws = again.clone();
            }
            layers.push(Layer::init([self.width, units], draws, device));
        }
        Transformer {
            entry,
            layers,
            linear: Linear::init([self.width, self.outputs], Draw::Uniform, draws, device),
            heads: self.heads,
            dropout: self.dropout,
            padding: self.padding,
        }
    }

    fn onnx(&self, to: &mut Drawing<'_>, input: &OnnxInput) -> Result<String, Inexpressible> {
        if self.padding {
            return Err(Inexpressible("a network that reads padding is not exported".to_owned()));
        }
        let (x, lengths) = entered(to, input, true)?;
        let places = to.places(&x, 1);
        let table = waves(self.longest, self.width);
        let table = to.graph.floats(&table, &[self.longest, self.width]);
        let waves = to.graph.node("Gather", &[&table, &places]);
        let mut x = to.graph.node("Add", &[&x, &waves]);
        // Nobody looks at padding.
        let seen = to.graph.node("Less", &[&places, &lengths]);
        let (zero, hidden) = (to.graph.floats(&[0.0], &[1]), to.graph.floats(&[-1e30], &[1]));
        let hidden = to.graph.node("Where", &[&seen, &zero, &hidden]);
        let axes = to.graph.ints(&[1, 2], &[2]);
        let hidden = to.graph.node("Unsqueeze", &[&hidden, &axes]);
        for layer in 0..self.units.len() {
            let name = |part: &str| format!("layers.{layer}.{part}");
            let seen = self.attention(to, &name("attention"), &x, &hidden)?;
            let seen = to.linear(&name("projection"), &seen)?;
            x = normalised(to, &name("norm1"), &x, &seen)?;
            let y = to.linear(&name("first"), &x)?;
            let y = to.relu(&y);
            let y = to.linear(&name("second"), &y)?;
            x = normalised(to, &name("norm2"), &x, &y)?;
        }
        let x = to.mean_of_moments(&x, &lengths);
        to.linear("linear", &x)
    }
}

impl TransformerConfig {
    /// Attention as operators of ONNX: what `[rows, moments, width]` see of each other, but for what `hidden` is added to.
    fn attention(
        &self,
        to: &mut Drawing<'_>,
        name: &str,
        x: &str,
        hidden: &str,
    ) -> Result<String, Inexpressible> {
        let (width, of_head) = (self.width, self.width / self.heads);
        let weight = to.array(&format!("{name}.weight"))?;
        let bias = to.array(&format!("{name}.bias"))?;
        let mut part = |at: usize, axes: &[i64]| {
            let rows = weight.values.chunks_exact(3 * width);
            let columns: Vec<f32> =
                rows.flat_map(|row| &row[at * width..][..width]).copied().collect();
            let columns = to.graph.floats(&columns, &[width, width]);
            let shift = to.graph.floats(&bias.values[at * width..][..width], &[width]);
            let part = to.graph.node("MatMul", &[x, &columns]);
            let part = to.graph.node("Add", &[&part, &shift]);
            let part = to.reshape(&part, &[0, 0, self.heads as i64, of_head as i64]);
            to.transpose(&part, axes)
        };
        let (queries, keys) = (part(0, &[0, 2, 1, 3]), part(1, &[0, 2, 3, 1]));
        let values = part(2, &[0, 2, 1, 3]);
        let scale = to.graph.floats(&[1.0 / (of_head as f32).sqrt()], &[1]);
        let scores = to.graph.node("MatMul", &[&queries, &keys]);
        let scores = to.graph.node("Mul", &[&scores, &scale]);
        let scores = to.graph.node("Add", &[&scores, hidden]);
        let weights = to.graph.node("Softmax", &[&scores]);
        let seen = to.graph.node("MatMul", &[&weights, &values]);
        let seen = to.transpose(&seen, &[0, 2, 1, 3]);
        Ok(to.reshape(&seen, &[0, 0, width as i64]))
    }
}

/// Layer normalisation behind a sum as operators of ONNX.
fn normalised(to: &mut Drawing<'_>, name: &str, x: &str, y: &str) -> Result<String, Inexpressible> {
    let (gamma, beta) =
        (to.constant(&format!("{name}.gamma"))?, to.constant(&format!("{name}.beta"))?);
    let sum = to.graph.node("Add", &[x, y]);
    let epsilon = [("epsilon", Attribute::Float(EPSILON))];
    Ok(to.graph.node_with("LayerNormalization", &[&sum, &gamma, &beta], &epsilon))
}

/// Scale and shift of a layer normalisation.
#[derive(Module, Debug)]
struct Norm {
    gamma: Param<Tensor<1>>,
    beta: Param<Tensor<1>>,
}

impl Norm {
    fn init(width: usize, device: &Device) -> Self {
        let of = |value: f32| Param::from_data(TensorData::full([width], value), device);
        Self { gamma: of(1.0), beta: of(0.0) }
    }

    fn arrays(name: &str, width: usize) -> Vec<ArraySpec> {
        ["gamma", "beta"].map(|part| ArraySpec::learnt(name, part, [width])).to_vec()
    }

    fn forward(&self, x: Tensor<2>, y: Tensor<2>, dropout: Option<(f32, u64)>) -> Tensor<2> {
        ops::add_layer_norm(x, y, self.gamma.val(), self.beta.val(), EPSILON, dropout)
    }
}

#[derive(Module, Debug)]
struct Layer {
    attention: Linear,
    projection: Linear,
    norm1: Norm,
    first: Linear,
    second: Linear,
    norm2: Norm,
}

impl Layer {
    /// Attention's weights are drawn as Glorot and Bengio do, and its biases are zero: PyTorch's way.
    fn init([width, units]: [usize; 2], draws: &mut Draws, device: &Device) -> Self {
        let bound = (6.0 / (4 * width) as f32).sqrt();
        let number = |_| bound * (2.0 * draws.unit_single() - 1.0);
        let weight: Vec<f32> = (0..3 * width * width).map(number).collect();
        let mut linear = |sizes: [usize; 2]| Linear::init(sizes, Draw::Uniform, draws, device);
        Self {
            attention: Linear::of(weight, vec![0.0; 3 * width], device),
            projection: linear([width, width]).without_bias(),
            norm1: Norm::init(width, device),
            first: linear([width, units]),
            second: linear([units, width]),
            norm2: Norm::init(width, device),
        }
    }

    fn forward(
        &self,
        x: Tensor<2>,
        heads: &Heads,
        share: f32,
        mut training: Option<&mut Training>,
    ) -> Tensor<2> {
        let dropout = Training::chance(&mut training, share);
        let seen =
            ops::attention(self.attention.forward(x.clone()), &Heads { dropout, ..heads.clone() });
        let seen = self.projection.forward(seen);
        let x = self.norm1.forward(x, seen, Training::chance(&mut training, share));
        let mut y = self.first.relu(x.clone());
        if let Some((share, seed)) = Training::chance(&mut training, share) {
            y = ops::drop_out(y, share, seed);
        }
        let y = self.second.forward(y);
        self.norm2.forward(x, y, Training::chance(&mut training, share))
    }
}

/// The parameters of a Transformer's encoder.
#[derive(Module, Debug)]
pub(crate) struct Transformer {
    entry: Entry,
    layers: Vec<Layer>,
    linear: Linear,
    heads: usize,
    dropout: f32,
    padding: bool,
}

impl Forward for Transformer {
    fn forward(&self, input: &Input, mut training: Option<&mut Training>) -> Outputs {
        let batch = self.entry.forward(input, self.padding, training.as_deref_mut());
        let [n, moments, width] = batch.x.dims();
        let x = batch.x.clone() + positions(moments, width, &batch.x.device());
        let mut x = x.reshape([n * moments, width]);
        if let Some((share, seed)) = Training::chance(&mut training, self.dropout) {
            x = ops::drop_out(x, share, seed);
        }
        let heads = Heads { count: self.heads, lengths: batch.lengths.clone(), dropout: None };
        for layer in &self.layers {
            x = layer.forward(x, &heads, self.dropout, training.as_deref_mut());
        }
        let x = mean_of_moments(x.reshape([n, moments, width]), &batch.lengths);
        Outputs { logits: self.linear.forward(x.clone()), embedding: Some(x) }
    }
}

/// Sines and cosines by turns, of waves that get longer: where a moment is.
fn positions(moments: usize, width: usize, device: &Device) -> Tensor<3> {
    Tensor::from_data(TensorData::new(waves(moments, width), [1, moments, width]), device)
}

fn waves(moments: usize, width: usize) -> Vec<f32> {
    let place = |moment: usize| {
        (0..width).map(move |at| {
            let wave = BASE.powf(-((at - at % 2) as f64) / width as f64);
            let angle = moment as f64 * wave;
            (if at % 2 == 0 { angle.sin() } else { angle.cos() }) as f32
        })
    };
    (0..moments).flat_map(place).collect()
}
