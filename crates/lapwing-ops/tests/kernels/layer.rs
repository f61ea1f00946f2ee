//! Fully connected layers and the loss behind them.

use burn::tensor::{Device, Int, Tensor, TensorData};
use lapwing_ops::{cross_entropy, linear};
use proptest::prelude::*;

use crate::judge::{Case, alone, cases, numbers, read};

fn judge([n, inputs, outputs]: [usize; 3], relu: bool, threads_alone: bool) {
    let case = Case {
        inputs: vec![numbers(n * inputs, 1), numbers(inputs * outputs, 2), numbers(outputs, 3)],
        operation: &|leaves| {
            let x = leaves[0].clone().reshape([n, inputs]);
            let weight = leaves[1].clone().reshape([inputs, outputs]);
            linear(x, weight, leaves[2].clone(), relu).reshape([-1])
        },
        reference: &|values| {
            let mut y = Vec::new();
            for row in values[0].chunks(inputs) {
                for output in 0..outputs {
                    let products =
                        row.iter().enumerate().map(|(i, x)| x * values[1][i * outputs + output]);
                    let sum = values[2][output] + products.sum::<f64>();
                    y.push(if relu { sum.max(0.0) } else { sum });
                }
            }
            y
        },
    };
    if threads_alone { case.judge_threads() } else { case.judge() }
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn layers_of_any_size(n in 1usize..40, inputs in 1usize..50, outputs in 1usize..70, relu: bool) {
        judge([n, inputs, outputs], relu, false);
    }

    #[test]
    fn losses_of_any_size(n in 1usize..20, columns in 1usize..15, scale in 0.1f32..20.0) {
        let logits = numbers(n * columns, 4).into_iter().map(|x| x * scale).collect();
        let classes: Vec<usize> = (0..n).map(|row| row * 5 % columns).collect();
        let case = Case {
            inputs: vec![logits],
            operation: &|leaves| {
                let logits = leaves[0].clone().reshape([n, columns]);
                cross_entropy(logits, tensor(&classes, &leaves[0].device()))
            },
            reference: &|values| {
                values[0]
                    .chunks(columns)
                    .zip(&classes)
                    .map(|(row, &class)| {
                        row.iter().map(|x| (x - row[class]).exp()).sum::<f64>().ln()
                    })
                    .collect()
            },
        };
        case.judge();
    }
}

fn tensor(classes: &[usize], device: &Device) -> Tensor<1, Int> {
    let values: Vec<i32> = classes.iter().map(|&class| class as i32).collect();
    Tensor::from_data(TensorData::new(values, [classes.len()]), device)
}

#[test]
fn layers_deeper_and_wider_than_a_block() {
    judge([5, 530, 33], true, false);
    judge([101, 20, 300], false, false);
    judge([300, 9, 40], true, false);
}

#[test]
fn large_layers_give_the_same_bits_with_any_number_of_threads() {
    judge([150, 300, 310], true, true);
    judge([200, 784, 16], true, true);
}

#[test]
fn losses_of_logits_far_apart_stay_finite() {
    let _guard = alone();
    let device = Device::flex();
    let logits = Tensor::from_data([[1000.0, -1000.0], [-1000.0, 1000.0]], &device);
    let losses = read(cross_entropy(logits, tensor(&[0, 0], &device)));
    assert_eq!(losses, [0.0, 2000.0]);
}

#[test]
#[should_panic(expected = "class 3 of 3")]
fn a_class_beyond_the_columns_is_refused() {
    let _guard = alone();
    let device = Device::flex();
    cross_entropy(Tensor::zeros([1, 3], &device), tensor(&[3], &device));
}

#[test]
fn what_is_not_a_number_stays_so_through_relu() {
    let _guard = alone();
    let device = Device::flex();
    let x = Tensor::from_data([[f32::NAN], [1.0]], &device);
    let y = read(linear(x, Tensor::ones([1, 9], &device), Tensor::zeros([9], &device), true));
    assert!(y[..9].iter().all(|y| y.is_nan()) && y[9..] == [1.0; 9]);
}

#[test]
fn a_layer_without_inputs_gives_its_bias() {
    let _guard = alone();
    let device = Device::flex();
    let bias = Tensor::from_data([1.0, 2.0, 3.0], &device);
    let y = linear(Tensor::zeros([2, 0], &device), Tensor::zeros([0, 3], &device), bias, false);
    assert_eq!(read(y), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
}
