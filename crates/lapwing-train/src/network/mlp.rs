//! The multilayer perceptron: linear layers with rectifiers between them.

use burn::module::Module;
use burn::tensor::Device;
use lapwing_ops as ops;
use lapwing_sample::{Draws, InputSpec};
use serde::{Deserialize, Serialize};

use super::layers::{Linear, drop_out};
use super::{
    Config, DataShape, Drawing, Forward, Inexpressible, Init, Input, OnnxInput, Outputs, Refusal,
    Training, Wishes,
};
use crate::parameters::ArraySpec;
use crate::plan::{LONG, regularisation};

/// Most units a layer may have, and most layers.
const MOST_UNITS: usize = 1 << 20;
const MOST_LAYERS: usize = 64;
/// Features are squashed into so many standard deviations, where the plan decides.
const SQUASH: f32 = 3.0;

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
    /// Bends features smoothly into ±this many standard deviations, x / √(1 + (x / squash)²), so that one absurd value
    /// cannot make an absurd prediction. Features are expected standardised. None: as they are.
    #[serde(alias = "clip")]
    pub squash: Option<f32>,
    /// Ends in a softmax, whose probabilities cross-entropy then takes for logits: a network of the paper did, which
    /// bounds the loss and its gradients.
    #[serde(default)]
    pub softmax: bool,
    /// Whose first parameters it begins with.
    #[serde(default, skip_serializing_if = "Init::is_default")]
    pub init: Init,
}

impl MlpConfig {
    fn sizes(&self) -> Vec<usize> {
        [&[self.inputs], &self.hidden[..], &[self.outputs]].concat()
    }
}

impl Config for MlpConfig {
    type Network = Mlp;
    const NAME: &'static str = "mlp";
    const ABOUT: &'static str =
        "A multilayer perceptron: linear layers with rectifiers between them";
    const TAKES: &'static str = "rows of numbers";

    fn takes(input: &InputSpec) -> bool {
        matches!(input, InputSpec::Vector { .. })
    }

    fn plan(shape: &DataShape, wishes: &Wishes) -> Result<Self, Refusal> {
        let inputs = shape.input.size();
        Ok(Self {
            inputs,
            hidden: wishes.hidden.clone().unwrap_or_else(|| hidden(shape.rows, inputs)),
            outputs: shape.outputs,
            dropout: wishes.dropout.unwrap_or_else(|| regularisation(shape.rows, inputs).0),
            squash: Some(SQUASH),
            softmax: false,
            init: Init::Torch,
        })
    }

    fn input(&self) -> InputSpec {
        InputSpec::Vector { width: self.inputs }
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn probabilities(&self) -> bool {
        self.softmax
    }

    fn wishes(&self) -> Wishes {
        let (hidden, dropout) = (Some(self.hidden.clone()), Some(self.dropout));
        Wishes { hidden, dropout, ..Wishes::default() }
    }

    fn summary(&self) -> String {
        let sizes: Vec<String> = self.sizes().iter().map(ToString::to_string).collect();
        format!("{} {}", Self::NAME, sizes.join("-"))
    }

    fn check(&self) -> Result<(), String> {
        let sizes = self.sizes();
        if sizes.len() > MOST_LAYERS + 1
            || sizes.iter().any(|size| !(1..=MOST_UNITS).contains(size))
        {
            return Err(format!(
                "1 to 2^20 units per layer and at most {MOST_LAYERS} layers, found {} layers of {sizes:?} units",
                sizes.len() - 1
            ));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(format!("a dropout from 0 to below 1, found {}", self.dropout));
        }
        match self.squash {
            Some(squash) if !(squash > 0.0 && squash.is_finite()) => {
                Err(format!("features to be squashed into a number above 0, found {squash}"))
            }
            _ => Ok(()),
        }
    }

    fn arrays(&self) -> Vec<ArraySpec> {
        let layer = |(depth, pair): (usize, &[usize])| {
            Linear::arrays(&format!("layers.{depth}"), [pair[0], pair[1]])
        };
        self.sizes().windows(2).enumerate().flat_map(layer).collect()
    }

    fn init(&self, draws: &mut Draws, device: &Device) -> Mlp {
        let layer = |pair: &[usize]| Linear::begin([pair[0], pair[1]], self.init, draws, device);
        Mlp {
            layers: self.sizes().windows(2).map(layer).collect(),
            dropout: self.dropout,
            squash: self.squash,
            softmax: self.softmax,
        }
    }

    fn onnx(&self, to: &mut Drawing<'_>, input: &OnnxInput) -> Result<String, Inexpressible> {
        let mut x = match self.squash {
            Some(bound) => to.squash(input.vectors()?, bound),
            None => input.vectors()?.to_owned(),
        };
        for depth in 0..self.hidden.len() {
            let sum = to.linear(&format!("layers.{depth}"), &x)?;
            x = to.relu(&sum);
        }
        x = to.linear(&format!("layers.{}", self.hidden.len()), &x)?;
        Ok(if self.softmax { to.graph.node("Softmax", &[&x]) } else { x })
    }
}

/// Two equal layers, larger for tables with more rows (which can fill them) or more features (which need them).
fn hidden(rows: usize, width: usize) -> Vec<usize> {
    let units = match rows {
        0..2_000 => 64,
        2_000..LONG => 128,
        _ => 256,
    };
    vec![units.max(width.min(512).next_power_of_two().min(256)); 2]
}

/// The parameters of a multilayer perceptron.
#[derive(Module, Debug)]
pub(crate) struct Mlp {
    layers: Vec<Linear>,
    dropout: f32,
    squash: Option<f32>,
    softmax: bool,
}

impl Mlp {
    /// No layers: what stands in for a network that is being changed.
    pub(super) fn none() -> Self {
        Self { layers: Vec::new(), dropout: 0.0, squash: None, softmax: false }
    }
}

impl Forward for Mlp {
    fn forward(&self, input: &Input, mut training: Option<&mut Training>) -> Outputs {
        let Some((last, hidden)) = self.layers.split_last() else {
            unreachable!("a network that is being changed is asked for nothing")
        };
        let mut x = input.vectors();
        if let Some(width) = self.squash {
            x = ops::squash(x, width);
        }
        let mut embedding = None;
        for (depth, layer) in hidden.iter().enumerate() {
            x = layer.relu(x);
            if depth + 1 == hidden.len() {
                embedding = Some(x.clone());
            }
            x = drop_out(x, self.dropout, training.as_deref_mut());
        }
        let x = last.forward(x);
        Outputs { logits: if self.softmax { ops::softmax(x) } else { x }, embedding }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Architecture, ArchitectureError, Network};
    use super::*;
    use crate::parameters::{read, to_vec};
    use crate::random::Purpose;
    use burn::tensor::Tensor;

