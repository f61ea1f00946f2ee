//! What each method is for, and what all of them owe: the same bytes after a pause and with any number of threads.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod moons;

use std::ops::ControlFlow;
use std::time::Duration;

use lapwing_core::LapConfig;
use lapwing_train::{
    Architecture, CheckpointDir, Data, DeviceName, Epoch, Loss, METHODS, Matrix, MethodConfig,
    Model, Observer, OptimiserConfig, Predictions, Relabel, ResNet20Config, Samples, Schedule,
    Step, Targets, TrainConfig, TrainError, Trainer,
};
use moons::{Moons, Stretched, TALL, config, moons, network, network_for_values};

fn named(name: &str) -> MethodConfig {
    MethodConfig::named(name).unwrap()
}

fn with(name: &str, parameters: &[(&str, f64)]) -> MethodConfig {
    let set = |method: MethodConfig, (name, value): &(&str, f64)| method.with(name, *value);
    parameters.iter().try_fold(named(name), set).unwrap()
}

fn lap() -> MethodConfig {
    let rule = LapConfig { history_length: 5, depression_strength: 8.0, ..LapConfig::default() };
    named("lap").judged_by(rule)
}

fn co_teaching(forget_rate: f64) -> MethodConfig {
    let rest = [("ramp-epochs", 3.0), ("decay-from", 4.0)];
    with("co-teaching", &[&rest[..], &[("forget-rate", forget_rate)]].concat())
}

fn idpa() -> MethodConfig {
    named("idpa")
}

fn arfl(tolerance: f64) -> MethodConfig {
    with("arfl", &[("tolerance", tolerance), ("workers", 2.0)])
}

fn judged(method: MethodConfig) -> MethodConfig {
    method.judged_by(LapConfig { history_length: 5, ..LapConfig::default() })
}

/// Every method that is content with one view of each row, by name; `rrl.rs` has the others.
fn methods() -> Vec<(&'static str, MethodConfig)> {
    let mut methods: Vec<(&'static str, MethodConfig)> = METHODS
        .iter()
        .filter(|kind| kind.views() == 1)
        .map(|kind| {
            let method = match kind.name() {
                "lap" => lap(),
                "co-teaching" => co_teaching(0.1),
                "cdr" => with("cdr", &[("noise-rate", 0.4)]),
                "arfl" => arfl(0.5),
                _ => MethodConfig::new(*kind),
            };
            (kind.name(), method)
        })
        .collect();
    methods.push(("arfl, judged", judged(arfl(0.5))));
    methods
}

fn trainer<'a>(data: Data<'a>, config: TrainConfig, method: &MethodConfig) -> Trainer<'a> {
    Trainer::new(config, method, data, DeviceName::Cpu).unwrap()
}

fn bytes(model: &Model) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    model.save(&dir.path().join("m")).unwrap();
    std::fs::read(dir.path().join("m")).unwrap()
}

fn probabilities(model: &Model, data: &Moons) -> Vec<f32> {
    let rows: Vec<u32> = (0..data.rows.len() as u32).collect();
    let Predictions::Classes { probabilities, .. } = model.predict(&data.rows, &rows).unwrap()
    else {
        panic!("classes")
    };
    probabilities
}

fn accuracy(model: &Model, data: &Moons) -> f64 {
    let said = probabilities(model, data);
    let right = said.chunks_exact(2).zip(&data.clean);
    right.filter(|(p, clean)| (p[1] > p[0]) == (**clean == 1)).count() as f64
        / data.clean.len() as f64
}

/// Long enough to learn something.
fn long(seed: u64) -> TrainConfig {
    TrainConfig {
        architecture: network(&[32, 32], 0.0),
        epochs: 30,
        patience: usize::MAX,
        ..config(seed)
    }
}

