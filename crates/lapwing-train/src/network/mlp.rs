//! The multilayer perceptron: linear layers with rectifiers between them.

use burn::module::Module;
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::layers::{Draw, Linear, drop_out};
use super::{ArchitectureError, Training};
use crate::model::ModelError;
use crate::parameters::{Parameter, ParameterError, find};
use crate::random::Stream;

/// Most units a layer may have, and most layers: a model file that asks for more is refused before anything is
/// allocated.
const MOST_UNITS: usize = 1 << 20;
const MOST_LAYERS: usize = 64;
const MOST_PARAMETERS: usize = 1 << 31;

/// Sizes of a multilayer perceptron.
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
    /// Ends in a softmax, whose probabilities cross-entropy then takes for logits: a network of the paper did, which
    /// bounds the loss and its gradients.
    #[serde(default)]
    pub softmax: bool,
}

impl MlpConfig {
    fn sizes(&self) -> Vec<usize> {
        [&[self.inputs], &self.hidden[..], &[self.outputs]].concat()
    }

    pub(crate) fn parameters(&self) -> usize {
        let layer = |pair: &[usize]| pair[0].saturating_add(1).saturating_mul(pair[1]);
        self.sizes().windows(2).map(layer).fold(0, usize::saturating_add)
    }

    pub(crate) fn limits(&self) -> Result<(), ArchitectureError> {
        let sizes = self.sizes();
        let clips = self.clip.is_none_or(|clip| clip > 0.0 && clip.is_finite());
        if !clips
            || sizes.len() > MOST_LAYERS
            || sizes.iter().any(|size| !(1..=MOST_UNITS).contains(size))
            || self.parameters() > MOST_PARAMETERS
            || !(0.0..1.0).contains(&self.dropout)
        {
            return Err(ArchitectureError::Mlp { sizes, dropout: self.dropout, clip: self.clip });
        }
        Ok(())
    }

    /// Checks arrays from a file by name and shape.
    pub(crate) fn check(&self, arrays: &[Parameter]) -> Result<(), ModelError> {
        self.limits()?;
        let sizes = self.sizes();
        let expected = 2 * (sizes.len() - 1);
        if arrays.len() != expected {
            return Err(ParameterError::Count { found: arrays.len(), expected }.into());
        }
        for (depth, pair) in sizes.windows(2).enumerate() {
            find(arrays, &format!("layers.{depth}.weight"), pair)?;
            find(arrays, &format!("layers.{depth}.bias"), &pair[1..])?;
        }
        Ok(())
    }

    pub(crate) fn init(&self, stream: &mut Stream, device: &Device) -> Mlp {
        let layer =
            |pair: &[usize]| Linear::init([pair[0], pair[1]], Draw::Uniform, stream, device);
        Mlp {
            layers: self.sizes().windows(2).map(layer).collect(),
            dropout: self.dropout,
            clip: self.clip,
            softmax: self.softmax,
        }
    }
}

/// The parameters of a multilayer perceptron.
#[derive(Module, Debug)]
pub(crate) struct Mlp {
    layers: Vec<Linear>,
    dropout: f32,
    clip: Option<f32>,
    softmax: bool,
}

impl Mlp {
    pub(crate) fn none() -> Self {
        Self { layers: Vec::new(), dropout: 0.0, clip: None, softmax: false }
    }

    pub(crate) fn forward(
        &self,
        mut x: Tensor<2>,
        mut training: Option<&mut Training>,
    ) -> Tensor<2> {
        if let Some(clip) = self.clip {
            let bend = x.clone().div_scalar(clip).square().add_scalar(1.0).sqrt();
            x = x / bend;
        }
        if let Some((last, hidden)) = self.layers.split_last() {
            for layer in hidden {
                x = drop_out(layer.relu(x), self.dropout, training.as_deref_mut());
            }
            x = last.forward(x);
        }
        if self.softmax { softmax(x, 1) } else { x }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Architecture, Network};
    use super::*;
    use crate::parameters::read;
    use crate::random::Purpose;

    fn mlp(hidden: &[usize], dropout: f32) -> Architecture {
        Architecture::Mlp(MlpConfig {
            inputs: 4,
            hidden: hidden.to_vec(),
            outputs: 3,
            dropout,
            clip: None,
            softmax: false,
        })
    }

