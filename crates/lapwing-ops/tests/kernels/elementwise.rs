//! Functions of single numbers, and of rows of them.

use burn::tensor::{Device, Tensor};
use lapwing_ops::{relu, scale, softmax, squash};
use proptest::prelude::*;

use crate::judge::{Case, alone, cases, numbers, read};

fn judge(
    inputs: Vec<Vec<f32>>,
    operation: &(dyn Fn(&[Tensor<1>]) -> Tensor<1> + Sync),
    reference: &(dyn Fn(&[Vec<f64>]) -> Vec<f64> + Sync),
) {
    Case { inputs, operation, reference }.judge();
}

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn squashing_numbers_of_any_size(n in 1usize..200, bound in 0.5f32..10.0) {
        judge(
            vec![numbers(n, 5)],
            &|leaves| squash(leaves[0].clone(), bound),
            &|values| {
                let bound = f64::from(bound);
                values[0].iter().map(|x| x / (1.0 + (x / bound).powi(2)).sqrt()).collect()
            },
        );
    }

    #[test]
    fn scaling_by_factors(n in 1usize..200) {
        let factors: Vec<f32> = (0..n).map(|i| [0.0, 2.0, 1.25][i % 3]).collect();
        judge(
            vec![numbers(n, 6)],
            &|leaves| {
                let device = leaves[0].device();
                scale(leaves[0].clone(), Tensor::from_data(&factors[..], &device))
            },
            &|values| values[0].iter().zip(&factors).map(|(x, f)| x * f64::from(*f)).collect(),
        );
    }

    #[test]
    fn rectifying(n in 1usize..200) {
        judge(
            vec![numbers(n, 7)],
            &|leaves| relu(leaves[0].clone()),
            &|values| values[0].iter().map(|x| x.max(0.0)).collect(),
        );
    }

    #[test]
    fn softmax_of_any_size(n in 1usize..20, columns in 1usize..15) {
        judge(
            vec![numbers(n * columns, 8)],
            &|leaves| softmax(leaves[0].clone().reshape([n, columns])).reshape([-1]),
            &|values| {
                values[0]
                    .chunks(columns)
                    .flat_map(|row| {
                        let sum: f64 = row.iter().map(|x| x.exp()).sum();
                        row.iter().map(move |x| x.exp() / sum)
                    })
                    .collect()
            },
        );
    }
}

#[test]
fn what_is_not_a_number_stays_so_when_rectified() {
    let _guard = alone();
    let x = Tensor::<1>::from_data([f32::NAN, -1.0, 1.0], &Device::flex());
    let y = read(relu(x));
    assert!(y[0].is_nan() && y[1..] == [0.0, 1.0]);
}

#[test]
#[should_panic(expected = "a factor for each number")]
fn factors_of_another_shape_are_refused() {
    let _guard = alone();
    let device = Device::flex();
    scale(Tensor::<2>::zeros([2, 3], &device), Tensor::zeros([1, 3], &device));
}