#[test]
fn every_method_learns_clean_moons() {
    let (data, test) = (moons(80, &[0.0, 0.0, 0.0], 3), moons(500, &[0.0], 99));
    for (name, method) in methods() {
        // An average of three moves a third as fast, and a tenth of the rows, forgotten on purpose, may never be learnt.
        let epochs = if name.starts_with("arfl") { 90 } else { 30 };
        let forgotten = if name == "co-teaching" { 0.1 } else { 0.0 };
        let mut trainer = trainer(data.data(), TrainConfig { epochs, ..long(1) }, &method);
        trainer.run(&mut (), None).unwrap();
        let found = accuracy(&trainer.model().unwrap(), &test);
        assert!(found > 0.96 - forgotten, "{name}: {found}");
    }
}

/// Gathers what weight rows with right and with wrong labels had in late epochs.
struct Weights<'a> {
    data: &'a Moons,
    from: usize,
    right: (f64, f64),
    wrong: (f64, f64),
}

impl Observer for Weights<'_> {
    fn on_step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        let Targets::Classes { labels, .. } = &self.data.targets else { panic!("classes") };
        if step.epoch >= self.from {
            for (&row, weight) in step.rows.iter().zip(step.weights) {
                let row = row as usize;
                let right = labels[row] == self.data.clean[row];
                let sums = if right { &mut self.right } else { &mut self.wrong };
                sums.0 += weight;
                sums.1 += 1.0;
            }
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn co_teaching_drops_the_flipped_samples() {
    let (data, test) = (moons(200, &[0.2, 0.2, 0.2], 3), moons(1_000, &[0.0], 99));
    let mut run = trainer(data.data(), long(1), &co_teaching(0.25));
    let mut weights = Weights { data: &data, from: 10, right: (0.0, 0.0), wrong: (0.0, 0.0) };
    run.run(&mut weights, None).unwrap();
    let share = |(kept, all): (f64, f64)| kept / all;
    assert!(share(weights.wrong) < 0.1, "wrong rows kept: {}", share(weights.wrong));
    assert!(share(weights.right) > 0.9, "right rows kept: {}", share(weights.right));
    let found = accuracy(&run.model().unwrap(), &test);
    assert!(found > 0.9, "{found}");
}

#[test]
fn arfl_drops_the_client_whose_labels_are_wrong() {
    let (data, test) = (moons(200, &[0.0, 0.0, 1.0, 0.05], 3), moons(1_000, &[0.0], 99));
    let mut run = trainer(data.data(), long(1), &judged(arfl(0.5)));
    run.run(&mut (), None).unwrap();
    let weight = |source| run.method().standing(source).weight;
    assert_eq!(weight(2), 0.0);
    assert!(weight(0) > 0.8 && weight(1) > 0.8 && weight(3) > 0.5);
    assert!(run.method().standing(2).unreliability > 10, "the rule that looks on says so, too");
    let found = accuracy(&run.model().unwrap(), &test);
    assert!(found > 0.9, "{found}");
}

#[test]
fn noise_rate_takes_weight_from_wrong_labels_and_not_from_the_right_ones_beside_them() {
    let (data, test) = (moons(200, &[0.0, 0.3, 1.0, 0.05], 3), moons(1_000, &[0.0], 99));
    let mut run = trainer(data.data(), long(1), &judged(named("noise-rate")));
    let mut weights = Weights { data: &data, from: 10, right: (0.0, 0.0), wrong: (0.0, 0.0) };
    run.run(&mut weights, None).unwrap();
    let share = |(kept, all): (f64, f64)| kept / all;
    assert!(share(weights.wrong) < 0.3, "wrong rows kept: {}", share(weights.wrong));
    assert!(share(weights.right) > 0.9, "right rows kept: {}", share(weights.right));
    let weight = |source| run.method().standing(source).weight;
    assert!(weight(2) < 0.1 && weight(0) > 0.9 && weight(3) > 0.8, "{} {}", weight(2), weight(3));
    assert!((0.2..0.8).contains(&weight(1)), "{}", weight(1));
    assert!(run.method().standing(2).unreliability > 10, "the rule that looks on says so, too");
    let found = accuracy(&run.model().unwrap(), &test);
    assert!(found > 0.95, "{found}");
}

#[test]
fn cdr_moves_few_weights_and_standard_training_all() {
    let data = moons(100, &[0.0], 3);
    let plain = OptimiserConfig::Sgd { momentum: 0.0, weight_decay: 0.0 };
    let settings = TrainConfig {
        architecture: network(&[32, 32], 0.0),
        optimiser: plain,
        schedule: Schedule::Constant { learning_rate: 0.01 },
        batch_size: 1_000,
        epochs: 1,
        ..config(1)
    };
    let parameters = |epochs, method: &MethodConfig| {
        let settings = TrainConfig { epochs, ..settings.clone() };
        let mut run = trainer(Data { valid: &[], ..data.data() }, settings, method);
        run.run(&mut (), None).unwrap();
        bytes(&run.model().unwrap())
    };
    // One step from the same start: 1,152 weights, of which one learns a little, four in ten, or all with a gradient.
    let start = parameters(1, &with("cdr", &[("noise-rate", 0.999)]));
    let standard = parameters(1, &named("standard"));
    let cdr = parameters(1, &with("cdr", &[("noise-rate", 0.6)]));
    let differ = |a: &[u8], b: &[u8]| {
        a.chunks_exact(4).zip(b.chunks_exact(4)).filter(|(a, b)| a != b).count()
    };
    let (few, many) = (differ(&start, &cdr), differ(&start, &standard));
    assert!((455..=461).contains(&few) && many > 700, "{few} and {many}");
    assert_eq!(
        parameters(2, &with("cdr", &[("noise-rate", 0.0)])),
        parameters(2, &named("standard"))
    );
}

#[test]
fn label_smoothing_keeps_probabilities_from_one() {
    let data = moons(200, &[0.0], 3);
    let highest = |method: &MethodConfig| {
        let mut run = trainer(data.data(), TrainConfig { epochs: 60, ..long(1) }, method);
        run.run(&mut (), None).unwrap();
        probabilities(&run.model().unwrap(), &data).into_iter().fold(0.0, f32::max)
    };
    assert!(highest(&named("standard")) > 0.999);
    // The best probability for two classes is 1 − 0.3/2.
    let smoothed = highest(&with("label-smoothing", &[("smoothing", 0.3)]));
    assert!((0.8..0.95).contains(&smoothed), "{smoothed}");
}

/// Notes every epoch.
#[derive(Default)]
struct Epochs(Vec<Epoch>);

impl Observer for Epochs {
    fn on_epoch(&mut self, epoch: &Epoch, model: &Model) {
        assert_eq!(model.spec().architecture.outputs(), 2);
        self.0.push(epoch.clone());
    }
}

#[test]
fn idpa_moves_probability_from_wrong_labels_and_counts_the_second_half() {
    let data = moons(150, &[0.15, 0.15], 3);
    let settings = TrainConfig { epochs: 15, ..long(1) };
    let mut run = trainer(data.data(), settings.clone(), &idpa());
    let mut epochs = Epochs::default();
    run.run(&mut epochs, None).unwrap();
    assert_eq!(epochs.0.len(), 30);
    assert!(epochs.0[..15].iter().all(|epoch| !epoch.candidate && !epoch.best));
    assert!(epochs.0[15..].iter().all(|epoch| epoch.candidate));
    assert_eq!(run.steps(), 30 * run.batches() as u64);

    // In the end the network gives wrong labels less probability than as many epochs of standard training do.
    let wrong = |model: &Model| {
        let Targets::Classes { labels, .. } = &data.targets else { panic!("classes") };
        let said = probabilities(model, &data);
        let rows = data.train.iter().map(|&row| row as usize);
        let given: Vec<f32> = rows
            .filter(|&row| labels[row] != data.clean[row])
            .map(|row| said[2 * row + labels[row] as usize])
            .collect();
        f64::from(given.iter().sum::<f32>()) / given.len() as f64
    };
    let twice = TrainConfig { epochs: 30, ..settings };
    let mut standard = trainer(data.data(), twice, &named("standard"));
    standard.run(&mut (), None).unwrap();
    let (ours, theirs) = (wrong(&run.model().unwrap()), wrong(&standard.model().unwrap()));
    assert!(ours < theirs, "{ours} against {theirs}");
}

/// Writes down what it sees, and breaks off after a given step.
#[derive(Clone, Default, PartialEq)]
struct Diary {
    text: String,
    stop: Option<u64>,
}

impl Observer for Diary {
    fn on_step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        let Step { step, losses, weights, sources, learning_rate, .. } = step;
        self.text += &format!("{step} {losses:?} {weights:?} {sources:?} {learning_rate}\n");
        if self.stop == Some(*step) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
    fn on_epoch(&mut self, epoch: &Epoch, _: &Model) {
        self.text += &format!("{epoch:?}\n");
    }
    fn save(&self) -> Vec<u8> {
        self.text.as_bytes().to_vec()
    }
    fn load(&mut self, saved: &[u8]) -> Result<(), String> {
        self.text = String::from_utf8(saved.to_vec()).map_err(|error| error.to_string())?;
        Ok(())
    }
}

#[test]
fn stopped_and_resumed_every_method_ends_in_the_same_bytes() {
    let data = moons(60, &[0.0, 0.1, 1.0], 7);
    for (name, method) in methods() {
        let (mut whole, mut diary) = (trainer(data.data(), config(3), &method), Diary::default());
        whole.run(&mut diary, None).unwrap();
        let expected = bytes(&whole.model().unwrap());
        let steps = whole.history().last().unwrap().step;
        let dir = tempfile::tempdir().unwrap();
        let dir = CheckpointDir::new(dir.path());
        // In the first batches, around the end of an epoch, and late.
        let epoch = whole.batches() as u64;
        let stops = [0, 1, epoch - 1, epoch, epoch + 2, steps - epoch - 1, steps - 2];
        let mut last = Diary::default();
        for stop in stops.into_iter().map(Some).chain([None]) {
            let mut part = trainer(data.data(), config(3), &method);
            last = Diary { stop, ..Diary::default() };
            part.resume(&dir, &mut last).unwrap();
            part.run(&mut last, Some((&dir, Duration::MAX))).unwrap();
            if stop.is_none() {
                assert!(bytes(&part.model().unwrap()) == expected, "{name}");
                assert!(part.history() == whole.history(), "{name}");
            }
        }
        assert!(last.text == diary.text, "{name}: what was seen differs");
    }
}

#[test]
fn every_method_gives_the_same_bytes_with_one_or_two_threads() {
    let data = moons(100, &[0.0, 0.1, 1.0], 7);
    let rows = Stretched::tall(&data.rows);
    let Architecture::Mlp(mlp) = network(&[64], 0.1) else { panic!("mlp") };
    let mlp = lapwing_train::MlpConfig { inputs: TALL, ..mlp };
    let settings = TrainConfig {
        architecture: Architecture::Mlp(mlp),
        batch_size: 48,
        epochs: 2,
        ..config(3)
    };
    for (name, method) in methods() {
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let data = Data { samples: &rows, ..data.data() };
                let mut run = trainer(data, settings.clone(), &method);
                run.run(&mut (), None).unwrap();
                bytes(&run.model().unwrap())
            })
        };
        let one = run(1);
        assert!(one == run(2), "{name}");
        assert!(one == run(1), "{name}");
    }
}

