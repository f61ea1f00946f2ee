//! `train`, and what can be done with its run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use serde_json::Value;
use tables::{Place, WARDS, doses, wards};

const TRAIN: &str =
    "train wards.csv --target ill --source ward --model mlp --epochs 40 --out run --quiet";

fn trained() -> Place {
    let place = Place::new();
    place.write("wards.csv", &wards(1000, &WARDS, 1));
    place.write("checked.csv", &wards(300, &["north"], 2));
    place.lapwing(TRAIN).assert().success();
    place
}

#[test]
fn the_source_that_says_the_contrary_is_unreliable_and_the_others_are_not() {
    let place = trained();
    let sources = place.text("run/sources.csv");
    assert!(sources.starts_with(
        "source,rows,batches,unreliability,weight,mean_loss,reference_loss,reference_std,nonfinite,\
         first_departure_step,verdict,noise_rate,noise_rate_low,noise_rate_high,disagreement,doubt,class_mix,\
         bad_from,bad_from_low,bad_from_high,bad_until,bad_until_low,bad_until_high,faults\n"
    ));
    for line in sources.lines().skip(1) {
        let verdict = if line.starts_with("attic,") { "unreliable" } else { "reliable" };
        assert_eq!(line.split(',').nth(10), Some(verdict), "{line}");
    }
    for name in [
        "config.toml",
        "model.json",
        "model.safetensors",
        "metrics.csv",
        "trajectory.parquet",
        "rows.csv",
        "report.html",
    ] {
        assert!(!place.read(&format!("run/{name}")).is_empty());
    }
    assert!(place.text("run/metrics.csv").starts_with("epoch,split,metric,value\n1,train,loss,"));
    assert!(place.text("run/metrics.csv").contains(",test,accuracy,"));
}

#[test]
fn the_table_before_training_is_on_stderr_and_the_verdicts_are_on_stdout() {
    let place = Place::new();
    place.write("wards.csv", &wards(1000, &WARDS, 1));
    let done = place.lapwing(&TRAIN.replace("--quiet", "")).assert().success();
    let (out, err) = (&done.get_output().stdout, &done.get_output().stderr);
    let (out, err) = (String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    for part in
        ["numeric", "feature", "target", "source", "rows to train on", "noise-rate", "report.html"]
    {
        assert!(err.contains(part), "{part}: {err}");
    }
    assert!(out.contains("unreliable  attic") && out.contains("test ("), "{out}");
    assert!(!out.contains("report.html"));
}

#[test]
fn a_run_is_repeated_from_its_configuration() {
    let place = trained();
    place.lapwing("train --config run/config.toml --out again --quiet").assert().success();
    for name in [
        "model.safetensors",
        "model.json",
        "metrics.csv",
        "sources.csv",
        "rows.csv",
        "trajectory.parquet",
        "report.html",
        "config.toml",
    ] {
        assert_eq!(
            place.read(&format!("run/{name}")),
            place.read(&format!("again/{name}")),
            "{name}"
        );
    }
    // Flags win.
    place.lapwing("train --config run/config.toml --out other --quiet --seed 3").assert().success();
    assert!(place.text("other/config.toml").contains("seed = 3"));
    assert_ne!(place.read("run/model.safetensors"), place.read("other/model.safetensors"));
}

#[test]
fn one_thread_and_two_give_the_same_bytes() {
    let place = Place::new();
    place.write("wards.csv", &wards(3000, &WARDS, 1));
    for threads in ["1", "2"] {
        let words = format!(
            "train wards.csv --target ill --source ward --model mlp --epochs 4 --quiet --threads {threads} --out t{threads} \
             --batch-size 512 --hidden 256,256"
        );
        place.lapwing(&words).assert().success();
    }
    for name in ["model.safetensors", "metrics.csv", "sources.csv", "rows.csv", "report.html"] {
        assert_eq!(place.read(&format!("t1/{name}")), place.read(&format!("t2/{name}")), "{name}");
    }
}

#[test]
fn a_directory_that_is_not_empty_is_left_alone_without_force() {
    let place = trained();
    let before = place.read("run/model.json");
    place.refuses(TRAIN, &["run exists and is not empty", "--force"]);
    assert_eq!(before, place.read("run/model.json"));
    place.write("run/notes.txt", "mine");
    place.lapwing(&format!("{TRAIN} --force --seed 9")).assert().success();
    assert_ne!(before, place.read("run/model.json"));
    assert_eq!(place.text("run/notes.txt"), "mine");
}

#[test]
fn predictions_have_a_row_each_and_probabilities_that_sum_to_one() {
    let place = trained();
    let done = place.lapwing("predict run checked.csv").assert().success();
    let text = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("row,prediction,p_no,p_yes"));
    let mut right = 0;
    for (line, (at, truth)) in lines.zip(place.text("checked.csv").lines().skip(1).enumerate()) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells[0], (at + 1).to_string());
        let chances: Vec<f64> = cells[2..].iter().map(|cell| cell.parse().unwrap()).collect();
        assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-5);
        right += usize::from(truth.ends_with(cells[1]));
    }
    assert!(right > 280, "{right}");
    // Elsewhere, from two files, without the target.
    place.write("new.csv", "b,a\n0.9,0.9\n0.1,0.1\n");
    std::fs::create_dir(place.path("moved")).unwrap();
    for name in ["model.json", "model.safetensors"] {
        std::fs::rename(place.path(&format!("run/{name}")), place.path(&format!("moved/{name}")))
            .unwrap();
    }
    place.lapwing("predict moved new.csv --out p.csv").assert().success();
    let text = place.text("p.csv");
    assert!(text.contains("\n1,yes,") && text.contains("\n2,no,"), "{text}");
}

