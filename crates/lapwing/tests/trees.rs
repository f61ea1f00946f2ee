//! `train --model trees`: the whole way, from table to predictions.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use std::fmt::Write;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tables::{Numbers, Place, WARDS, doses, start, wards};

const VALUES: &str = "train doses.csv --target dose --source ward --model trees -q";
const CLASSES: &str = "train wards.csv --target ill --source ward --model trees -q";
const FILES: [&str; 8] = [
    "model.ubj",
    "model.json",
    "metrics.csv",
    "sources.csv",
    "rows.csv",
    "trajectory.parquet",
    "report.html",
    "config.toml",
];

fn place() -> Place {
    let place = Place::new();
    place.write("doses.csv", &doses(800, 1));
    place.write("wards.csv", &wards(800, &WARDS, 1));
    place
}

fn same(place: &Place, a: &str, b: &str) {
    for name in FILES {
        let same = place.read(&format!("{a}/{name}")) == place.read(&format!("{b}/{name}"));
        assert!(same, "{a}/{name} and {b}/{name} differ");
    }
}

fn stderr(place: &Place, words: &str) -> String {
    let done = place.lapwing(words).assert().success();
    String::from_utf8_lossy(&done.get_output().stderr).into_owned()
}

fn metrics(place: &Place, words: &str) -> Value {
    let output = place.lapwing(&format!("{words} --json")).assert().success();
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

fn verdicts(place: &Place, run: &str) -> Vec<(String, String)> {
    let table = place.text(&format!("{run}/sources.csv"));
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = header.iter().position(|name| *name == "verdict").unwrap();
    let of = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[0].to_owned(), cells[at].to_owned())
    };
    lines.map(of).collect()
}

