//! Losses that keep one number per sample, which is what a method weighs.

use burn::tensor::{Device, Int, Tensor, TensorData};
use lapwing_sample::{Loss, TargetSpec, Targets};

use crate::model::ModelError;

/// The targets of one batch, on the device.
#[derive(Clone, Debug)]
pub(crate) enum BatchTargets {
    Classes(Tensor<1, Int>),
    Values(Tensor<1>),
}

impl BatchTargets {
    /// The targets of some rows, values in standard deviations. Standardised in double precision: single precision cannot
    /// tell the seconds of a day apart that lie fifty years after zero.
    pub(crate) fn of(
        targets: &Targets,
        spec: &TargetSpec,
        rows: &[u32],
        device: &Device,
    ) -> Result<Self, ModelError> {
        match (targets, spec) {
            (Targets::Classes { labels, .. }, TargetSpec::Classes { .. }) => {
                Ok(Self::classes(rows.iter().map(|&row| labels[row as usize]), device))
            }
            (Targets::Values(values), TargetSpec::Values(scale)) => {
                let standardised = |&row: &u32| scale.standardised(values[row as usize]) as f32;
                Ok(Self::values(rows.iter().map(standardised).collect(), device))
            }
            _ => Err(ModelError::Targets { found: targets.task(), expected: spec.task() }),
        }
    }

    pub(crate) fn classes(labels: impl Iterator<Item = u32>, device: &Device) -> Self {
        let labels: Vec<i32> = labels.map(|label| label as i32).collect();
        let shape = [labels.len()];
        Self::Classes(Tensor::from_data(TensorData::new(labels, shape), device))
    }

    pub(crate) fn values(values: Vec<f32>, device: &Device) -> Self {
        let shape = [values.len()];
        Self::Values(Tensor::from_data(TensorData::new(values, shape), device))
    }
}

/// Cross-entropy of each row of `logits` `[batch, classes]`.
pub fn cross_entropy(logits: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
    lapwing_ops::cross_entropy(logits, labels)
}

/// Squared error of each prediction.
pub fn squared_error(predictions: Tensor<1>, values: Tensor<1>) -> Tensor<1> {
    (predictions - values).square()
}

/// Huber's loss of each prediction.
pub fn huber(predictions: Tensor<1>, values: Tensor<1>, delta: f64) -> Tensor<1> {
    let distance = (predictions - values).abs();
    let near = distance.clone().clamp_max(delta);
    let far = distance - near.clone();
    near.square().mul_scalar(0.5) + far.mul_scalar(delta)
}

/// One loss per row of `outputs` `[batch, outputs]`.
pub(crate) fn per_sample(loss: &Loss, outputs: Tensor<2>, targets: BatchTargets) -> Tensor<1> {
    match (loss, targets) {
        (Loss::CrossEntropy, BatchTargets::Classes(labels)) => cross_entropy(outputs, labels),
        (Loss::SquaredError, BatchTargets::Values(values)) => {
            squared_error(outputs.reshape([-1]), values)
        }
        (Loss::Huber { delta }, BatchTargets::Values(values)) => {
            huber(outputs.reshape([-1]), values, *delta)
        }
        (loss, targets) => {
            unreachable!("{loss:?} and {targets:?}: settings and model files are checked for this")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: Tensor<1>, theirs: &[f32]) {
        let ours: Vec<f32> = ours.into_data().try_to_vec().unwrap();
        assert_eq!(ours.len(), theirs.len());
        for (a, b) in ours.iter().zip(theirs) {
            assert!((a - b).abs() <= 1e-6 * (1.0 + b.abs()), "{ours:?} against {theirs:?}");
        }
    }

    // import torch, torch.nn.functional as F
    // x = torch.tensor([[0.5, -1.25, 2], [30, -30, 0], [0.1, 0.2, 0.3], [-4, 7.5, 1]], requires_grad=True)
    // l = F.cross_entropy(x, torch.tensor([2, 1, 0, 1]), reduction="none")
    // (l * torch.tensor([1, 0.5, 0, 0.25])).mean().backward()
    // print(l.tolist(), x.grad.flatten().tolist())
    #[test]
    fn cross_entropy_and_its_weighted_gradient_are_pytorchs() {
        let device = Device::flex().autodiff();
        let x = [[0.5, -1.25, 2.0], [30.0, -30.0, 0.0], [0.1, 0.2, 0.3], [-4.0, 7.5, 1.0]];
        let x = Tensor::<2>::from_data(x, &device).require_grad();
        let losses = cross_entropy(x.clone(), Tensor::from_data([2, 1, 0, 1], &device));
        close(losses.clone().inner(), &[0.232_621_98, 60.0, 1.201_942_9, 0.001_512_456]);
        let weights = Tensor::<1>::from_data([1.0, 0.5, 0.0, 0.25], &device);
        let gradients = (losses * weights).mean().backward();
        let theirs = [
            0.044_205_043,
            0.007_681_685_5,
            -0.051_886_737,
            0.125,
            -0.125,
            0.0,
            0.0,
            0.0,
            0.0,
            6.321_74e-7,
            -9.445_846e-5,
            9.382_293_5e-5,
        ];
        close(x.grad(&gradients).unwrap().reshape([-1]), &theirs);
    }

    // p = torch.tensor([0, 1.5, -3, 0.25, 10], requires_grad=True); t = torch.tensor([0.5, 1, 2, 0.25, -10])
    // print(F.mse_loss(p, t, reduction="none").tolist())
    // h = F.huber_loss(p, t, reduction="none", delta=1.35); h.sum().backward(); print(h.tolist(), p.grad.tolist())
    #[test]
    fn squared_error_and_huber_are_pytorchs() {
        let device = Device::flex().autodiff();
        let p = Tensor::<1>::from_data([0.0, 1.5, -3.0, 0.25, 10.0], &device).require_grad();
        let t = Tensor::<1>::from_data([0.5, 1.0, 2.0, 0.25, -10.0], &device);
        close(squared_error(p.clone(), t.clone()).inner(), &[0.25, 0.25, 25.0, 0.0, 400.0]);
        let losses = huber(p.clone(), t, 1.35);
        close(losses.clone().inner(), &[0.125, 0.125, 5.838_75, 0.0, 26.088_75]);
        let gradients = losses.sum().backward();
        close(p.grad(&gradients).unwrap(), &[-0.5, 0.5, -1.35, 0.0, 1.35]);
    }
}
