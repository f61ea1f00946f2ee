//! One linear layer: logistic regression for classes, linear regression for values.

use burn::module::Module;
use burn::tensor::Device;
use lapwing_sample::{Draws, InputSpec};
use serde::{Deserialize, Serialize};

use super::layers::{self, Draw};
use super::{
    Config, DataShape, Drawing, Forward, Inexpressible, Input, OnnxInput, Outputs, Refusal,
    Training, Wishes,
};
use crate::parameters::ArraySpec;

/// The sizes of a linear model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearConfig {
    /// Numbers per row.
    pub inputs: usize,
    /// Classes, or 1 for a value.
    pub outputs: usize,
}

impl Config for LinearConfig {
    type Network = Linear;
    const NAME: &'static str = "linear";
    const ABOUT: &'static str = "One linear layer: logistic or linear regression";
    const TAKES: &'static str = "rows of numbers";

    fn takes(input: &InputSpec) -> bool {
        matches!(input, InputSpec::Vector { .. })
    }

    fn plan(shape: &DataShape, wishes: &Wishes) -> Result<Self, Refusal> {
        wishes.no_layers()?;
        Ok(Self { inputs: shape.input.size(), outputs: shape.outputs })
    }

    fn input(&self) -> InputSpec {
        InputSpec::Vector { width: self.inputs }
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn summary(&self) -> String {
        format!("{} {}-{}", Self::NAME, self.inputs, self.outputs)
    }

    fn arrays(&self) -> Vec<ArraySpec> {
        layers::Linear::arrays("layer", [self.inputs, self.outputs])
    }

    fn init(&self, draws: &mut Draws, device: &Device) -> Linear {
        let sizes = [self.inputs, self.outputs];
        Linear { layer: layers::Linear::init(sizes, Draw::Uniform, draws, device) }
    }

    fn onnx(&self, to: &mut Drawing<'_>, input: &OnnxInput) -> Result<String, Inexpressible> {
        to.linear("layer", input.vectors()?)
    }
}

/// The parameters of a linear model.
#[derive(Module, Debug)]
pub(crate) struct Linear {
    layer: layers::Linear,
}

impl Forward for Linear {
    fn forward(&self, input: &Input, _: Option<&mut Training>) -> Outputs {
        Outputs { logits: self.layer.forward(input.vectors()), embedding: None }
    }
}
