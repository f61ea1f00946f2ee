//! `lapwing compare` from the outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use serde_json::Value;
use tables::{Place, WARDS, doses, wards};

const COLUMNS: &str = "--target ill --source ward";

fn json(place: &Place, words: &str) -> Value {
    let words = format!("compare {words} --json --quiet");
    let output = place.lapwing(&words).assert().success().get_output().clone();
    assert!(output.stderr.is_empty(), "quiet: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn values(object: &Value, method: usize, metric: &str) -> Vec<f64> {
    let values = &object["methods"][method]["metrics"][metric]["values"];
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

#[test]
fn statistics_follow_from_the_values_of_the_repeats() {
    let place = Place::new();
    place.write("data.csv", &wards(400, &WARDS, 1));
    let object = json(&place, &format!("data.csv {COLUMNS} --repeats 3 --epochs 3"));
    assert_eq!(object["metric"], "accuracy");
    let (standard, lap) = (values(&object, 0, "accuracy"), values(&object, 1, "accuracy"));
    assert_eq!((standard.len(), lap.len()), (3, 3));
    let differences: Vec<f64> = lap.iter().zip(&standard).map(|(a, b)| a - b).collect();
    let mean = differences.iter().sum::<f64>() / 3.0;
    let std = (differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    let found = |key: &str| object["methods"][1]["difference"][key].as_f64().unwrap();
    // The 97.5 % quantile of Student's t with two degrees of freedom.
    let half = 4.302652729749462 * std / 3.0_f64.sqrt();
    assert!((found("mean") - mean).abs() < 1e-12);
    assert!((found("low") - (mean - half)).abs() < 1e-9);
    assert!((found("high") - (mean + half)).abs() < 1e-9);
    assert!(object["methods"][0]["difference"].is_null());
}

#[test]
fn every_method_gets_the_same_splits_and_the_same_seed_gives_the_same_bytes() {
    let place = Place::new();
    place.write("data.csv", &wards(300, &WARDS, 1));
    // At strength 0 every weight is 1: LAP is standard training, number by number.
    let words = format!("data.csv {COLUMNS} --repeats 2 --epochs 2 --strength 0");
    let object = json(&place, &words);
    for metric in ["accuracy", "log_loss"] {
        assert_eq!(values(&object, 0, metric), values(&object, 1, metric), "{metric}");
    }
    let losses = values(&object, 0, "log_loss");
    assert_ne!(losses[0], losses[1], "repeats differ");
    assert_eq!(object, json(&place, &words));
    // Counting on from the seed: the second repeat of one is the first of the other.
    let next = json(&place, &format!("{words} --seed 1"));
    assert_eq!(values(&next, 0, "log_loss")[0], losses[1]);
    assert!(object["conclusion"].as_str().unwrap().contains("makes no difference"));
}

#[test]
fn a_table_and_a_sentence_for_people() {
    let place = Place::new();
    place.write("data.csv", &wards(300, &WARDS, 1));
    place.write("checked.csv", &wards(100, &WARDS[..1], 2));
    let words = format!("compare data.csv {COLUMNS} --repeats 2 --epochs 2 --test checked.csv");
    let output = place.lapwing(&words).assert().success().get_output().clone();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert!(lines[0].contains("accuracy over 2 repeats"), "{text}");
    assert!(lines[2].starts_with("standard") && lines[3].starts_with("lap"), "{text}");
    assert!(lines[4].starts_with("LAP "), "{text}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("4 trainings, each tested on 100 rows\n"), "{said}");
}

#[test]
fn one_repeat_has_no_interval_and_says_so() {
    let place = Place::new();
    place.write("data.csv", &wards(200, &WARDS, 1));
    let object = json(&place, &format!("data.csv {COLUMNS} --repeats 1 --epochs 1"));
    assert!(object["methods"][1]["difference"]["low"].is_null());
    assert!(object["methods"][1]["metrics"]["accuracy"]["std"].is_null());
    assert!(object["conclusion"].as_str().unwrap().contains("--repeats"));
}

#[test]
fn numbers_are_compared_by_their_squared_error() {
    let place = Place::new();
    place.write("data.csv", &doses(200, 1));
    let words = "data.csv --target dose --source ward --repeats 2 --epochs 2";
    let object = json(&place, words);
    assert_eq!((&object["metric"], &object["lower_is_better"]), (&"mse".into(), &true.into()));
}

#[test]
fn models_are_compared_like_methods() {
    let place = Place::new();
    place.write("data.csv", &doses(300, 1));
    let words = "data.csv --target dose --source ward --model trees,mlp --repeats 2 --epochs 3";
    let object = json(&place, words);
    let entry = |at: usize, key: &str| object["methods"][at][key].as_str().unwrap().to_owned();
    let entries: Vec<_> = (0..4).map(|at| (entry(at, "model"), entry(at, "method"))).collect();
    let expected = [("trees", "standard"), ("trees", "lap"), ("mlp", "standard"), ("mlp", "lap")];
    assert_eq!(entries, expected.map(|(model, method)| (model.to_owned(), method.to_owned())));
    let conclusion = object["conclusion"].as_str().unwrap();
    for part in ["With trees, LAP ", "With mlp, LAP ", "With lap the model mlp "] {
        assert!(conclusion.contains(part), "{part}: {conclusion}");
    }
    // What a model does is the same as without the others.
    let alone = json(&place, &words.replace("trees,mlp", "mlp"));
    assert_eq!(values(&alone, 1, "mse"), values(&object, 3, "mse"));
    assert_ne!(values(&object, 1, "mse"), values(&object, 3, "mse"));
    let shown = place.lapwing(&format!("compare {words} -q")).assert().success();
    let text = String::from_utf8_lossy(&shown.get_output().stdout).into_owned();
    assert!(text.contains("\ntrees, lap") && text.contains("\nmlp, lap"), "{text}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let place = Place::new();
    place.write("data.csv", &wards(100, &WARDS, 1));
    let refuses = |words: &str, parts: &[&str]| {
        place.refuses(&format!("compare data.csv {words}"), parts);
    };
    refuses(&format!("{COLUMNS} --methods standard,magic"), &["magic", "standard", "lap"]);
    refuses(&format!("{COLUMNS} --methods lap,lap"), &["lap twice"]);
    refuses(&format!("{COLUMNS} --model trees,trees"), &["trees twice"]);
    refuses(&format!("{COLUMNS} --model auto"), &["auto", "trees"]);
    let methods = "--model mlp,trees --methods standard,noise-rate";
    refuses(&format!("{COLUMNS} {methods}"), &["noise-rate is for networks"]);
    refuses(&format!("{COLUMNS} --repeats 0"), &["--repeats"]);
    refuses(&format!("{COLUMNS} --test-fraction 0"), &["no row to test on"]);
    refuses("--target ill --source nobody", &["no column \"nobody\""]);
    refuses(&format!("{COLUMNS} --test missing.csv"), &["missing.csv"]);
}

#[test]
fn what_train_is_told_of_a_table_compare_is_told_in_the_same_words() {
    let place = Place::new();
    let table = wards(200, &WARDS, 1);
    let (header, rows) = table.split_once('\n').unwrap();
    let first = header.split(',').next().unwrap();
    place.write("data.csv", &format!("{}\n{rows}", header.replacen(first, "\"dose, mg\"", 1)));
    // A comma in a name, and a type: with one feature that has names for numbers, it is another table.
    let mut losses = Vec::new();
    for kind in ["numeric", "categorical"] {
        let mut command =
            place.lapwing(&format!("compare data.csv {COLUMNS} --repeats 1 --epochs 1"));
        let command = command.args(["--json", "-q", "--features", "dose, mg", "--types"]);
        let assert = command.arg(format!("dose, mg={kind}")).assert().success();
        let object: Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
        losses.push(values(&object, 0, "log_loss")[0]);
    }
    assert_ne!(losses[0], losses[1]);
    place.refuses("compare data.csv --source ward", &["--target"]);
    place.refuses("compare data.csv --target ill", &["--source"]);
}

#[test]
fn what_may_surprise_is_said_to_those_who_asked_for_no_remarks_too() {
    let place = Place::new();
    place.write("data.csv", &wards(100, &WARDS[..1], 1));
    let words = format!("compare data.csv {COLUMNS} --repeats 1 --epochs 1 -q");
    let assert = place.lapwing(&words).assert().success();
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert_eq!(said, "warning: all rows come from one source, \"north\"\n");
}
