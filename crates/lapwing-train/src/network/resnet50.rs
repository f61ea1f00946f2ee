//! ResNet-50 of He et al., as torchvision builds it; for images below 64 pixels a side with a stem of 3 × 3.

use burn::module::Module;
use burn::tensor::Device;
use lapwing_sample::{Draws, InputSpec};
use serde::{Deserialize, Serialize};

use super::residual::{self, Kind, Plan, Residual};
use super::{
    Config, DataShape, Drawing, Forward, Inexpressible, Input, OnnxInput, Outputs, Refusal,
    Training, Wishes, least_side,
};
use crate::parameters::ArraySpec;

/// The sizes of a ResNet-50.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNet50Config {
    /// Pixels from top to bottom, from left to right, and numbers per pixel.
    pub image: [usize; 3],
    /// Channels of the first stage.
    pub width: usize,
    /// Blocks of each stage.
    pub blocks: [usize; 4],
    /// Classes, or 1 for a value.
    pub outputs: usize,
}

impl ResNet50Config {
    fn layers(&self) -> Plan {
        let Self { image, width, blocks, outputs } = *self;
        Plan { kind: Kind::Bottleneck, image, width, blocks, outputs }
    }
}

impl Config for ResNet50Config {
    type Network = ResNet50;
    const NAME: &'static str = "resnet50";
    const ABOUT: &'static str = "The residual network of 50 layers of He et al.";
    const TAKES: &'static str = "images of 8 to 1,024 pixels a side";

    fn takes(input: &InputSpec) -> bool {
        residual::takes(input)
    }

    fn suits(shape: &DataShape) -> bool {
        least_side(shape) >= 48 && shape.rows >= 200_000
    }

    fn plan(shape: &DataShape, wishes: &Wishes) -> Result<Self, Refusal> {
        let (image, width) = (residual::image(&shape.input), residual::width(wishes)?);
        Ok(Self { image, width, blocks: [3, 4, 6, 3], outputs: shape.outputs })
    }

    fn wishes(&self) -> Wishes {
        residual::wishes(self.width)
    }

    fn summary(&self) -> String {
        residual::summary(Self::NAME, self.width)
    }

    fn input(&self) -> InputSpec {
        self.layers().input()
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn check(&self) -> Result<(), String> {
        self.layers().check()
    }

    fn arrays(&self) -> Vec<ArraySpec> {
        self.layers().arrays()
    }

    fn init(&self, draws: &mut Draws, device: &Device) -> ResNet50 {
        ResNet50 { layers: self.layers().init(draws, device) }
    }

    fn onnx(&self, to: &mut Drawing<'_>, input: &OnnxInput) -> Result<String, Inexpressible> {
        self.layers().onnx(to, input)
    }
}

/// The parameters of a ResNet-50.
#[derive(Module, Debug)]
pub(crate) struct ResNet50 {
    layers: Residual,
}

impl Forward for ResNet50 {
    fn forward(&self, input: &Input, training: Option<&mut Training>) -> Outputs {
        self.layers.forward(input, training)
    }
}
