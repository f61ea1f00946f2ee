//! The rule against traces of the authors' own runs and of their package.

use std::collections::BTreeMap;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use lapwing_core::{Lap, LapConfig, Ties};

fn read(name: &str) -> Vec<BTreeMap<String, f64>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/golden")
        .join(format!("{name}.csv.gz"));
    let mut reader = csv::Reader::from_reader(GzDecoder::new(std::fs::File::open(path).unwrap()));
    reader.deserialize().map(|row| row.unwrap()).collect()
}

/// Replays a trace of the authors' toy example: five sources, one loss each per step.
fn check_trace(history_length: usize, strength: &str, leniency: &str) {
    let rows = read(&format!("trace_H{history_length}_d{strength}_l{leniency}"));
    assert_eq!(rows.len(), 1575);
    let mut lap = Lap::new(LapConfig {
        history_length,
        depression_strength: strength.parse().unwrap(),
        leniency: leniency.parse().unwrap(),
        warmup: 100,
        ..LapConfig::default()
    })
    .unwrap();
    let sources = [0, 1, 2, 3, 4];
    for (step, row) in rows.iter().enumerate() {
        let losses = sources.map(|s| row[&format!("loss_{s}")]);
        let weights = lap.weigh(&losses, &sources).unwrap().to_vec();
        for (s, present) in lap.present().enumerate() {
            assert_eq!(
                present.unreliability as f64,
                row[&format!("C_{s}")],
                "step {step}, source {s}"
            );
            let expected = row[&format!("m_{s}")];
            assert!(
                (weights[s] - expected).abs() < 2e-7,
                "step {step}, source {s}: {}",
                weights[s]
            );
        }
    }
}

macro_rules! traces {
    ($($name:ident: $h:literal, $d:literal, $l:literal;)*) => { $(#[test] fn $name() { check_trace($h, $d, $l); })* };
}

traces! {
    trace_default: 50, "1.0", "1.0";
    trace_history_2: 2, "1.0", "1.0";
    trace_history_25: 25, "1.0", "1.0";
    trace_history_250: 250, "1.0", "1.0";
    trace_history_1000: 1000, "1.0", "1.0";
    trace_strength_0_05: 50, "0.05", "1.0";
    trace_strength_0_1: 50, "0.1", "1.0";
    trace_strength_0_25: 50, "0.25", "1.0";
    trace_strength_2: 50, "2.0", "1.0";
    trace_leniency_0_05: 50, "1.0", "0.05";
    trace_leniency_0_25: 50, "1.0", "0.25";
    trace_leniency_0_5: 50, "1.0", "0.5";
    trace_leniency_2: 50, "1.0", "2.0";
    trace_leniency_4: 50, "1.0", "4.0";
}

/// Runs the rule over the samples of a package trace; calls back after each step with the
/// unreliability of every source, ours and the package's.
fn replay_package(name: &str, config: LapConfig, mut each: impl FnMut(usize, &[u64], &[u64])) {
    let samples = read(&format!("pkg_{name}_samples"));
    let states = read(&format!("pkg_{name}_state"));
    let mut lap = Lap::<u64>::new(config).unwrap();
    for (step, state) in states.iter().enumerate() {
        let batch: Vec<_> = samples.iter().filter(|row| row["step"] == step as f64).collect();
        let losses: Vec<f64> = batch.iter().map(|row| row["loss"]).collect();
        let sources: Vec<u64> = batch.iter().map(|row| row["source"] as u64).collect();
        let weights = lap.weigh(&losses, &sources).unwrap().to_vec();
        let theirs: Vec<u64> =
            (0..state.len() - 1).map(|s| state[&format!("C_{s}")] as u64).collect();
        let ours: Vec<u64> = (0..theirs.len() as u64)
            .map(|s| lap.status(&s).map_or(0, |status| status.unreliability))
            .collect();
        each(step, &ours, &theirs);
        if ours == theirs {
            for (row, weight) in batch.iter().zip(weights) {
                if row["loss"].is_finite() {
                    let applied = row["weighted_loss"] / row["loss"];
                    assert!(
                        (weight - applied).abs() < 2e-7,
                        "step {step}: weight {weight} is not {applied}"
                    );
                }
            }
        }
    }
}

fn config(history_length: usize, warmup: u64, strength: f64, leniency: f64) -> LapConfig {
    LapConfig {
        history_length,
        warmup,
        depression_strength: strength,
        leniency,
        ..LapConfig::default()
    }
}

fn must_match(name: &str, config: LapConfig) {
    let mut steps = 0;
    replay_package(name, config, |step, ours, theirs| {
        assert_eq!(ours, theirs, "step {step}");
        steps += 1;
    });
    assert!(steps > 0);
}

fn must_end_at(name: &str, config: LapConfig, expected: &[u64]) {
    let mut last = (Vec::new(), Vec::new());
    replay_package(name, config, |_, ours, theirs| last = (ours.to_vec(), theirs.to_vec()));
    assert_eq!(last.0, expected);
    assert_ne!(last.0, last.1, "the package's fault is not in the trace");
}

#[test]
fn sources_that_are_often_absent() {
    must_match("partial", config(5, 0, 1.0, 0.8));
}

#[test]
fn sources_that_start_late() {
    must_match("late", config(10, 30, 2.0, 0.5));
}

#[test]
fn a_tie_raises_unreliability_as_in_the_package() {
    must_match("tie", LapConfig { ties: Ties::Package, ..config(1, 0, 1.0, 0.0) });
}

#[test]
fn a_tie_lowers_unreliability_as_in_the_paper() {
    let mut first = Vec::new();
    replay_package("tie", config(1, 0, 1.0, 0.0), |step, ours, _| {
        if step == 0 {
            first = ours.to_vec();
        }
    });
    assert_eq!(first, [0, 0, 1]);
}

#[test]
fn one_enormous_loss_does_not_condemn_the_clean_sources() {
    must_end_at("quirk_spike", config(25, 0, 1.0, 1.0), &[0, 0, 0, 0]);
}

#[test]
fn the_last_reliable_source_is_not_condemned_when_the_others_weigh_nothing() {
    must_end_at("quirk_underflow", config(10, 0, 1.0, 1.0), &[0, 1991]);
}

#[test]
fn a_nan_does_not_poison_its_batch() {
    must_end_at("quirk_nan", config(3, 0, 1.0, 1.0), &[0, 10, 0]);
}
