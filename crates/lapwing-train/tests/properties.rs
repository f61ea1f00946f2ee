//! What must hold for any training loop that weighs samples.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod moons;

use lapwing_core::LapConfig;
use lapwing_train::{
    Data, DeviceName, Epoch, Guards, Loss, Matrix, MethodConfig, Model, Observer, OptimiserConfig,
    Predictions, Samples, Schedule, Targets, TrainConfig, TrainError, Trainer,
};
use moons::{Moons, config, moons, network, network_for_values};

fn train(data: Data<'_>, config: TrainConfig, method: &MethodConfig) -> Model {
    let mut trainer = Trainer::new(config, method, data, DeviceName::Cpu).unwrap();
    trainer.run(&mut (), None).unwrap();
    trainer.model().unwrap()
}

fn predictions(model: &Model, rows: &Matrix) -> Vec<f32> {
    let all: Vec<u32> = (0..rows.len() as u32).collect();
    match model.predict(rows, &all).unwrap() {
        Predictions::Classes { probabilities, .. } => probabilities,
        Predictions::Values(_) => panic!("classes"),
    }
}

fn predicted_values(model: &Model, rows: &Matrix) -> Vec<f64> {
    let all: Vec<u32> = (0..rows.len() as u32).collect();
    match model.predict(rows, &all).unwrap() {
        Predictions::Values(values) => values,
        Predictions::Classes { .. } => panic!("values"),
    }
}

fn far(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn bytes(model: &Model) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    model.save(&dir.path().join("m")).unwrap();
    std::fs::read(dir.path().join("m")).unwrap()
}

/// Plain gradient descent on everything at once.
fn full_batch(rows: usize, learning_rate: f64) -> TrainConfig {
    TrainConfig {
        architecture: network(&[16, 16], 0.0),
        optimiser: OptimiserConfig::Sgd { momentum: 0.9, weight_decay: 0.0 },
        schedule: Schedule::Constant { learning_rate },
        batch_size: rows,
        epochs: 60,
        patience: 60,
        ..config(1)
    }
}

fn blocking(source: u32) -> MethodConfig {
    let rule = LapConfig { leniency: f64::INFINITY, ..LapConfig::default() };
    let guards = Guards { blocked: [source].into(), ..Guards::default() };
    MethodConfig::named("lap").unwrap().judged_by(rule).within(guards)
}

#[test]
fn weight_zero_is_the_same_as_the_rows_removed() {
    let all = moons(50, &[0.0, 0.1, 1.0], 5);
    let kept: Vec<u32> =
        all.train.iter().copied().filter(|&row| all.sources[row as usize] != 2).collect();
    let rate = 0.1;
    let zero =
        train(Data { valid: &[], ..all.data() }, full_batch(all.train.len(), rate), &blocking(2));
    // The loss is a mean over the batch, rows of weight zero included: without them the step is larger by their share.
    let share = kept.len() as f64 / all.train.len() as f64;
    let removed = Data { train: &kept, valid: &[], ..all.data() };
    let removed = train(
        removed,
        full_batch(kept.len(), rate * share),
        &MethodConfig::named("standard").unwrap(),
    );
    let with = train(
        Data { valid: &[], ..all.data() },
        full_batch(all.train.len(), rate),
        &MethodConfig::named("standard").unwrap(),
    );
    let [zero, removed, with] = [zero, removed, with].map(|model| predictions(&model, &all.rows));
    assert!(far(&zero, &removed) < 1e-4, "{}", far(&zero, &removed));
    assert!(far(&zero, &with) > 0.05, "the flipped source matters: {}", far(&zero, &with));
}

#[test]
fn the_order_of_rows_within_a_batch_does_not_matter() {
    let data = moons(50, &[0.0, 0.1, 1.0], 5);
    let backwards: Vec<u32> = data.train.iter().rev().copied().collect();
    let one = train(
        data.data(),
        full_batch(data.train.len(), 0.1),
        &MethodConfig::named("standard").unwrap(),
    );
    let two = train(
        Data { train: &backwards, ..data.data() },
        full_batch(data.train.len(), 0.1),
        &MethodConfig::named("standard").unwrap(),
    );
    assert!(far(&predictions(&one, &data.rows), &predictions(&two, &data.rows)) < 1e-4);
}

