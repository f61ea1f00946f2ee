//! A step beside one that is written down in PyTorch; what it promises beside it.

use burn::tensor::{Device, Tensor, TensorData};
use lapwing_core::LapConfig;
use lapwing_sample::{Data, InputSpec, Loss, Matrix, Samples, Targets};

use super::*;
use crate::config::TrainConfig;
use crate::network::tests::{close, fixed, wave};
use crate::network::{Input, PreActResNet18Config};
use crate::optimiser::OptimiserConfig;
use crate::parameters::{Parameter as Array, read};
use crate::schedule::Schedule;
use crate::shards::Workers;

const ROWS: usize = 6;
const CLASSES: usize = 3;
const LOW: usize = 6;
const SIDE: usize = 8;
const ALL: [u32; ROWS] = [0, 1, 2, 3, 4, 5];

/// What `fixtures/step.py` printed.
#[derive(serde::Deserialize)]
struct Printed {
    prototypes: Vec<f64>,
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    modified: bool,
    cleaned: bool,
    weighed: bool,
    losses: Vec<f64>,
    weights: Vec<f64>,
    gradients: std::collections::BTreeMap<String, Vec<f64>>,
    last_mean: Vec<f64>,
}

fn pictures(first: usize) -> Vec<f32> {
    (first..first + ROWS * SIDE * SIDE * 3).map(wave).collect()
}

fn config(stem_relu: bool) -> TrainConfig {
    let image = [SIDE, SIDE, 3];
    TrainConfig {
        seed: 0,
        architecture: Architecture::PreActResNet18(PreActResNet18Config {
            image,
            width: 4,
            blocks: [1, 1, 1, 1],
            embedding: LOW,
            outputs: CLASSES,
            stem_relu,
        }),
        loss: Loss::CrossEntropy,
        optimiser: OptimiserConfig::Sgd { momentum: 0.0, weight_decay: 0.0 },
        schedule: Schedule::Constant { learning_rate: 1.0 },
        batch_size: ROWS,
        epochs: 2,
        patience: usize::MAX,
    }
}

struct Six {
    samples: Matrix,
    targets: Targets,
    sources: Vec<u32>,
}

impl Six {
    fn new() -> Self {
        let spec = InputSpec::Image { height: SIDE, width: SIDE, channels: 3 };
        Self {
            samples: Matrix::of(pictures(0), spec).unwrap(),
            targets: Targets::Classes { labels: vec![0, 1, 2, 2, 1, 0], classes: CLASSES },
            sources: vec![0, 1, 2, 0, 1, 2],
        }
    }

    fn data(&self) -> Data<'_> {
        let Self { samples, targets, sources } = self;
        let (train, valid, relabel, items) = (&ALL, &[], None, None);
        Data { samples, targets, sources, train, valid, relabel, items }
    }

    /// A network with the script's parameters.
    fn learner(&self, config: &TrainConfig) -> Learner<'_> {
        let device = Device::flex().autodiff();
        let mut learner =
            Learner::new(config, self.data(), ALL.into(), &device, Workers::alone()).unwrap();
        learner.network = fixed(&config.architecture);
        learner
    }

    fn method(&self, config: &TrainConfig, learner: &Learner<'_>, modified: bool) -> Rrl {
        let method = MethodConfig::new(&Plain).with("modified", f64::from(u8::from(modified)));
        Rrl::new(&Start { method: &method.unwrap(), config, learner }, None).unwrap()
    }
}

/// What a network believes that corrects rows 2 and 5 and knows nothing of row 3.
fn believed(prototypes: &[f64], cleaned: bool) -> Saved {
    let soft = [
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        [1.0, 0.0, 0.0],
        [0.4, 0.3, 0.3],
        [0.0, 1.0, 0.0],
        [0.05, 0.92, 0.03],
    ];
    let array = |name: &str, shape: [usize; 2], values: Vec<f32>| Array {
        name: name.to_owned(),
        shape: shape.to_vec(),
        values,
    };
    let arrays = vec![
        array("soft", [ROWS, CLASSES], soft.concat()),
        array("prototypes", [CLASSES, LOW], prototypes.iter().map(|p| *p as f32).collect()),
    ];
    Saved { state: serde_json::json!({"cleaned": cleaned}), arrays, ..Saved::default() }
}

fn batch(learner: &Learner<'_>, second: Vec<f32>) -> Batch {
    let mut batch = Batch::gather(
        &learner.data,
        &learner.target,
        ALL.to_vec(),
        (0, 0, Pace::new(1.0)),
        Workers::alone(),
        (0, 2),
        &learner.device,
    )
    .unwrap();
    let second = TensorData::new(second, [ROWS, SIDE, SIDE, 3]);
    batch.parts[0].second = Some(Input::Images(Tensor::from_data(second, &learner.device)));
    batch
}