#[test]
fn a_run_that_breaks_off_while_the_next_batch_is_gathered_ends() {
    let data = moons(100, &[0.0], 7);
    let rows = Stretched::tall(&data.rows);
    let Architecture::Mlp(mlp) = network(&[8], 0.0) else { panic!("mlp") };
    let mlp = lapwing_train::MlpConfig { inputs: TALL, ..mlp };
    let settings =
        TrainConfig { architecture: Architecture::Mlp(mlp), batch_size: 30, ..config(3) };
    let mut run = trainer(Data { samples: &rows, ..data.data() }, settings, &named("standard"));
    let mut diary = Diary { stop: Some(0), ..Diary::default() };
    assert_eq!(run.run(&mut diary, None).unwrap(), lapwing_train::Finish::Interrupted);
    assert_eq!(diary.text.lines().count(), 1);
}

#[test]
fn a_sample_that_cannot_be_read_ends_the_run_with_its_row() {
    let data = moons(100, &[0.0, 0.1], 7);
    let Architecture::Mlp(mlp) = network(&[8], 0.0) else { panic!("mlp") };
    let mlp = lapwing_train::MlpConfig { inputs: TALL, ..mlp };
    // Gathered where it is trained on, and on another thread; a row that trains, and one that validates.
    for (batch_size, lost) in [(8, 77), (30, 77), (8, 75), (30, 75)] {
        let rows = Stretched { lost: Some(lost), ..Stretched::tall(&data.rows) };
        let architecture = Architecture::Mlp(mlp.clone());
        let settings = TrainConfig { architecture, batch_size, ..config(3) };
        for (name, method) in methods() {
            let data = Data { samples: &rows, ..data.data() };
            let mut run = trainer(data, settings.clone(), &method);
            let error = run.run(&mut (), None).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(&format!("sample {lost} ")), "{name}: {text}");
            assert!(text.contains("the file has vanished"), "{name}: {text}");
        }
    }
}