    fn mlp(hidden: &[usize], dropout: f32) -> Architecture {
        Architecture::Mlp(MlpConfig {
            inputs: 4,
            hidden: hidden.to_vec(),
            outputs: 3,
            dropout,
            squash: None,
            softmax: false,
            init: Init::Torch,
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
    fn kerass_start_has_kernels_of_its_own_bound_and_no_biases() {
        let Architecture::Mlp(config) = mlp(&[16, 8], 0.0) else { unreachable!() };
        let torch = serde_json::to_string(&config).unwrap();
        assert!(!torch.contains("init"), "files of before keep their bytes: {torch}");
        let keras = MlpConfig { init: Init::Keras, ..config };
        let written = serde_json::to_string(&keras).unwrap();
        assert!(written.contains(r#""init":"keras""#), "{written}");
        assert_eq!(serde_json::from_str::<MlpConfig>(&written).unwrap(), keras);
        let parameters = read(&init(&Architecture::Mlp(keras), 3).unwrap());
        let sizes = [(4.0, 16.0), (16.0, 8.0), (8.0, 3.0)];
        for (layer, (inputs, outputs)) in parameters.chunks(2).zip(sizes) {
            let bound = (6.0_f32 / (inputs + outputs)).sqrt();
            let most = layer[0].values.iter().fold(0.0_f32, |most, v| most.max(v.abs()));
            assert!((0.85 * bound..=bound).contains(&most), "{most} of {bound}");
            assert!(layer[1].values.iter().all(|bias| *bias == 0.0));
        }
    }

    #[test]
    fn dropout_keeps_the_expectation_acts_only_in_training_and_repeats() {
        let network = init(&mlp(&[64], 0.5), 0).unwrap();
        let x = Input::Vectors(Tensor::ones([1, 4], &Device::flex()));
        let out = |training: Option<&mut Training>| to_vec(network.forward(&x, training).logits);
        let masked = |step| out(Some(&mut Training::new(Draws::of(0, Purpose::Dropout, 0, step))));
        assert_eq!(masked(1), masked(1));
        assert_ne!(masked(1), masked(2));
        const TRIALS: u64 = 2_000;
        let mean: f32 = (0..TRIALS).map(|step| masked(step)[0]).sum::<f32>() / TRIALS as f32;
        let plain = out(None)[0];
        assert!((mean - plain).abs() < 0.05, "{mean} against {plain}");
    }

    #[test]
    fn squashing_leaves_ordinary_features_and_bends_absurd_ones() {
        let config = |squash| {
            let (hidden, dropout, softmax, init) = (vec![], 0.0, false, Init::Torch);
            let (inputs, outputs) = (1, 1);
            Architecture::Mlp(MlpConfig { inputs, hidden, outputs, dropout, squash, softmax, init })
        };
        // What the layer saw: its output without bias, over its weight.
        let seen = |squash, x: f32| {
            let network = init(&config(squash), 0).unwrap();
            let parameters = read(&network);
            let x = Input::Vectors(Tensor::from_data([[x]], &Device::flex()));
            let out = to_vec(network.forward(&x, None).logits);
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
        let x = Tensor::from_data([[0.3, -1.0, 2.0, 0.1]], &Device::flex());
        let x = Input::Vectors(x);
        let out = |architecture: &Architecture| {
            to_vec(init(architecture, 5).unwrap().forward(&x, None).logits)
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
            let (hidden, dropout, squash, softmax) = (hidden.to_vec(), 0.0, None, false);
            let init = Init::Torch;
            Architecture::Mlp(MlpConfig { inputs, hidden, outputs, dropout, squash, softmax, init })
                .parameters()
        };
        assert_eq!(count(784, &[16, 16], 10), 13_002);
        assert_eq!(count(8, &[32, 32, 32], 1), 2_433);
        assert_eq!(count(2, &[200, 200], 2), 41_202);
    }
}
