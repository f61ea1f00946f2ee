//! What the theory says of sources that are all alike: nothing happens to them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod moons;

use lapwing_core::LapConfig;
use lapwing_train::{
    DeviceName, Loss, MethodConfig, Model, Predictions, Targets, TrainConfig, Trainer,
};
use moons::{Moons, config, moons, network_for_values};

const SOURCES: u32 = 5;

fn settings(seed: u64) -> TrainConfig {
    TrainConfig { epochs: 15, patience: 15, ..config(seed) }
}

/// The model, and the weights of the sources at the end.
fn trained(data: &Moons, method: &str, seed: u64) -> (Model, Vec<f64>) {
    let method = MethodConfig::named(method).unwrap();
    let method = match method.kind().runs_rule() {
        true => method.judged_by(LapConfig { depression_strength: 4.0, ..LapConfig::default() }),
        false => method,
    };
    let mut trainer = Trainer::new(settings(seed), &method, data.data(), DeviceName::Cpu).unwrap();
    trainer.run(&mut (), None).unwrap();
    let weights = (0..SOURCES).map(|source| trainer.standing(source).weight).collect();
    (trainer.model().unwrap(), weights)
}

/// Probabilities of the second class on points with clean labels, and the share of them that are right.
fn on(model: &Model, test: &Moons) -> (Vec<f32>, f64) {
    let all: Vec<u32> = (0..test.clean.len() as u32).collect();
    let Predictions::Classes { probabilities, .. } = model.predict(&test.rows, &all).unwrap()
    else {
        panic!("classes")
    };
    let second: Vec<f32> = probabilities.chunks_exact(2).map(|row| row[1]).collect();
    let right = second.iter().zip(&test.clean).filter(|(p, class)| (**p > 0.5) == (**class == 1));
    let share = right.count() as f64 / second.len() as f64;
    (second, share)
}

/// Sources with the same share of wrong labels are weighed alike, and the model is that of plain training.
fn changes_nothing(flipped: f32) {
    let test = moons(400, &[0.0], 99);
    for seed in [1, 2] {
        let data = moons(120, &[flipped; SOURCES as usize], seed);
        let (plain, (weighed, weights)) =
            (trained(&data, "standard", seed).0, trained(&data, "lap", seed));
        assert!(weights.iter().all(|weight| *weight > 0.95), "{flipped}, {seed}: {weights:?}");
        let ((a, right), (b, weighed_right)) = (on(&plain, &test), on(&weighed, &test));
        let apart = a.iter().zip(&b).map(|(a, b)| f64::from((a - b).abs())).sum::<f64>();
        let apart = apart / a.len() as f64;
        // Another seed moves it further.
        let other = on(&trained(&data, "standard", seed + 10).0, &test).0;
        let noise = a.iter().zip(&other).map(|(a, b)| f64::from((a - b).abs())).sum::<f64>();
        let noise = noise / a.len() as f64;
        assert!(apart < noise, "{flipped}, {seed}: {apart} against {noise}");
        assert!((right - weighed_right).abs() <= 0.02, "{right} against {weighed_right}");
    }
}

#[test]
fn clean_sources_keep_their_weight_and_the_model_is_that_of_plain_training() {
    changes_nothing(0.0);
}

#[test]
fn equal_noise_everywhere_changes_nothing() {
    changes_nothing(0.25);
}

#[test]
fn in_the_same_training_a_source_of_wrong_labels_loses_its_weight() {
    let data = moons(120, &[0.0, 0.0, 0.0, 0.0, 1.0], 1);
    let (_, weights) = trained(&data, "lap", 1);
    assert!(weights[4] < 0.2 && weights[..4].iter().all(|weight| *weight > 0.95), "{weights:?}");
}

#[test]
fn raw_values_are_learnt_in_their_own_unit() {
    let data = moons(40, &[0.0; 2], 3);
    let targets =
        Targets::Values(data.clean.iter().map(|class| 500.0 + f64::from(*class)).collect());
    let settings = TrainConfig {
        architecture: network_for_values(0.0),
        loss: Loss::SquaredError,
        epochs: 1,
        patience: 1,
        ..config(0)
    };
    let standard = MethodConfig::named("standard").unwrap();
    let first = |raw: bool| {
        let data = lapwing_train::Data { targets: &targets, ..data.data() };
        let made = Trainer::new(settings.clone(), &standard, data, DeviceName::Cpu).unwrap();
        let mut trainer = if raw { made.with_raw_values() } else { made };
        trainer.run(&mut (), None).unwrap();
        match trainer.model().unwrap().predict(data.samples, &[0]).unwrap() {
            Predictions::Values(values) => values[0],
            Predictions::Classes { .. } => panic!("values"),
        }
    };
    // After a few steps a network that sees 500 is still far from it, and one that sees ±1 is told of the 500 at once.
    assert!((first(false) - 500.0).abs() < 5.0 && first(true).abs() < 50.0);
}
