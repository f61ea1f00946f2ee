//! Batch normalisation.

use burn::tensor::{Device, Tensor, TensorData};
use lapwing_ops::{batch_norm, batch_norm_with};
use proptest::prelude::*;

use crate::judge::{Case, alone, cases, numbers, read};

const EPSILON: f32 = 1e-3;

#[derive(Clone, Copy, Debug)]
struct Kind {
    shape: [usize; 4],
    residual: bool,
    relu: bool,
    /// Whether statistics are given.
    given: bool,
}

impl Kind {
    fn channels(&self) -> usize {
        self.shape[3]
    }

    fn inputs(&self) -> Vec<Vec<f32>> {
        let (len, channels) = (self.shape.iter().product(), self.channels());
        let mut inputs = vec![numbers(len, 1), numbers(channels, 2), numbers(channels, 3)];
        // Channels whose means differ.
        for (i, x) in inputs[0].iter_mut().enumerate() {
            *x += (i % channels) as f32 * 0.3;
        }
        if self.residual {
            inputs.push(numbers(len, 4));
        }
        inputs
    }

    fn statistics(&self) -> [Vec<f32>; 2] {
        let variance = numbers(self.channels(), 6).into_iter().map(|v| v * v + 0.1).collect();
        [numbers(self.channels(), 5), variance]
    }

    fn run(&self, leaves: &[Tensor<1>]) -> Tensor<1> {
        let image = |leaf: &Tensor<1>| leaf.clone().reshape(self.shape);
        let (x, gamma, beta) = (image(&leaves[0]), leaves[1].clone(), leaves[2].clone());
        let residual = leaves.get(3).map(image);
        let y = if self.given {
            let [mean, variance] = self.statistics().map(|values| {
                let len = values.len();
                Tensor::from_data(TensorData::new(values, [len]), &x.device())
            });
            batch_norm_with(x, gamma, beta, mean, variance, EPSILON, residual, self.relu)
        } else {
            batch_norm(x, gamma, beta, EPSILON, residual, self.relu).0
        };
        y.reshape([-1])
    }

    fn reference(&self, values: &[Vec<f64>]) -> Vec<f64> {
        let channels = self.channels();
        let mut y = vec![0.0; values[0].len()];
        for channel in 0..channels {
            let own = || values[0].iter().skip(channel).step_by(channels);
            let rows = own().count() as f64;
            let (mean, variance) = if self.given {
                let [mean, variance] = self.statistics();
                (f64::from(mean[channel]), f64::from(variance[channel]))
            } else {
                let mean = own().sum::<f64>() / rows;
                (mean, own().map(|x| (x - mean) * (x - mean)).sum::<f64>() / rows)
            };
            let scale = values[1][channel] / (variance + f64::from(EPSILON)).sqrt();
            for at in (channel..y.len()).step_by(channels) {
                y[at] = (values[0][at] - mean) * scale + values[2][channel];
                y[at] += values.get(3).map_or(0.0, |residual| residual[at]);
                y[at] = if self.relu { y[at].max(0.0) } else { y[at] };
            }
        }
        y
    }

    fn case<'a>(
        &self,
        operation: &'a (dyn Fn(&[Tensor<1>]) -> Tensor<1> + Sync),
        reference: &'a (dyn Fn(&[Vec<f64>]) -> Vec<f64> + Sync),
    ) -> Case<'a> {
        Case { inputs: self.inputs(), operation, reference }
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn any_size_with_and_without_sum_and_relu(
        n in 1usize..4, height in 2usize..7, width in 1usize..7, channels in 1usize..40,
        residual: bool, relu: bool, given: bool,
    ) {
        let kind = Kind { shape: [n, height, width, channels], residual, relu, given };
        kind.case(&|leaves| kind.run(leaves), &|values| kind.reference(values)).judge();
    }
}

#[test]
fn many_rows_give_the_same_bits_with_any_number_of_threads() {
    for (channels, residual) in [(16, false), (37, true), (64, true)] {
        let kind = Kind { shape: [40, 17, 16, channels], residual, relu: true, given: false };
        kind.case(&|leaves| kind.run(leaves), &|_| Vec::new()).judge_threads();
    }
}

#[test]
fn the_batchs_statistics_come_back() {
    let _guard = alone();
    let device = Device::flex().autodiff();
    // Far from zero, where a careless sum of squares would lose all digits.
    let x: Vec<f32> = numbers(2 * 50 * 3, 7).into_iter().map(|x| 1000.0 + x).collect();
    let mean: f64 = x.iter().step_by(3).copied().map(f64::from).sum::<f64>() / 100.0;
    let square = |x: &f32| (f64::from(*x) - mean).powi(2);
    let variance: f64 = x.iter().step_by(3).map(square).sum::<f64>() / 100.0;
    let x = Tensor::from_data(TensorData::new(x, [2, 5, 10, 3]), &device);
    let (gamma, beta) = (Tensor::ones([3], &device), Tensor::zeros([3], &device));
    let (_, means, variances) = batch_norm(x, gamma, beta, EPSILON, None, false);
    assert!(!means.is_autodiff() && !variances.is_autodiff());
    assert!((f64::from(read(means)[0]) - mean).abs() < 1e-3);
    assert!((f64::from(read(variances)[0]) - variance).abs() < 1e-4);
}

#[test]
#[should_panic(expected = "a variance for each channel")]
fn fewer_variances_than_channels_are_refused_and_leave_no_memory_unwritten() {
    let _guard = alone();
    let device = Device::flex();
    let one = |len| Tensor::<1>::ones([len], &device);
    let x = Tensor::<4>::ones([1, 7, 7, 20], &device);
    batch_norm_with(x, one(20), one(20), one(20), one(18), EPSILON, None, false);
}

#[test]
fn no_channels_are_nothing_to_normalise() {
    let _guard = alone();
    let device = Device::flex();
    let none = || Tensor::<1>::ones([0], &device);
    let x = Tensor::<4>::ones([2, 3, 3, 0], &device);
    assert_eq!(batch_norm(x, none(), none(), EPSILON, None, true).0.dims(), [2, 3, 3, 0]);
}
