//! SGD and Adam with PyTorch's arithmetic, and state that is saved and restored exactly.

use burn::tensor::{Device, Tensor, TensorData};
use lapwing_ops::{AdamStep, SgdStep, adam_rows_step, adam_step, sgd_rows_step, sgd_step};
use serde::{Deserialize, Serialize};

use crate::network::Network;
use crate::parameters::{Gradient, Parameter, ParameterError, find, shapes, to_vec, update};
use crate::saved::Saved;

/// Which optimiser. The learning rate is the schedule's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum OptimiserConfig {
    /// Stochastic gradient descent.
    Sgd {
        /// Share of the last step carried into the next.
        momentum: f64,
        /// Added to the gradient, times the parameter.
        weight_decay: f64,
    },
    /// Adam with β₁ = 0.9, β₂ = 0.999, ε = 1e-8.
    Adam {
        /// Added to the gradient, times the parameter (as PyTorch's `Adam`, not `AdamW`).
        weight_decay: f64,
    },
}

const BETA: (f64, f64) = (0.9, 0.999);
const EPSILON: f64 = 1e-8;

/// How fast a step goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// The learning rate.
    pub rate: f64,
    /// Adam's β₁.
    pub beta1: f64,
}

impl Pace {
    /// This learning rate, and Adam's usual β₁.
    pub fn new(rate: f64) -> Self {
        Self { rate, beta1: BETA.0 }
    }
}

/// An optimiser with its running moments, flat, one set per parameter of the network.
#[derive(Debug)]
pub(crate) struct Optimiser {
    config: OptimiserConfig,
    /// Steps done.
    steps: u64,
    /// `moments[0]`: momentum or first moment; `moments[1]`: second moment (Adam alone). None is zero.
    moments: Vec<Vec<Option<Tensor<1>>>>,
    /// Numbers of each parameter.
    sizes: Vec<usize>,
}

impl Optimiser {
    pub(crate) fn new(config: OptimiserConfig, network: &Network) -> Self {
        let kinds = match config {
            OptimiserConfig::Sgd { .. } => 1,
            OptimiserConfig::Adam { .. } => 2,
        };
        let sizes: Vec<usize> =
            shapes(network).iter().map(|shape| shape.iter().product()).collect();
        Self { config, steps: 0, moments: vec![vec![None; sizes.len()]; kinds], sizes }
    }

    /// Moves the parameters against their gradients.
    pub(crate) fn step(
        &mut self,
        network: Network,
        gradients: Vec<Gradient>,
        pace: Pace,
    ) -> Network {
        assert_eq!(
            gradients.len(),
            self.sizes.len(),
            "every parameter that is learnt has a gradient"
        );
        self.steps += 1;
        let step = self.steps;
        let mut gradients: Vec<_> = gradients.into_iter().map(Some).collect();
        update(network, |place, theta| {
            let gradient = gradients[place].take().expect("a parameter is moved once in a step");
            // Taken out, so that nobody else holds them and the step can work in place.
            let mut moment = |kind: usize| self.moments[kind][place].take();
            match self.config {
                OptimiserConfig::Sgd { momentum, weight_decay } => {
                    let step = SgdStep { rate: pace.rate, momentum, weight_decay };
                    let (theta, velocity) = match gradient {
                        Gradient::Whole(gradient) => sgd_step(theta, gradient, moment(0), step),
                        Gradient::Rows { rows, values } => {
                            let velocity = moment(0).map(|velocity| table(velocity, &values));
                            let theta = table(theta, &values);
                            let (theta, velocity) =
                                sgd_rows_step(theta, &rows, values, velocity, step);
                            (theta.reshape([-1]), velocity.map(|velocity| velocity.reshape([-1])))
                        }
                    };
                    self.moments[0][place] = velocity;
                    theta
                }
                OptimiserConfig::Adam { weight_decay } => {
                    let (rate, epsilon) = (pace.rate, EPSILON);
                    let (beta1, beta2) = (pace.beta1, BETA.1);
                    let step = AdamStep { rate, beta1, beta2, epsilon, weight_decay, step };
                    let zeros = || theta.zeros_like();
                    let (first, second) = (moment(0), moment(1));
                    let (first, second) =
                        (first.unwrap_or_else(zeros), second.unwrap_or_else(zeros));
                    let (theta, first, second) = match gradient {
                        Gradient::Whole(gradient) => {
                            adam_step(theta, gradient, first, second, step)
                        }
                        Gradient::Rows { rows, values } => {
                            let [theta, first, second] =
                                [theta, first, second].map(|flat| table(flat, &values));
                            let (theta, first, second) =
                                adam_rows_step(theta, &rows, values, first, second, step);
                            (theta.reshape([-1]), first.reshape([-1]), second.reshape([-1]))
                        }
                    };
                    self.moments[0][place] = Some(first);
                    self.moments[1][place] = Some(second);
                    theta
                }
            }
        })
    }

    /// Numbers of each parameter.
    pub(crate) fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Steps and moments.
    pub(crate) fn save(&self) -> Saved {
        let mut arrays = Vec::new();
        for (kind, moments) in self.moments.iter().enumerate() {
            for (place, moment) in moments.iter().enumerate() {
                if let Some(moment) = moment {
                    let values = to_vec(moment.clone());
                    let (name, shape) = (format!("{kind}.{place}"), vec![values.len()]);
                    arrays.push(Parameter { name, shape, values });
                }
            }
        }
        Saved { state: self.steps.into(), arrays, ..Saved::default() }
    }

