//! Networks: what they are made of (saved with the model) and how they compute.

mod conv3net;
mod difficult_cnn;
mod layers;
mod mlp;
mod resnet20;
#[cfg(test)]
mod tests;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use lapwing_sample::InputSpec;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::ModelError;
use crate::parameters::{Parameter, count};
use crate::random::{Purpose, Stream};

pub use mlp::MlpConfig;

/// Most outputs of a network for images: a model file that asks for more is refused before anything is allocated.
const MOST_OUTPUTS: usize = 1 << 16;

/// What a network is made of.
///
/// Images are rows of `[height, width, channel]`, flattened, channels last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Architecture {
    /// A multilayer perceptron.
    Mlp(MlpConfig),
    /// Three convolutions and two linear layers, for 32 × 32 images in colour.
    Conv3Net {
        /// Classes, or 1 for a value.
        outputs: usize,
    },
    /// The residual network of 20 layers of He et al. for 32 × 32 images in colour, shortcuts without parameters.
    #[serde(rename = "resnet20")]
    ResNet20 {
        /// Classes, or 1 for a value.
        outputs: usize,
    },
    /// Two convolutions and two linear layers with dropout, for 28 × 28 images in grey.
    DifficultCnn {
        /// Classes, or 1 for a value.
        outputs: usize,
    },
}

/// An architecture that cannot be built.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ArchitectureError {
    /// Sizes or settings out of range.
    #[error(
        "a network of {sizes:?} units with dropout {dropout} and clip {clip:?} cannot be built: expected 1 to 2^20 units per layer, at most 64 layers and 2^31 parameters, dropout in [0, 1), clip above 0"
    )]
    Mlp {
        /// Units per layer, inputs first.
        sizes: Vec<usize>,
        /// Dropout asked for.
        dropout: f32,
        /// Clip asked for.
        clip: Option<f32>,
    },
    /// No output, or too many.
    #[error("a network for images of {0} outputs cannot be built: expected 1 to 65,536")]
    Outputs(usize),
}

impl Architecture {
    /// What it takes.
    pub fn input(&self) -> InputSpec {
        match self {
            Architecture::Mlp(config) => InputSpec::Vector { width: config.inputs },
            Architecture::Conv3Net { .. } | Architecture::ResNet20 { .. } => {
                InputSpec::Image { height: 32, width: 32, channels: 3 }
            }
            Architecture::DifficultCnn { .. } => {
                InputSpec::Image { height: 28, width: 28, channels: 1 }
            }
        }
    }

    /// Classes, or 1 for a value.
    pub fn outputs(&self) -> usize {
        match self {
            Architecture::Mlp(MlpConfig { outputs, .. })
            | Architecture::Conv3Net { outputs }
            | Architecture::ResNet20 { outputs }
            | Architecture::DifficultCnn { outputs } => *outputs,
        }
    }

    /// Numbers that are learnt; 0 for a network that cannot be built.
    pub fn parameters(&self) -> usize {
        match self {
            Architecture::Mlp(config) => config.parameters(),
            _ => self.init(0, 0, &Device::flex().autodiff()).map_or(0, |network| count(&network)),
        }
    }

    /// Whether outputs are probabilities rather than logits.
    pub(crate) fn probabilities(&self) -> bool {
        matches!(self, Architecture::Mlp(config) if config.softmax)
    }

    /// Checks arrays from a file before a network of that size is built; networks for images have a size that can be
    /// built, and are checked when the arrays are written into one.
    pub(crate) fn check(&self, arrays: &[Parameter]) -> Result<(), ModelError> {
        match self {
            Architecture::Mlp(config) => config.check(arrays),
            _ => Ok(self.limits()?),
        }
    }

    fn limits(&self) -> Result<(), ArchitectureError> {
        match self {
            Architecture::Mlp(config) => config.limits(),
            _ if (1..=MOST_OUTPUTS).contains(&self.outputs()) => Ok(()),
            _ => Err(ArchitectureError::Outputs(self.outputs())),
        }
    }

    /// A network with parameters drawn from `seed`; `number` tells networks of one run apart.
    pub(crate) fn init(
        &self,
        seed: u64,
        number: u64,
        device: &Device,
    ) -> Result<Network, ArchitectureError> {
        self.limits()?;
        let mut stream = Stream::numbered(seed, number, Purpose::Parameters, 0);
        let stream = &mut stream;
        Ok(match self {
            Architecture::Mlp(config) => Network::Mlp(config.init(stream, device)),
            Architecture::Conv3Net { outputs } => {
                Network::Conv3Net(conv3net::Conv3Net::init(*outputs, stream, device))
            }
            Architecture::ResNet20 { outputs } => {
                Network::ResNet20(resnet20::ResNet20::init(*outputs, stream, device))
            }
            Architecture::DifficultCnn { outputs } => {
                Network::DifficultCnn(difficult_cnn::DifficultCnn::init(*outputs, stream, device))
            }
        })
    }
}

/// A network with its parameters.
#[derive(Module, Debug)]
pub(crate) enum Network {
    Mlp(mlp::Mlp),
    Conv3Net(conv3net::Conv3Net),
    ResNet20(resnet20::ResNet20),
    DifficultCnn(difficult_cnn::DifficultCnn),
}

/// What a network needs and leaves behind when it trains.
pub(crate) struct Training {
    /// Feeds dropout.
    pub(crate) masks: Stream,
    /// Mean and variance of the batch for every batch normalisation, in the network's order.
    pub(crate) statistics: Vec<layers::Statistics>,
}

impl Training {
    pub(crate) fn new(masks: Stream) -> Self {
        Self { masks, statistics: Vec::new() }
    }
}

impl Network {
    /// No layers: what stands in for a network that is being changed.
    pub(crate) fn none() -> Self {
        Network::Mlp(mlp::Mlp::none())
    }

    /// Outputs `[batch, outputs]` for features `[batch, inputs]`; `training` is given when training.
    pub(crate) fn forward(
        &self,
        features: Tensor<2>,
        training: Option<&mut Training>,
    ) -> Tensor<2> {
        match self {
            Network::Mlp(mlp) => mlp.forward(features, training),
            Network::Conv3Net(net) => net.forward(features),
            Network::ResNet20(net) => net.forward(features, training),
            Network::DifficultCnn(net) => net.forward(features, training),
        }
    }

    /// Takes the statistics of a batch into the running ones.
    pub(crate) fn absorb(&mut self, statistics: Vec<layers::Statistics>) {
        if let Network::ResNet20(net) = self {
            net.absorb(statistics);
        }
    }
}