#[test]
fn evaluation_agrees_with_the_predictions_and_goes_by_groups() {
    let place = trained();
    let done = place.lapwing("evaluate run wards.csv --by ward --json").assert().success();
    let text = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[0]["rows"], 1000);
    let mean: f64 =
        lines[1..].iter().map(|line| line["accuracy"].as_f64().unwrap()).sum::<f64>() / 5.0;
    assert!((mean - lines[0]["accuracy"].as_f64().unwrap()).abs() < 1e-12);
    assert_eq!(lines[5]["group"], "attic");
    assert!(lines[5]["accuracy"].as_f64().unwrap() < 0.1);
    assert!(lines[1]["auc"].as_f64().unwrap() > 0.95);
    let done = place.lapwing("evaluate run wards.csv --by ward").assert().success();
    assert!(String::from_utf8_lossy(&done.get_output().stdout).contains("balanced accuracy"));
}

#[test]
fn sources_come_worst_first_and_can_fail_a_script() {
    let place = trained();
    let done = place.lapwing("sources run --json").assert().success();
    let text = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(
        (first["source"].as_str(), first["verdict"].as_str()),
        (Some("attic"), Some("unreliable"))
    );
    assert!(first["label_error"]["low"].as_f64().unwrap() > 0.8, "{first}");
    let failed = place.lapwing("sources run --fail-on unreliable").assert().code(1);
    assert!(String::from_utf8_lossy(&failed.get_output().stderr).contains("attic"));
    place.write(
        "calm.csv",
        &wards(600, &["north", "south", "east", ""], 3)
            .replace(",\"\",", ",west,")
            .replace("west,yes", "east,no")
            .replace("west,no", "east,yes"),
    );
    place
        .lapwing("train calm.csv --target ill --source ward --epochs 20 --out calm --quiet")
        .assert()
        .success();
    place.lapwing("sources calm --fail-on suspect").assert().success();
}

#[test]
fn the_report_is_written_again_byte_for_byte() {
    let place = trained();
    let before = place.read("run/report.html");
    std::fs::remove_file(place.path("run/report.html")).unwrap();
    place.lapwing("report run").assert().success();
    assert_eq!(place.read("run/report.html"), before);
}

#[test]
fn the_report_survives_an_infinite_leniency() {
    let place = Place::new();
    place.write("wards.csv", &wards(300, &WARDS, 1));
    place
        .lapwing(
            "train wards.csv --target ill --source ward --model mlp --epochs 2 --leniency inf --out run -q",
        )
        .assert()
        .success();
    let before = place.read("run/report.html");
    place.lapwing("report run").assert().success();
    assert_eq!(place.read("run/report.html"), before);
    place.lapwing("sources run").assert().success();
}