    fn init(architecture: &Architecture, seed: u64) -> Result<Network, ArchitectureError> {
        architecture.init(seed, 0, &Device::flex())
    }

    #[test]
    fn the_seed_decides_the_first_parameters_and_they_stay_within_their_bound() {
        let network = |seed| read(&init(&mlp(&[16, 8], 0.0), seed).unwrap());
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
        let network = init(&mlp(&[64], 0.5), 0).unwrap();
        let x = Tensor::<2>::ones([1, 4], &Device::flex());
        let out = |training: Option<&mut Training>| -> Vec<f32> {
            network.forward(x.clone(), training).into_data().try_to_vec().unwrap()
        };
        let masked = |step| out(Some(&mut Training::new(Stream::new(0, Purpose::Dropout, step))));
        assert_eq!(masked(1), masked(1));
        assert_ne!(masked(1), masked(2));
        const TRIALS: u64 = 2_000;
        let mean: f32 = (0..TRIALS).map(|step| masked(step)[0]).sum::<f32>() / TRIALS as f32;
        let plain = out(None)[0];
        assert!((mean - plain).abs() < 0.05, "{mean} against {plain}");
    }

    #[test]
    fn clipping_leaves_ordinary_features_and_bends_absurd_ones() {
        let config = |clip| {
            let (hidden, dropout, softmax) = (vec![], 0.0, false);
            Architecture::Mlp(MlpConfig { inputs: 1, hidden, outputs: 1, dropout, clip, softmax })
        };
        // What the layer saw: its output without bias, over its weight.
        let seen = |clip, x: f32| {
            let network = init(&config(clip), 0).unwrap();
            let parameters = read(&network);
            let out = network.forward(Tensor::from_data([[x]], &Device::flex()), None);
            let out: Vec<f32> = out.into_data().try_to_vec().unwrap();
            (out[0] - parameters[1].values[0]) / parameters[0].values[0]
        };
        assert!((seen(None, 1_000.0) - 1_000.0).abs() < 1e-2);
        assert!((seen(Some(3.0), 0.5) - 0.493_196_96).abs() < 1e-4);
        assert!((seen(Some(3.0), 3.0) - 2.121_320_3).abs() < 1e-4);
        assert!((seen(Some(3.0), -1_000.0) + 3.0).abs() < 1e-3);
        assert!(init(&config(Some(0.0)), 0).is_err());
    }

    #[test]
    fn with_softmax_outputs_are_probabilities_of_the_same_logits() {
        let Architecture::Mlp(plain) = mlp(&[8], 0.0) else { unreachable!() };
        let ending = Architecture::Mlp(MlpConfig { softmax: true, ..plain.clone() });
        let x = Tensor::<2>::from_data([[0.3, -1.0, 2.0, 0.1]], &Device::flex());
        let out = |architecture: &Architecture| -> Vec<f32> {
            let network = init(architecture, 5).unwrap();
            network.forward(x.clone(), None).into_data().try_to_vec().unwrap()
        };
        let (logits, found) = (out(&Architecture::Mlp(plain)), out(&ending));
        let sum: f32 = logits.iter().map(|logit| logit.exp()).sum();
        for (logit, probability) in logits.iter().zip(found) {
            assert!((logit.exp() / sum - probability).abs() < 1e-6);
        }
    }

    #[test]
    fn sizes_that_cannot_be_built_are_refused_before_allocating() {
        for (hidden, dropout) in [
            (vec![0], 0.0),
            (vec![usize::MAX], 0.0),
            (vec![1 << 20, 1 << 20], 0.0),
            (vec![4; 100], 0.0),
            (vec![8], 1.0),
            (vec![8], f32::NAN),
        ] {
            assert!(init(&mlp(&hidden, dropout), 0).is_err(), "{hidden:?} {dropout}");
        }
    }

    #[test]
    fn parameters_are_counted_as_in_the_paper() {
        let count = |inputs, hidden: &[usize], outputs| {
            let (hidden, dropout, clip, softmax) = (hidden.to_vec(), 0.0, None, false);
            Architecture::Mlp(MlpConfig { inputs, hidden, outputs, dropout, clip, softmax })
                .parameters()
        };
        assert_eq!(count(784, &[16, 16], 10), 13_002);
        assert_eq!(count(8, &[32, 32, 32], 1), 2_433);
        assert_eq!(count(2, &[200, 200], 2), 41_202);
    }
}
