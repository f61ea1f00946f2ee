//! Labels judged by networks that have not seen them: words, numbers, rows, and where nobody can know.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use tables::{Numbers, Place, WARDS, doses, start, wards};

const TRAIN: &str = "train map.csv --target quarter --source guide --epochs 60 -q";

/// Columns a, b, guide and quarter: which quarter of a square a point is in. The parrot guesses, the stay-at-home knows the
/// west only, and the border guard stands where quarters meet and errs by a hand's breadth, as everybody would.
fn map(rows: usize) -> String {
    let mut numbers = Numbers::new(3);
    let guides = ["ann", "ben", "cleo", "parrot", "home", "border"];
    let mut text = "a,b,guide,quarter\n".to_owned();
    for row in 0..rows {
        let guide = guides[row % guides.len()];
        let (mut a, mut b) = (numbers.next(), numbers.next());
        let (mut off, any) = (0.0, numbers.next());
        match guide {
            "home" => a *= 0.45,
            "border" => {
                (a, b) = (0.47 + 0.06 * a, if b < 0.5 { 0.2 } else { 0.8 });
                off = 0.15 * (numbers.next() - 0.5);
            }
            _ => {}
        }
        let quarter = match guide {
            "parrot" => (4.0 * any) as usize,
            _ => usize::from(a + off > 0.5) + 2 * usize::from(b > 0.5),
        };
        writeln!(text, "{a:.4},{b:.4},{guide},{}", ["sw", "se", "nw", "ne"][quarter]).unwrap();
    }
    text
}

fn trained(flags: &str) -> Place {
    let place = Place::new();
    place.write("map.csv", &map(1800));
    place.lapwing(&format!("{TRAIN} --out run {flags}")).assert().success();
    place
}

