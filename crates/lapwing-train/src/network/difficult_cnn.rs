//! The network of the experiment with difficult data: two convolutions and two linear layers with dropout, for 28 × 28
//! images in grey.

use burn::module::Module;
use burn::tensor::Device;
use lapwing_sample::{Draws, InputSpec};
use serde::{Deserialize, Serialize};

use super::layers::{Conv, Draw, Linear, drop_channels, drop_out, flatten};
use super::{Config, DataShape, Forward, Input, Outputs, Refusal, Training, Wishes};
use crate::parameters::ArraySpec;

const INPUT: InputSpec = InputSpec::Image { height: 28, width: 28, channels: 1 };
/// Pixels of a side of each kernel.
const KERNEL: usize = 3;
/// Channels before and after each convolution.
const CHANNELS: [[usize; 2]; 2] = [[1, 32], [32, 64]];
/// Numbers that are left of an image, and units of the hidden layer.
const HIDDEN: [usize; 2] = [12 * 12 * 64, 128];

/// The sizes of that network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DifficultCnnConfig {
    /// Classes, or 1 for a value.
    pub outputs: usize,
}

impl Config for DifficultCnnConfig {
    type Network = DifficultCnn;
    const NAME: &'static str = "difficult-cnn";
    const ABOUT: &'static str = "Two convolutions and two linear layers with dropout";
    const TAKES: &'static str = "images of 28 × 28 pixels in grey";

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
        let convolutions = ["conv1", "conv2"].into_iter().zip(CHANNELS);
        let convolutions =
            convolutions.flat_map(|(name, channels)| Conv::arrays(name, KERNEL, channels));
        let mut arrays: Vec<ArraySpec> = convolutions.collect();
        arrays.extend(Linear::arrays("linear1", HIDDEN));
        arrays.extend(Linear::arrays("linear2", [HIDDEN[1], self.outputs]));
        arrays
    }

    fn init(&self, draws: &mut Draws, device: &Device) -> DifficultCnn {
        let [one, two] = CHANNELS;
        DifficultCnn {
            conv1: Conv::init(KERNEL, one, draws, device),
            conv2: Conv::init(KERNEL, two, draws, device),
            linear1: Linear::init(HIDDEN, Draw::Uniform, draws, device),
            linear2: Linear::init([HIDDEN[1], self.outputs], Draw::Uniform, draws, device),
        }
    }
}

/// The parameters of that network.
#[derive(Module, Debug)]
pub(crate) struct DifficultCnn {
    conv1: Conv,
    conv2: Conv,
    linear1: Linear,
    linear2: Linear,
}

impl Forward for DifficultCnn {
    fn forward(&self, input: &Input, mut training: Option<&mut Training>) -> Outputs {
        let x = self.conv1.relu(input.images());
        let x = self.conv2.relu_pool(x);
        let x = drop_channels(x, 0.25, training.as_deref_mut());
        let embedding = self.linear1.relu(flatten(x));
        let x = drop_out(embedding.clone(), 0.5, training);
        Outputs { logits: self.linear2.forward(x), embedding: Some(embedding) }
    }
}
