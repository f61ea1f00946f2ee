//! Layers, with PyTorch's initialisation. Images are `[n, height, width, channels]`.

use burn::module::{Module, Param, ParamId};
use burn::tensor::{Device, Tensor, TensorData};
use lapwing_ops as ops;
use lapwing_ops::Window2d;
use lapwing_sample::Draws;
use serde::{Deserialize, Serialize};

use super::Training;
use crate::moments::Moments;
use crate::parameters::ArraySpec;

/// Whose first parameters linear layers begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// PyTorch's: weights and biases uniform in ±1/√inputs.
    #[default]
    Torch,
    /// Keras': weights uniform in ±√(6/(inputs + outputs)), biases zero.
    Keras,
}

impl Init {
    /// Whether it is what every network begins with unless told otherwise; files do not mention it then.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How first weights are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Draw {
    /// Uniform in ±1/√inputs, as PyTorch does unless told otherwise.
    Uniform,
    /// Normal with variance 2/inputs, after He et al.
    Kaiming,
    /// Normal with variance 2/(outputs of a kernel), as torchvision's residual networks have it.
    KaimingOut,
}

impl Draw {
    /// `seen` is how many numbers come in; of [`KaimingOut`](Self::KaimingOut), how many go out.
    pub(crate) fn numbers(self, seen: usize, count: usize, draws: &mut Draws) -> Vec<f32> {
        let inputs = seen as f32;
        match self {
            Draw::Uniform => uniform(1.0 / inputs.sqrt(), count, draws),
            Draw::Kaiming | Draw::KaimingOut => {
                let std = (2.0 / inputs).sqrt();
                (0..count).map(|_| std * draws.normal_single()).collect()
            }
        }
    }
}

/// Numbers within ±`bound`.
fn uniform(bound: f32, count: usize, draws: &mut Draws) -> Vec<f32> {
    (0..count).map(|_| bound * (2.0 * draws.unit_single() - 1.0)).collect()
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
        draws: &mut Draws,
        device: &Device,
    ) -> Self {
        let weight = draw.numbers(inputs, inputs * outputs, draws);
        let bias = Draw::Uniform.numbers(inputs, outputs, draws);
        Self {
            weight: Param::from_data(TensorData::new(weight, [inputs, outputs]), device),
            bias: Param::from_data(TensorData::new(bias, [outputs]), device),
        }
    }

    /// With the first parameters that `init` asks for.
    pub(crate) fn begin(sizes: [usize; 2], init: Init, draws: &mut Draws, device: &Device) -> Self {
        let [inputs, outputs] = sizes;
        match init {
            Init::Torch => Self::init(sizes, Draw::Uniform, draws, device),
            Init::Keras => {
                let bound = (6.0 / (inputs + outputs) as f32).sqrt();
                let weight = uniform(bound, inputs * outputs, draws);
                Self::of(weight, vec![0.0; outputs], device)
            }
        }
    }

    /// Of these numbers.
    pub(crate) fn of(weight: Vec<f32>, bias: Vec<f32>, device: &Device) -> Self {
        let outputs = bias.len();
        let shape = [weight.len() / outputs.max(1), outputs];
        Self {
            weight: Param::from_data(TensorData::new(weight, shape), device),
            bias: Param::from_data(TensorData::new(bias, [outputs]), device),
        }
    }

    /// The same with biases that are zero.
    pub(crate) fn without_bias(self) -> Self {
        let [outputs] = self.bias.dims();
        let zeros = TensorData::zeros::<f32, _>([outputs]);
        let bias = Param::from_data(zeros, &self.bias.device());
        Self { bias, ..self }
    }

    pub(crate) fn arrays(name: &str, [inputs, outputs]: [usize; 2]) -> Vec<ArraySpec> {
        vec![
            ArraySpec::learnt(name, "weight", [inputs, outputs]),
            ArraySpec::learnt(name, "bias", [outputs]),
        ]
    }

    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        ops::linear(x, self.weight.val(), self.bias.val(), false)
    }

    pub(crate) fn relu(&self, x: Tensor<2>) -> Tensor<2> {
        ops::linear(x, self.weight.val(), self.bias.val(), true)
    }
}

/// A convolution with a square kernel, a bias and no padding, weight `[height, width, inputs, outputs]`.
#[derive(Module, Debug)]
pub(crate) struct Conv {
    weight: Param<Tensor<4>>,
    bias: Param<Tensor<1>>,
}

