//! Conv3Net: three convolutions and two linear layers, for 32 × 32 images in colour.

use burn::module::Module;
use burn::tensor::Device;
use lapwing_sample::{Draws, InputSpec};
use serde::{Deserialize, Serialize};

use super::layers::{Conv, Draw, Linear, flatten};
use super::onnx::Frame;
use super::{
    Config, DataShape, Drawing, Forward, Inexpressible, Input, OnnxInput, Outputs, Refusal,
    Training, Wishes,
};
use crate::parameters::ArraySpec;

const INPUT: InputSpec = InputSpec::Image { height: 32, width: 32, channels: 3 };
/// Pixels of a side of each kernel.
const KERNEL: usize = 3;
/// Channels before and after each convolution.
const CHANNELS: [[usize; 2]; 3] = [[3, 32], [32, 64], [64, 64]];
/// Numbers that are left of an image, and units of the hidden layer.
const HIDDEN: [usize; 2] = [4 * 4 * 64, 64];

/// The sizes of a Conv3Net.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conv3NetConfig {
    /// Classes, or 1 for a value.
    pub outputs: usize,
}

impl Config for Conv3NetConfig {
    type Network = Conv3Net;
    const NAME: &'static str = "conv3net";
    const ABOUT: &'static str = "Three convolutions and two linear layers";
    const TAKES: &'static str = "images of 32 × 32 pixels in colour";

    fn takes(input: &InputSpec) -> bool {
        *input == INPUT
    }

    fn suits(_: &DataShape) -> bool {
        false
    }

    fn plan(shape: &DataShape, wishes: &Wishes) -> Result<Self, Refusal> {
        wishes.no_layers()?;
        Ok(Self { outputs: shape.outputs })
    }

    fn input(&self) -> InputSpec {
        INPUT
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn arrays(&self) -> Vec<ArraySpec> {
        let convolutions = ["conv1", "conv2", "conv3"].into_iter().zip(CHANNELS);
        let convolutions =
            convolutions.flat_map(|(name, channels)| Conv::arrays(name, KERNEL, channels));
        let mut arrays: Vec<ArraySpec> = convolutions.collect();
        arrays.extend(Linear::arrays("linear1", HIDDEN));
        arrays.extend(Linear::arrays("linear2", [HIDDEN[1], self.outputs]));
        arrays
    }

    fn init(&self, draws: &mut Draws, device: &Device) -> Conv3Net {
        let [one, two, three] = CHANNELS;
        Conv3Net {
            conv1: Conv::init(KERNEL, one, draws, device),
            conv2: Conv::init(KERNEL, two, draws, device),
            conv3: Conv::init(KERNEL, three, draws, device),
            linear1: Linear::init(HIDDEN, Draw::Uniform, draws, device),
            linear2: Linear::init([HIDDEN[1], self.outputs], Draw::Uniform, draws, device),
        }
    }

    fn onnx(&self, to: &mut Drawing<'_>, input: &OnnxInput) -> Result<String, Inexpressible> {
        let frame = Frame { side: KERNEL, stride: 1, padding: 0 };
        let mut x = input.images()?.to_owned();
        for (at, name) in ["conv1", "conv2", "conv3"].into_iter().enumerate() {
            let sum = to.conv(name, &x, frame)?;
            x = to.relu(&sum);
            if at < 2 {
                x = to.max_pool(&x, Frame { side: 2, stride: 2, padding: 0 }, 2);
            }
        }
        // Pixel by pixel, as it was learnt.
        let x = to.transpose(&x, &[0, 2, 3, 1]);
        let x = to.reshape(&x, &[0, HIDDEN[0] as i64]);
        let x = to.linear("linear1", &x)?;
        let x = to.relu(&x);
        to.linear("linear2", &x)
    }
}

/// The parameters of a Conv3Net.
#[derive(Module, Debug)]
pub(crate) struct Conv3Net {
    conv1: Conv,
    conv2: Conv,
    conv3: Conv,
    linear1: Linear,
    linear2: Linear,
}

impl Forward for Conv3Net {
    fn forward(&self, input: &Input, _: Option<&mut Training>) -> Outputs {
        let x = self.conv1.relu_pool(input.images());
        let x = self.conv2.relu_pool(x);
        let x = self.conv3.relu(x);
        let x = self.linear1.relu(flatten(x));
        Outputs { logits: self.linear2.forward(x.clone()), embedding: Some(x) }
    }
}
