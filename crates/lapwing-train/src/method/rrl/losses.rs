//! The losses of a step: labels, instances, prototypes and reconstruction, row by row.

use burn::tensor::activation::log_softmax;
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use lapwing_sample::Draws;

use crate::batch::{Batch, Part};
use crate::learner::{Learner, Pass};
use crate::loss::cross_entropy;
use crate::network::{Forward, Input, Projection};
use crate::parameters::to_vec;
use crate::random::Purpose;

/// What inner products of embeddings are divided by.
pub(super) const TEMPERATURE: f64 = 0.3;
/// What the loss on prototypes counts beside the others.
const PROTOTYPE: f64 = 5.0;
/// Shares of mixtures are of Beta(8, 8).
const SHAPE: usize = 8;
/// Stands for a product that does not count.
const NEVER: f32 = -1e9;

/// How samples are mixed: each with another, the same share of all.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mixture {
    /// Share of the sample itself.
    pub(super) share: f64,
    /// Which other it is mixed with.
    pub(super) partners: Vec<u32>,
}

impl Mixture {
    pub(super) fn drawn(seed: u64, step: u64, count: usize) -> Self {
        let mut draws = Draws::of(seed, Purpose::Mixture, 0, step);
        // A number of the gamma distribution with a whole shape is a sum of exponential ones.
        let mut gamma = || -(0..SHAPE).map(|_| libm::log(1.0 - draws.unit())).sum::<f64>();
        let (own, other) = (gamma(), gamma());
        let mut partners: Vec<u32> = (0..count as u32).collect();
        draws.shuffle(&mut partners);
        Self { share: own / (own + other), partners }
    }
}

/// What a step learns.
pub(super) struct Step<'a> {
    /// Whose labels are learnt.
    pub(super) sure: &'a [bool],
    /// Which labels.
    pub(super) labels: &'a [u32],
    /// The prototypes, class after class.
    pub(super) prototypes: &'a [f32],
    /// The form that the authors of LAP ran.
    pub(super) modified: bool,
}

/// The losses of a step, of all rows or of some.
pub(super) struct Terms {
    /// Of all rows, and whether each counts.
    labels: Tensor<1>,
    instances: Tensor<1>,
    rebuilt: Tensor<1>,
    sure: Vec<bool>,
    finite: Vec<bool>,
    /// Of the rows that were mixed, which are these.
    prototypes: Option<Tensor<1>>,
    mixed: Vec<usize>,
    /// What the losses on labels and on prototypes are multiplied by, so that the mean over the batch is what is meant.
    scales: [f64; 2],
}

