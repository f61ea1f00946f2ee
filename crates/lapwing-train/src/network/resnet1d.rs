//! The residual network of the ECG experiment, for series.
//!
//! Two streams walk through the blocks: `x`, which is convolved twice and normalised, and `y`, which is pooled and convolved
//! once. The paper's series have 12 channels and 1000 moments, and its last layer sees every moment that is left; that is
//! [`ResNet1dConfig::paper`]. Where lengths differ, the last layer sees the mean over the moments that are not padding.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use lapwing_ops as ops;
use lapwing_ops::{Window1d, Window2d};
use lapwing_sample::{Draws, InputSpec};
use serde::{Deserialize, Serialize};

use super::layers::{Draw, Linear, PlainNorm};
use super::onnx::Frame;
use super::sequence::mean_of_moments;
use super::{
    Config, DataShape, Drawing, Forward, Inexpressible, Input, OnnxInput, Outputs, Refusal,
    Training, Wishes,
};
use crate::parameters::ArraySpec;

/// Moments that a kernel sees.
const KERNEL: usize = 15;
/// Channels behind the stem; each block adds as many.
const CHANNELS: usize = 12;
/// By how much the blocks shorten a series that is long enough.
const STRIDES: [usize; 4] = [4, 4, 4, 5];
/// Fewest moments that a block leaves, where there are so many.
const FEWEST: usize = 3;
const DROPOUT: f32 = 0.2;
const MOST_MOMENTS: usize = 1 << 20;

/// Sizes of a residual network for series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNet1dConfig {
    /// Most moments of a series.
    pub longest: usize,
    /// Numbers per moment.
    pub channels: usize,
    /// Classes, or 1 for a value.
    pub outputs: usize,
    /// Share of numbers set to zero behind each normalisation of a block when training, in [0, 1).
    pub dropout: f32,
    /// Whether the last layer sees every moment, padding or not, instead of the mean over those that are not.
    pub flatten: bool,
}

impl ResNet1dConfig {
    /// The network of the paper, for electrocardiograms of 12 leads and 10 seconds.
    pub fn paper(outputs: usize) -> Self {
        Self { longest: 1000, channels: 12, outputs, dropout: DROPOUT, flatten: true }
    }

    /// What the last layer sees.
    fn seen(&self) -> usize {
        let moments = if self.flatten { blocks(self.longest).1 } else { 1 };
        (STRIDES.len() + 1) * CHANNELS * moments
    }
}

/// What a block does with the length of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    /// Moments before it.
    length: usize,
    stride: usize,
}

impl Step {
    /// Moments behind it.
    fn shortened(self, length: usize) -> usize {
        length / self.stride
    }

    /// Zeros at each end before the strided convolution, so that it leaves as many moments as pooling does.
    fn padding(self) -> usize {
        let last = self.stride * (self.shortened(self.length) - 1);
        (last + KERNEL).saturating_sub(self.length).div_ceil(2)
    }
}

/// The steps for series of a length, and how long they are behind the last.
fn blocks(longest: usize) -> ([Step; STRIDES.len()], usize) {
    let mut length = longest;
    let steps = STRIDES.map(|most| {
        let step = Step { length, stride: most.min(length / FEWEST).max(1) };
        length = step.shortened(length);
        step
    });
    (steps, length)
}

/// Channels before and behind each block.
fn channels() -> [[usize; 2]; STRIDES.len()] {
    std::array::from_fn(|block| [CHANNELS * (block + 1), CHANNELS * (block + 2)])
}

impl Config for ResNet1dConfig {
    type Network = ResNet1d;
    const NAME: &'static str = "resnet1d";
    const ABOUT: &'static str = "The residual network of the paper's electrocardiograms";
    const TAKES: &'static str = "series";

    fn takes(input: &InputSpec) -> bool {
        matches!(input, InputSpec::Series { .. })
    }

    fn plan(shape: &DataShape, wishes: &Wishes) -> Result<Self, Refusal> {
        let InputSpec::Series { longest, channels } = shape.input else {
            return Err(Refusal("is for series"));
        };
        if wishes.hidden.is_some() {
            return Err(Refusal("has no hidden layers whose units could be chosen"));
        }
        let dropout = wishes.dropout.unwrap_or(DROPOUT);
        Ok(Self { longest, channels, outputs: shape.outputs, dropout, flatten: false })
    }

