//! Layers, with PyTorch's initialisation. Images are `[n, height, width, channels]`.

use burn::module::{Module, Param, ParamId};
use burn::tensor::{Device, Tensor, TensorData, activation};
use lapwing_ops as ops;
use lapwing_ops::Window2d;

use super::Training;
use crate::random::Stream;

/// How first weights are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Draw {
    /// Uniform in ±1/√inputs, as PyTorch does unless told otherwise.
    Uniform,
    /// Normal with variance 2/inputs, after He et al.
    Kaiming,
}

impl Draw {
    fn numbers(self, inputs: usize, count: usize, stream: &mut Stream) -> Vec<f32> {
        let inputs = inputs as f32;
        match self {
            Draw::Uniform => {
                let bound = 1.0 / inputs.sqrt();
                (0..count).map(|_| bound * (2.0 * stream.unit() - 1.0)).collect()
            }
            Draw::Kaiming => {
                let std = (2.0 / inputs).sqrt();
                (0..count).map(|_| std * stream.normal()).collect()
            }
        }
    }
}

/// `x · weight + bias`, weight `[inputs, outputs]`.
#[derive(Module, Debug)]
pub(crate) struct Linear {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl Linear {
    /// Biases are always uniform.
    pub(crate) fn init(
        [inputs, outputs]: [usize; 2],
        draw: Draw,
        stream: &mut Stream,
        device: &Device,
    ) -> Self {
        let weight = draw.numbers(inputs, inputs * outputs, stream);
        let bias = Draw::Uniform.numbers(inputs, outputs, stream);
        Self {
            weight: Param::from_data(TensorData::new(weight, [inputs, outputs]), device),
            bias: Param::from_data(TensorData::new(bias, [outputs]), device),
        }
    }

    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        ops::linear(x, self.weight.val(), self.bias.val(), false)
    }

    pub(crate) fn relu(&self, x: Tensor<2>) -> Tensor<2> {
        ops::linear(x, self.weight.val(), self.bias.val(), true)
    }
}

/// A 3 × 3 convolution with a bias and no padding, weight `[height, width, inputs, outputs]`.
#[derive(Module, Debug)]
pub(crate) struct Conv {
    weight: Param<Tensor<4>>,
    bias: Param<Tensor<1>>,
}

impl Conv {
    pub(crate) fn init(
        [inputs, outputs]: [usize; 2],
        stream: &mut Stream,
        device: &Device,
    ) -> Self {
        let bias = |stream| Draw::Uniform.numbers(9 * inputs, outputs, stream);
        Self {
            weight: kernel([inputs, outputs], Draw::Uniform, stream, device),
            bias: Param::from_data(TensorData::new(bias(stream), [outputs]), device),
        }
    }

    pub(crate) fn relu(&self, x: Tensor<4>) -> Tensor<4> {
        let window = Window2d::default();
        activation::relu(ops::conv2d(x, self.weight.val(), Some(self.bias.val()), window))
    }

    /// Rectifier and the largest of each 2 × 2 pixels.
    pub(crate) fn relu_pool(&self, x: Tensor<4>) -> Tensor<4> {
        let x = ops::conv2d(x, self.weight.val(), None, Window2d::default());
        ops::bias_relu_max_pool(x, self.bias.val(), 2)
    }
}

/// A 3 × 3 convolution with padding, without bias, and batch normalisation.
#[derive(Module, Debug)]
pub(crate) struct NormConv {
    weight: Param<Tensor<4>>,
    norm: BatchNorm,
    stride: usize,
}

impl NormConv {
    pub(crate) fn init(
        channels: [usize; 2],
        stride: usize,
        stream: &mut Stream,
        device: &Device,
    ) -> Self {
        let weight = kernel(channels, Draw::Kaiming, stream, device);
        Self { weight, norm: BatchNorm::init(channels[1], device), stride }
    }

    /// Convolves, normalises, adds `residual` if there is one, and rectifies.
    pub(crate) fn relu(
        &self,
        x: Tensor<4>,
        residual: Option<Tensor<4>>,
        training: Option<&mut Training>,
    ) -> Tensor<4> {
        let window = Window2d { stride: [self.stride; 2], padding: [1, 1] };
        let x = ops::conv2d(x, self.weight.val(), None, window);
        self.norm.relu(x, residual, training)
    }

    pub(crate) fn norm(&mut self) -> &mut BatchNorm {
        &mut self.norm
    }
}