#[test]
fn noise_of_batches_is_part_of_what_a_checkpoint_is_of() {
    let data = moons(60, &[0.0, 1.0], 7);
    let noisy = Data { relabel: Some(&Flip), ..data.data() };
    let place = tempfile::tempdir().unwrap();
    let dir = CheckpointDir::new(place.path());
    let mut diary = Diary { stop: Some(3), ..Diary::default() };
    trainer(noisy, config(3), &lap()).run(&mut diary, Some((&dir, Duration::MAX))).unwrap();
    let mut clean = trainer(data.data(), config(3), &lap());
    let error = clean.resume(&dir, &mut Diary::default()).unwrap_err();
    assert!(matches!(error, TrainError::OtherRun), "{error}");
    trainer(noisy, config(3), &lap()).resume(&dir, &mut Diary::default()).unwrap();
}

#[test]
fn other_features_are_refused_with_a_reason() {
    let data = moons(60, &[0.0, 1.0], 7);
    let dir = tempfile::tempdir().unwrap();
    let dir = CheckpointDir::new(dir.path());
    let mut diary = Diary { stop: Some(3), ..Diary::default() };
    trainer(data.data(), config(3), &lap()).run(&mut diary, Some((&dir, Duration::MAX))).unwrap();
    let mut values = data.rows.values().to_vec();
    values[7] += 1e-6;
    let other = Matrix::new(values, 2).unwrap();
    let mut run = trainer(Data { samples: &other, ..data.data() }, config(3), &lap());
    let error = run.resume(&dir, &mut Diary::default()).unwrap_err();
    assert!(matches!(error, TrainError::OtherFeatures), "{error}");
    assert!(error.to_string().contains("features"), "{error}");
}