fn lines(place: &Place, words: &str) -> Vec<Value> {
    let done = place.lapwing(words).assert().success();
    let text = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn bad_hard_and_different_sources_have_words_of_their_own() {
    let place = trained("");
    let sources = lines(&place, "sources run --json");
    let by_name: BTreeMap<&str, &Value> =
        sources.iter().map(|source| (source["source"].as_str().unwrap(), source)).collect();
    let expected = [
        ("parrot", "unreliable"),
        ("border", "hard"),
        ("home", "different"),
        ("ann", "reliable"),
        ("ben", "reliable"),
        ("cleo", "reliable"),
    ];
    for (name, verdict) in expected {
        assert_eq!(by_name[name]["verdict"], verdict, "{}", by_name[name]);
        let sentence = by_name[name]["sentence"].as_str().unwrap();
        assert!(sentence.ends_with('.') && sentence.len() > 20, "{sentence}");
    }
    let number = |name: &str, column: &str| by_name[name][column].as_f64().unwrap();
    assert!(number("parrot", "noise_rate") > 0.8 && number("parrot", "noise_rate_low") > 0.7);
    assert!(number("ann", "noise_rate") < 0.1);
    assert!(number("ann", "disagreement") < 0.5 * number("border", "disagreement"));
    assert!(number("border", "disagreement") > number("border", "noise_rate"));
    assert!(number("border", "doubt") > number("ann", "doubt") + 0.1);
    assert!(number("home", "class_mix") > 0.4 && number("ann", "class_mix") < 0.3);

    let header = place.text("run/sources.csv").lines().next().unwrap().to_owned();
    let numbers = "verdict,noise_rate,noise_rate_low,noise_rate_high,disagreement,doubt,class_mix,";
    assert!(header.contains(numbers), "{header}");
    let shown = place.lapwing("sources run").assert().success();
    let shown = String::from_utf8_lossy(&shown.get_output().stdout).into_owned();
    for part in
        ["noise rate", "disagreement", "  parrot: Networks that have not seen its labels", "1 hard"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let page = place.text("run/report.html");
    for part in
        ["Noise rate", "Rows to check first", "its rows are difficult", "three further networks"]
    {
        assert!(page.contains(part), "{part}");
    }
    for (verdict, words) in
        [("suspect", "suspect or unreliable"), ("different", "different, hard, insufficient")]
    {
        let failed = place.lapwing(&format!("sources run --fail-on {verdict}")).assert().code(1);
        let said = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
        assert!(said.contains(words) && said.contains("parrot"), "{said}");
    }
}

#[test]
fn rows_come_worst_first_with_what_is_suggested_and_most_are_really_wrong() {
    let place = trained("");
    let table: Vec<String> = place.text("map.csv").lines().skip(1).map(str::to_owned).collect();
    let cells = |row: usize| -> Vec<&str> { table[row - 1].split(',').collect() };
    let truth = |row: usize| {
        let (a, b) = (cells(row)[0].parse::<f64>().unwrap(), cells(row)[1].parse::<f64>().unwrap());
        ["sw", "se", "nw", "ne"][usize::from(a > 0.5) + 2 * usize::from(b > 0.5)]
    };
    let rows = lines(&place, "rows run --json --top 100000");
    // All rows for training and validation: a fifth was for testing.
    assert_eq!(rows.len(), 1440);
    let wrong: Vec<f64> = rows.iter().map(|row| row["wrong"].as_f64().unwrap()).collect();
    assert!(wrong.windows(2).all(|pair| pair[0] >= pair[1]));
    let number = |row: &Value| row["row"].as_u64().unwrap() as usize;
    for row in &rows {
        assert_eq!(row["source"], cells(number(row))[2], "{row}");
        assert_eq!(row["label"], cells(number(row))[3], "{row}");
        assert_ne!(row["label"], row["suggestion"], "{row}");
    }
    let found = rows[..100].iter().filter(|row| row["label"] != truth(number(row))).count();
    let right = rows[..100].iter().filter(|row| row["suggestion"] == truth(number(row))).count();
    assert!(found >= 95 && right >= 90, "{found}, {right}");
    let csv = place.text("run/rows.csv");
    assert!(csv.starts_with(
        "row,source,label,wrong,label_probability,suggestion,suggestion_probability\n"
    ));
    assert_eq!(csv.lines().count(), 1441);

    let of_ann = lines(&place, "rows run --json --source ann --top 7");
    assert!(of_ann.len() == 7 && of_ann.iter().all(|row| row["source"] == "ann"));
    let shown = place.lapwing("rows run --top 3").assert().success();
    let shown = String::from_utf8_lossy(&shown.get_output().stdout).into_owned();
    assert!(shown.lines().count() == 4 && shown.contains("parrot") && shown.contains(" %"));
    place.refuses("rows run --source anne", &["no source \"anne\"", "\"ann\""]);
    let mut changed = place.text("run/rows.csv");
    changed.push('\n');
    std::fs::write(place.path("run/rows.csv"), changed).unwrap();
    place.refuses("rows run", &["rows.csv is not what the run wrote"]);
}

#[test]
fn without_folds_verdicts_rest_on_losses_and_no_row_is_judged() {
    let place = trained("--no-folds");
    assert!(place.text("run/config.toml").contains("folds = 0\n"));
    let source = &lines(&place, "sources run --json")[0];
    assert!(source["noise_rate"].is_null() && source["mean_loss"].is_f64(), "{source}");
    assert_eq!(place.text("run/rows.csv").lines().count(), 1);
    place.refuses("rows run", &["were not judged", "--no-folds"]);
    // In the file, too; and what was there goes.
    place.write("few.toml", "folds = 2\n");
    place.lapwing(&format!("{TRAIN} --out run --force --config few.toml")).assert().success();
    assert!(place.text("run/config.toml").contains("folds = 2\n"));
    assert_eq!(place.text("run/rows.csv").lines().count(), 1441);
    place.lapwing(&format!("{TRAIN} --out run --force --no-folds")).assert().success();
    assert_eq!(place.text("run/rows.csv").lines().count(), 1);
    place.refuses(&format!("{TRAIN} --out one --folds 1"), &["folds is 1", "from 2 to 20"]);
    place.write("doses.csv", &doses(300, 1));
    let words = "train doses.csv --target dose --source ward --epochs 2 -q --out doses";
    place.refuses(&format!("{words} --folds 3"), &["targets are values"]);
    place.lapwing(words).assert().success();
    place.refuses("rows doses", &["were not judged"]);
}

#[test]
fn killed_or_stopped_while_labels_are_judged_a_run_ends_in_the_same_bytes() {
    let place = Place::new();
    place.write("map.csv", &map(1800));
    // Trees keep no checkpoints.
    let train = format!("{TRAIN} --model mlp");
    place.lapwing(&format!("{train} --out whole")).assert().success();
    for (run, fold, signal) in
        [("a", "fold-1", "-KILL"), ("b", "fold-3", "-KILL"), ("c", "fold-2", "-INT")]
    {
        let words = format!("{train} --out {run} --checkpoint-every 0");
        let child = start(&place, &words).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let saved = place.path(run).join("checkpoint").join(fold).join("checkpoint.safetensors");
        while !saved.exists() {
            assert!(!place.path(run).join("report.html").exists(), "it ended too soon");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let id = child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        let ended = child.wait_with_output().unwrap();
        if signal == "-INT" {
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(said.contains("stopped while labels were judged, and saved"), "{said}");
            assert_eq!(ended.status.code(), Some(130));
        }
        place.lapwing(&format!("train --resume {run} -q")).assert().success();
        for name in ["model.safetensors", "sources.csv", "rows.csv", "report.html", "run.json"] {
            let same = place.read(&format!("whole/{name}")) == place.read(&format!("{run}/{name}"));
            assert!(same, "{run}: {name}");
        }
        assert!(!place.path(run).join("checkpoint").exists());
    }
}

#[test]
fn what_no_method_can_know_is_a_warning_with_quiet_in_the_report_and_in_json() {
    let place = Place::new();
    let warned = |words: &str, parts: &[&str]| {
        let done = place.lapwing(words).assert().success();
        let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        let object: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
        let listed = object["warnings"].to_string();
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
            assert!(listed.contains(part), "{part}: {listed}");
        }
        said
    };
    // One of three wards says no to all, and another is the only one that says maybe.
    let mut text = String::new();
    for (at, line) in wards(600, &["north", "south", "east"], 1).lines().enumerate() {
        let line = match at % 3 {
            _ if at == 0 => line.to_owned(),
            1 => line.replace(",yes", ",no"),
            2 if at % 4 == 0 => line.replace(",yes", ",maybe"),
            _ => line.to_owned(),
        };
        text += &format!("{line}\n");
    }
    place.write("three.csv", &text);
    let words = "train three.csv --target ill --source ward --epochs 3 -q --json --out three";
    let said =
        warned(words, &["“north” gives all its rows the same label", "“maybe” from “south”"]);
    assert!(!said.contains("two sources"), "{said}");
    let page = place.text("three/report.html");
    assert!(page.contains("gives all its rows the same label"));

    place.write("two.csv", &wards(400, &["north", "attic"], 1));
    let words = "train two.csv --target ill --source ward --epochs 3 -q --json --out two";
    warned(words, &["two sources only (“north” and “attic”)"]);

    place.write("doses.csv", &doses(600, 1));
    let words = "train doses.csv --target dose --source ward --epochs 3 -q --json --out doses";
    let said = warned(words, &[]);
    assert!(said.is_empty(), "{said}");
}

#[test]
fn a_table_of_a_few_rows_is_trained_on_and_said_to_be_too_small_to_be_judged() {
    let place = Place::new();
    place.write("wards.csv", &wards(30, &WARDS, 1));
    let words = "train wards.csv --target ill --source ward --epochs 2 --out run";
    let done = place.lapwing(words).assert().success();
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("24 rows are too few"), "{said}");
    assert!(place.text("run/report.html").contains("24 rows are too few"));
}

#[test]
fn the_cost_is_said_before_it_is_spent() {
    let place = Place::new();
    place.write("map.csv", &map(600));
    let words = TRAIN.replace(" -q", "").replace("--epochs 60", "--epochs 2");
    let done = place.lapwing(&format!("{words} --out run")).assert().success();
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("judging labels by 3 more networks of"), "{said}");
    assert!(said.contains("each of 480 rows by one that has not seen it (--no-folds"), "{said}");
}
