//! ResNet-20 of He et al. for small images in colour, 32 × 32 in the paper. Shortcuts have no parameters (option A): where the shape changes
//! they take every second pixel and add channels of zeros.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use lapwing_ops::{Window2d, global_average_pool, max_pool2d};
use lapwing_sample::{Draws, InputSpec};
use serde::{Deserialize, Serialize};

use super::layers::{Draw, Linear, NormConv};
use super::onnx::Frame;
use super::{
    Config, DataShape, Drawing, Forward, Inexpressible, Input, OnnxInput, Outputs, Refusal,
    Training, Wishes, least_side, residual,
};
use crate::parameters::ArraySpec;

/// Numbers per pixel.
const COLOURS: usize = 3;
/// Pixels of a side in the paper, which files of models do not name.
const SIDE: usize = 32;
/// Pixels of a side of each kernel.
const KERNEL: usize = 3;
/// Channels of the stages.
const STAGES: [usize; 3] = [16, 32, 64];
/// Blocks of each stage.
const BLOCKS: usize = 3;

/// The sizes of a ResNet-20.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNet20Config {
    /// Classes, or 1 for a value.
    pub outputs: usize,
    /// Pixels from top to bottom.
    #[serde(default = "usual", skip_serializing_if = "is_usual")]
    pub height: usize,
    /// Pixels from left to right.
    #[serde(default = "usual", skip_serializing_if = "is_usual")]
    pub width: usize,
}

fn usual() -> usize {
    SIDE
}

fn is_usual(side: &usize) -> bool {
    *side == SIDE
}

/// Channels before and after each block.
fn blocks() -> impl Iterator<Item = [usize; 2]> {
    let after = STAGES.into_iter().flat_map(|channels| [channels; BLOCKS]);
    let before = [STAGES[0]].into_iter().chain(after.clone());
    before.zip(after).map(|(before, after)| [before, after])
}

impl Config for ResNet20Config {
    type Network = ResNet20;
    const NAME: &'static str = "resnet20";
    const ABOUT: &'static str = "The residual network of 20 layers of He et al.";
    const TAKES: &'static str = "images in colour of 8 to 1,024 pixels a side";

    fn takes(input: &InputSpec) -> bool {
        residual::takes(input) && residual::image(input)[2] == COLOURS
    }

    fn suits(shape: &DataShape) -> bool {
        least_side(shape) < 48
    }

    fn plan(shape: &DataShape, wishes: &Wishes) -> Result<Self, Refusal> {
        wishes.no_layers()?;
        let [height, width, _] = residual::image(&shape.input);
        Ok(Self { outputs: shape.outputs, height, width })
    }

    fn input(&self) -> InputSpec {
        InputSpec::Image { height: self.height, width: self.width, channels: COLOURS }
    }

    fn check(&self) -> Result<(), String> {
        match residual::takes(&self.input()) {
            true => Ok(()),
            false => Err(Self::TAKES.to_owned()),
        }
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn arrays(&self) -> Vec<ArraySpec> {
        let mut arrays = NormConv::arrays("stem", KERNEL, [COLOURS, STAGES[0]]);
        for (at, [before, after]) in blocks().enumerate() {
            let name = |part: &str| format!("blocks.{at}.{part}");
            arrays.extend(NormConv::arrays(&name("conv1"), KERNEL, [before, after]));
            arrays.extend(NormConv::arrays(&name("conv2"), KERNEL, [after, after]));
        }
        arrays.extend(Linear::arrays("linear", [STAGES[2], self.outputs]));
        arrays
    }

    fn init(&self, draws: &mut Draws, device: &Device) -> ResNet20 {
        ResNet20 {
            stem: NormConv::init(KERNEL, [COLOURS, STAGES[0]], 1, draws, device),
            blocks: blocks().map(|channels| Block::init(channels, draws, device)).collect(),
            linear: Linear::init([STAGES[2], self.outputs], Draw::Kaiming, draws, device),
        }
    }

    fn onnx(&self, to: &mut Drawing<'_>, input: &OnnxInput) -> Result<String, Inexpressible> {
        let frame = |stride| Frame { side: KERNEL, stride, padding: KERNEL / 2 };
        let x = to.norm_conv("stem", input.images()?, frame(1))?;
        let mut x = to.relu(&x);
        for (at, [before, after]) in blocks().enumerate() {
            let stride = if before == after { 1 } else { 2 };
            let shortcut = match stride {
                1 => x.clone(),
                _ => shrunk(to, &x, before),
            };
            let name = |part: &str| format!("blocks.{at}.{part}");
            let first = to.norm_conv(&name("conv1"), &x, frame(stride))?;
            let first = to.relu(&first);
            let second = to.norm_conv(&name("conv2"), &first, frame(1))?;
            let sum = to.graph.node("Add", &[&second, &shortcut]);
            x = to.relu(&sum);
        }
        let x = to.channel_means(&x);
        to.linear("linear", &x)
    }
}

/// The parameters of a ResNet-20.
#[derive(Module, Debug)]
pub(crate) struct ResNet20 {
    stem: NormConv,
    blocks: Vec<Block>,
    linear: Linear,
}

#[derive(Module, Debug)]
struct Block {
    conv1: NormConv,
    conv2: NormConv,
    /// Whether it halves the image and doubles the channels.
    shrinks: bool,
}

impl Forward for ResNet20 {
    fn forward(&self, input: &Input, mut training: Option<&mut Training>) -> Outputs {
        let mut x = self.stem.relu(input.images(), None, training.as_deref_mut());
        for block in &self.blocks {
            x = block.forward(x, training.as_deref_mut());
        }
        let x = global_average_pool(x);
        Outputs { logits: self.linear.forward(x.clone()), embedding: Some(x) }
    }
}

impl Block {
    fn init([inputs, outputs]: [usize; 2], draws: &mut Draws, device: &Device) -> Self {
        let shrinks = inputs != outputs;
        let stride = if shrinks { 2 } else { 1 };
        Self {
            conv1: NormConv::init(KERNEL, [inputs, outputs], stride, draws, device),
            conv2: NormConv::init(KERNEL, [outputs, outputs], 1, draws, device),
            shrinks,
        }
    }

    fn forward(&self, x: Tensor<4>, mut training: Option<&mut Training>) -> Tensor<4> {
        let shortcut = if self.shrinks { shrink(x.clone()) } else { x.clone() };
        let x = self.conv1.relu(x, None, training.as_deref_mut());
        self.conv2.relu(x, Some(shortcut), training)
    }
}

/// Every second pixel of both axes, and as many channels again, half of them before and half behind, all zero.
fn shrink(x: Tensor<4>) -> Tensor<4> {
    let window = Window2d { stride: [2, 2], padding: [0, 0] };
    let x = max_pool2d(x, [1, 1], window);
    let [n, height, width, channels] = x.dims();
    let zeros = Tensor::zeros([n, height, width, channels / 2], &x.device());
    Tensor::cat(vec![zeros.clone(), x, zeros], 3)
}

/// The same as operators of ONNX.
fn shrunk(to: &mut Drawing<'_>, x: &str, channels: usize) -> String {
    let x = to.max_pool(x, Frame { side: 1, stride: 2, padding: 0 }, 2);
    let zeros = channels as i64 / 2;
    let pads = to.graph.ints(&[0, zeros, 0, 0, 0, zeros, 0, 0], &[8]);
    to.graph.node("Pad", &[&x, &pads])
}
