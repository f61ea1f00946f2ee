//! Attention, layer normalisation and dropout.

use lapwing_ops::{Heads, add_layer_norm, attention, drop_out};
use proptest::prelude::*;

use crate::judge::{Case, cases, numbers};

/// What a share and a seed do to a number at a place, found out by asking.
fn factors(count: usize, dropout: Option<(f32, u64)>) -> Vec<f64> {
    let Some((share, seed)) = dropout else { return vec![1.0; count] };
    let ones = burn::tensor::Tensor::<1>::ones([count], &burn::tensor::Device::flex());
    let found = drop_out(ones, share, seed).into_data().try_to_vec::<f32>().unwrap();
    found.into_iter().map(f64::from).collect()
}

fn judge_attention(
    [moments, heads, of_head]: [usize; 3],
    lengths: &[u32],
    dropout: Option<(f32, u64)>,
    threads_alone: bool,
) {
    let (n, width) = (lengths.len(), heads * of_head);
    let factors = factors(n * heads * moments * moments, dropout);
    let case = Case {
        inputs: vec![numbers(n * moments * 3 * width, 1)],
        operation: &|leaves| {
            let qkv = leaves[0].clone().reshape([n * moments, 3 * width]);
            let heads = Heads { count: heads, lengths: lengths.to_vec(), dropout };
            attention(qkv, &heads).reshape([-1])
        },
        reference: &|values| {
            let at = |sample: usize, moment: usize, part: usize, head: usize, i: usize| {
                let row = sample * moments + moment;
                values[0][row * 3 * width + part * width + head * of_head + i]
            };
            let mut y = vec![0.0; n * moments * width];
            for sample in 0..n {
                let length = (lengths[sample].max(1) as usize).min(moments);
                for head in 0..heads {
                    for from in 0..moments {
                        let score = |to: usize| {
                            let product = (0..of_head)
                                .map(|i| at(sample, from, 0, head, i) * at(sample, to, 1, head, i));
                            (product.sum::<f64>() / (of_head as f64).sqrt()).exp()
                        };
                        let scores: Vec<f64> = (0..length).map(score).collect();
                        let sum: f64 = scores.iter().sum();
                        for (to, score) in scores.iter().enumerate() {
                            let place = ((sample * heads + head) * moments + from) * moments + to;
                            for i in 0..of_head {
                                y[(sample * moments + from) * width + head * of_head + i] +=
                                    factors[place] * score / sum * at(sample, to, 2, head, i);
                            }
                        }
                    }
                }
            }
            y
        },
    };
    if threads_alone { case.judge_threads() } else { case.judge() }
}

fn judge_norm([rows, width]: [usize; 2], dropout: Option<(f32, u64)>, threads_alone: bool) {
    let factors = factors(rows * width, dropout);
    let case = Case {
        inputs: vec![
            numbers(rows * width, 1),
            numbers(rows * width, 2),
            numbers(width, 3),
            numbers(width, 4),
        ],
        operation: &|leaves| {
            let rows = |at: usize| leaves[at].clone().reshape([rows, width]);
            let (gamma, beta) = (leaves[2].clone(), leaves[3].clone());
            add_layer_norm(rows(0), rows(1), gamma, beta, 1e-2, dropout).reshape([-1])
        },
        reference: &|values| {
            let sum = values[0].iter().zip(&values[1]).zip(&factors).map(|((x, y), f)| x + f * y);
            let sum: Vec<f64> = sum.collect();
            let mut out = Vec::new();
            for row in sum.chunks(width) {
                let mean = row.iter().sum::<f64>() / width as f64;
                let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
                for (at, x) in row.iter().enumerate() {
                    let normal = (x - mean) / (variance + 1e-2).sqrt();
                    out.push(normal * values[2][at] + values[3][at]);
                }
            }
            out
        },
    };
    if threads_alone { case.judge_threads() } else { case.judge() }
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn attention_of_any_size(
        moments in 1usize..20,
        heads in 1usize..4,
        of_head in 1usize..9,
        lengths in prop::collection::vec(0u32..22, 1..4),
        dropped: bool,
    ) {
        judge_attention([moments, heads, of_head], &lengths, dropped.then_some((0.3, 7)), false);
    }

    #[test]
    fn rows_of_any_width_are_normalised(rows in 1usize..20, width in 1usize..50, dropped: bool) {
        judge_norm([rows, width], dropped.then_some((0.4, 9)), false);
    }

    #[test]
    fn dropout_of_any_size(count in 1usize..200, share in 0.0f32..0.9, seed: u64) {
        let factors = factors(count, Some((share, seed)));
        let case = Case {
            inputs: vec![numbers(count, 1)],
            operation: &|leaves| drop_out(leaves[0].clone(), share, seed),
            reference: &|values| values[0].iter().zip(&factors).map(|(x, f)| x * f).collect(),
        };
        case.judge();
    }
}

#[test]
fn large_ones_have_the_same_bits_with_any_number_of_threads() {
    judge_attention([24, 4, 16], &[24; 9], Some((0.1, 3)), true);
    judge_norm([700, 256], Some((0.1, 3)), true);
}