    fn input(&self) -> InputSpec {
        InputSpec::Series { longest: self.longest, channels: self.channels }
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn wishes(&self) -> Wishes {
        Wishes { dropout: Some(self.dropout), ..Wishes::default() }
    }

    fn check(&self) -> Result<(), String> {
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(format!("a dropout from 0 to below 1, found {}", self.dropout));
        }
        if !(1..=MOST_MOMENTS).contains(&self.longest) || self.channels > MOST_MOMENTS {
            return Err("series of 1 to 2^20 moments and channels".to_owned());
        }
        Ok(())
    }

    fn arrays(&self) -> Vec<ArraySpec> {
        let mut arrays = Conv1d::arrays("stem", [self.channels, CHANNELS]);
        arrays.extend(PlainNorm::arrays("norm", CHANNELS));
        for (at, [before, behind]) in channels().into_iter().enumerate() {
            let name = |part: &str| format!("blocks.{at}.{part}");
            arrays.extend(Conv1d::arrays(&name("shortcut"), [before, behind]));
            arrays.extend(Conv1d::arrays(&name("first"), [before, behind]));
            arrays.extend(PlainNorm::arrays(&name("norm1"), behind));
            arrays.extend(Conv1d::arrays(&name("second"), [behind, behind]));
            arrays.extend(PlainNorm::arrays(&name("norm2"), behind));
        }
        arrays.extend(Linear::arrays("linear", [self.seen(), self.outputs]));
        arrays
    }

    fn init(&self, draws: &mut Draws, device: &Device) -> ResNet1d {
        let (steps, _) = blocks(self.longest);
        let mut block = |(step, [before, behind]): (Step, [usize; 2])| Block {
            shortcut: Conv1d::init([before, behind], draws, device),
            first: Conv1d::init([before, behind], draws, device),
            norm1: PlainNorm::init(behind, device),
            second: Conv1d::init([behind, behind], draws, device),
            norm2: PlainNorm::init(behind, device),
            stride: step.stride,
            padding: step.padding(),
        };
        let blocks = steps.into_iter().zip(channels()).map(&mut block).collect();
        ResNet1d {
            stem: Conv1d::init([self.channels, CHANNELS], draws, device),
            norm: PlainNorm::init(CHANNELS, device),
            blocks,
            linear: Linear::init([self.seen(), self.outputs], Draw::Uniform, draws, device),
            dropout: self.dropout,
            flatten: self.flatten,
        }
    }

    fn onnx(&self, to: &mut Drawing<'_>, input: &OnnxInput) -> Result<String, Inexpressible> {
        let OnnxInput::Series { values, lengths } = input else { return Err(input.misfit()) };
        let x = to.conv1d("stem", values, 1, KERNEL / 2)?;
        let x = to.normalised("norm", &x)?;
        let mut x = to.relu(&x);
        let (mut y, mut left) = (x.clone(), lengths.clone());
        for (at, step) in blocks(self.longest).0.into_iter().enumerate() {
            let name = |part: &str| format!("blocks.{at}.{part}");
            if step.stride > 1 {
                y = to.max_pool(
                    &y,
                    Frame { side: step.stride, stride: step.stride, padding: 0 },
                    1,
                );
                let stride = to.graph.ints(&[step.stride as i64], &[1]);
                left = to.graph.node("Div", &[&left, &stride]);
            }
            y = to.conv1d(&name("shortcut"), &y, 1, KERNEL / 2)?;
            x = to.conv1d(&name("first"), &x, 1, KERNEL / 2)?;
            x = to.normalised(&name("norm1"), &x)?;
            x = to.relu(&x);
            x = to.conv1d(&name("second"), &x, step.stride, step.padding())?;
            let sum = to.graph.node("Add", &[&x, &y]);
            let sum = to.normalised(&name("norm2"), &sum)?;
            (x, y) = (to.relu(&sum), x);
        }
        let x = if self.flatten {
            to.reshape(&x, &[0, self.seen() as i64])
        } else {
            let one = to.graph.ints(&[1], &[1]);
            let left = to.graph.node("Max", &[&left, &one]);
            let x = to.transpose(&x, &[0, 2, 1]);
            to.mean_of_moments(&x, &left)
        };
        to.linear("linear", &x)
    }
}

/// A convolution of series without bias, weight `[moments, inputs, outputs]`.
#[derive(Module, Debug)]
struct Conv1d {
    weight: Param<Tensor<3>>,
}

impl Conv1d {
    fn init([inputs, outputs]: [usize; 2], draws: &mut Draws, device: &Device) -> Self {
        let seen = KERNEL * inputs;
        let numbers = Draw::Uniform.numbers(seen, seen * outputs, draws);
        let shape = [KERNEL, inputs, outputs];
        Self { weight: Param::from_data(TensorData::new(numbers, shape), device) }
    }

