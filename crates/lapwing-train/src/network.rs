//! Networks: what they are made of (saved with the model) and how they compute.

use burn::module::{Module, Param};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::ModelError;
use crate::parameters::{Parameter, ParameterError, find};
use crate::random::{Purpose, Stream};

/// Most units a layer may have, and most layers: a model file that asks for more is refused before anything is
/// allocated.
const MOST_UNITS: usize = 1 << 20;
const MOST_LAYERS: usize = 64;
const MOST_PARAMETERS: usize = 1 << 31;

/// What a network is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Architecture {
    /// A multilayer perceptron.
    Mlp(MlpConfig),
}

/// Sizes of a multilayer perceptron: linear layers with rectifiers between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MlpConfig {
    /// Numbers per row.
    pub inputs: usize,
    /// Units of each hidden layer.
    pub hidden: Vec<usize>,
    /// Classes, or 1 for a value.
    pub outputs: usize,
    /// Share of hidden units set to zero at each training step, in [0, 1).
    pub dropout: f32,
    /// Bends features smoothly into ±this many standard deviations, x / √(1 + (x / clip)²), so that one absurd value
    /// cannot make an absurd prediction. Features are expected standardised. None: as they are.
    pub clip: Option<f32>,
}

/// An architecture that cannot be built.
#[derive(Debug, Error, PartialEq)]
#[error(
    "a network of {sizes:?} units with dropout {dropout} and clip {clip:?} cannot be built: expected 1 to 2^20 units per layer, at most 64 layers and 2^31 parameters, dropout in [0, 1), clip above 0"
)]
pub struct ArchitectureError {
    /// Units per layer, inputs first.
    pub sizes: Vec<usize>,
    /// Dropout asked for.
    pub dropout: f32,
    /// Clip asked for.
    pub clip: Option<f32>,
}

impl MlpConfig {
    fn sizes(&self) -> Vec<usize> {
        [&[self.inputs], &self.hidden[..], &[self.outputs]].concat()
    }
}

impl Architecture {
    /// Numbers per row.
    pub fn inputs(&self) -> usize {
        match self {
            Architecture::Mlp(config) => config.inputs,
        }
    }

    /// Classes, or 1 for a value.
    pub fn outputs(&self) -> usize {
        match self {
            Architecture::Mlp(config) => config.outputs,
        }
    }

    /// Name and shape of every parameter, in the network's order, or why there cannot be such a network.
    fn shapes(&self) -> Result<Vec<(String, Vec<usize>)>, ArchitectureError> {
        let Architecture::Mlp(config) = self;
        let sizes = config.sizes();
        let parameters = sizes
            .windows(2)
            .map(|pair| pair[0].saturating_mul(pair[1]))
            .fold(0, usize::saturating_add);
        let clips = config.clip.is_none_or(|clip| clip > 0.0 && clip.is_finite());
        if !clips
            || sizes.len() > MOST_LAYERS
            || sizes.iter().any(|size| !(1..=MOST_UNITS).contains(size))
            || parameters > MOST_PARAMETERS
            || !(0.0..1.0).contains(&config.dropout)
        {
            return Err(ArchitectureError { sizes, dropout: config.dropout, clip: config.clip });
        }
        let layer = |(depth, pair): (usize, &[usize])| {
            [
                (format!("layers.{depth}.weight"), pair.to_vec()),
                (format!("layers.{depth}.bias"), vec![pair[1]]),
            ]
        };
        Ok(sizes.windows(2).enumerate().flat_map(layer).collect())
    }

    /// Checks arrays from a file before a network of that size is built.
    pub(crate) fn check(&self, arrays: &[Parameter]) -> Result<(), ModelError> {
        let shapes = self.shapes()?;
        if shapes.len() != arrays.len() {
            return Err(
                ParameterError::Count { found: arrays.len(), expected: shapes.len() }.into()
            );
        }
        for (name, shape) in shapes {
            find(arrays, &name, &shape)?;
        }
        Ok(())
    }

    /// A network with parameters drawn from `seed`.
    pub(crate) fn init(&self, seed: u64, device: &Device) -> Result<Network, ArchitectureError> {
        self.shapes()?;
        let Architecture::Mlp(config) = self;
        let mut stream = Stream::new(seed, Purpose::Parameters, 0);
        let layer = |pair: &[usize]| Linear::init(pair[0], pair[1], &mut stream, device);
        let layers = config.sizes().windows(2).map(layer).collect();
        Ok(Network::Mlp(Mlp { layers, dropout: config.dropout, clip: config.clip }))
    }
}

/// A network with its parameters.
#[derive(Module, Debug)]
pub(crate) enum Network {
    Mlp(Mlp),
}

impl Network {
    /// Outputs `[batch, outputs]` for features `[batch, inputs]`; `masks` is given when training and feeds dropout.
    pub(crate) fn forward(&self, features: Tensor<2>, masks: Option<&mut Stream>) -> Tensor<2> {
        match self {
            Network::Mlp(mlp) => mlp.forward(features, masks),
        }
    }
}

/// The parameters of a multilayer perceptron.
#[derive(Module, Debug)]
pub(crate) struct Mlp {
    layers: Vec<Linear>,
    dropout: f32,
    clip: Option<f32>,
}

