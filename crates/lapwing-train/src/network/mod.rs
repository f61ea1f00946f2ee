//! Networks: one file and one line each.
//!
//! A network's file holds its configuration (saved with the model), which implements [`Config`], and its parameters, a Burn
//! module that implements [`Forward`]. The line in [`networks!`] below makes it known to model files, to plans and to
//! whoever asks for a network by name.

mod input;
mod layers;
mod onnx;
mod registry;
mod residual;
mod sequence;
#[cfg(test)]
mod sequence_tests;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use burn::module::{Module, ParamId};
use burn::tensor::{Device, Tensor};
use lapwing_sample::{Draws, InputSpec};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::moments::Moments;
use crate::parameters::ArraySpec;
use crate::plan::{DataShape, Wishes};
use crate::random::Purpose;

pub(crate) use input::{Input, Outputs, Projection};
pub use layers::Init;
pub(crate) use layers::MOMENTUM;
pub(crate) use onnx::Drawing;
pub use onnx::{Inexpressible, OnnxInput};

// In the order in which `auto` tries them.
registry::networks! {
    mlp: Mlp(MlpConfig),
    linear: Linear(LinearConfig),
    bag: Bag(BagConfig),
    small_cnn: SmallCnn(SmallCnnConfig),
    resnet20: ResNet20(ResNet20Config),
    resnet18: ResNet18(ResNet18Config),
    resnet50: ResNet50(ResNet50Config),
    preact_resnet18: PreActResNet18(PreActResNet18Config),
    conv3net: Conv3Net(Conv3NetConfig),
    difficult_cnn: DifficultCnn(DifficultCnnConfig),
    resnet1d: ResNet1d(ResNet1dConfig),
    lstm: Lstm(LstmConfig),
    transformer: Transformer(TransformerConfig),
}

/// What a network's configuration knows.
pub(crate) trait Config: Sized {
    /// The network.
    type Network;
    /// What it is called in commands and files.
    const NAME: &'static str;
    /// What it is, in a line.
    const ABOUT: &'static str;
    /// What it takes, in words.
    const TAKES: &'static str;

    /// Whether it takes samples of this form.
    fn takes(input: &InputSpec) -> bool;

    /// Whether it is the one for data of this shape, whose form it takes, where no network is wished for.
    fn suits(shape: &DataShape) -> bool {
        let _ = shape;
        true
    }

    /// What suits data of this shape, whose form it takes, and these wishes.
    fn plan(shape: &DataShape, wishes: &Wishes) -> Result<Self, Refusal>;

    /// What it takes.
    fn input(&self) -> InputSpec;

    /// Classes, or 1 for a value.
    fn outputs(&self) -> usize;

    /// Whether outputs are probabilities rather than logits.
    fn probabilities(&self) -> bool {
        false
    }

    /// The wishes that would lead to it again.
    fn wishes(&self) -> Wishes {
        Wishes::default()
    }

    /// What it is, in a few words.
    fn summary(&self) -> String {
        Self::NAME.to_owned()
    }

    /// Whether its settings are in range, beyond what holds for all; what was expected if not.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Every array of the network, in its order. Asked before anything is allocated, after [`check`](Self::check).
    fn arrays(&self) -> Vec<ArraySpec>;

    /// The network with its first parameters.
    fn init(&self, draws: &mut Draws, device: &Device) -> Self::Network;

    /// What it does outside training as operators of ONNX: the name of its outputs.
    fn onnx(&self, to: &mut Drawing<'_>, input: &OnnxInput) -> Result<String, Inexpressible> {
        let _ = (to, input);
        Err(Inexpressible(format!("{} is not exported", Self::NAME)))
    }
}

/// What a network does with a batch.
pub(crate) trait Forward {
    /// Outputs for a batch of the form the network takes; `training` is given when training.
    fn forward(&self, input: &Input, training: Option<&mut Training>) -> Outputs;

    /// What further heads make of what the last layer sees; nothing in a network without them.
    fn project(&self, features: Tensor<2>) -> Option<Projection> {
        let _ = features;
        None
    }
}

