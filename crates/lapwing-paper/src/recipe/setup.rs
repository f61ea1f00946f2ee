//! What a recipe trains and how: sources, network, training.

use lapwing_sample::Change;
use lapwing_train::Init;
use serde::{Deserialize, Serialize};

/// How samples get their sources.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Sources {
    /// The way.
    pub layout: Layout,
    /// How many there are.
    pub count: usize,
    /// Consecutive samples that share a source, for chunks.
    #[serde(default)]
    pub chunk: usize,
    /// How many of them are noisy.
    #[serde(default)]
    pub noisy: usize,
    /// The share of wrong labels in each noisy source, where that is not all.
    #[serde(default)]
    pub levels: Vec<f64>,
}

/// How samples get their sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Chunks of consecutive samples, dealt to the sources in turn.
    Chunks,
    /// Each sample draws one.
    Draws,
    /// As many samples each, so that shares of wrong labels are exact.
    Equal,
    /// The data set says it.
    Given,
}

/// A network.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Model {
    /// Which.
    pub kind: ModelKind,
    /// Units of hidden layers.
    #[serde(default)]
    pub hidden: Vec<usize>,
    /// Share of hidden units dropped.
    #[serde(default)]
    pub dropout: f32,
    /// Whether it ends in a softmax, before the loss applies another.
    #[serde(default)]
    pub softmax: bool,
    /// Whose first parameters it begins with; of linear layers only.
    #[serde(default, skip_serializing_if = "Init::is_default")]
    pub init: Init,
    /// Whether the stem is followed by a rectifier, in a network that can be built either way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stem_relu: Option<bool>,
}

/// The networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// Linear layers with rectifiers.
    Mlp,
    /// Three convolutions.
    Conv3net,
    /// ResNet-20 with parameter-free shortcuts.
    #[serde(rename = "resnet-20")]
    ResNet20,
    /// Two convolutions with dropout.
    DifficultCnn,
    /// ResNet-18 as torchvision builds it.
    #[serde(rename = "resnet-18")]
    ResNet18,
    /// ResNet-50 as torchvision builds it.
    #[serde(rename = "resnet-50")]
    ResNet50,
    /// PreAct-ResNet-18 with the heads of RRL.
    #[serde(rename = "preact-resnet-18")]
    PreActResNet18,
    /// Two layers of LSTM over embedded tokens.
    Lstm,
    /// A Transformer encoder over embedded tokens.
    Transformer,
    /// The residual network for signals.
    #[serde(rename = "resnet-1d")]
    ResNet1d,
}

impl ModelKind {
    /// The name of the network, where the recipe says no more than that.
    pub(crate) fn network(self) -> Option<&'static str> {
        match self {
            Self::ResNet18 => Some("resnet18"),
            Self::ResNet50 => Some("resnet50"),
            Self::PreActResNet18 => Some("preact-resnet18"),
            Self::Lstm => Some("lstm"),
            Self::Transformer => Some("transformer"),
            Self::ResNet1d => Some("resnet1d"),
            Self::Mlp | Self::Conv3net | Self::ResNet20 | Self::DifficultCnn => None,
        }
    }

    /// Whether all of its layers can be made narrower by the channels of the first stage.
    pub(crate) fn has_width(self) -> bool {
        matches!(self, Self::ResNet18 | Self::ResNet50 | Self::PreActResNet18)
    }
}

/// How a network is trained.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Training {
    /// The optimiser.
    pub optimiser: OptimiserKind,
    /// Its rate.
    pub learning_rate: f64,
    /// Momentum, for SGD.
    #[serde(default)]
    pub momentum: f64,
    /// Weight decay.
    #[serde(default)]
    pub weight_decay: f64,
    /// Samples per step.
    pub batch: usize,
    /// Passes over the data.
    pub epochs: usize,
    /// How the rate moves, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleKind>,
    /// Whether an epoch draws rows with replacement, from every source as often as from any other.
    #[serde(default, skip_serializing_if = "is_false")]
    pub source_balanced: bool,
    /// What becomes of images at random.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub augment: Vec<Change>,
    /// Whether channels are measured by the means and deviations of Imagenet.
    #[serde(default, skip_serializing_if = "is_false")]
    pub normalise: bool,
    /// Whether values are learnt in their own unit, instead of standardised.
    #[serde(default, skip_serializing_if = "is_false")]
    pub raw_values: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// How a learning rate moves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum ScheduleKind {
    /// From epoch to epoch along half a cosine.
    EpochCosine {
        /// What it ends at.
        least: f64,
        /// Whether it moves before each epoch rather than after it.
        #[serde(default, skip_serializing_if = "is_false")]
        ahead: bool,
    },
    /// Multiplied after every so many epochs.
    Stairs {
        /// By what.
        factor: f64,
        /// Epochs.
        every: usize,
    },
    /// Not at all, where the text has no schedule and the code has one.
    Constant,
}

/// The optimisers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimiserKind {
    /// Stochastic gradient descent.
    Sgd,
    /// Adam.
    Adam,
}