#[test]
fn values_can_be_learnt_by_every_method_that_does_not_need_classes() {
    let data = moons(100, &[0.0, 0.0], 5);
    let all: Vec<u32> = (0..data.rows.len() as u32).collect();
    let value = |row: &[f32]| 30.0 * f64::from(row[0]) - 10.0 * f64::from(row[1]);
    let targets = Targets::Values(data.rows.values().chunks_exact(2).map(value).collect());
    let settings = TrainConfig {
        architecture: network_for_values(0.0),
        loss: Loss::SquaredError,
        epochs: 40,
        patience: 40,
        ..config(0)
    };
    for (name, method) in methods() {
        let data = Data { targets: &targets, ..data.data() };
        let samples = data.samples;
        let made = Trainer::new(settings.clone(), &method, data, DeviceName::Cpu);
        if method.kind().needs_classes() {
            let error = made.err().unwrap().to_string();
            assert!(error.contains("classification"), "{name}: {error}");
            continue;
        }
        let mut run = made.unwrap();
        run.run(&mut (), None).unwrap();
        let losses = run.model().unwrap().losses(samples, &targets, &all).unwrap();
        let mean = losses.iter().sum::<f32>() / losses.len() as f32;
        assert!(mean < 0.1, "{name}: {mean} of a variance of 1");
    }
}

