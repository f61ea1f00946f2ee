//! Ctrl-C and SIGTERM.
#![cfg(unix)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::tables::{Place, WARDS, start, wards};

const TRAIN: &str =
    "train wards.csv --target ill --source ward --model mlp --epochs 400 --patience 400 -q";

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Started, and in the middle of training: its signals are watched from just before the first step.
fn training(place: &Place, words: &str, run: &str) -> Child {
    let child = start(place, words).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while !place.path(run).join("run.json").exists() {
        assert!(started.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_millis(150));
    child
}

#[test]
fn a_signal_lost_everything_since_the_last_checkpoint_and_said_nothing() {
    let place = Place::new();
    place.write("wards.csv", &wards(1000, &WARDS, 5));
    place.lapwing(&format!("{TRAIN} --out whole")).assert().success();
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        // No checkpoint by the clock within the test.
        let words = format!("{TRAIN} --out run{code} --checkpoint-every 3600");
        let child = training(&place, &words, &format!("run{code}"));
        signal(&child, name);
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(code), "{said}");
        assert!(said.contains(&format!("`lapwing train --resume run{code}` goes on")), "{said}");
        assert!(place.path(&format!("run{code}/checkpoint/checkpoint.safetensors")).exists());
        let done = place.lapwing(&format!("train --resume run{code}")).assert().success();
        let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert!(said.contains("going on from step"), "{said}");
        for file in ["model.safetensors", "sources.csv", "report.html", "metrics.csv", "run.json"] {
            let same =
                place.read(&format!("run{code}/{file}")) == place.read(&format!("whole/{file}"));
            assert!(same, "{file}");
        }
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let place = Place::new();
    // One step of this takes long enough for two signals.
    place.write("wards.csv", &wards(3000, &WARDS, 5));
    let words = "train wards.csv --target ill --source ward --model mlp --epochs 100000 --patience 100000 -q --out run \
                 --batch-size 2400 --hidden 2000,2000";
    let mut child = training(&place, words, "run");
    signal(&child, "-TERM");
    signal(&child, "-INT");
    let started = Instant::now();
    let code = child.wait().unwrap().code();
    assert!(matches!(code, Some(130 | 143)), "{code:?}");
    assert!(started.elapsed() < Duration::from_secs(60));
}
