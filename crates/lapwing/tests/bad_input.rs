//! Bad input: a clear message, exit code 2, nothing half-written.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use tables::{Place, WARDS, wards};

const TRAIN: &str = "train wards.csv --target ill --source ward --epochs 4 --out run";

fn place() -> Place {
    let place = Place::new();
    place.write("wards.csv", &wards(300, &WARDS, 1));
    place
}

fn trained() -> Place {
    let place = place();
    place.lapwing(TRAIN).assert().success();
    place
}

#[test]
fn no_table_no_target_no_source() {
    let place = place();
    place.refuses("train --target ill --source ward", &["no table was given", "DATA"]);
    place.refuses("train wards.csv --source ward", &["no target column was given", "--target"]);
    place.refuses("train wards.csv --target ill", &["no source column was given", "--source"]);
    place.refuses("train nothing.csv --target ill --source ward", &["nothing.csv"]);
}

#[test]
fn a_column_that_is_not_there_is_named_with_those_that_are() {
    let place = place();
    place.refuses("train wards.csv --target sick --source ward", &["\"sick\"", "a, b, ward, ill"]);
    place.refuses("train wards.csv --target ill --source clinic", &["\"clinic\"", "ward"]);
    place.refuses("train wards.csv --target ill --source ill", &["ill"]);
}

#[test]
fn a_target_with_one_class_or_none() {
    let place = Place::new();
    place.write("one.csv", &wards(100, &WARDS, 1).replace(",yes", ",no"));
    place.refuses("train one.csv --target ill --source ward", &["one class", "no"]);
    place.write("none.csv", &wards(100, &WARDS, 1).replace(",yes", ",").replace(",no", ","));
    place.refuses("train none.csv --target ill --source ward", &["every row was dropped"]);
}

#[test]
fn targets_that_are_not_numbers_are_dropped_and_counted() {
    let place = Place::new();
    let text = tables::doses(300, 1);
    let text: String = text
        .lines()
        .enumerate()
        .map(|(at, line)| match at {
            7 | 8 => format!("{},NaN\n", line.rsplit_once(',').unwrap().0),
            9 => format!("{},inf\n", line.rsplit_once(',').unwrap().0),
            _ => format!("{line}\n"),
        })
        .collect();
    place.write("doses.csv", &text);
    let done = place
        .lapwing("train doses.csv --target dose --source ward --epochs 2 --out run")
        .assert()
        .success();
    let err = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(err.contains("3 rows dropped: 2 with target missing, 1 with target infinite"), "{err}");
    assert!(place.text("run/report.html").contains("target missing"));
}

#[test]
fn a_word_among_numbers_is_shown_where_it_stands() {
    let place = Place::new();
    place.write("doses.csv", &(tables::doses(300, 1) + "0.1,0.1,w0,much\n"));
    place.refuses(
        "train doses.csv --target dose --source ward --task regression",
        &["doses.csv, line 302", "\"dose\"", "\"much\""],
    );
}

#[test]
fn one_source_trains_with_a_warning() {
    let place = Place::new();
    place.write("wards.csv", &wards(300, &["north"], 1));
    let done = place.lapwing(TRAIN).assert().success();
    assert!(String::from_utf8_lossy(&done.get_output().stderr).contains("one source"));
    assert!(place.text("run/report.html").contains("All rows come from one source"));
}

