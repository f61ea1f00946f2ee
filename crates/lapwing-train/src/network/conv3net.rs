//! Conv3Net: three convolutions and two linear layers, for 32 × 32 images in colour.

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use super::layers::{Conv, Draw, Linear, flatten, images};
use crate::random::Stream;

#[derive(Module, Debug)]
pub(crate) struct Conv3Net {
    conv1: Conv,
    conv2: Conv,
    conv3: Conv,
    linear1: Linear,
    linear2: Linear,
}

impl Conv3Net {
    pub(crate) fn init(outputs: usize, stream: &mut Stream, device: &Device) -> Self {
        Self {
            conv1: Conv::init([3, 32], stream, device),
            conv2: Conv::init([32, 64], stream, device),
            conv3: Conv::init([64, 64], stream, device),
            linear1: Linear::init([4 * 4 * 64, 64], Draw::Uniform, stream, device),
            linear2: Linear::init([64, outputs], Draw::Uniform, stream, device),
        }
    }

    pub(crate) fn forward(&self, rows: Tensor<2>) -> Tensor<2> {
        let x = images(rows, 32, 3);
        let x = self.conv1.relu_pool(x);
        let x = self.conv2.relu_pool(x);
        let x = self.conv3.relu(x);
        let x = self.linear1.relu(flatten(x));
        self.linear2.forward(x)
    }
}