fn mixture(count: usize) -> Mixture {
    Mixture { share: 0.3, partners: (0..count).map(|j| ((7 * j + 3) % count) as u32).collect() }
}

#[test]
fn a_step_in_both_forms_and_with_lap_is_that_of_the_formulas() {
    let printed: Printed = serde_json::from_str(include_str!("fixtures/step.json")).unwrap();
    let six = Six::new();
    for case in printed.cases {
        let config = config(!case.modified);
        let mut learner = six.learner(&config);
        let mut method = six.method(&config, &learner, case.modified);
        if case.weighed {
            let rule = LapConfig {
                history_length: 1,
                leniency: 0.1,
                depression_strength: 200.0,
                ..LapConfig::default()
            };
            method.lap = Some(GuardedLap::new(rule, Guards::default()).unwrap());
        }
        method.labels.load(&believed(&printed.prototypes, case.cleaned)).unwrap();
        let before = read(&learner.network);
        let batch = batch(&learner, pictures(777));
        let seen = method.learn(&mut learner, &batch, mixture).unwrap();
        close("losses", &seen.losses, &case.losses, 1e-4);
        let sure = |row: usize| !case.cleaned || row != 3;
        for (row, (ours, theirs)) in seen.weights.iter().zip(&case.weights).enumerate() {
            let theirs = if sure(row) { *theirs } else { 0.0 };
            assert!((ours - theirs).abs() < 1e-6, "row {row}: {ours} {theirs}");
        }
        let after = read(&learner.network);
        for (before, after) in before.iter().zip(&after) {
            if before.name.ends_with("norm.mean") || before.name.ends_with("norm.variance") {
                continue;
            }
            let theirs = &case.gradients[&before.name];
            let moved = before.values.iter().zip(&after.values);
            let moved: Vec<f64> = moved.map(|(a, b)| f64::from(*a) - f64::from(*b)).collect();
            let length = moved.iter().map(|x| x * x).sum::<f64>().sqrt();
            let what = format!("{} ({}, {})", before.name, case.modified, case.cleaned);
            if theirs[0] < 1e-3 {
                // The next layer normalises it away, but for its ε.
                assert!(length < 1e-3, "{what}: {length}");
                continue;
            }
            // What is subtracted from a parameter is known as well as the parameter.
            close(&what, &[length as f32], &theirs[..1], 1e-3);
            let ours: Vec<f32> = moved.iter().take(4).map(|x| (x / theirs[0]) as f32).collect();
            let theirs: Vec<f64> = theirs[1..].iter().map(|x| x / theirs[0]).collect();
            close(&what, &ours, &theirs, 2e-3);
        }
        let mean = after.iter().find(|array| array.name == "blocks.3.norm.mean").unwrap();
        close("mean", &mean.values, &case.last_mean, 1e-4);
    }
}

#[test]
fn a_batch_with_a_picture_that_is_not_finite_teaches_nothing() {
    let printed: Printed = serde_json::from_str(include_str!("fixtures/step.json")).unwrap();
    let (mut six, config) = (Six::new(), config(true));
    let mut values = pictures(0);
    values[SIDE * SIDE * 3 + 7] = f32::NAN;
    six.samples = Matrix::of(values.clone(), six.samples.spec()).unwrap();
    for cleaned in [false, true] {
        let mut learner = six.learner(&config);
        let mut method = six.method(&config, &learner, false);
        method.labels.load(&believed(&printed.prototypes, cleaned)).unwrap();
        let batch = batch(&learner, values.clone());
        let before = read(&learner.network);
        let seen = method.learn(&mut learner, &batch, mixture).unwrap();
        // Batch normalisation has made it everybody's.
        assert!(seen.losses.iter().all(|loss| loss.is_nan()));
        assert!(read(&learner.network) == before && learner.is_finite());
    }
}

#[test]
fn rows_of_trusted_sources_keep_their_labels_and_are_sure() {
    let printed: Printed = serde_json::from_str(include_str!("fixtures/step.json")).unwrap();
    let (six, config) = (Six::new(), config(true));
    let learner = six.learner(&config);
    let mut method = six.method(&config, &learner, false);
    method.labels.load(&believed(&printed.prototypes, true)).unwrap();
    let batch = batch(&learner, pictures(777));
    let (sure, labels) = method.decided(&batch);
    assert_eq!((sure, labels), (vec![true, true, true, false, true, true], vec![0, 1, 0, 0, 1, 1]));
    method.guards = Guards { trusted: [0, 2].into(), ..Guards::default() };
    assert_eq!(method.decided(&batch), (vec![true; 6], vec![0, 1, 2, 2, 1, 0]));
}