#[test]
fn the_same_seed_gives_the_same_bytes_with_any_number_of_threads_and_another_seed_does_not() {
    // Large enough that matrix products are split over threads.
    let data = moons(400, &[0.0, 0.0, 1.0], 5);
    let settings = |seed| TrainConfig {
        architecture: network(&[256, 256], 0.1),
        batch_size: 512,
        epochs: 3,
        ..config(seed)
    };
    let run = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            bytes(&train(data.data(), settings(seed), &MethodConfig::named("standard").unwrap()))
        })
    };
    let one = run(1, 0);
    assert!(one == run(1, 0));
    assert!(one == run(2, 0));
    assert!(one == run(3, 0));
    assert!(one != run(1, 1));
}

/// Moons in which some rows have a feature that is not a number, or is enormous.
fn poisoned() -> (Moons, Matrix) {
    let data = moons(60, &[0.0, 0.0, 1.0], 5);
    let mut values = data.rows.values().to_vec();
    for (row, bad) in [(3, f32::NAN), (70, f32::INFINITY), (71, f32::NEG_INFINITY), (131, 3e38)] {
        values[2 * row] = bad;
    }
    (data, Matrix::new(values, 2).unwrap())
}

#[derive(Default)]
struct Count(u64, Vec<Epoch>);
impl Observer for Count {
    fn on_epoch(&mut self, epoch: &Epoch, _: &Model) {
        self.0 += epoch.nonfinite;
        self.1.push(epoch.clone());
    }
}

#[test]
fn rows_whose_loss_is_not_finite_are_counted_and_poison_nothing() {
    let (data, rows) = poisoned();
    let lap = MethodConfig::named("lap").unwrap();
    for method in [MethodConfig::named("standard").unwrap(), lap] {
        let mut trainer = Trainer::new(
            config(0),
            &method,
            Data { samples: &rows, ..data.data() },
            DeviceName::Cpu,
        )
        .unwrap();
        let mut count = Count::default();
        trainer.run(&mut count, None).unwrap();
        // Rows 3, 71 and 131 train (those divisible by five validate), in each of six epochs; 3e38 may still be finite.
        assert!((12..=18).contains(&count.0), "{}", count.0);
        let found = predictions(&trainer.model().unwrap(), &data.rows);
        assert!(found.iter().all(|p| p.is_finite()));
        let last = count.1.last().unwrap();
        assert!(last.train_loss.is_finite() && last.valid_loss.unwrap().is_finite());
    }
}

#[test]
fn parameters_that_become_infinite_are_a_clear_error() {
    let data = moons(60, &[0.0], 5);
    let Targets::Classes { labels, .. } = &data.targets else { unreachable!() };
    let targets = Targets::Values(labels.iter().map(|&label| f64::from(label)).collect());
    let settings = TrainConfig {
        architecture: network_for_values(0.1),
        loss: Loss::SquaredError,
        optimiser: OptimiserConfig::Sgd { momentum: 0.0, weight_decay: 0.0 },
        schedule: Schedule::Constant { learning_rate: 1e6 },
        ..config(0)
    };
    let mut trainer = Trainer::new(
        settings,
        &MethodConfig::named("standard").unwrap(),
        Data { targets: &targets, ..data.data() },
        DeviceName::Cpu,
    )
    .unwrap();
    let error = trainer.run(&mut (), None).unwrap_err();
    assert!(matches!(error, TrainError::Diverged { .. }), "{error}");
    assert!(error.to_string().contains("learning rate"));
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let data = moons(20, &[0.0], 5);
    let refused = |settings: TrainConfig| {
        let error = Trainer::new(
            settings,
            &MethodConfig::named("standard").unwrap(),
            data.data(),
            DeviceName::Cpu,
        )
        .err()
        .unwrap();
        error.to_string()
    };
    assert!(refused(TrainConfig { batch_size: 0, ..config(0) }).contains("batch size"));
    assert!(
        refused(TrainConfig { loss: Loss::SquaredError, ..config(0) }).contains("cross-entropy")
    );
    assert!(
        refused(TrainConfig { architecture: network(&[8], 1.0), ..config(0) }).contains("dropout")
    );
    assert!(
        refused(TrainConfig {
            schedule: Schedule::Constant { learning_rate: f64::NAN },
            ..config(0)
        })
        .contains("rate")
    );
    let adam = OptimiserConfig::Adam { weight_decay: -1.0 };
    assert!(refused(TrainConfig { optimiser: adam, ..config(0) }).contains("decay"));
}