/// Flips the labels of every second step.
struct Flip;

impl Relabel for Flip {
    fn relabel(&self, step: u64, _: &[u32], labels: &mut [u32]) {
        if step % 2 == 1 {
            labels.iter_mut().for_each(|label| *label = 1 - *label);
        }
    }
    fn identity(&self) -> Vec<u8> {
        b"flip".to_vec()
    }
}

#[test]
fn labels_of_a_step_are_those_of_the_noise_and_validation_is_clean() {
    let data = moons(100, &[0.0], 5);
    // A network that has learnt: right labels have small losses, flipped ones large.
    let mut run = trainer(data.data(), long(1), &named("standard"));
    run.run(&mut (), None).unwrap();
    struct Means(Vec<f32>);
    impl Observer for Means {
        fn on_step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
            self.0.push(step.losses.iter().sum::<f32>() / step.losses.len() as f32);
            ControlFlow::Continue(())
        }
    }
    let (mut with, mut without) = (Means(Vec::new()), Means(Vec::new()));
    let slow =
        TrainConfig { schedule: Schedule::Constant { learning_rate: 1e-9 }, epochs: 1, ..long(1) };
    let noisy = Data { relabel: Some(&Flip), ..data.data() };
    let mut flipped = trainer(noisy, slow.clone(), &named("standard"));
    flipped.run(&mut with, None).unwrap();
    let mut plain = trainer(data.data(), slow, &named("standard"));
    plain.run(&mut without, None).unwrap();
    for (step, (with, without)) in with.0.iter().zip(&without.0).enumerate() {
        assert_eq!(step % 2 == 1, (with - without).abs() > 1e-5, "step {step}: {with} {without}");
    }
    let valid = |run: &Trainer<'_>| run.history()[0].valid_loss.unwrap();
    assert!((valid(&flipped) - valid(&plain)).abs() < 1e-5);
}

#[test]
fn a_network_for_images_trains_stops_and_goes_on_with_its_running_statistics() {
    let data = moons(8, &[0.0, 0.0], 5);
    let rows = Stretched::pictures(&data.rows);
    let settings = TrainConfig {
        architecture: Architecture::ResNet20(ResNet20Config { outputs: 2, height: 32, width: 32 }),
        optimiser: OptimiserConfig::Sgd { momentum: 0.9, weight_decay: 1e-4 },
        schedule: Schedule::Constant { learning_rate: 0.01 },
        batch_size: 6,
        epochs: 2,
        ..config(3)
    };
    for method in [lap(), arfl(1.0)] {
        let new = || trainer(Data { samples: &rows, ..data.data() }, settings.clone(), &method);
        let mut whole = new();
        whole.run(&mut (), None).unwrap();
        let expected = bytes(&whole.model().unwrap());
        let dir = tempfile::tempdir().unwrap();
        let dir = CheckpointDir::new(dir.path());
        let mut diary = Diary { stop: Some(2), ..Diary::default() };
        new().run(&mut diary, Some((&dir, Duration::MAX))).unwrap();
        let mut rest = new();
        rest.resume(&dir, &mut Diary::default()).unwrap();
        rest.run(&mut (), None).unwrap();
        assert!(bytes(&rest.model().unwrap()) == expected);

        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("model.safetensors");
        let model = whole.model().unwrap();
        let loaded = Model::load(&path, model.save(&path).unwrap(), DeviceName::Cpu).unwrap();
        let which = [0, 3, 5];
        assert_eq!(loaded.outputs(&rows, &which).unwrap(), model.outputs(&rows, &which).unwrap());
    }
}
