//! `train` with every network for tables, and with every loss.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use serde_json::Value;
use tables::{Place, WARDS, doses, wards};

const MODELS: [&str; 2] = ["mlp", "linear"];
const CLASSES: &str = "train wards.csv --target ill --source ward --epochs 200 -q";
const VALUES: &str = "train doses.csv --target dose --source ward --epochs 60 -q";

fn place() -> Place {
    let place = Place::new();
    place.write("wards.csv", &wards(800, &WARDS, 1));
    place.write("doses.csv", &doses(800, 1));
    place
}

fn metric(place: &Place, run: &str, table: &str, name: &str) -> f64 {
    let output = place.lapwing(&format!("evaluate {run} {table} --json")).assert().success();
    let metrics: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    metrics[name].as_f64().unwrap_or_else(|| panic!("{name}: {metrics}"))
}

#[test]
fn every_model_for_tables_learns_predicts_and_repeats_from_its_configuration() {
    let place = place();
    place.write("checked.csv", &wards(300, &WARDS[..1], 2));
    for model in MODELS {
        place.lapwing(&format!("{CLASSES} --model {model} --out {model}")).assert().success();
        let config = place.text(&format!("{model}/config.toml"));
        assert!(config.contains(&format!("\nmodel = \"{model}\"\n")), "{config}");
        let accuracy = metric(&place, model, "checked.csv", "accuracy");
        assert!(accuracy > 0.95, "{model}: {accuracy}");
        let sources = place.text(&format!("{model}/sources.csv"));
        assert!(
            sources.lines().any(|line| line.starts_with("attic,") && line.contains(",unreliable,"))
        );

        let again = format!("train --config {model}/config.toml --out {model}-again -q");
        place.lapwing(&again).assert().success();
        for name in ["model.json", "model.safetensors", "report.html"] {
            let (one, two) = (format!("{model}/{name}"), format!("{model}-again/{name}"));
            assert!(place.read(&one) == place.read(&two), "{model}: {name}");
        }
        place.lapwing(&format!("{VALUES} --model {model} --out {model}-values")).assert().success();
        let r2 = metric(&place, &format!("{model}-values"), "doses.csv", "r2");
        // A fifth of the rows has any number.
        assert!(r2 > 0.4, "{model}: {r2}");
    }
}

#[test]
fn auto_is_a_perceptron_where_rows_are_few() {
    let place = place();
    for (model, out) in [("--model auto", "auto"), ("--model mlp", "mlp"), ("", "nothing")] {
        let train = CLASSES.replace("60", "3");
        place.lapwing(&format!("{train} {model} --out {out}")).assert().success();
    }
    for out in ["auto", "nothing"] {
        let config = place.text(&format!("{out}/config.toml"));
        let unreasoned: Vec<&str> =
            config.lines().filter(|line| !line.starts_with("model-reason = ")).collect();
        assert_eq!(unreasoned.len() + 1, config.lines().count());
        assert_eq!(unreasoned, place.text("mlp/config.toml").lines().collect::<Vec<_>>());
        assert!(
            place.read(&format!("{out}/model.safetensors")) == place.read("mlp/model.safetensors")
        );
    }
}

#[test]
fn models_that_are_not_for_tables_and_models_that_are_not_are_refused() {
    let place = place();
    place.refuses(
        &format!("{CLASSES} --model resnet20 --out run"),
        &["resnet20", "images in colour", "rows of 2 numbers"],
    );
    place.refuses(&format!("{CLASSES} --model perceptron --out run"), &["auto", "mlp", "resnet20"]);
    place.refuses(
        &format!("{CLASSES} --model linear --hidden 8 --out run"),
        &["linear", "hidden layers"],
    );
    place.write("config.toml", "model = \"perceptron\"\n");
    place.refuses(
        &format!("{CLASSES} --config config.toml --out run"),
        &["config.toml", "perceptron", "mlp", "resnet20"],
    );
}

#[test]
fn losses_are_chosen_and_those_of_the_other_kind_are_refused() {
    let place = place();
    let train = VALUES.replace("60", "5");
    for (flags, out) in [
        ("", "auto"),
        ("--loss squared-error", "squares"),
        ("--loss huber", "huber"),
        ("--loss huber --huber-delta 0.2", "small"),
    ] {
        place.lapwing(&format!("{train} {flags} --out {out}")).assert().success();
    }
    let model = |out: &str| place.read(&format!("{out}/model.safetensors"));
    assert!(model("auto") == model("squares"));
    assert!(model("auto") != model("huber") && model("huber") != model("small"));
    let config = place.text("huber/config.toml");
    assert!(config.contains("loss = \"huber\"\nhuber-delta = 1.0\n"), "{config}");
    assert!(!place.text("auto/config.toml").contains("huber"));

    for delta in ["0", "-1", "NaN", "inf"] {
        place.refuses(&format!("{train} --loss huber --huber-delta {delta} --out run"), &["delta"]);
    }
    place.refuses(&format!("{train} --huber-delta 1 --out run"), &["huber-delta", "huber"]);
    place
        .refuses(&format!("{train} --loss cross-entropy --out run"), &["cross-entropy", "classes"]);
    place.refuses(&format!("{CLASSES} --loss huber --out run"), &["Huber", "values"]);
    place.refuses(&format!("{train} --loss hinge --out run"), &["cross-entropy", "huber"]);
}

/// Single precision has steps of 128 there.
#[test]
fn values_in_seconds_since_1970_are_learnt_as_well_as_near_zero() {
    let place = place();
    let doses = doses(800, 1);
    let mut far = "a,b,ward,dose\n".to_owned();
    for line in doses.lines().skip(1) {
        let (rest, dose) = line.rsplit_once(',').unwrap();
        let dose = dose.parse::<f64>().unwrap() + 1.7e9;
        far += &format!("{rest},{dose:.4}\n");
    }
    place.write("far.csv", &far);
    place.lapwing(&format!("{VALUES} --out near")).assert().success();
    place
        .lapwing(&format!("{} --out far", VALUES.replace("doses.csv", "far.csv")))
        .assert()
        .success();
    let (near, far) =
        (metric(&place, "near", "doses.csv", "r2"), metric(&place, "far", "far.csv", "r2"));
    assert!(near > 0.4 && (near - far).abs() < 0.05, "{near} near zero, {far} far from it");
    let sources = place.text("far/sources.csv");
    assert!(
        sources.lines().any(|line| line.starts_with("w4,") && line.contains(",unreliable,")),
        "{sources}"
    );
    let predicted = place.lapwing("predict far far.csv").assert().success();
    let predicted = String::from_utf8(predicted.get_output().stdout.clone()).unwrap();
    let values: Vec<f64> = predicted
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(1).unwrap().parse().unwrap())
        .collect();
    let different: std::collections::BTreeSet<u64> =
        values.iter().map(|value| value.to_bits()).collect();
    assert!(different.len() > 500, "{} different predictions", different.len());
}
