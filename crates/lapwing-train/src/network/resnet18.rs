//! ResNet-18 of He et al., as torchvision builds it; for images below 64 pixels a side with a stem of 3 × 3.

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

/// The sizes of a ResNet-18.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNet18Config {
    /// Pixels from top to bottom, from left to right, and numbers per pixel.
    pub image: [usize; 3],
    /// Channels of the first stage.
    pub width: usize,
    /// Blocks of each stage.
    pub blocks: [usize; 4],
    /// Classes, or 1 for a value.
    pub outputs: usize,
}

impl ResNet18Config {
    fn layers(&self) -> Plan {
        let Self { image, width, blocks, outputs } = *self;
        Plan { kind: Kind::Basic, image, width, blocks, outputs }
    }
}

impl Config for ResNet18Config {
    type Network = ResNet18;
    const NAME: &'static str = "resnet18";
    const ABOUT: &'static str = "The residual network of 18 layers of He et al.";
    const TAKES: &'static str = "images of 8 to 1,024 pixels a side";

    fn takes(input: &InputSpec) -> bool {
        residual::takes(input)
    }

    fn suits(shape: &DataShape) -> bool {
        // Below, a small network learns as much in a tenth of the time; above, a larger one more.
        least_side(shape) >= 48 && (20_000..200_000).contains(&shape.rows)
    }

    fn plan(shape: &DataShape, wishes: &Wishes) -> Result<Self, Refusal> {
        let (image, width) = (residual::image(&shape.input), residual::width(wishes)?);
        Ok(Self { image, width, blocks: [2, 2, 2, 2], outputs: shape.outputs })
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

    fn init(&self, draws: &mut Draws, device: &Device) -> ResNet18 {
        ResNet18 { layers: self.layers().init(draws, device) }
    }

    fn onnx(&self, to: &mut Drawing<'_>, input: &OnnxInput) -> Result<String, Inexpressible> {
        self.layers().onnx(to, input)
    }
}

/// The parameters of a ResNet-18.
#[derive(Module, Debug)]
pub(crate) struct ResNet18 {
    layers: Residual,
}

impl Forward for ResNet18 {
    fn forward(&self, input: &Input, training: Option<&mut Training>) -> Outputs {
        self.layers.forward(input, training)
    }
}