impl Conv {
    pub(crate) fn init(
        side: usize,
        [inputs, outputs]: [usize; 2],
        draws: &mut Draws,
        device: &Device,
    ) -> Self {
        let weight = kernel(side, [inputs, outputs], Draw::Uniform, draws, device);
        let bias = Draw::Uniform.numbers(side * side * inputs, outputs, draws);
        Self { weight, bias: Param::from_data(TensorData::new(bias, [outputs]), device) }
    }

    pub(crate) fn arrays(name: &str, side: usize, [inputs, outputs]: [usize; 2]) -> Vec<ArraySpec> {
        vec![
            ArraySpec::learnt(name, "weight", [side, side, inputs, outputs]),
            ArraySpec::learnt(name, "bias", [outputs]),
        ]
    }

    pub(crate) fn relu(&self, x: Tensor<4>) -> Tensor<4> {
        let window = Window2d::default();
        ops::relu(ops::conv2d(x, self.weight.val(), Some(self.bias.val()), window))
    }

    /// Rectifier and the largest of each 2 × 2 pixels.
    pub(crate) fn relu_pool(&self, x: Tensor<4>) -> Tensor<4> {
        let x = ops::conv2d(x, self.weight.val(), None, Window2d::default());
        ops::bias_relu_max_pool(x, self.bias.val(), 2)
    }
}

/// A convolution with a square kernel, padded so that a stride of 1 keeps the size of the image (where the side of the
/// kernel is odd), without bias, and batch normalisation.
#[derive(Module, Debug)]
pub(crate) struct NormConv {
    weight: Param<Tensor<4>>,
    norm: BatchNorm,
    stride: usize,
    padding: usize,
}

impl NormConv {
    pub(crate) fn init(
        side: usize,
        channels: [usize; 2],
        stride: usize,
        draws: &mut Draws,
        device: &Device,
    ) -> Self {
        Self::drawn(side, channels, stride, Draw::Kaiming, draws, device)
    }

    /// With first weights that are drawn otherwise.
    pub(crate) fn drawn(
        side: usize,
        channels: [usize; 2],
        stride: usize,
        draw: Draw,
        draws: &mut Draws,
        device: &Device,
    ) -> Self {
        let weight = kernel(side, channels, draw, draws, device);
        Self { weight, norm: BatchNorm::init(channels[1], device), stride, padding: side / 2 }
    }

    pub(crate) fn arrays(name: &str, side: usize, [inputs, outputs]: [usize; 2]) -> Vec<ArraySpec> {
        let weight = ArraySpec::learnt(name, "weight", [side, side, inputs, outputs]);
        let norm = BatchNorm::arrays(&format!("{name}.norm"), outputs);
        std::iter::once(weight).chain(norm).collect()
    }

    /// Convolves, normalises, adds `residual` if there is one, and rectifies.
    pub(crate) fn relu(
        &self,
        x: Tensor<4>,
        residual: Option<Tensor<4>>,
        training: Option<&mut Training>,
    ) -> Tensor<4> {
        self.norm.apply(self.convolve(x), residual, true, training)
    }

    /// Convolves and normalises.
    pub(crate) fn forward(&self, x: Tensor<4>, training: Option<&mut Training>) -> Tensor<4> {
        self.norm.apply(self.convolve(x), None, false, training)
    }

    fn convolve(&self, x: Tensor<4>) -> Tensor<4> {
        let window = Window2d { stride: [self.stride; 2], padding: [self.padding; 2] };
        ops::conv2d(x, self.weight.val(), None, window)
    }
}

/// A convolution with a square kernel, padded as [`NormConv`] is, and nothing else: for networks that normalise before they
/// convolve.
#[derive(Module, Debug)]
pub(crate) struct PlainConv {
    weight: Param<Tensor<4>>,
    stride: usize,
    padding: usize,
}

impl PlainConv {
    /// With PyTorch's first weights.
    pub(crate) fn init(
        side: usize,
        channels: [usize; 2],
        stride: usize,
        draws: &mut Draws,
        device: &Device,
    ) -> Self {
        let weight = kernel(side, channels, Draw::Uniform, draws, device);
        Self { weight, stride, padding: side / 2 }
    }

    pub(crate) fn arrays(name: &str, side: usize, [inputs, outputs]: [usize; 2]) -> Vec<ArraySpec> {
        vec![ArraySpec::learnt(name, "weight", [side, side, inputs, outputs])]
    }

    pub(crate) fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let window = Window2d { stride: [self.stride; 2], padding: [self.padding; 2] };
        ops::conv2d(x, self.weight.val(), None, window)
    }
}

