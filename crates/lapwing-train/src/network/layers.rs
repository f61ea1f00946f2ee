//! Layers, with PyTorch's initialisation.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};

use crate::random::Stream;

/// `x · weight + bias`, weight `[inputs, outputs]`.
#[derive(Module, Debug)]
pub(crate) struct Linear {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

/// Mean and variance per channel of a batch.
pub(crate) type Statistics = (Tensor<1>, Tensor<1>);

impl Linear {
    /// Uniform in ±1/√inputs, weights and biases.
    pub(crate) fn init(
        inputs: usize,
        outputs: usize,
        stream: &mut Stream,
        device: &Device,
    ) -> Self {
        let weight = uniform(inputs, inputs * outputs, stream);
        let bias = uniform(inputs, outputs, stream);
        Self {
            weight: Param::from_data(TensorData::new(weight, [inputs, outputs]), device),
            bias: Param::from_data(TensorData::new(bias, [outputs]), device),
        }
    }

    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x.matmul(self.weight.val()) + self.bias.val().unsqueeze()
    }
}

fn uniform(fan_in: usize, count: usize, stream: &mut Stream) -> Vec<f32> {
    let bound = 1.0 / (fan_in as f32).sqrt();
    (0..count).map(|_| bound * (2.0 * stream.unit() - 1.0)).collect()
}

/// Zeroes numbers at random and scales the others up so that the expectation stays.
pub(crate) fn drop_out(x: Tensor<2>, share: f32, stream: &mut Stream) -> Tensor<2> {
    if share == 0.0 {
        return x;
    }
    let shape = x.dims();
    let mask = mask(shape[0] * shape[1], share, stream);
    let mask = Tensor::from_data(TensorData::new(mask, shape), &x.device());
    x * mask
}

fn mask(count: usize, share: f32, stream: &mut Stream) -> Vec<f32> {
    let kept = 1.0 / (1.0 - share);
    (0..count).map(|_| if stream.unit() < share { 0.0 } else { kept }).collect()
}