/// What a network needs and leaves behind when it trains.
pub(crate) struct Training {
    /// Feeds dropout.
    pub(crate) masks: Draws,
    /// What the batch adds to parameters that are averages over batches.
    pub(crate) moments: Vec<Moments>,
    /// Tables of which the batch has touched a few rows: no other has a gradient.
    pub(crate) touched: Vec<Touched>,
}

/// Rows of a table of embeddings that take part in a batch.
#[derive(Clone, Debug)]
pub(crate) struct Touched {
    /// The table.
    pub(crate) id: ParamId,
    /// Which rows, each once.
    pub(crate) rows: Arc<[u32]>,
    /// These rows, with gradients.
    pub(crate) values: Tensor<2>,
}

impl Training {
    pub(crate) fn new(masks: Draws) -> Self {
        Self { masks, moments: Vec::new(), touched: Vec::new() }
    }

    /// A share to drop and a seed for it, where there is training and anything to drop.
    pub(crate) fn chance(training: &mut Option<&mut Self>, share: f32) -> Option<(f32, u64)> {
        let training = training.as_deref_mut().filter(|_| share > 0.0)?;
        Some((share, training.masks.bits()))
    }
}

/// Why a network does not go with wishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) &'static str);

/// A network that cannot be built.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArchitectureError {
    /// Settings out of range.
    #[error("the network {network} cannot be built: expected {expected}")]
    Settings {
        /// The network.
        network: &'static str,
        /// What was expected.
        expected: String,
    },
    /// More parameters than a network may have.
    #[error("the network {network} cannot be built: it has more than 2^31 parameters")]
    TooLarge {
        /// The network.
        network: &'static str,
    },
}

/// A network that nobody knows.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("there is no network {name:?}; expected one of {}", names().join(", "))]
pub struct UnknownNetwork {
    /// What was asked for.
    pub name: String,
}

/// Why no network can be planned.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// A network that is for something else.
    #[error("the network {network} takes {takes}, and the samples are {found}")]
    Input {
        /// The network asked for.
        network: &'static str,
        /// What it takes.
        takes: &'static str,
        /// What the samples are.
        found: InputSpec,
    },
    /// No network is for such samples.
    #[error("no network takes samples that are {0}")]
    NoNetwork(InputSpec),
    /// A wish that the network cannot fulfil.
    #[error("the network {network} {problem}")]
    Wish {
        /// The network.
        network: &'static str,
        /// What it does not have.
        problem: &'static str,
    },
}

/// The shorter side of images, in pixels; 0 for other samples.
fn least_side(shape: &DataShape) -> usize {
    match shape.input {
        InputSpec::Image { height, width, .. } => height.min(width),
        _ => 0,
    }
}

impl Network {
    /// What stands in for a network that is being changed.
    pub(crate) fn none() -> Self {
        Self::Mlp(mlp::Mlp::none())
    }
}

impl Architecture {
    /// What suits data of this shape and these wishes: the network wished for, or the first that takes the samples and suits
    /// them.
    pub fn plan(shape: &DataShape, wishes: &Wishes) -> Result<Self, PlanError> {
        let takers = || NetworkKind::ALL.iter().copied().filter(|kind| kind.takes(&shape.input));
        let kind = match wishes.network {
            Some(kind) => kind,
            None => takers()
                .find(|kind| kind.suits(shape))
                .or_else(|| takers().next())
                .ok_or(PlanError::NoNetwork(shape.input))?,
        };
        if !kind.takes(&shape.input) {
            let (network, takes) = (kind.name(), kind.takes_in_words());
            return Err(PlanError::Input { network, takes, found: shape.input });
        }
        kind.plan(shape, wishes)
            .map_err(|Refusal(problem)| PlanError::Wish { network: kind.name(), problem })
    }

    /// Numbers that are learnt; 0 for a network that cannot be built.
    pub fn parameters(&self) -> usize {
        let learnt = |array: &ArraySpec| if array.learnt { array.size() } else { 0 };
        self.arrays().map_or(0, |arrays| arrays.iter().map(learnt).sum())
    }
}