fn kernel(
    side: usize,
    [inputs, outputs]: [usize; 2],
    draw: Draw,
    draws: &mut Draws,
    device: &Device,
) -> Param<Tensor<4>> {
    let (seen, fan) = match draw {
        Draw::KaimingOut => (side * side * inputs, side * side * outputs),
        Draw::Kaiming | Draw::Uniform => (side * side * inputs, side * side * inputs),
    };
    let numbers = draw.numbers(fan, seen * outputs, draws);
    Param::from_data(TensorData::new(numbers, [side, side, inputs, outputs]), device)
}

/// Batch normalisation. `mean` and `variance` are running averages over batches: kept with the model, not learnt.
#[derive(Module, Debug)]
pub(crate) struct BatchNorm {
    gamma: Param<Tensor<1>>,
    beta: Param<Tensor<1>>,
    mean: Param<Tensor<1>>,
    variance: Param<Tensor<1>>,
}

/// Added to variances.
pub(crate) const EPSILON: f64 = 1e-5;
/// Share of a batch in the running averages.
pub(crate) const MOMENTUM: f64 = 0.1;

impl BatchNorm {
    pub(crate) fn init(channels: usize, device: &Device) -> Self {
        let learnt = |value| Param::from_data(TensorData::full([channels], value), device);
        let kept = |value: f32| {
            let tensor = Tensor::from_data(TensorData::full([channels], value), device);
            Param::initialized(ParamId::new(), tensor)
        };
        Self { gamma: learnt(1.0f32), beta: learnt(0.0f32), mean: kept(0.0), variance: kept(1.0) }
    }

    pub(crate) fn arrays(name: &str, channels: usize) -> [ArraySpec; 4] {
        [
            ArraySpec::learnt(name, "gamma", [channels]),
            ArraySpec::learnt(name, "beta", [channels]),
            ArraySpec::kept(name, "mean", [channels]),
            ArraySpec::kept(name, "variance", [channels]),
        ]
    }

    /// Normalises and rectifies.
    pub(crate) fn relu(&self, x: Tensor<4>, training: Option<&mut Training>) -> Tensor<4> {
        self.apply(x, None, true, training)
    }

    fn apply(
        &self,
        x: Tensor<4>,
        residual: Option<Tensor<4>>,
        relu: bool,
        training: Option<&mut Training>,
    ) -> Tensor<4> {
        let (gamma, beta) = (self.gamma.val(), self.beta.val());
        let Some(training) = training else {
            let (mean, variance) = (self.mean.val(), self.variance.val());
            let epsilon = EPSILON as f32;
            return ops::batch_norm_with(x, gamma, beta, mean, variance, epsilon, residual, relu);
        };
        let [n, height, width, _] = x.dims();
        let pixels = (n * height * width) as f64;
        let (y, mean, variance) = ops::batch_norm(x, gamma, beta, EPSILON as f32, residual, relu);
        let (mean, variance) = ((self.mean.id, mean), (self.variance.id, variance));
        training.moments.push(Moments { mean, variance, pixels });
        y
    }
}

/// Batch normalisation of series `[n, moments, channels]` without parameters of its own, and a rectifier.
#[derive(Module, Debug)]
pub(crate) struct PlainNorm {
    mean: Param<Tensor<1>>,
    variance: Param<Tensor<1>>,
}

impl PlainNorm {
    pub(crate) fn init(channels: usize, device: &Device) -> Self {
        let BatchNorm { mean, variance, .. } = BatchNorm::init(channels, device);
        Self { mean, variance }
    }

    pub(crate) fn arrays(name: &str, channels: usize) -> Vec<ArraySpec> {
        ["mean", "variance"].map(|part| ArraySpec::kept(name, part, [channels])).to_vec()
    }

    pub(crate) fn relu(&self, x: Tensor<3>, training: Option<&mut Training>) -> Tensor<3> {
        let [n, moments, channels] = x.dims();
        let device = x.device();
        let norm = BatchNorm {
            gamma: Param::initialized(ParamId::new(), Tensor::ones([channels], &device)),
            beta: Param::initialized(ParamId::new(), Tensor::zeros([channels], &device)),
            mean: self.mean.clone(),
            variance: self.variance.clone(),
        };
        let x = x.reshape([n, 1, moments, channels]);
        norm.apply(x, None, true, training).reshape([n, moments, channels])
    }
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
            ops::scale(x, mask)
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
    draws: &mut Draws,
    device: &Device,
) -> Tensor<D> {
    let kept = 1.0 / (1.0 - share);
    let mask = draws.dropped(shape.iter().product(), share, kept);
    Tensor::from_data(TensorData::new(mask, shape), device)
}