/// `x · weight + bias`, weight `[inputs, outputs]`.
#[derive(Module, Debug)]
pub(crate) struct Linear {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl Linear {
    /// Uniform in ±1/√inputs, weights and biases, as PyTorch's `Linear`.
    fn init(inputs: usize, outputs: usize, stream: &mut Stream, device: &Device) -> Self {
        let bound = 1.0 / (inputs as f32).sqrt();
        let mut draw = |count: usize| {
            (0..count).map(|_| bound * (2.0 * stream.unit() - 1.0)).collect::<Vec<f32>>()
        };
        let weight = TensorData::new(draw(inputs * outputs), [inputs, outputs]);
        let bias = TensorData::new(draw(outputs), [outputs]);
        Self { weight: Param::from_data(weight, device), bias: Param::from_data(bias, device) }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        x.matmul(self.weight.val()) + self.bias.val().unsqueeze()
    }
}

impl Mlp {
    fn forward(&self, mut x: Tensor<2>, mut masks: Option<&mut Stream>) -> Tensor<2> {
        if let Some(clip) = self.clip {
            let bend = x.clone().div_scalar(clip).square().add_scalar(1.0).sqrt();
            x = x / bend;
        }
        for (depth, layer) in self.layers.iter().enumerate() {
            x = layer.forward(x);
            if depth + 1 < self.layers.len() {
                x = relu(x);
                if let Some(stream) = masks.as_deref_mut() {
                    x = self.drop_out(x, stream);
                }
            }
        }
        x
    }

    /// Zeroes units at random and scales the others up so that the expectation stays.
    fn drop_out(&self, x: Tensor<2>, stream: &mut Stream) -> Tensor<2> {
        if self.dropout == 0.0 {
            return x;
        }
        let kept = 1.0 / (1.0 - self.dropout);
        let [batch, units] = x.dims();
        let mask = (0..batch * units)
            .map(|_| if stream.unit() < self.dropout { 0.0 } else { kept })
            .collect();
        let mask = Tensor::from_data(TensorData::new(mask, [batch, units]), &x.device());
        x * mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::read;

    fn mlp(hidden: &[usize], dropout: f32) -> Architecture {
        Architecture::Mlp(MlpConfig {
            inputs: 4,
            hidden: hidden.to_vec(),
            outputs: 3,
            dropout,
            clip: None,
        })
    }

    #[test]
    fn the_seed_decides_the_first_parameters_and_they_stay_within_their_bound() {
        let device = Device::flex();
        let network = |seed| read(&mlp(&[16, 8], 0.0).init(seed, &device).unwrap());
        assert_eq!(network(3), network(3));
        assert_ne!(network(3), network(4));
        let names: Vec<_> = network(0).iter().map(|p| (p.name.clone(), p.shape.clone())).collect();
        assert_eq!(names[0], ("layers.0.weight".to_owned(), vec![4, 16]));
        assert_eq!(names[5], ("layers.2.bias".to_owned(), vec![3]));
        let first = &network(0)[0].values;
        assert!(first.iter().all(|v| v.abs() <= 0.5) && first.iter().any(|v| v.abs() > 0.4));
    }

    #[test]
    fn dropout_keeps_the_expectation_acts_only_in_training_and_repeats() {
        let device = Device::flex();
        let network = mlp(&[64], 0.5).init(0, &device).unwrap();
        let x = Tensor::<2>::ones([1, 4], &device);
        let out = |stream: Option<&mut Stream>| -> Vec<f32> {
            network.forward(x.clone(), stream).into_data().try_to_vec().unwrap()
        };
        let masked = |step| out(Some(&mut Stream::new(0, Purpose::Dropout, step)));
        assert_eq!(masked(1), masked(1));
        assert_ne!(masked(1), masked(2));
        const TRIALS: u64 = 2_000;
        let mean: f32 = (0..TRIALS).map(|step| masked(step)[0]).sum::<f32>() / TRIALS as f32;
        let plain = out(None)[0];
        assert!((mean - plain).abs() < 0.05, "{mean} against {plain}");
    }

    #[test]
    fn clipping_leaves_ordinary_features_and_bends_absurd_ones() {
        let device = Device::flex();
        let config = |clip| MlpConfig { inputs: 1, hidden: vec![], outputs: 1, dropout: 0.0, clip };
        let network = |clip| Architecture::Mlp(config(clip)).init(0, &device).unwrap();
        // What the layer saw: its output without bias, over its weight.
        let seen = |clip, x: f32| {
            let parameters = read(&network(clip));
            let out = network(clip).forward(Tensor::from_data([[x]], &device), None);
            let out: Vec<f32> = out.into_data().try_to_vec().unwrap();
            (out[0] - parameters[1].values[0]) / parameters[0].values[0]
        };
        assert!((seen(None, 1_000.0) - 1_000.0).abs() < 1e-2);
        assert!((seen(Some(3.0), 0.5) - 0.493_196_96).abs() < 1e-4);
        assert!((seen(Some(3.0), 3.0) - 2.121_320_3).abs() < 1e-4);
        assert!((seen(Some(3.0), -1_000.0) + 3.0).abs() < 1e-3);
        assert!(Architecture::Mlp(config(Some(0.0))).init(0, &device).is_err());
    }

    #[test]
    fn sizes_that_cannot_be_built_are_refused_before_allocating() {
        let device = Device::flex();
        assert!(mlp(&[0], 0.0).init(0, &device).is_err());
        assert!(mlp(&[usize::MAX], 0.0).init(0, &device).is_err());
        assert!(mlp(&[1 << 20, 1 << 20], 0.0).init(0, &device).is_err());
        assert!(mlp(&vec![4; 100], 0.0).init(0, &device).is_err());
        assert!(mlp(&[8], 1.0).init(0, &device).is_err());
        assert!(mlp(&[8], f32::NAN).init(0, &device).is_err());
    }
}
