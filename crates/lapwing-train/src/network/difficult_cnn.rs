//! The network of the experiment with difficult data: two convolutions and two linear layers with dropout, for 28 × 28
//! images in grey.

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use super::Training;
use super::layers::{Conv, Draw, Linear, drop_channels, drop_out, flatten, images};
use crate::random::Stream;

#[derive(Module, Debug)]
pub(crate) struct DifficultCnn {
    conv1: Conv,
    conv2: Conv,
    linear1: Linear,
    linear2: Linear,
}

impl DifficultCnn {
    pub(crate) fn init(outputs: usize, stream: &mut Stream, device: &Device) -> Self {
        Self {
            conv1: Conv::init([1, 32], stream, device),
            conv2: Conv::init([32, 64], stream, device),
            linear1: Linear::init([12 * 12 * 64, 128], Draw::Uniform, stream, device),
            linear2: Linear::init([128, outputs], Draw::Uniform, stream, device),
        }
    }

    pub(crate) fn forward(
        &self,
        rows: Tensor<2>,
        mut training: Option<&mut Training>,
    ) -> Tensor<2> {
        let x = images(rows, 28, 1);
        let x = self.conv1.relu(x);
        let x = self.conv2.relu_pool(x);
        let x = drop_channels(x, 0.25, training.as_deref_mut());
        let x = self.linear1.relu(flatten(x));
        let x = drop_out(x, 0.5, training);
        self.linear2.forward(x)
    }
}
