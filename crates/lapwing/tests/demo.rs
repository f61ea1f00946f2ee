//! `demo`: what it shows must be true.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use serde_json::Value;
use tables::Place;

#[test]
fn the_wrong_sources_are_found_and_the_model_is_better_for_it_whatever_the_seed() {
    for seed in 0..4 {
        let place = Place::new();
        let done = place.lapwing(&format!("demo --json --seed {seed}")).assert().success();
        let object: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
        let accuracy = |method: &str| object["accuracy"][method].as_f64().unwrap();
        assert!(accuracy("lap") > accuracy("standard"), "seed {seed}: {object}");
        let verdict = |name: &str| {
            let sources = object["sources"].as_array().unwrap();
            let source = sources.iter().find(|source| source["source"] == name).unwrap();
            source["verdict"].as_str().unwrap().to_owned()
        };
        assert_eq!(verdict("100 % wrong"), "unreliable", "seed {seed}");
        assert_eq!(verdict("25 % wrong"), "unreliable", "seed {seed}");
        assert_eq!(verdict("0 % wrong"), "reliable", "seed {seed}");
    }
}

#[test]
fn the_demo_leaves_a_run_that_every_command_can_use() {
    let place = Place::new();
    place.lapwing("demo --quiet").assert().success();
    let page = place.text("lapwing-demo/report.html");
    assert!(page.contains("with standard training"));
    place.refuses("demo", &["lapwing-demo exists and is not empty"]);
    place.lapwing("evaluate lapwing-demo lapwing-demo/moons-test.csv").assert().success();
    place.lapwing("train --resume lapwing-demo --quiet").assert().success();
}
