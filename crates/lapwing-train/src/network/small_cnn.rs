//! A small network for pictures of any size: three convolutions with batch normalisation, and the mean over what is left.

use burn::module::Module;
use burn::tensor::Device;
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

/// Pixels of a side of each kernel.
const KERNEL: usize = 3;
/// Channels after each convolution.
const CHANNELS: [usize; 3] = [32, 64, 128];
/// Fewest pixels of a side for which the first convolution takes every second pixel.
const LARGE: usize = 48;

/// The sizes of a small network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmallCnnConfig {
    /// Pixels from top to bottom, from left to right, and numbers per pixel.
    pub image: [usize; 3],
    /// Classes, or 1 for a value.
    pub outputs: usize,
}

impl SmallCnnConfig {
    /// Channels before and after each convolution.
    fn channels(&self) -> [[usize; 2]; 3] {
        let [one, two, three] = CHANNELS;
        [[self.image[2], one], [one, two], [two, three]]
    }

    /// Of each convolution.
    fn strides(&self) -> [usize; 3] {
        let first = if self.image[0].min(self.image[1]) < LARGE { 1 } else { 2 };
        [first, 1, 1]
    }
}

impl Config for SmallCnnConfig {
    type Network = SmallCnn;
    const NAME: &'static str = "small-cnn";
    const ABOUT: &'static str =
        "Three convolutions with batch normalisation, for pictures of any size";
    const TAKES: &'static str = "images of 8 to 1,024 pixels a side";

    fn takes(input: &InputSpec) -> bool {
        residual::takes(input)
    }

    fn suits(shape: &DataShape) -> bool {
        shape.rows < if least_side(shape) < LARGE { 5_000 } else { 20_000 }
    }

    fn plan(shape: &DataShape, wishes: &Wishes) -> Result<Self, Refusal> {
        wishes.no_layers()?;
        Ok(Self { image: residual::image(&shape.input), outputs: shape.outputs })
    }

    fn input(&self) -> InputSpec {
        let [height, width, channels] = self.image;
        InputSpec::Image { height, width, channels }
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn check(&self) -> Result<(), String> {
        match residual::takes(&self.input()) && self.image[2] <= 1024 {
            true => Ok(()),
            false => Err(Self::TAKES.to_owned()),
        }
    }

    fn arrays(&self) -> Vec<ArraySpec> {
        let convolutions = self.channels().into_iter().enumerate();
        let mut arrays: Vec<ArraySpec> = convolutions
            .flat_map(|(at, channels)| {
                NormConv::arrays(&format!("convolutions.{at}"), KERNEL, channels)
            })
            .collect();
        arrays.extend(Linear::arrays("linear", [CHANNELS[2], self.outputs]));
        arrays
    }

    fn init(&self, draws: &mut Draws, device: &Device) -> SmallCnn {
        SmallCnn {
            convolutions: self
                .strides()
                .into_iter()
                .zip(self.channels())
                .map(|(stride, channels)| NormConv::init(KERNEL, channels, stride, draws, device))
                .collect(),
            linear: Linear::init([CHANNELS[2], self.outputs], Draw::Uniform, draws, device),
        }
    }

    fn onnx(&self, to: &mut Drawing<'_>, input: &OnnxInput) -> Result<String, Inexpressible> {
        let mut x = input.images()?.to_owned();
        for (at, stride) in self.strides().into_iter().enumerate() {
            if at > 0 {
                x = to.max_pool(&x, Frame { side: 2, stride: 2, padding: 0 }, 2);
            }
            let frame = Frame { side: KERNEL, stride, padding: KERNEL / 2 };
            x = to.norm_conv(&format!("convolutions.{at}"), &x, frame)?;
            x = to.relu(&x);
        }
        let x = to.channel_means(&x);
        to.linear("linear", &x)
    }
}

/// The parameters of a small network.
#[derive(Module, Debug)]
pub(crate) struct SmallCnn {
    convolutions: Vec<NormConv>,
    linear: Linear,
}

impl Forward for SmallCnn {
    fn forward(&self, input: &Input, mut training: Option<&mut Training>) -> Outputs {
        let halves = Window2d { stride: [2, 2], padding: [0, 0] };
        let mut x = input.images();
        for (at, convolution) in self.convolutions.iter().enumerate() {
            if at > 0 {
                x = max_pool2d(x, [2, 2], halves);
            }
            x = convolution.relu(x, None, training.as_deref_mut());
        }
        let x = global_average_pool(x);
        Outputs { logits: self.linear.forward(x.clone()), embedding: Some(x) }
    }
}