#[test]
fn as_many_sources_as_rows_trains_with_a_warning() {
    let place = Place::new();
    let names: Vec<String> = (0..60).map(|n| format!("s{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    place.write("wards.csv", &wards(60, &names, 1));
    let done = place.lapwing(TRAIN).assert().success();
    assert!(String::from_utf8_lossy(&done.get_output().stderr).contains("a source of its own"));
}

#[test]
fn a_column_without_values_is_left_out_and_said_so() {
    let place = Place::new();
    let text = wards(300, &WARDS, 1);
    let text: String = text
        .lines()
        .enumerate()
        .map(|(at, line)| format!("{},{line}\n", if at == 0 { "empty" } else { "" }))
        .collect();
    place.write("wards.csv", &text);
    let done = place.lapwing(TRAIN).assert().success();
    assert!(String::from_utf8_lossy(&done.get_output().stderr).contains("ignored: no values"));
    place.write("bare.csv", "empty,ward,ill\n,a,yes\n,b,no\n,a,no\n");
    place.refuses(
        "train bare.csv --target ill --source ward",
        &["no usable feature", "empty", "--image"],
    );
}

#[test]
fn a_class_in_the_test_file_that_training_never_saw() {
    let place = place();
    place.write("test.csv", "a,b,ill\n0.1,0.2,no\n0.3,0.4,perhaps\n");
    place.refuses(&format!("{TRAIN} --test test.csv"), &["test.csv", "\"perhaps\" (1 row)"]);
    let place = trained();
    place.write("test.csv", "a,b,ill\n0.1,0.2,no\n0.3,0.4,perhaps\n");
    place.refuses("evaluate run test.csv", &["\"perhaps\" (1 row)"]);
}

#[test]
fn a_column_that_changed_type_or_went_away() {
    let place = trained();
    place.write("new.csv", "a,b\n0.1,low\n");
    place.refuses("predict run new.csv", &["new.csv, line 2", "\"b\"", "numeric", "\"low\""]);
    place.refuses("predict run new.csv --out p.csv", &["\"low\""]);
    place.write("less.csv", "a\n0.1\n");
    place.refuses("predict run less.csv", &["less.csv", "\"b\""]);
    place.write("unlabelled.csv", "a,b\n0.1,0.2\n");
    place.refuses("evaluate run unlabelled.csv", &["\"ill\""]);
    place.refuses("evaluate run wards.csv --by clinic", &["\"clinic\""]);
}

#[test]
fn a_model_that_is_truncated_or_exchanged() {
    let place = trained();
    let whole = place.read("run/model.safetensors");
    for length in [0, 7, 100, whole.len() - 1] {
        std::fs::write(place.path("run/model.safetensors"), &whole[..length]).unwrap();
        place.refuses("predict run wards.csv", &["model.safetensors"]);
    }
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    std::fs::write(place.path("run/model.safetensors"), changed).unwrap();
    place.refuses("predict run wards.csv", &["model.safetensors", "digest"]);
    std::fs::remove_file(place.path("run/model.safetensors")).unwrap();
    place.refuses("predict run wards.csv", &["model.safetensors"]);
}

#[test]
fn a_description_that_is_truncated_or_hostile() {
    let place = trained();
    let whole = place.text("run/model.json");
    for length in [0, 1, whole.len() / 2, whole.len() - 3] {
        place.write("run/model.json", &whole[..length]);
        place.refuses("predict run wards.csv", &["model.json"]);
    }
    place.write("run/model.json", &"[".repeat(1_000_000));
    place.refuses("predict run wards.csv", &["model.json"]);
    place.write("run/model.json", &format!("{{\"format\":{}", "{\"a\":".repeat(100_000)));
    place.refuses("predict run wards.csv", &["model.json"]);
    for (from, to) in [
        ("\"inputs\": 2", "\"inputs\": 4000000000"),
        ("\"inputs\": 2", "\"inputs\": 3"),
        ("\"outputs\": 2", "\"outputs\": 1000000"),
        ("\"format\": 2", "\"format\": 99"),
        ("\"dropout\": 0.", "\"dropout\": 7."),
        ("\"numeric\"", "\"categorical\""),
    ] {
        assert!(whole.contains(from), "{from} is not in {whole}");
        place.write("run/model.json", &whole.replace(from, to));
        place.refuses("predict run wards.csv", &["error: "]);
    }
    place.write("run/model.json", &whole);
    place.lapwing("predict run wards.csv").assert().success();
}

#[test]
fn a_directory_that_is_no_run() {
    let place = place();
    std::fs::create_dir(place.path("empty")).unwrap();
    place.refuses("predict empty wards.csv", &["model.json"]);
    place.refuses("sources empty", &["holds no finished run"]);
    place.refuses("report empty", &["holds no finished run"]);
    place.refuses("sources nowhere", &["nowhere"]);
    place.refuses("sources wards.csv", &["found a file"]);
    place.refuses("train --resume empty", &["no such run"]);
}

#[test]
fn files_of_a_run_that_are_damaged() {
    let place = trained();
    place.write("run/report.json", "{\"sources\": [{\"rows\": \"many\"}]}");
    place.refuses("sources run", &["report.json", "not what the run wrote"]);
    place.write("run/report.json", "{\"summary\": 3}");
    place.refuses("report run", &["report.json"]);
    place.write("run/config.toml", "epochs = \"all\"");
    place.refuses("train --resume run", &["config.toml", "epochs"]);
}

#[test]
fn unknown_sources_and_contradicting_guards() {
    let place = place();
    place.refuses(&format!("{TRAIN} --trust nort"), &["--trust", "\"nort\"", "\"north\""]);
    place.refuses(&format!("{TRAIN} --block zzz"), &["--block", "\"zzz\""]);
    place.refuses(&format!("{TRAIN} --trust north --block north"), &["both trusted and blocked"]);
    place.refuses(&format!("{TRAIN} --block north,south,east,west,attic"), &["blocked"]);
}

#[test]
fn settings_out_of_range() {
    let place = place();
    for (flags, part) in [
        ("--floor 2", "floor"),
        ("--leniency -1", "leniency"),
        ("--false-alarm 0.7", "false-alarm probability is 0.7"),
        ("--strength -1", "depression_strength"),
        ("--strength much", "auto"),
        ("--history 0", "history"),
        ("--batch-size 0", "batch size"),
        ("--learning-rate 0", "learning rate"),
        ("--learning-rate nan", "learning rate"),
        ("--epochs 0 --batch-size 8", "epochs"),
        ("--test-fraction 1.5", "1.5"),
        ("--validation-fraction 0.9", "0.9"),
        ("--hidden 0", "units"),
        ("--device tpu", "tpu"),
        ("--threads 0", "--threads"),
        ("--types a=colour", "colour"),
        ("--types c=numeric", "no column \"c\""),
    ] {
        let words = format!("{TRAIN} {flags}");
        let words =
            if flags.contains("--epochs") { words.replace("--epochs 4 ", "") } else { words };
        place.refuses(&words, &[part]);
    }
}

#[test]
fn a_configuration_with_an_unknown_key() {
    let place = place();
    place.write("c.toml", "target = \"ill\"\nbatchsize = 3\n");
    place.refuses(
        "train wards.csv --config c.toml --source ward",
        &["c.toml", "batchsize", "batch-size"],
    );
    place.refuses("train wards.csv --config none.toml", &["none.toml"]);
}

#[test]
fn a_run_that_diverges_leaves_nothing() {
    let place = place();
    place.refuses(&format!("{TRAIN} --learning-rate 1e30"), &["diverged"]);
}

#[test]
fn too_few_rows_to_train_on() {
    let place = Place::new();
    let rows = "age,dose,ward,ill\n40,1.5,a,yes\n50,2.5,b,no\n60,0.5,a,no\n";
    place.write("wards.csv", rows);
    place.refuses(TRAIN, &["rows to train on"]);
}