#[test]
fn regression_predicts_in_the_units_of_the_target() {
    let data = moons(200, &[0.0], 5);
    let all: Vec<u32> = (0..data.rows.len() as u32).collect();
    let value = |row: &[f32]| 5_000.0 + 300.0 * f64::from(row[0]) - 100.0 * f64::from(row[1]);
    let values: Vec<f64> = data.rows.values().chunks_exact(2).map(value).collect();
    let targets = Targets::Values(values.clone());
    for loss in [Loss::SquaredError, Loss::Huber { delta: 1.0 }] {
        let architecture = network_for_values(0.0);
        let settings = TrainConfig { architecture, loss, epochs: 40, patience: 40, ..config(0) };
        let model = train(
            Data { targets: &targets, ..data.data() },
            settings,
            &MethodConfig::named("standard").unwrap(),
        );
        let found = predicted_values(&model, &data.rows);
        let error = found.iter().zip(&values).map(|(a, b)| (a - b).abs()).sum::<f64>()
            / values.len() as f64;
        assert!(error < 20.0, "mean error {error} of a standard deviation of about 250");
        let losses = model.losses(&data.rows, &targets, &all).unwrap();
        assert!(losses.iter().all(|loss| *loss < 0.5), "losses are in standard deviations");
    }
}

/// Seconds since 1970, or cents of a large sum: single precision would round them all to a few steps.
#[test]
fn values_far_from_zero_are_learnt_as_well_as_near_it() {
    let data = moons(200, &[0.0], 5);
    let near: Vec<f64> = data
        .rows
        .values()
        .chunks_exact(2)
        .map(|row| 30.0 * f64::from(row[0]) - 10.0 * f64::from(row[1]))
        .collect();
    let settings = TrainConfig {
        architecture: network_for_values(0.0),
        loss: Loss::SquaredError,
        epochs: 20,
        patience: 20,
        ..config(0)
    };
    let errors = [0.0, 5e7, 1.7e9, 1.7e12].map(|offset| {
        let targets = Targets::Values(near.iter().map(|value| value + offset).collect());
        let data_at = Data { targets: &targets, ..data.data() };
        let model = train(data_at, settings.clone(), &MethodConfig::named("standard").unwrap());
        let found = predicted_values(&model, &data.rows);
        let squares = found.iter().zip(&near).map(|(a, b)| (a - offset - b).powi(2));
        squares.sum::<f64>() / near.len() as f64
    });
    for error in errors {
        assert!((error / errors[0] - 1.0).abs() < 0.01, "mean squared errors {errors:?}");
    }
}

#[test]
fn the_best_epoch_is_kept_and_patience_ends_the_run() {
    let data = moons(40, &[0.3, 0.3], 5);
    let settings = TrainConfig {
        architecture: network(&[64, 64], 0.0),
        schedule: Schedule::Constant { learning_rate: 0.02 },
        epochs: 400,
        patience: 12,
        ..config(0)
    };
    let mut trainer = Trainer::new(
        settings,
        &MethodConfig::named("standard").unwrap(),
        data.data(),
        DeviceName::Cpu,
    )
    .unwrap();
    trainer.run(&mut (), None).unwrap();
    let history = trainer.history();
    assert!(history.len() < 400, "it stopped early");
    let best = history.iter().rposition(|epoch| epoch.best).unwrap();
    assert_eq!(history.len() - 1 - best, 12);
    let losses = trainer.model().unwrap().losses(&data.rows, &data.targets, &data.valid).unwrap();
    let mean = losses.iter().map(|&loss| f64::from(loss)).sum::<f64>() / losses.len() as f64;
    assert!(
        (mean - history[best].valid_loss.unwrap()).abs() < 1e-6,
        "the model is that of the best epoch"
    );
    assert!(
        history
            .iter()
            .all(|epoch| epoch.valid_score.unwrap() >= history[best].valid_score.unwrap())
    );
}
