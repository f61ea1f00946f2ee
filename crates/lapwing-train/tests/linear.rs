//! The linear model finds what least squares and logistic regression find.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod moons;

use lapwing_train::{
    Architecture, Data, DeviceName, LinearConfig, Loss, MethodConfig, Predictions, Schedule,
    Targets, TrainConfig, Trainer,
};
use moons::{config, moons};

/// A line fitted by the normal equations: slopes and intercept.
fn least_squares(rows: &[f32], values: &[f64]) -> [f64; 3] {
    let mut system = [[0.0; 4]; 3];
    for (row, value) in rows.chunks_exact(2).zip(values) {
        let row = [f64::from(row[0]), f64::from(row[1]), 1.0];
        for i in 0..3 {
            for j in 0..3 {
                system[i][j] += row[i] * row[j];
            }
            system[i][3] += row[i] * value;
        }
    }
    for i in 0..3 {
        for j in 0..3 {
            if i != j {
                let (pivot, factor) = (system[i], system[j][i] / system[i][i]);
                for (value, above) in system[j].iter_mut().zip(pivot) {
                    *value -= factor * above;
                }
            }
        }
    }
    [0, 1, 2].map(|i| system[i][3] / system[i][i])
}

#[test]
fn values_are_those_of_least_squares() {
    let data = moons(100, &[0.0, 0.5], 3);
    let rows = data.rows.values();
    // Not a plane, so that only least squares is right.
    let value = |row: &[f32]| 100.0 + f64::from(7.0 * row[0] * row[0] - 3.0 * row[1]).sin();
    let values: Vec<f64> = rows.chunks_exact(2).map(value).collect();
    let all: Vec<u32> = (0..values.len() as u32).collect();
    let targets = Targets::Values(values.clone());
    let data = Data { targets: &targets, train: &all, valid: &[], ..data.data() };
    let settings = TrainConfig {
        architecture: Architecture::Linear(LinearConfig { inputs: 2, outputs: 1 }),
        loss: Loss::SquaredError,
        optimiser: lapwing_train::OptimiserConfig::Adam { weight_decay: 0.0 },
        schedule: Schedule::Cosine { learning_rate: 0.02 },
        batch_size: all.len(),
        epochs: 1_000,
        patience: usize::MAX,
        ..config(0)
    };
    let mut run =
        Trainer::new(settings, &MethodConfig::named("standard").unwrap(), data, DeviceName::Cpu)
            .unwrap();
    run.run(&mut (), None).unwrap();
    let Predictions::Values(found) = run.model().unwrap().predict(data.samples, &all).unwrap()
    else {
        panic!("values")
    };
    let [a, b, c] = least_squares(rows, &values);
    for (row, found) in rows.chunks_exact(2).zip(found) {
        let expected = a * f64::from(row[0]) + b * f64::from(row[1]) + c;
        assert!((found - expected).abs() < 1e-3, "{found} instead of {expected}");
    }
    assert!(run.model().unwrap().embeddings(data.samples, &all).unwrap().is_none());
}

#[test]
fn classes_are_parted_by_a_line_whose_gradient_has_vanished() {
    let data = moons(200, &[0.1, 0.1], 3);
    let all: Vec<u32> = (0..data.clean.len() as u32).collect();
    let Targets::Classes { labels, .. } = &data.targets else { panic!("classes") };
    let data_of = Data { train: &all, valid: &[], ..data.data() };
    let settings = TrainConfig {
        architecture: Architecture::Linear(LinearConfig { inputs: 2, outputs: 2 }),
        optimiser: lapwing_train::OptimiserConfig::Adam { weight_decay: 0.0 },
        schedule: Schedule::Cosine { learning_rate: 0.02 },
        batch_size: all.len(),
        epochs: 1_500,
        patience: usize::MAX,
        ..config(0)
    };
    let mut run =
        Trainer::new(settings, &MethodConfig::named("standard").unwrap(), data_of, DeviceName::Cpu)
            .unwrap();
    run.run(&mut (), None).unwrap();
    let Predictions::Classes { probabilities, .. } =
        run.model().unwrap().predict(&data.rows, &all).unwrap()
    else {
        panic!("classes")
    };
    // At the maximum of the likelihood Σ (p − y) x is zero.
    let mut gradient = [0.0; 3];
    for ((row, said), &label) in
        data.rows.values().chunks_exact(2).zip(probabilities.chunks_exact(2)).zip(labels)
    {
        let off = f64::from(said[1]) - f64::from(label);
        for (sum, x) in gradient.iter_mut().zip([row[0], row[1], 1.0]) {
            *sum += off * f64::from(x) / labels.len() as f64;
        }
    }
    assert!(gradient.iter().all(|part| part.abs() < 1e-4), "{gradient:?}");
}
