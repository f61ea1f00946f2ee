//! Long short-term memory.

use lapwing_ops::lstm;
use proptest::prelude::*;

use crate::judge::{Case, cases, numbers};

fn judge([n, moments, inputs, units]: [usize; 4], threads_alone: bool) {
    let width = 4 * units;
    let small = |count, seed| numbers(count, seed).into_iter().map(|x| 0.4 * x).collect();
    let case = Case {
        inputs: vec![
            numbers(n * moments * inputs, 1),
            small(inputs * width, 2),
            small(units * width, 3),
            small(width, 4),
        ],
        operation: &|leaves| {
            let x = leaves[0].clone().reshape([n, moments, inputs]);
            let of_inputs = leaves[1].clone().reshape([inputs, width]);
            let of_memory = leaves[2].clone().reshape([units, width]);
            lstm(x, of_inputs, of_memory, leaves[3].clone()).reshape([-1])
        },
        reference: &|values| {
            let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
            let mut all = Vec::new();
            for sample in values[0].chunks(moments * inputs) {
                let (mut hidden, mut cells) = (vec![0.0; units], vec![0.0; units]);
                for x in sample.chunks(inputs) {
                    let sum = |column: usize| {
                        let own =
                            x.iter().enumerate().map(|(i, x)| x * values[1][i * width + column]);
                        let old = hidden
                            .iter()
                            .enumerate()
                            .map(|(i, h)| h * values[2][i * width + column]);
                        own.sum::<f64>() + old.sum::<f64>() + values[3][column]
                    };
                    let sums: Vec<f64> = (0..width).map(sum).collect();
                    for unit in 0..units {
                        let [i, f, g, o] = [0, 1, 2, 3].map(|gate| sums[gate * units + unit]);
                        cells[unit] = sigmoid(f) * cells[unit] + sigmoid(i) * g.tanh();
                        hidden[unit] = sigmoid(o) * cells[unit].tanh();
                    }
                    all.extend_from_slice(&hidden);
                }
            }
            all
        },
    };
    if threads_alone { case.judge_threads() } else { case.judge() }
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn layers_of_any_size(n in 1usize..20, moments in 1usize..6, inputs in 1usize..7, units in 1usize..40) {
        judge([n, moments, inputs, units], false);
    }
}

#[test]
fn a_layer_of_many_samples_has_the_same_bits_with_any_number_of_threads() {
    judge([130, 3, 5, 70], true);
}