    fn arrays(name: &str, [inputs, outputs]: [usize; 2]) -> Vec<ArraySpec> {
        vec![ArraySpec::learnt(name, "weight", [KERNEL, inputs, outputs])]
    }

    /// Leaves as many moments as there are.
    fn same(&self, x: Tensor<3>) -> Tensor<3> {
        self.strided(x, 1, KERNEL / 2)
    }

    fn strided(&self, x: Tensor<3>, stride: usize, padding: usize) -> Tensor<3> {
        ops::conv1d(x, self.weight.val(), None, Window1d { stride, padding })
    }
}

#[derive(Module, Debug)]
struct Block {
    shortcut: Conv1d,
    first: Conv1d,
    norm1: PlainNorm,
    second: Conv1d,
    norm2: PlainNorm,
    stride: usize,
    padding: usize,
}

impl Block {
    /// The two streams behind it.
    fn forward(
        &self,
        [x, y]: [Tensor<3>; 2],
        dropout: f32,
        mut training: Option<&mut Training>,
    ) -> [Tensor<3>; 2] {
        let y = self.shortcut.same(pooled(y, self.stride));
        let x = self.norm1.relu(self.first.same(x), training.as_deref_mut());
        let x = dropped(x, dropout, &mut training);
        let x = self.second.strided(x, self.stride, self.padding);
        let sum = self.norm2.relu(x.clone() + y, training.as_deref_mut());
        [dropped(sum, dropout, &mut training), x]
    }
}

/// Zeroes numbers by chance when training.
fn dropped(x: Tensor<3>, share: f32, training: &mut Option<&mut Training>) -> Tensor<3> {
    match Training::chance(training, share) {
        Some((share, seed)) => ops::drop_out(x, share, seed),
        None => x,
    }
}

/// The largest of each `size` moments.
fn pooled(x: Tensor<3>, size: usize) -> Tensor<3> {
    if size == 1 {
        return x;
    }
    let [n, moments, channels] = x.dims();
    let window = Window2d { stride: [1, size], padding: [0, 0] };
    let x = ops::max_pool2d(x.reshape([n, 1, moments, channels]), [1, size], window);
    let [_, _, moments, _] = x.dims();
    x.reshape([n, moments, channels])
}

/// The parameters of a residual network for series.
#[derive(Module, Debug)]
pub(crate) struct ResNet1d {
    stem: Conv1d,
    norm: PlainNorm,
    blocks: Vec<Block>,
    linear: Linear,
    dropout: f32,
    flatten: bool,
}

impl Forward for ResNet1d {
    fn forward(&self, input: &Input, mut training: Option<&mut Training>) -> Outputs {
        let (x, lengths) = input.series();
        let x = self.norm.relu(self.stem.same(x), training.as_deref_mut());
        let mut streams = [x.clone(), x];
        for block in &self.blocks {
            streams = block.forward(streams, self.dropout, training.as_deref_mut());
        }
        let [x, _] = streams;
        let [n, moments, channels] = x.dims();
        let x = if self.flatten {
            // Channel by channel, as the paper's network has it.
            x.swap_dims(1, 2).reshape([n, moments * channels])
        } else {
            mean_of_moments(x, &self.left(lengths))
        };
        Outputs { logits: self.linear.forward(x.clone()), embedding: Some(x) }
    }
}

impl ResNet1d {
    /// How many moments are left of series of these lengths, at least one of each.
    fn left(&self, lengths: &[u32]) -> Vec<u32> {
        let left = |length: u32| {
            let shorter = |length, block: &Block| length / block.stride as u32;
            self.blocks.iter().fold(length, shorter).max(1)
        };
        lengths.iter().map(|&length| left(length)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_series_are_shortened_as_in_the_paper() {
        let (steps, left) = blocks(1000);
        assert_eq!(
            steps.map(|step| (step.length, step.stride)),
            [(1000, 4), (250, 4), (62, 4), (15, 5)]
        );
        assert_eq!((steps.map(Step::padding), left), ([6, 5, 5, 5], 3));
        let config = ResNet1dConfig::paper(2);
        let learnt = |array: &ArraySpec| if array.learnt { array.size() } else { 0 };
        assert_eq!(config.arrays().iter().map(learnt).sum::<usize>(), 291_962);
    }

    #[test]
    fn series_of_any_length_get_through() {
        for longest in 1..70 {
            let (steps, left) = blocks(longest);
            assert!(left >= FEWEST.min(longest), "{longest}");
            for step in steps {
                let window = step.length + 2 * step.padding();
                assert_eq!((window - KERNEL) / step.stride + 1, step.length / step.stride);
            }
        }
    }
}
