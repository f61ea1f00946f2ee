//! LAP helps where sources lie, and says which.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod moons;

use lapwing_core::LapConfig;
use lapwing_train::{DeviceName, MethodConfig, TrainConfig, Trainer, auto_strength};
use moons::{Moons, config, moons, network};

fn accuracy(trainer: &Trainer<'_>, test: &Moons) -> f64 {
    let rows: Vec<u32> = (0..test.clean.len() as u32).collect();
    let found = trainer.model().unwrap().predict(&test.rows, &rows).unwrap().labels();
    found.iter().zip(&test.clean).filter(|(a, b)| a == b).count() as f64 / rows.len() as f64
}

#[test]
fn with_a_flipped_source_lap_ends_with_higher_clean_accuracy_and_names_it() {
    let test = moons(1_000, &[0.0], 99);
    let mut gains = Vec::new();
    for seed in 0..3 {
        let data = moons(120, &[0.0, 0.025, 0.05, 0.25, 1.0], seed);
        let settings = TrainConfig {
            architecture: network(&[64, 64], 0.0),
            epochs: 80,
            patience: 80,
            ..config(seed)
        };
        let mut standard = Trainer::new(
            settings.clone(),
            &MethodConfig::named("standard").unwrap(),
            data.data(),
            DeviceName::Cpu,
        )
        .unwrap();
        standard.run(&mut (), None).unwrap();
        let rule = LapConfig {
            depression_strength: auto_strength(standard.steps()),
            ..LapConfig::default()
        };
        let lap = MethodConfig::named("lap").unwrap().judged_by(rule);
        let mut lap = Trainer::new(settings, &lap, data.data(), DeviceName::Cpu).unwrap();
        lap.run(&mut (), None).unwrap();
        let weight = |source| lap.method().standing(source).weight;
        assert!(weight(4) < 0.05 && weight(3) < 0.5, "seed {seed}: {} {}", weight(4), weight(3));
        assert!(weight(0) > 0.9, "seed {seed}: {}", weight(0));
        let (with, without) = (accuracy(&lap, &test), accuracy(&standard, &test));
        assert!(with > 0.95, "seed {seed}: {with}");
        gains.push(with - without);
    }
    assert!(gains.iter().sum::<f64>() / 3.0 > 0.01, "{gains:?}");
}

#[test]
fn the_best_epoch_by_loss_is_the_one_of_least_loss_and_by_the_bounded_score_may_be_another() {
    let data = moons(60, &[0.3, 0.3], 1);
    let settings = TrainConfig {
        architecture: network(&[64, 64], 0.0),
        epochs: 60,
        patience: usize::MAX,
        ..config(1)
    };
    let standard = MethodConfig::named("standard").unwrap();
    let chosen = |by_loss: bool| {
        let trainer =
            Trainer::new(settings.clone(), &standard, data.data(), DeviceName::Cpu).unwrap();
        let mut trainer = if by_loss { trainer.choosing_by_loss() } else { trainer };
        trainer.run(&mut (), None).unwrap();
        let best = trainer.history().iter().rev().find(|epoch| epoch.best).unwrap();
        let least =
            trainer.history().iter().filter_map(|epoch| epoch.valid_loss).fold(f64::MAX, f64::min);
        (best.epoch, best.valid_loss.unwrap(), least)
    };
    let (by_loss, loss, least) = chosen(true);
    assert_eq!(loss, least);
    let (bounded, sure, same) = chosen(false);
    assert_eq!(same, least, "what is chosen does not change what is learnt");
    assert!(bounded > by_loss && sure > loss, "{bounded} {by_loss} {sure} {loss}");
}