#[test]
fn values_are_learnt_the_bad_source_is_found_and_threads_and_the_configuration_give_the_same_bytes()
{
    let place = place();
    let loud = VALUES.replace(" -q", "");
    let said = stderr(&place, &format!("{loud} --threads 1 --out one"));
    for part in ["200 rounds to learn whom to believe", "the trees gained most by a (", "best was"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    place.lapwing(&format!("{VALUES} --threads 2 --out two")).assert().success();
    same(&place, "one", "two");
    assert!(!place.path("one/model.safetensors").exists());
    place.lapwing("train --config one/config.toml --out again -q").assert().success();
    same(&place, "one", "again");
    let bad: Vec<(String, String)> =
        verdicts(&place, "one").into_iter().filter(|(_, verdict)| verdict != "reliable").collect();
    assert_eq!(bad, [("w4".to_owned(), "unreliable".to_owned())]);
    // Only rows of the other four are checked.
    let checked: Vec<String> =
        doses(1000, 7).lines().filter(|line| !line.contains(",w4,")).map(str::to_owned).collect();
    place.write("checked.csv", &checked.join("\n"));
    let r2 = metrics(&place, "evaluate one checked.csv")["r2"].as_f64().unwrap();
    assert!(r2 > 0.97, "{r2}");
    let config = place.text("one/config.toml");
    assert!(config.contains("\nmodel = \"trees\"\n") && !config.contains("hidden"), "{config}");
    let said = stderr(&place, "predict one checked.csv --out predicted.csv");
    assert!(!said.contains("error"), "{said}");
    assert_eq!(place.text("predicted.csv").lines().count(), checked.len());
    place.lapwing("report one").assert().success();
    place.lapwing("sources one --fail-on unreliable").assert().code(1);
}

#[test]
fn classes_are_learnt_and_their_labels_judged_by_networks() {
    let place = place();
    place.lapwing(&format!("{CLASSES} --out run")).assert().success();
    let verdict =
        |name: &str| verdicts(&place, "run").into_iter().find(|(n, _)| n == name).unwrap().1;
    assert_eq!((verdict("attic").as_str(), verdict("north").as_str()), ("unreliable", "reliable"));
    place.write("checked.csv", &wards(300, &WARDS[..1], 2));
    let accuracy = metrics(&place, "evaluate run checked.csv")["accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.9, "{accuracy}");
    assert!(place.text("run/config.toml").contains("\nmethod = \"lap\"\n"));
    assert!(place.text("run/rows.csv").lines().count() > 100);
}

#[test]
fn levels_and_missing_values_are_taken_as_they_are_and_unseen_levels_predicted() {
    let place = Place::new();
    let mut numbers = Numbers::new(3);
    let mut text = "colour,size,ward,price\n".to_owned();
    for row in 0..900 {
        let colour = ["red", "green", "blue", "grey", "", "pink"][(numbers.next() * 6.0) as usize];
        let size = numbers.next();
        let price = match colour {
            "red" | "blue" | "pink" => 5.0,
            "" => 9.0,
            _ => 1.0,
        } + if size > 0.7 { 20.0 } else { size };
        let shown = if size > 0.7 { String::new() } else { format!("{size:.3}") };
        writeln!(text, "{colour},{shown},w{},{price:.3}", row % 4).unwrap();
    }
    place.write("prices.csv", &text);
    place
        .lapwing("train prices.csv --target price --source ward --model trees --out run -q")
        .assert()
        .success();
    let r2 = metrics(&place, "evaluate run prices.csv")["r2"].as_f64().unwrap();
    assert!(r2 > 0.99, "{r2}");
    place.write("new.csv", "colour,size\npurple,0.5\n,\nred,1e300\n");
    let output = place.lapwing("predict run new.csv").assert().success();
    let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(said.contains("purple"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.get_output().stdout).lines().count(), 4);
}

#[test]
fn guards_hold() {
    let place = place();
    let weight = |run: &str, source: &str| -> f64 {
        let output = place.lapwing(&format!("sources {run} --json")).assert().success();
        let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
        let of = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        text.lines().map(of).find(|s| s["source"] == source).unwrap()["weight"].as_f64().unwrap()
    };
    place.lapwing(&format!("{VALUES} --trust w4 --block w0 --out a")).assert().success();
    assert_eq!((weight("a", "w4"), weight("a", "w0")), (1.0, 0.0));
    place.lapwing(&format!("{VALUES} --floor 0.25 --out b")).assert().success();
    assert_eq!(weight("b", "w4"), 0.25);
    place.lapwing(&format!("{VALUES} --method standard --out c")).assert().success();
    assert_eq!(weight("c", "w4"), 1.0);
    place.refuses(&format!("{VALUES} --floor 2 --out d"), &["floor"]);
    place.refuses(&format!("{VALUES} --method standard --floor 0.1 --out d"), &["floor"]);
}

#[test]
fn what_trees_do_not_have_is_refused_before_anything_is_written() {
    let place = place();
    for (flags, parts) in [
        ("--hidden 8", ["hidden", "networks"]),
        ("--batch-size 8", ["batch-size", "networks"]),
        ("--optimiser sgd", ["optimiser", "networks"]),
        ("--method group-dro", ["group-dro", "lap or standard"]),
        ("--device wgpu", ["wgpu", "cpu"]),
        ("--learning-rate 5", ["learning rate", "at most 1"]),
        ("--epochs 0", ["rounds", "1 to 100,000"]),
        ("--loss cross-entropy", ["CrossEntropy", "loss"]),
    ] {
        place.refuses(&format!("{VALUES} {flags} --out run"), &parts);
    }
    place.refuses(&format!("{CLASSES} --method noise-rate --out run"), &["noise-rate", "networks"]);
}

#[test]
fn killed_and_resumed_it_says_that_it_starts_again_and_ends_in_the_same_bytes() {
    let place = Place::new();
    place.write("wards.csv", &wards(600, &WARDS, 5));
    let train = CLASSES.replace(" -q", "");
    place.lapwing(&format!("{train} --out whole -q")).assert().success();
    for wait in [300, 1500] {
        let words = format!("{train} --out killed-{wait} --checkpoint-every 0");
        let mut child = start(&place, &words).stderr(Stdio::null()).spawn().unwrap();
        while !place.path(&format!("killed-{wait}/run.json")).exists() {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        let said = stderr(&place, &format!("train --resume killed-{wait}"));
        let finished = said.contains("is finished");
        assert!(finished || said.contains("grown again from the first round"), "{said}");
        same(&place, "whole", &format!("killed-{wait}"));
    }
}

#[test]
fn a_damaged_model_is_an_error_and_a_network_that_takes_its_place_leaves_no_trees() {
    let place = place();
    place.lapwing(&format!("{VALUES} --epochs 5 --out run")).assert().success();
    let whole = place.read("run/model.ubj");
    for length in [0, 1, whole.len() / 2, whole.len() - 1] {
        std::fs::write(place.path("run/model.ubj"), &whole[..length]).unwrap();
        place.refuses("predict run doses.csv", &["model.ubj", "digest"]);
    }
    std::fs::remove_file(place.path("run/model.ubj")).unwrap();
    place.refuses("predict run doses.csv", &["model.ubj"]);
    std::fs::write(place.path("run/model.ubj"), &whole).unwrap();
    let text = place.text("run/model.json");
    for (from, to) in [
        ("\"features\": 2", "\"features\": 3"),
        ("\"format\": 3", "\"format\": 4"),
        ("\"trees\":", "\"network\":"),
        ("\"input\": \"columns\"", "\"input\": \"table\""),
        ("\"rounds\":", "\"circles\":"),
    ] {
        assert!(text.contains(from), "{from}: {}", &text[..600]);
        place.write("run/model.json", &text.replacen(from, to, 1));
        let refused = place.lapwing("predict run doses.csv").output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        // Two numbers are two numbers, whatever they are called.
        assert!(refused.status.code() == Some(2) || to.contains("table"), "{from}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
    let network = VALUES.replace("--model trees", "--model linear");
    place.lapwing(&format!("{network} --epochs 2 --out run --force")).assert().success();
    assert!(!place.path("run/model.ubj").exists());
    place.lapwing("predict run doses.csv").assert().success();
}