    /// Replaces steps and moments by saved ones.
    pub(crate) fn load(&mut self, saved: &Saved, device: &Device) -> Result<(), ParameterError> {
        for (kind, moments) in self.moments.iter_mut().enumerate() {
            for (place, moment) in moments.iter_mut().enumerate() {
                // None before the first step, and without momentum.
                if saved.arrays.is_empty() {
                    *moment = None;
                    continue;
                }
                let shape = [self.sizes[place]];
                let values =
                    find(&saved.arrays, &format!("{kind}.{place}"), &shape)?.values.clone();
                *moment = Some(Tensor::from_data(TensorData::new(values, shape), device));
            }
        }
        self.steps = saved.state.as_u64().ok_or(ParameterError::Steps)?;
        Ok(())
    }
}

/// A flat parameter as the table of whose rows these are gradients.
fn table(flat: Tensor<1>, values: &Tensor<2>) -> Tensor<2> {
    let [_, width] = values.dims();
    flat.reshape([-1, width as i32])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::squared_error;
    use crate::network::{Architecture, Forward, Init, Input, MlpConfig};
    use crate::parameters::{gradients, read, write};

    /// A line through three points, weight and bias from fixed values.
    fn line(device: &Device) -> Network {
        let (hidden, dropout, squash, softmax, init) = (vec![], 0.0, None, false, Init::Torch);
        let config = MlpConfig { inputs: 2, hidden, outputs: 1, dropout, squash, softmax, init };
        let network = Architecture::Mlp(config).init(0, 0, device).unwrap();
        let mut parameters = read(&network);
        parameters[0].values = vec![0.5, -0.25];
        parameters[1].values = vec![0.1];
        write(network, &parameters).unwrap()
    }

    fn steps(
        network: &mut Network,
        optimiser: &mut Optimiser,
        count: u64,
        device: &Device,
    ) -> Vec<f32> {
        let x = Tensor::from_data([[1.0, 2.0], [-1.0, 0.5], [3.0, -1.0]], device);
        let x = Input::Vectors(x);
        let y = Tensor::<1>::from_data([1.0, -2.0, 0.5], device);
        for _ in 0..count {
            let outputs = network.forward(&x, None).logits;
            let losses = squared_error(outputs.reshape([-1]), y.clone());
            let mut found = losses.mean().backward();
            let found = gradients(network, &[], &mut found);
            *network = optimiser.step(network.clone(), found, Pace::new(0.05));
        }
        read(network).into_iter().flat_map(|p| p.values).collect()
    }

    fn after(config: OptimiserConfig, count: u64) -> Vec<f32> {
        let device = Device::flex().autodiff();
        let mut network = line(&device);
        let mut optimiser = Optimiser::new(config, &network);
        steps(&mut network, &mut optimiser, count, &device)
    }

    // import torch
    // def run(make, n):
    //     l = torch.nn.Linear(2, 1); l.weight.data = torch.tensor([[0.5, -0.25]]); l.bias.data = torch.tensor([0.1])
    //     o = make(l.parameters()); x = torch.tensor([[1, 2], [-1, 0.5], [3, -1.]]); y = torch.tensor([1, -2, 0.5])
    //     for _ in range(n):
    //         o.zero_grad(); ((l(x).flatten() - y) ** 2).mean().backward(); o.step()
    //     print(l.weight.flatten().tolist() + l.bias.tolist())
    // run(lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.01), 7)
    // run(lambda p: torch.optim.Adam(p, 0.05, weight_decay=0.01), 7)
    // run(lambda p: torch.optim.Adam(p, 0.05), 40)
    #[test]
    fn the_steps_are_pytorchs() {
        let close = |ours: Vec<f32>, theirs: [f32; 3]| {
            let far = ours.iter().zip(theirs).any(|(a, b)| (a - b).abs() > 2e-6);
            assert!(!far, "{ours:?} against {theirs:?}");
        };
        close(
            after(OptimiserConfig::Sgd { momentum: 0.9, weight_decay: 0.01 }, 7),
            [0.7710248, 0.6801393, -0.9475271],
        );
        close(
            after(OptimiserConfig::Adam { weight_decay: 0.01 }, 7),
            [0.3608173, 0.0881949, -0.239018],
        );
        close(
            after(OptimiserConfig::Adam { weight_decay: 0.0 }, 40),
            [0.934233, 0.762558, -1.4907151],
        );
    }

    #[test]
    fn saved_and_restored_state_continues_in_the_same_bytes() {
        for config in [
            OptimiserConfig::Sgd { momentum: 0.9, weight_decay: 0.0 },
            OptimiserConfig::Adam { weight_decay: 0.1 },
        ] {
            let device = Device::flex().autodiff();
            let plain = device.clone().inner();
            let mut network = line(&device);
            let mut optimiser = Optimiser::new(config, &network);
            steps(&mut network, &mut optimiser, 5, &device);
            let (saved, parameters) = (optimiser.save(), read(&network));
            let expected = steps(&mut network, &mut optimiser, 5, &device);

            let mut again = write(line(&device), &parameters).unwrap();
            let mut restored = Optimiser::new(config, &again);
            restored.load(&saved, &plain).unwrap();
            assert_eq!(steps(&mut again, &mut restored, 5, &device), expected);
            let cut = Saved { arrays: saved.arrays[1..].to_vec(), ..saved };
            assert!(restored.load(&cut, &plain).is_err());
        }
    }
}