fn kernel(
    [inputs, outputs]: [usize; 2],
    draw: Draw,
    stream: &mut Stream,
    device: &Device,
) -> Param<Tensor<4>> {
    let numbers = draw.numbers(9 * inputs, 9 * inputs * outputs, stream);
    Param::from_data(TensorData::new(numbers, [3, 3, inputs, outputs]), device)
}

/// Batch normalisation. `mean` and `variance` are running averages over batches: kept with the model, not learnt.
#[derive(Module, Debug)]
pub(crate) struct BatchNorm {
    gamma: Param<Tensor<1>>,
    beta: Param<Tensor<1>>,
    mean: Param<Tensor<1>>,
    variance: Param<Tensor<1>>,
}

/// Mean and unbiased variance per channel of a batch.
pub(crate) type Statistics = (Tensor<1>, Tensor<1>);

const EPSILON: f32 = 1e-5;
/// Share of a batch in the running averages.
const MOMENTUM: f64 = 0.1;

impl BatchNorm {
    fn init(channels: usize, device: &Device) -> Self {
        let learnt = |value| Param::from_data(TensorData::full([channels], value), device);
        let kept = |value: f32| {
            let tensor = Tensor::from_data(TensorData::full([channels], value), device);
            Param::initialized(ParamId::new(), tensor)
        };
        Self { gamma: learnt(1.0f32), beta: learnt(0.0f32), mean: kept(0.0), variance: kept(1.0) }
    }

    fn relu(
        &self,
        x: Tensor<4>,
        residual: Option<Tensor<4>>,
        training: Option<&mut Training>,
    ) -> Tensor<4> {
        let (gamma, beta) = (self.gamma.val(), self.beta.val());
        let Some(training) = training else {
            let (mean, variance) = (self.mean.val(), self.variance.val());
            return ops::batch_norm_with(x, gamma, beta, mean, variance, EPSILON, residual, true);
        };
        let [n, height, width, _] = x.dims();
        let pixels = (n * height * width) as f64;
        let (y, mean, variance) = ops::batch_norm(x, gamma, beta, EPSILON, residual, true);
        let unbiased = variance.mul_scalar(pixels / (pixels - 1.0).max(1.0));
        training.statistics.push((mean, unbiased));
        y
    }

    /// Takes the statistics of a batch into the running averages.
    pub(crate) fn absorb(&mut self, (mean, variance): Statistics) {
        let mix = |running: &Param<Tensor<1>>, batch: Tensor<1>| {
            let mixed = running.val().inner().mul_scalar(1.0 - MOMENTUM)
                + batch.inner().mul_scalar(MOMENTUM);
            Param::initialized(running.id, Tensor::from_inner(mixed))
        };
        self.mean = mix(&self.mean, mean);
        self.variance = mix(&self.variance, variance);
    }
}

/// Rows of numbers as square images.
pub(crate) fn images(rows: Tensor<2>, side: usize, channels: usize) -> Tensor<4> {
    let [n, _] = rows.dims();
    rows.reshape([n, side, side, channels])
}

/// Images as rows of numbers.
pub(crate) fn flatten(x: Tensor<4>) -> Tensor<2> {
    let [n, height, width, channels] = x.dims();
    x.reshape([n, height * width * channels])
}

/// Zeroes numbers at random and scales the others up so that the expectation stays.
pub(crate) fn drop_out(x: Tensor<2>, share: f32, training: Option<&mut Training>) -> Tensor<2> {
    match training {
        Some(training) if share > 0.0 => {
            let mask = mask(x.dims(), share, &mut training.masks, &x.device());
            x * mask
        }
        _ => x,
    }
}

/// The same for whole channels of an image.
pub(crate) fn drop_channels(
    x: Tensor<4>,
    share: f32,
    training: Option<&mut Training>,
) -> Tensor<4> {
    let Some(training) = training else { return x };
    let [n, _, _, channels] = x.dims();
    let mask = mask([n, 1, 1, channels], share, &mut training.masks, &x.device());
    x * mask
}

fn mask<const D: usize>(
    shape: [usize; D],
    share: f32,
    stream: &mut Stream,
    device: &Device,
) -> Tensor<D> {
    let kept = 1.0 / (1.0 - share);
    let count = shape.iter().product::<usize>();
    let mask = (0..count).map(|_| if stream.unit() < share { 0.0 } else { kept });
    Tensor::from_data(TensorData::new(mask.collect::<Vec<f32>>(), shape), device)
}
