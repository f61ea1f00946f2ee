//! `train` and `compare` with every method and optimiser.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use lapwing_train::{Audience, METHODS, MethodKind, Parameter};
use tables::{Place, WARDS, doses, wards};

/// Every method that learns from tables; `images.rs` has the others.
fn kinds() -> impl Iterator<Item = &'static dyn MethodKind> {
    METHODS.iter().copied().filter(|kind| kind.views() == 1)
}

const TRAIN: &str = "train wards.csv --target ill --source ward --epochs 25";

fn verdict<'a>(sources: &'a str, source: &str) -> &'a str {
    let line = sources.lines().find(|line| line.starts_with(source)).unwrap();
    line.split(',').nth(10).unwrap()
}

#[test]
fn every_method_trains_judges_the_sources_and_repeats_from_its_configuration() {
    let place = Place::new();
    place.write("wards.csv", &wards(800, &WARDS, 1));
    place.write("checked.csv", &wards(300, &WARDS[..1], 2));
    for method in kinds().map(MethodKind::name) {
        // With ARFL a source is in few batches of an epoch: those that hold it alone.
        let train = TRAIN.replace("25", if method == "arfl" { "100" } else { "25" });
        place.lapwing(&format!("{train} --method {method} --out {method} -q")).assert().success();
        let sources = place.text(&format!("{method}/sources.csv"));
        assert_eq!(verdict(&sources, "attic"), "unreliable", "{method}: {sources}");
        assert_eq!(verdict(&sources, "north"), "reliable", "{method}: {sources}");
        place
            .lapwing(&format!("train --config {method}/config.toml --out {method}-again -q"))
            .assert()
            .success();
        for name in ["model.safetensors", "sources.csv", "report.html", "config.toml"] {
            assert_eq!(
                place.read(&format!("{method}/{name}")),
                place.read(&format!("{method}-again/{name}")),
                "{method}: {name}"
            );
        }
        let output = place.lapwing(&format!("evaluate {method} checked.csv --json")).assert();
        let output = output.success().get_output().stdout.clone();
        let metrics: serde_json::Value = serde_json::from_slice(&output).unwrap();
        let accuracy = metrics["accuracy"].as_f64().unwrap();
        assert!(accuracy > 0.9 && metrics["rows"] == 300, "{method}: {metrics}");
    }
    // Only three of them take weight from the wrong ward.
    for method in kinds().map(MethodKind::name) {
        let sources = place.text(&format!("{method}/sources.csv"));
        let attic = sources.lines().find(|line| line.starts_with("attic")).unwrap();
        let weight: f64 = attic.split(',').nth(4).unwrap().parse().unwrap();
        assert_eq!(
            weight < 0.5,
            matches!(method, "lap" | "arfl" | "noise-rate"),
            "{method}: {attic}"
        );
    }
}

#[test]
fn parameters_of_methods_are_in_the_configuration_and_matter() {
    let place = Place::new();
    place.write("wards.csv", &wards(300, &WARDS, 1));
    let told = |parameter: &&Parameter| parameter.audience == Audience::Everybody;
    for kind in kinds() {
        for Parameter { name: flag, default, range, .. } in kind.parameters().iter().filter(told) {
            let method = kind.name();
            let train = format!("{TRAIN} --epochs 12 --method {method} -q");
            let train = train.replace("--epochs 25 ", "");
            place.lapwing(&format!("{train} --out {flag}")).assert().success();
            let config = place.text(&format!("{flag}/config.toml"));
            assert!(config.contains(&format!("\n{flag} = {:?}\n", default.unwrap())), "{config}");
            place.lapwing(&format!("{train} --{flag} 0.3 --out {flag}-other")).assert().success();
            let model = |run: &str| place.read(&format!("{run}/model.safetensors"));
            assert_ne!(model(flag), model(&format!("{flag}-other")), "{method}");
            let must = format!("{flag} is -1, but must be {range}");
            place.refuses(&format!("{train} --{flag}=-1 --out bad"), &[&must]);
            place.refuses(&format!("{train} --{flag} -1 --out bad"), &[&must]);
        }
    }
}

#[test]
fn optimisers_can_be_chosen() {
    let place = Place::new();
    place.write("wards.csv", &wards(800, &WARDS, 1));
    place.lapwing(&format!("{TRAIN} --optimiser sgd --out sgd -q")).assert().success();
    let config = place.text("sgd/config.toml");
    for line in ["optimiser = \"sgd\"", "momentum = 0.9", "learning-rate = 0.05"] {
        assert!(config.contains(line), "{config}");
    }
    assert_eq!(verdict(&place.text("sgd/sources.csv"), "attic"), "unreliable");
    place.lapwing(&format!("{TRAIN} --optimiser adam --out adam -q")).assert().success();
    place.lapwing(&format!("{TRAIN} --out usual -q")).assert().success();
    let model = |run: &str| place.read(&format!("{run}/model.safetensors"));
    assert_eq!(model("adam"), model("usual"));
    assert_ne!(model("adam"), model("sgd"));
    place.refuses(&format!("{TRAIN} --optimiser sgd --momentum 1 --out bad"), &["momentum"]);
}

#[test]
fn methods_for_classes_refuse_values_and_the_others_train() {
    let place = Place::new();
    place.write("doses.csv", &doses(300, 1));
    let train = "train doses.csv --target dose --source ward --epochs 3";
    for kind in METHODS {
        let words = format!("{train} --method {0} --out {0}", kind.name());
        if kind.needs_classes() {
            place.refuses(&words, &["classification", "values"]);
        } else {
            place.lapwing(&format!("{words} -q")).assert().success();
        }
    }
}

#[test]
fn all_methods_can_be_compared() {
    let place = Place::new();
    place.write("data.csv", &wards(200, &WARDS, 1));
    let methods: Vec<&str> = kinds().map(MethodKind::name).collect();
    let words = format!(
        "compare data.csv --target ill --source ward --repeats 2 --epochs 2 --json -q --methods {}",
        methods.join(",")
    );
    let output = place.lapwing(&words).assert().success().get_output().stdout.clone();
    let object: serde_json::Value = serde_json::from_slice(&output).unwrap();
    let names: Vec<&str> = object["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|method| method["method"].as_str().unwrap())
        .collect();
    assert_eq!(names, methods);
}

#[test]
fn blocked_sources_are_left_out_by_every_method() {
    let place = Place::new();
    place.write("wards.csv", &wards(300, &WARDS, 1));
    for method in kinds().map(MethodKind::name) {
        let words = format!("{TRAIN} --method {method} --block attic --out {method} -q");
        place.lapwing(&words.replace("--epochs 25", "--epochs 3")).assert().success();
        let sources = place.text(&format!("{method}/sources.csv"));
        let attic = sources.lines().find(|line| line.starts_with("attic")).unwrap();
        let fields: Vec<&str> = attic.split(',').collect();
        assert_eq!((fields[2], fields[4]), ("0", "0.0"), "{method}: {attic}");
    }
}

#[test]
fn a_run_is_not_resumed_on_other_features() {
    let place = Place::new();
    let table = wards(400, &WARDS, 5);
    place.write("wards.csv", &table);
    tables::killed(&place, &format!("{TRAIN} -q"), "run");
    // The first number of the third row, and nothing that would change the plan.
    let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
    let (_, rest) = lines[3].split_once(',').unwrap();
    lines[3] = format!("0.1234,{rest}");
    place.write("wards.csv", &(lines.join("\n") + "\n"));
    place.refuses("train --resume run", &["other data"]);
}