#[test]
fn a_hostile_source_name_is_text_everywhere() {
    let place = Place::new();
    let hostile = "<script>alert(1)</script>\u{1b}[31m";
    place.write("wards.csv", &wards(1000, &["north", "south", "east", "west", hostile], 1));
    let done = place.lapwing(TRAIN).assert().success();
    let out = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
    assert!(
        out.contains("<script>alert(1)</script>⟨U+001B⟩[31m") && !out.contains('\u{1b}'),
        "{out}"
    );
    let page = place.text("run/report.html");
    assert!(page.contains("&lt;script&gt;alert(1)") && !page.contains("<script>alert"));
    assert!(page.contains("unreliable"));
    let done = place.lapwing("sources run --fail-on unreliable").assert().code(1);
    assert!(!done.get_output().stderr.contains(&0x1b) && !done.get_output().stdout.contains(&0x1b));
}

#[test]
fn numbers_are_learnt_and_the_random_source_is_found() {
    let place = Place::new();
    place.write("doses.csv", &doses(2000, 1));
    let words =
        "train doses.csv --target dose --source ward --model mlp --epochs 60 --out run --json -q";
    let done = place.lapwing(words).assert().success();
    let object: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
    assert!(object["test"]["mse"].as_f64().is_some() && object["test"]["rows"] == 400);
    let unreliable: Vec<&str> = object["sources"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|source| source["verdict"] == "unreliable")
        .filter_map(|source| source["source"].as_str())
        .collect();
    assert_eq!(unreliable, ["w4"]);
    let err = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(err.contains("of the 400 test rows come from unreliable sources"), "{err}");
    // Why is told of values, too.
    let told = place.lapwing("sources run").assert().success();
    let told = String::from_utf8_lossy(&told.get_output().stdout).into_owned();
    assert!(told.contains("w4: Its loss was above the threshold in "), "{told}");
    for source in object["sources"].as_array().unwrap() {
        let error = source["label_error"]["estimate"].as_f64().unwrap();
        let random = source["source"] == "w4";
        assert!(if random { error > 0.5 } else { error < 0.2 }, "{source}");
    }
    let done = place.lapwing("predict run doses.csv").assert().success();
    assert!(done.get_output().stdout.starts_with(b"row,prediction\n1,"));
    place.lapwing("evaluate run doses.csv --by ward").assert().success();
}

#[test]
fn guards_are_kept_and_judgement_goes_on() {
    let place = Place::new();
    place.write("wards.csv", &wards(1000, &WARDS, 1));
    place.lapwing(&format!("{TRAIN} --trust attic --block north --floor 0.25")).assert().success();
    let sources = place.text("run/sources.csv");
    let cells = |name: &str| -> Vec<String> {
        let line = sources.lines().find(|line| line.starts_with(name)).unwrap();
        line.split(',').map(str::to_owned).collect()
    };
    assert_eq!((cells("attic")[4].as_str(), cells("attic")[10].as_str()), ("1.0", "unreliable"));
    assert_eq!((cells("north")[4].as_str(), cells("north")[10].as_str()), ("0.0", "reliable"));
    place
        .lapwing("train wards.csv --target ill --source ward --model mlp --epochs 40 --out f -q --floor 0.25")
        .assert()
        .success();
    assert!(
        place
            .text("f/sources.csv")
            .lines()
            .any(|line| line.starts_with("attic") && line.contains(",0.25,"))
    );
}

#[test]
fn standard_training_keeps_every_weight_and_judges_all_the_same() {
    let place = Place::new();
    place.write("wards.csv", &wards(1000, &WARDS, 1));
    place.lapwing(&format!("{TRAIN} --method standard")).assert().success();
    for line in place.text("run/sources.csv").lines().skip(1) {
        assert_eq!(line.split(',').nth(4), Some("1.0"), "{line}");
        assert_eq!(line.contains(",unreliable,"), line.starts_with("attic"), "{line}");
    }
}

#[test]
fn sources_that_are_hardly_seen_are_not_judged_and_the_report_says_what_to_change() {
    let place = Place::new();
    let names: Vec<String> = (0..100).map(|n| format!("s{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    place.write("wards.csv", &wards(300, &names, 1));
    let words = format!("{TRAIN} --epochs 2 --method lap").replace("--epochs 40 ", "");
    place.lapwing(&words).assert().success();
    assert!(
        place.text("run/sources.csv").lines().skip(1).all(|line| line.contains(",insufficient,"))
    );
    let page = place.text("run/report.html");
    assert!(page.contains("never filled") && page.contains("--epochs"));
}