fn numbers(values: Vec<f32>, device: &Device) -> Tensor<1> {
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn indices(values: impl Iterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let values: Vec<i32> = values.map(|value| value as i32).collect();
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Mean squared distance of each row from what was rebuilt.
fn distance(projected: &Projection, features: Tensor<2>) -> Tensor<1> {
    (projected.rebuilt.clone() - features).square().mean_dim(1).reshape([-1])
}

/// The mean over a pass of what reconstruction costs, shard by shard.
pub(super) fn rebuilt(learner: &Learner<'_>, pass: &Pass) -> Vec<Tensor<1>> {
    let of_shard = |features: Tensor<2>| {
        let projected = learner.network.project(features.clone())?;
        Some(distance(&projected, features).sum() / pass.rows as f32)
    };
    pass.shards.iter().filter_map(|shard| of_shard(shard.features.clone()?)).collect()
}

/// How much more each row resembles its other view than all other rows in both views: cross-entropy of their products.
fn instances(one: Tensor<2>, two: Tensor<2>) -> Tensor<1> {
    let ([rows, _], device) = (one.dims(), one.device());
    let own: Vec<bool> = (0..rows * rows).map(|at| at % rows == at / rows).collect();
    let own = Tensor::<2, Bool>::from_data(TensorData::new(own, [rows, rows]), &device);
    let across = one.clone().matmul(two.transpose()).div_scalar(TEMPERATURE);
    let among = one.clone().matmul(one.transpose()).div_scalar(TEMPERATURE).mask_fill(own, NEVER);
    cross_entropy(Tensor::cat(vec![across, among], 1), indices(0..rows, &device))
}

/// The shares of classes in mixtures of rows with these labels.
fn shares(labels: &[u32], mixture: &Mixture, classes: usize) -> Vec<f32> {
    let mut shares = vec![0.0; labels.len() * classes];
    for ((row, &partner), &label) in
        shares.chunks_exact_mut(classes).zip(&mixture.partners).zip(labels)
    {
        row[label as usize] += mixture.share as f32;
        row[labels[partner as usize] as usize] += (1.0 - mixture.share) as f32;
    }
    shares
}

impl Step<'_> {
    /// Sends the second view and the mixtures through the network behind the pass, and says what every row costs;
    /// nothing where there is no second view or the network has no further heads.
    pub(super) fn terms(
        &self,
        learner: &Learner<'_>,
        pass: &mut Pass,
        batch: &Batch,
        mixture: impl FnOnce(usize) -> Mixture,
    ) -> Option<Terms> {
        let [Part { input, second, .. }] = &batch.parts[..] else { return None };
        let finite: Vec<bool> = pass.seen.iter().map(|loss| loss.is_finite()).collect();
        let shown = |input: &Input| match finite.contains(&false) {
            true => input.only(&finite),
            false => input.clone(),
        };
        let (first, second) = (shown(input), shown(second.as_ref()?));
        let shard = pass.shards.first_mut()?;
        let features = shard.features.clone()?;
        let device = features.device();
        let seen_twice = learner.features(shard, batch.step, &second)?;
        let one = learner.network.project(features.clone())?;
        let two = match self.modified {
            true => one.clone(),
            false => learner.network.project(seen_twice.clone())?,
        };
        let rows = batch.len();
        let sure: Vec<bool> = self.sure.iter().zip(&finite).map(|(a, b)| *a && *b).collect();
        let mixed: Vec<usize> =
            (0..rows).filter(|&row| if self.modified { finite[row] } else { sure[row] }).collect();
        let learnt = if self.modified { &batch.labels } else { self.labels };
        let twice = [&mixed[..], &mixed[..]].concat();
        let learnt: Vec<u32> = twice.iter().map(|&row| learnt[row]).collect();
        let prototypes = match mixed.is_empty() {
            true => None,
            false => {
                let mixture = mixture(twice.len());
                let input = mixtures([first, second], &mixed, &mixture);
                let features = learner.features(shard, batch.step, &input)?;
                let embedding = learner.network.project(features)?.embedding;
                Some(self.prototypes(embedding, &learnt, &mixture))
            }
        };
        let hard = indices(self.labels.iter().map(|&label| label as usize), &device);
        let counted = sure.iter().filter(|sure| **sure).count();
        let published = rows as f64 / counted.max(1) as f64;
        Some(Terms {
            labels: cross_entropy(shard.outputs.clone(), hard),
            instances: instances(one.embedding.clone(), two.embedding.clone()),
            rebuilt: distance(&one, features) + distance(&two, seen_twice),
            sure,
            finite,
            prototypes,
            mixed,
            scales: if self.modified { [1.0; 2] } else { [published; 2] },
        })
    }

    /// What the two mixtures of each mixed row cost on average.
    fn prototypes(&self, embedding: Tensor<2>, labels: &[u32], mixture: &Mixture) -> Tensor<1> {
        let ([_, width], device) = (embedding.dims(), embedding.device());
        let classes = self.prototypes.len() / width;
        let prototypes = TensorData::new(self.prototypes.to_vec(), [classes, width]);
        let prototypes = Tensor::<2>::from_data(prototypes, &device);
        let said = embedding.matmul(prototypes.transpose()).div_scalar(TEMPERATURE);
        let shares = TensorData::new(shares(labels, mixture, classes), [labels.len(), classes]);
        let shares = Tensor::<2>::from_data(shares, &device);
        let losses = (shares * log_softmax(said, 1)).sum_dim(1).neg();
        losses.reshape([2, (labels.len() / 2) as i32]).mean_dim(0).reshape([-1])
    }
}

/// Some rows of both views, each mixed with another.
fn mixtures(views: [Input; 2], rows: &[usize], mixture: &Mixture) -> Input {
    let views = views.map(|view| view.images());
    let device = views[0].device();
    let which = indices(rows.iter().copied(), &device);
    let both = Tensor::cat(views.map(|view| view.select(0, which.clone())).to_vec(), 0);
    let partners = indices(mixture.partners.iter().map(|&partner| partner as usize), &device);
    let others = both.clone().select(0, partners);
    Input::Images(both.mul_scalar(mixture.share) + others.mul_scalar(1.0 - mixture.share))
}

impl Terms {
    /// What each row costs in labels: what a source is judged by where it is weighed.
    pub(super) fn of_labels(&self) -> Vec<f32> {
        let host = |tensor: &Tensor<1>| to_vec(tensor.clone().inner());
        let mut losses = host(&self.instances);
        for ((loss, label), sure) in losses.iter_mut().zip(host(&self.labels)).zip(&self.sure) {
            *loss += if *sure { label } else { 0.0 };
        }
        if let Some(prototypes) = &self.prototypes {
            for (&row, prototype) in self.mixed.iter().zip(host(prototypes)) {
                losses[row] += PROTOTYPE as f32 * prototype;
            }
        }
        for (loss, finite) in losses.iter_mut().zip(&self.finite) {
            *loss = if *finite { *loss } else { f32::NAN };
        }
        losses
    }

    /// The mean over the batch of the weighed losses on labels and of reconstruction, which no source has a say in.
    pub(super) fn sum(self, weights: &[f64]) -> Tensor<1> {
        let (rows, device) = (weights.len(), self.labels.device());
        let [of_labels, of_prototypes] = self.scales;
        let counted = |row: usize| if self.finite[row] { weights[row] } else { 0.0 };
        let of = |losses: Tensor<1>, weights: Vec<f32>| (losses * numbers(weights, &device)).sum();
        let all = |weight: &dyn Fn(usize) -> f64| (0..rows).map(|row| weight(row) as f32).collect();
        let sure = |row: usize| if self.sure[row] { of_labels * counted(row) } else { 0.0 };
        let finite = |row: usize| f64::from(u8::from(self.finite[row]));
        let mut sum = of(self.labels, all(&sure))
            + of(self.instances, all(&counted))
            + of(self.rebuilt, all(&finite));
        if let Some(prototypes) = self.prototypes {
            let weights = self.mixed.iter().map(|&row| PROTOTYPE * of_prototypes * counted(row));
            sum = sum + of(prototypes, weights.map(|weight| weight as f32).collect());
        }
        sum / rows as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_mixtures_are_of_beta_and_partners_are_a_permutation() {
        let draws: Vec<Mixture> = (0..4_000).map(|step| Mixture::drawn(3, step, 12)).collect();
        let mean = draws.iter().map(|m| m.share).sum::<f64>() / 4_000.0;
        let variance = draws.iter().map(|m| (m.share - mean).powi(2)).sum::<f64>() / 4_000.0;
        // Beta(8, 8): mean ½, variance 1/68; five standard errors.
        assert!(
            (mean - 0.5).abs() < 0.0096 && (variance - 1.0 / 68.0).abs() < 0.0016,
            "{variance}"
        );
        let mut partners = draws[7].partners.clone();
        partners.sort_unstable();
        assert_eq!(partners, (0..12).collect::<Vec<u32>>());
        assert_ne!(draws[7], draws[8]);
        assert_eq!(draws[7], Mixture::drawn(3, 7, 12));
    }

    #[test]
    fn mixtures_mix_pictures_and_classes_alike() {
        let device = Device::flex();
        let view = |first: f32| {
            let values: Vec<f32> = (0..12).map(|i| first + i as f32).collect();
            Input::Images(Tensor::from_data(TensorData::new(values, [3, 2, 2, 1]), &device))
        };
        // Rows 0 and 2 of both views: 0, 8, 100, 108 and following.
        let mixture = Mixture { share: 0.75, partners: vec![1, 2, 3, 0] };
        let found = mixtures([view(0.0), view(100.0)], &[0, 2], &mixture).images();
        let found = to_vec(found);
        let expected = [0.75 * 0.0 + 2.0, 0.75 * 8.0 + 25.0, 75.0 + 27.0, 0.75 * 108.0];
        for (row, expected) in found.chunks(4).zip(expected) {
            assert!((row[0] - expected).abs() < 1e-5 && (row[3] - expected - 3.0).abs() < 1e-5);
        }
        assert_eq!(
            shares(&[2, 0, 2, 0], &mixture, 3),
            [0.25, 0.0, 0.75, 0.75, 0.0, 0.25, 0.25, 0.0, 0.75, 0.75, 0.0, 0.25]
        );
    }
}
