//! What a training step costs, and LAP's share of it: `cargo run --release -p lapwing-train --example step`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use lapwing_core::{Lap, LapConfig};
use lapwing_train::{
    Architecture, Conv3NetConfig, Data, DeviceName, Init, Loss, Matrix, MethodConfig, MlpConfig,
    Observer, OptimiserConfig, ResNet20Config, Schedule, Step, Targets, TrainConfig, Trainer,
};

/// Notes when each step ended.
#[derive(Default)]
struct Clock(Vec<Instant>);

impl Observer for Clock {
    fn on_step(&mut self, _: &Step<'_>) -> ControlFlow<()> {
        self.0.push(Instant::now());
        ControlFlow::Continue(())
    }
}

struct Case {
    name: &'static str,
    architecture: Architecture,
    batch_size: usize,
    rows: usize,
    epochs: usize,
}

fn mlp(inputs: usize, hidden: &[usize], outputs: usize, dropout: f32) -> Architecture {
    let (hidden, squash, softmax, init) = (hidden.to_vec(), None, outputs == 10, Init::Torch);
    Architecture::Mlp(MlpConfig { inputs, hidden, outputs, dropout, squash, softmax, init })
}

fn cases() -> Vec<Case> {
    let fashion = mlp(784, &[16, 16], 10, 0.2);
    vec![
        Case {
            name: "MLP 784-16-16-10",
            architecture: fashion,
            batch_size: 200,
            rows: 45_000,
            epochs: 8,
        },
        Case {
            name: "toy MLP 2-200-200-2",
            architecture: mlp(2, &[200, 200], 2, 0.0),
            batch_size: 128,
            rows: 8_000,
            epochs: 20,
        },
        Case {
            name: "Conv3Net",
            architecture: Architecture::Conv3Net(Conv3NetConfig { outputs: 10 }),
            batch_size: 128,
            rows: 1_280,
            epochs: 1,
        },
        Case {
            name: "ResNet-20",
            architecture: Architecture::ResNet20(ResNet20Config {
                outputs: 10,
                height: 32,
                width: 32,
            }),
            batch_size: 128,
            rows: 1_280,
            epochs: 1,
        },
    ]
}

fn main() {
    lapwing_ops::tune_process();
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for case in cases() {
        if !wanted.is_empty() && !wanted.iter().any(|word| case.name.contains(word.as_str())) {
            continue;
        }
        let standard = step(&case, &MethodConfig::named("standard").unwrap());
        let rule = LapConfig::default();
        let with = step(&case, &MethodConfig::named("lap").unwrap().judged_by(rule));
        let own = rule_alone(case.batch_size);
        println!(
            "{}: {standard:.1?} a step, {with:.1?} with LAP; its rule alone {own:.2?}, {:.2} % of the step",
            case.name,
            100.0 * own.as_secs_f64() / with.as_secs_f64(),
        );
    }
}

/// The median time of a step.
fn step(case: &Case, method: &MethodConfig) -> Duration {
    let (spec, classes) = (case.architecture.input(), case.architecture.outputs());
    let number = |i: usize| (i.wrapping_mul(2_654_435_761) >> 7 & 0xffff) as f32 / 65_536.0;
    let rows = Matrix::of((0..case.rows * spec.size()).map(number).collect(), spec).unwrap();
    let labels = (0..case.rows).map(|row| (row * 7 / 3 % classes) as u32).collect();
    let targets = Targets::Classes { labels, classes };
    let sources: Vec<u32> = (0..case.rows as u32).map(|row| row / 7 % 10).collect();
    let train: Vec<u32> = (0..case.rows as u32).collect();
    let config = TrainConfig {
        seed: 0,
        architecture: case.architecture.clone(),
        loss: Loss::CrossEntropy,
        optimiser: OptimiserConfig::Adam { weight_decay: 0.0 },
        schedule: Schedule::Constant { learning_rate: 1e-3 },
        batch_size: case.batch_size,
        epochs: case.epochs,
        patience: usize::MAX,
    };
    let data = Data {
        samples: &rows,
        targets: &targets,
        sources: &sources,
        train: &train,
        valid: &[],
        relabel: None,
        items: None,
    };
    let mut trainer = Trainer::new(config, method, data, DeviceName::Cpu).unwrap();
    let mut clock = Clock::default();
    trainer.run(&mut clock, None).unwrap();
    let mut times: Vec<Duration> = clock.0.windows(2).map(|pair| pair[1] - pair[0]).collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// The median time of the rule for a batch from ten sources, all histories complete.
fn rule_alone(batch: usize) -> Duration {
    let mut lap = Lap::new(LapConfig::default()).unwrap();
    let sources: Vec<u32> = (0..batch as u32).map(|row| row * 7 % 10).collect();
    let mut times: Vec<Duration> = (0..2_000)
        .map(|turn: usize| {
            let loss = |row: usize| 1.0 + (row * 31 + turn * 17) as f32 % 13.0 / 26.0;
            let losses: Vec<f32> = (0..batch).map(loss).collect();
            let start = Instant::now();
            black_box(lap.weigh(&losses, &sources).unwrap());
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}
