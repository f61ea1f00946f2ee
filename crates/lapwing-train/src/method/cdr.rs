//! CDR: the parameters that matter least to the loss do not learn, since what they could learn is mostly noise.
//!
//! How much a parameter θ with gradient g matters is |g · θ|. Weights of layers and embeddings take part; biases and
//! normalisations always learn. Embeddings of words that a batch does not have matter nothing: where these are more than the
//! share that is not to learn, all others do.

use burn::tensor::{Int, Tensor, TensorData};

use super::{Audience, Method, MethodConfig, MethodKind, Parameter, Range, Seen, Start};
use crate::batch::Batch;
use crate::error::TrainError;
use crate::learner::Learner;
use crate::parameters::{Gradient, learnt, shapes, to_vec};

const NOISE_RATE: Parameter = Parameter {
    name: "noise-rate",
    value_name: "SHARE",
    about: "share of the parameters that do not learn, best the share of wrong labels",
    default: Some(0.2),
    range: Range::Below(0.0, 1.0),
    audience: Audience::Everybody,
};

#[derive(Debug)]
pub(super) struct Kind;

impl MethodKind for Kind {
    fn name(&self) -> &'static str {
        "cdr"
    }

    fn about(&self) -> &'static str {
        "The parameters that matter least to the loss do not learn"
    }

    fn sentence(&self, method: &MethodConfig) -> String {
        let rate = method.number(&NOISE_RATE);
        format!("the {rate} of the parameters that matter least do not learn")
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[NOISE_RATE]
    }

    fn runs_in_shards(&self) -> bool {
        true
    }

    fn start<'a>(&self, start: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError> {
        Ok(Box::new(Cdr { kept: 1.0 - start.method.number(&NOISE_RATE) }))
    }
}

#[derive(Debug)]
pub(super) struct Cdr {
    /// Share of the parameters that learn.
    pub(super) kept: f64,
}

impl Method for Cdr {
    fn step(&mut self, learner: &mut Learner<'_>, batch: &Batch) -> Result<Seen, TrainError> {
        let pass = learner.forward(batch)?;
        let (seen, weights) = (pass.seen.clone(), vec![1.0; batch.len()]);
        let mut gradients = learner.gradients(&pass, pass.mean(&weights))?;
        // With nothing to leave out it is standard training, to the last bit.
        if self.kept < 1.0 {
            let device = learner.device.clone().inner();
            let (mut layers, mut found, mut untouched) = (Vec::new(), Vec::new(), 0);
            let parameters = shapes(&learner.network).into_iter().zip(learnt(&learner.network));
            for (at, (shape, parameter)) in parameters.enumerate() {
                if !matches!(shape.len(), 2 | 4) {
                    continue;
                }
                let (gradient, parameter) = match &gradients[at] {
                    Gradient::Whole(gradient) => (gradient.clone(), parameter),
                    Gradient::Rows { rows, values } => {
                        let [count, width] = values.dims();
                        untouched += shape.iter().product::<usize>() - count * width;
                        let places: Vec<i64> = rows.iter().map(|&row| i64::from(row)).collect();
                        let places = TensorData::new(places, [count]);
                        let places = Tensor::<1, Int>::from_data(places, &device);
                        let table: Tensor<2> = parameter.reshape([-1, width as i64]);
                        (values.clone().reshape([-1]), table.select(0, places).reshape([-1]))
                    }
                };
                layers.push(at);
                found.push((to_vec(gradient), to_vec(parameter)));
            }
            silence(&mut found, untouched, self.kept);
            for (at, (gradient, _)) in layers.into_iter().zip(found) {
                let count = gradient.len();
                let gradient = Tensor::from_data(TensorData::new(gradient, [count]), &device);
                match &mut gradients[at] {
                    Gradient::Whole(whole) => *whole = gradient,
                    Gradient::Rows { values, .. } => *values = gradient.reshape(values.dims()),
                }
            }
        }
        learner.update(pass, gradients, batch.pace)?;
        Ok(Seen { losses: seen, weights })
    }
}

/// Multiplies the gradients of the share `kept` of all parameters that matters most by `kept`, and zeroes the others.
/// Layers are pairs of gradients and parameters; so many more parameters are `untouched`, and matter nothing.
fn silence(layers: &mut [(Vec<f32>, Vec<f32>)], untouched: usize, kept: f64) {
    let matters = |(g, theta): (&f32, &f32)| (g * theta).abs();
    let mut all: Vec<f32> =
        layers.iter().flat_map(|(g, theta)| g.iter().zip(theta).map(matters)).collect();
    if all.is_empty() {
        return;
    }
    let learning = ((kept * (all.len() + untouched) as f64) as usize).max(1);
    let least = match all.len().checked_sub(learning) {
        Some(place) => *all.select_nth_unstable_by(place, f32::total_cmp).1,
        None => 0.0,
    };
    for (gradients, parameters) in layers {
        for (g, theta) in gradients.iter_mut().zip(parameters.iter()) {
            *g = if matters((g, theta)) >= least { *g * kept as f32 } else { 0.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_important_gradients_are_zero_and_the_others_shrink() {
        // |g · θ|: 0.5, 0.02, 0.3 and 0.04, 1, 0.03; the three largest are 1, 0.5 and 0.3.
        let mut layers = [
            (vec![1.0, -0.1, 0.1], vec![-0.5, 0.2, 3.0]),
            (vec![2.0, 0.5, -3.0], vec![0.02, 2.0, 0.01]),
        ];
        silence(&mut layers, 0, 0.5);
        assert_eq!(layers[0].0, [0.5, 0.0, 0.05]);
        assert_eq!(layers[1].0, [0.0, 0.25, 0.0]);
    }

    #[test]
    fn at_least_one_parameter_learns_and_nothing_is_nothing() {
        let mut layers = [(vec![1.0, 2.0], vec![1.0, 1.0])];
        silence(&mut layers, 0, 0.1);
        assert_eq!(layers[0].0, [0.0, 0.2]);
        silence(&mut [], 3, 0.1);
    }

    #[test]
    fn what_a_batch_does_not_touch_counts_among_the_least_important() {
        let layers = || [(vec![1.0, 2.0, 3.0, 4.0], vec![1.0; 4])];
        // Three of six learn, and with as many untouched again all that are touched.
        let mut some = layers();
        silence(&mut some, 2, 0.5);
        assert_eq!(some[0].0, [0.0, 1.0, 1.5, 2.0]);
        let mut all = layers();
        silence(&mut all, 6, 0.5);
        assert_eq!(all[0].0, [0.5, 1.0, 1.5, 2.0]);
    }
}
