//! Killed at any moment and resumed, a run ends in the same bytes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use std::process::{Command as Process, Stdio};
use std::time::Duration;

use tables::{Numbers, Place, WARDS, killed, wards};

const FILES: [&str; 8] = [
    "model.safetensors",
    "model.json",
    "metrics.csv",
    "sources.csv",
    "rows.csv",
    "trajectory.parquet",
    "report.html",
    "config.toml",
];
const TRAIN: &str =
    "train wards.csv --target ill --source ward --model mlp --epochs 30 --patience 30 -q";

fn compare(place: &Place, a: &str, b: &str) {
    for name in FILES {
        let same = place.read(&format!("{a}/{name}")) == place.read(&format!("{b}/{name}"));
        assert!(same, "{a}/{name} and {b}/{name} differ");
    }
}

#[test]
fn killed_at_random_moments_and_resumed_it_ends_in_the_same_bytes() {
    let place = Place::new();
    place.write("wards.csv", &wards(2000, &WARDS, 5));
    place.lapwing(&format!("{TRAIN} --out whole")).assert().success();
    let mut numbers = Numbers::new(std::process::id().into());
    let mut kills = 0;
    // The same command starts the run and goes on with it.
    let words = format!("{TRAIN} --out killed --resume --checkpoint-every 0");
    for _ in 0..12 {
        let mut child = Process::new(assert_cmd::cargo::cargo_bin!("lapwing"))
            .args(words.split_whitespace())
            .current_dir(place.path(""))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis((numbers.next() * 700.0) as u64));
        kills += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(kills > 0, "every run was over before it could be killed");
    place.lapwing(&words).assert().success();
    compare(&place, "whole", "killed");
    // A finished run stays as it is.
    place.lapwing("train --resume killed -q").assert().success();
    compare(&place, "whole", "killed");
    let left = std::fs::read_dir(place.path("killed")).unwrap();
    assert!(left.flatten().all(|entry| !entry.file_name().to_string_lossy().starts_with('.')));
}

#[test]
fn a_damaged_checkpoint_falls_back_to_the_one_before_and_says_so() {
    let place = Place::new();
    place.write("wards.csv", &wards(400, &WARDS, 5));
    place.lapwing(&format!("{TRAIN} --out whole")).assert().success();
    killed(&place, TRAIN, "run");
    let path = place.path("run/checkpoint/checkpoint.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let done = place.lapwing("train --resume run").assert().success();
    let err = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(err.contains("damaged") && err.contains("the checkpoint before"), "{err}");
    compare(&place, "whole", "run");
}

#[test]
fn a_run_is_not_resumed_with_other_settings() {
    let place = Place::new();
    place.write("wards.csv", &wards(400, &WARDS, 5));
    killed(&place, TRAIN, "run");
    place.refuses("train --resume run --epochs 31", &["epochs = 30", "31"]);
    place.refuses("train --resume run --leniency 2", &["leniency = 0.8"]);
    place.refuses("train --resume run --out other", &["different directories"]);
    place.refuses("train --resume", &["--resume needs a run"]);
    place.write("wards.csv", &wards(401, &WARDS, 5));
    place.refuses("train --resume run", &["other data"]);
}
