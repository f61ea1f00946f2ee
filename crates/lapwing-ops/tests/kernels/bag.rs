//! Bags of rows.

use burn::tensor::{Device, Tensor, TensorData};
use lapwing_ops::{
    AdamStep, Bags, Level, SgdStep, adam_rows_step, bag_means, rows_of, sgd_rows_step, use_stock,
};
use proptest::prelude::*;

use crate::judge::{Case, alone, cases, numbers, read};

/// Items by another generator than that of the numbers, and bags of 0 to `most` of them.
fn bags(rows: usize, count: usize, most: usize) -> (Vec<u32>, Vec<u32>) {
    let lengths: Vec<u32> = (0..count).map(|bag| ((bag * 7919 + 1) % (most + 1)) as u32).collect();
    let total: u32 = lengths.iter().sum();
    let items = (0..total as usize).map(|i| (i * 2_654_435_761 / 64 % rows) as u32).collect();
    (items, lengths)
}

fn judge([rows, width, count, most]: [usize; 4], threads_alone: bool) {
    let (items, lengths) = bags(rows, count, most);
    let case = Case {
        inputs: vec![numbers(rows * width, 5)],
        operation: &|leaves| {
            let table = leaves[0].clone().reshape([rows, width]);
            bag_means(table, &Bags::new(items.clone(), &lengths)).reshape([-1])
        },
        reference: &|values| {
            let mut y = Vec::new();
            let mut rest = &items[..];
            for &length in &lengths {
                let (bag, behind) = rest.split_at(length as usize);
                rest = behind;
                for column in 0..width {
                    let value = |&item: &u32| values[0][item as usize * width + column];
                    y.push(bag.iter().map(value).sum::<f64>() / f64::from(length.max(1)));
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
    fn means_of_any_size(rows in 1usize..50, width in 1usize..40, count in 1usize..30, most in 1usize..20) {
        judge([rows, width, count, most], false);
    }
}

#[test]
fn large_bags_are_the_same_with_any_number_of_threads() {
    judge([3_000, 64, 500, 400], true);
}

#[test]
fn bags_that_are_not_kept_are_empty() {
    let _guard = alone();
    let table = Tensor::from_data([[1.0], [3.0], [5.0]], &Device::flex());
    let bags = Bags::new(vec![0, 1, 2, 2, 1], &[2, 1, 2]);
    assert_eq!(read(bag_means(table.clone(), &bags)), [2.0, 5.0, 4.0]);
    assert_eq!(read(bag_means(table.clone(), &bags.only(&[true, false, true]))), [2.0, 0.0, 4.0]);
    assert_eq!(read(bag_means(table.clone(), &bags.only(&[false; 3]))), [0.0; 3]);
    for stock in [false, true] {
        use_stock(stock);
        assert_eq!(read(rows_of(table.clone(), &[2, 0])), [5.0, 1.0]);
    }
    use_stock(false);
}

// import torch
// e = torch.nn.EmbeddingBag(4, 3, mode="mean")
// e.weight.data = torch.arange(12.).reshape(4, 3).sin()
// y = e(torch.tensor([1, 3, 3, 0, 2]), torch.tensor([0, 3, 3])); print(y)
// (y * torch.arange(9.).reshape(3, 3).cos()).sum().backward(); print(e.weight.grad)
#[test]
fn means_and_gradients_are_pytorchs() {
    let _guard = alone();
    let device = Device::flex().autodiff();
    let sines: Vec<f32> = (0..12).map(|i| (i as f32).sin()).collect();
    let table = Tensor::<2>::from_data(TensorData::new(sines, [4, 3]), &device).require_grad();
    let means = bag_means(table.clone(), &Bags::new(vec![1, 3, 3, 0, 2], &[3, 0, 2]));
    let cosines: Vec<f32> = (0..9).map(|i| (i as f32).cos()).collect();
    let weights = Tensor::from_data(TensorData::new(cosines, [3, 3]), &device);
    let mut gradients = (means.clone() * weights).sum().backward();
    let close = |ours: Vec<f32>, theirs: &[f32]| {
        let far = ours.iter().zip(theirs).any(|(a, b)| (a - b).abs() > 1e-6);
        assert!(!far && ours.len() == theirs.len(), "{ours:?} against {theirs:?}");
    };
    close(read(means.inner()), &THEIR_MEANS);
    close(read(table.grad_remove(&mut gradients).unwrap()), &THEIR_GRADIENTS);
}

const THEIR_MEANS: [f32; 9] =
    [0.3217857, -0.6149483, -0.9863016, 0.0, 0.0, 0.0, -0.1397077, 0.7492288, 0.9493278];
const THEIR_GRADIENTS: [f32; 12] = [
    0.4800851, 0.3769511, -0.07275, 0.3333333, 0.1801008, -0.1387156, 0.4800851, 0.3769511,
    -0.07275, 0.6666667, 0.3602016, -0.2774312,
];

const ROWS: usize = 40;
const WIDTH: usize = 19;

fn table(seed: u64) -> Tensor<2> {
    let values = numbers(ROWS * WIDTH, seed);
    Tensor::from_data(TensorData::new(values, [ROWS, WIDTH]), &Device::flex())
}

/// Steps that touch other rows each, and the same in f64: number by number, in the steps that touch it.
fn judge_steps(
    ours: &(dyn Fn(&[Vec<u32>]) -> Vec<f32> + Sync),
    reference: &dyn Fn(f64, &[Option<f64>]) -> f64,
) {
    let _guard = alone();
    let steps: Vec<Vec<u32>> =
        vec![vec![3, 0, 39], vec![], (0..ROWS as u32).rev().collect(), vec![39, 5]];
    let theta = numbers(ROWS * WIDTH, 1);
    let expected = |at: usize| {
        let (row, column) = (at / WIDTH, at % WIDTH);
        let slope = |(step, rows): (usize, &Vec<u32>)| {
            let place = rows.iter().position(|&other| other as usize == row)?;
            Some(f64::from(numbers(rows.len() * WIDTH, 10 + step as u64)[place * WIDTH + column]))
        };
        let slopes: Vec<Option<f64>> = steps.iter().enumerate().map(slope).collect();
        reference(f64::from(theta[at]), &slopes)
    };
    let expected: Vec<f64> = (0..ROWS * WIDTH).map(expected).collect();
    let close = |what: &str| {
        for (i, (found, expected)) in ours(&steps).iter().zip(&expected).enumerate() {
            let far = (f64::from(*found) - expected).abs() > 2e-5;
            assert!(!far, "{what}, {i}: {found}, {expected}");
        }
    };
    for level in Level::available() {
        Level::force(Some(level)).unwrap();
        close(&format!("{level:?}"));
    }
    Level::force(None).unwrap();
    use_stock(true);
    close("Burn");
    use_stock(false);
}

fn slopes(step: usize, rows: &[u32]) -> Tensor<2> {
    let values = numbers(rows.len() * WIDTH, 10 + step as u64);
    Tensor::from_data(TensorData::new(values, [rows.len(), WIDTH]), &Device::flex())
}

#[test]
fn descent_moves_the_rows_that_are_named_and_no_other() {
    for momentum in [0.0, 0.9] {
        let rule = SgdStep { rate: 0.1, momentum, weight_decay: 1e-2 };
        let ours = |steps: &[Vec<u32>]| {
            let (mut theta, mut velocity) = (table(1), None);
            for (step, rows) in steps.iter().enumerate() {
                (theta, velocity) = sgd_rows_step(theta, rows, slopes(step, rows), velocity, rule);
            }
            assert_eq!(velocity.is_some(), momentum != 0.0);
            read(theta)
        };
        judge_steps(&ours, &|mut theta, slopes| {
            let mut velocity = 0.0;
            for slope in slopes.iter().flatten() {
                velocity = momentum * velocity + slope + rule.weight_decay * theta;
                theta -= rule.rate * velocity;
            }
            theta
        });
    }
}

#[test]
fn adam_moves_the_rows_that_are_named_and_no_other() {
    let rule = |step: usize| AdamStep {
        rate: 0.01,
        beta1: 0.9,
        beta2: 0.99,
        epsilon: 1e-5,
        weight_decay: 0.1,
        step: step as u64 + 1,
    };
    let ours = |steps: &[Vec<u32>]| {
        let mut theta = table(1);
        let (mut first, mut second) = (theta.zeros_like(), theta.zeros_like());
        for (step, rows) in steps.iter().enumerate() {
            (theta, first, second) =
                adam_rows_step(theta, rows, slopes(step, rows), first, second, rule(step));
        }
        read(theta)
    };
    judge_steps(&ours, &|mut theta, slopes| {
        let (mut first, mut second) = (0.0, 0.0);
        for (step, slope) in slopes.iter().enumerate() {
            let (Some(slope), rule) = (slope, rule(step)) else { continue };
            let slope = slope + rule.weight_decay * theta;
            first = rule.beta1 * first + (1.0 - rule.beta1) * slope;
            second = rule.beta2 * second + (1.0 - rule.beta2) * slope * slope;
            let root = (second / (1.0 - rule.beta2.powi(step as i32 + 1))).sqrt();
            let mean = first / (1.0 - rule.beta1.powi(step as i32 + 1));
            theta -= rule.rate * mean / (root + rule.epsilon);
        }
        theta
    });
}
