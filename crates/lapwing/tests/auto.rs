//! `--model auto`, the default: trees or a network, whichever does better on validation rows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use std::fmt::Write;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tables::{Numbers, Place, WARDS, start, wards};

/// A target that is a straight line, or one that jumps from square to square; ward w3 says anything.
fn lines(rows: usize, straight: bool) -> String {
    let mut numbers = Numbers::new(7);
    let mut text = "a,b,ward,y\n".to_owned();
    for row in 0..rows {
        let (a, b, lie) = (numbers.next(), numbers.next(), numbers.next());
        let squares = ((6.0 * a).floor() + (6.0 * b).floor()) % 2.0;
        let truth = if straight { 3.0 * a - 2.0 * b } else { 4.0 * squares };
        let y = if row % 5 == 3 { 4.0 * lie } else { truth };
        writeln!(text, "{a:.4},{b:.4},w{},{y:.4}", row % 5).unwrap();
    }
    text
}

fn json(place: &Place, words: &str) -> Value {
    let done = place.lapwing(words).assert().success();
    serde_json::from_slice(&done.get_output().stdout).unwrap()
}

fn same(place: &Place, a: &str, b: &str) {
    let names = |run: &str| -> Vec<_> {
        let entries = std::fs::read_dir(place.path(run)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.retain(|name| name != "checkpoint" && name != ".lapwing-lock");
        names.sort();
        names
    };
    assert_eq!(names(a), names(b));
    for name in names(a) {
        let name = name.to_str().unwrap();
        let same = place.read(&format!("{a}/{name}")) == place.read(&format!("{b}/{name}"));
        assert!(same, "{a}/{name} and {b}/{name} differ");
    }
}

#[test]
fn the_better_one_is_kept_and_everybody_hears_why() {
    let place = Place::new();
    place.write("squares.csv", &lines(1500, false));
    place.write("line.csv", &lines(1500, true));
    for (name, model, other) in [("squares", "trees", "mlp"), ("line", "mlp", "trees")] {
        let words = format!("train {name}.csv --target y --source ward --epochs 60 --json");
        let done = place.lapwing(&format!("{words} --out {name}")).assert().success();
        let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert!(said.contains("trying both mlp and trees"), "{said}");
        assert!(said.contains(&format!("model {model}: its weighted validation mse is")), "{said}");
        let object: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
        assert_eq!(object["model"], model);
        let reason = object["model_reason"].as_str().unwrap();
        assert!(reason.contains(&format!("that of {other} ")), "{reason}");
        let config = place.text(&format!("{name}/config.toml"));
        assert!(config.contains(&format!("\nmodel = \"{model}\"\n")), "{config}");
        assert!(config.contains(&format!("\nmodel-reason = \"{reason}\"\n")), "{config}");
        let report = place.text(&format!("{name}/report.html"));
        assert!(report.contains(&format!("The model is {model}: {reason}.")), "{reason}");
        assert_eq!(report.contains("What the trees gained"), model == "trees");
        // Whoever runs it again trains that one alone, to the same bytes.
        let again = format!("train --config {name}/config.toml --out {name}-again");
        let done = place.lapwing(&again).assert().success();
        let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert!(!said.contains("trying both") && said.contains(&format!("model {model}: its")));
        same(&place, name, &format!("{name}-again"));
        // And whoever asks for it gets the same model, which nobody had to choose.
        let asked = json(&place, &format!("{words} --model {model} --out {name}-asked -q"));
        assert_eq!((&asked["test"], &asked["model_reason"]), (&object["test"], &Value::Null));
    }
}

#[test]
fn killed_at_any_time_it_ends_in_the_same_bytes() {
    let place = Place::new();
    place.write("wards.csv", &wards(1400, &WARDS, 5));
    let train = "train wards.csv --target ill --source ward --epochs 20 --no-folds";
    place.lapwing(&format!("{train} --out whole -q")).assert().success();
    let chosen = |run: &str| {
        let config = std::fs::read_to_string(place.path(&format!("{run}/config.toml")));
        config.is_ok_and(|config| config.contains("model-reason"))
    };
    for (run, later) in [("early", 0), ("network", 150), ("between", 600), ("late", 1200)] {
        let words = format!("{train} --out {run} --checkpoint-every 0 -q");
        let mut child = start(&place, &words).stderr(Stdio::null()).spawn().unwrap();
        while !place.path(&format!("{run}/run.json")).exists() {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(later));
        child.kill().unwrap();
        child.wait().unwrap();
        let words = format!("train --resume {run} -q");
        // Whether it says that it is to be chosen or not makes no difference.
        let words = if chosen(run) { format!("{words} --model auto") } else { words };
        place.lapwing(&words).assert().success();
        same(&place, "whole", run);
    }
    place.refuses("train --resume whole --model linear", &["model", "linear"]);
}

#[test]
fn labels_are_judged_after_the_choice_and_whoever_stops_there_goes_on_there() {
    let place = Place::new();
    place.write("wards.csv", &wards(1200, &WARDS, 5));
    let train = "train wards.csv --target ill --source ward --epochs 8";
    place.lapwing(&format!("{train} --out whole -q")).assert().success();
    let words = format!("{train} --out cut --checkpoint-every 0 -q");
    let mut child = start(&place, &words).stderr(Stdio::null()).spawn().unwrap();
    let config = place.path("cut/config.toml");
    let chosen =
        || std::fs::read_to_string(&config).is_ok_and(|text| text.contains("model-reason"));
    while !chosen() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    place.lapwing("train --resume cut -q").assert().success();
    same(&place, "whole", "cut");
}

#[test]
fn where_there_is_nothing_to_compare_it_is_the_network_and_the_reason_is_said() {
    let place = Place::new();
    place.write("few.csv", &wards(400, &WARDS, 5));
    place.write("wards.csv", &wards(1200, &WARDS, 5));
    let train = "--target ill --source ward --epochs 1 --no-folds --force --out run --json -q";
    for (table, flags, part) in [
        ("few.csv", "", "40 validation rows are too few"),
        ("few.csv", "--validation-fraction 0", "no validation rows"),
        ("wards.csv", "--hidden 4", "hidden is for networks"),
        ("wards.csv", "--method group-dro", "group-dro is for networks"),
        ("wards.csv", "--learning-rate 3 --optimiser sgd", "optimiser is for networks"),
    ] {
        let object = json(&place, &format!("train {table} {train} {flags}"));
        assert_eq!(object["model"], "mlp", "{flags}");
        assert!(object["model_reason"].as_str().unwrap().contains(part), "{object}");
    }
    let asked = json(&place, &format!("train few.csv {train} --model linear"));
    assert_eq!((&asked["model"], &asked["model_reason"]), (&"linear".into(), &Value::Null));
    place
        .refuses("train wards.csv --target ill --source ward --model forest", &["forest", "trees"]);
}
