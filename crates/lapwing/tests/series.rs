//! `train --series`: numbers over time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::{Float32Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use serde_json::Value;
use tables::{Numbers, Place, killed};

const TRAIN: &str =
    "train waves.parquet --target shape --source sensor --series x,y --epochs 12 --patience 12 -q";
const SENSORS: [&str; 5] = ["a", "b", "c", "d", "<loose>"];

/// Two channels of 9 to 20 moments, a sensor and the shape of the wave: slow or fast. The last sensor says anything.
struct Waves {
    x: Vec<Vec<f32>>,
    y: Vec<Vec<f32>>,
    sensors: Vec<&'static str>,
    shapes: Vec<&'static str>,
}

fn waves(rows: usize, seed: u64) -> Waves {
    let mut numbers = Numbers::new(seed);
    let mut waves = Waves { x: Vec::new(), y: Vec::new(), sensors: Vec::new(), shapes: Vec::new() };
    for row in 0..rows {
        let slow = numbers.next() < 0.5;
        let (phase, length) = (6.0 * numbers.next(), 9 + (12.0 * numbers.next()) as usize);
        let speed = if slow { 0.4 } else { 1.3 };
        let mut wave = |shift: f64, size: f64| -> Vec<f32> {
            let at = |t: usize| (speed * t as f64 + phase + shift).sin() + 0.2 * numbers.next();
            (0..length).map(at).map(|value| (size * value) as f32).collect()
        };
        waves.x.push(wave(0.0, 1.0));
        waves.y.push(wave(1.5, 100.0));
        let sensor = SENSORS[row % SENSORS.len()];
        let said = if sensor == "<loose>" { numbers.next() < 0.5 } else { slow };
        waves.sensors.push(sensor);
        waves.shapes.push(if said { "slow" } else { "fast" });
    }
    waves
}

fn lists(rows: &[Vec<f32>]) -> ArrayRef {
    let mut builder = ListBuilder::new(Float32Builder::new());
    for row in rows {
        row.iter().for_each(|&value| {
            builder.values().append_option(Some(value).filter(|value| value.abs() < 1e9));
        });
        builder.append(true);
    }
    Arc::new(builder.finish())
}

fn texts(words: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(words))
}

fn save(place: &Place, name: &str, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(place.path(name)).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

impl Waves {
    fn save(&self, place: &Place, name: &str) {
        let columns = vec![
            ("x", lists(&self.x)),
            ("y", lists(&self.y)),
            ("sensor", texts(&self.sensors)),
            ("shape", texts(&self.shapes)),
        ];
        save(place, name, columns);
    }

    /// The first channel as a table of text with a column for each moment, in an order that is not theirs.
    fn as_moments(&self) -> String {
        let longest = self.x.iter().map(Vec::len).max().unwrap();
        let mut text = "shape,sensor".to_owned();
        let order: Vec<usize> = (0..longest).rev().collect();
        order.iter().for_each(|at| write!(text, ",t_{at}").unwrap());
        for ((x, sensor), shape) in self.x.iter().zip(&self.sensors).zip(&self.shapes) {
            write!(text, "\n{shape},{sensor}").unwrap();
            for &at in &order {
                let value = x.get(at).map_or_else(String::new, ToString::to_string);
                write!(text, ",{value}").unwrap();
            }
        }
        text + "\n"
    }
}

fn stdout(place: &Place, words: &str) -> String {
    let done = place.lapwing(words).assert().success();
    String::from_utf8(done.get_output().stdout.clone()).unwrap()
}

#[test]
fn series_are_learnt_from_judged_shown_and_predicted() {
    let place = Place::new();
    waves(500, 1).save(&place, "waves.parquet");
    let output =
        place.lapwing(&format!("{} --out run", TRAIN.replace(" -q", ""))).assert().success();
    let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(said.contains("resnet1d"), "{said}");
    let sources = place.text("run/sources.csv");
    for sensor in SENSORS {
        let line = sources.lines().find(|line| line.starts_with(&format!("{sensor},"))).unwrap();
        let bad = line.split(',').any(|cell| cell == "unreliable");
        assert_eq!(bad, sensor == "<loose>", "{sources}");
    }
    let page = place.text("run/report.html");
    assert!(page.contains("<svg class=\"spark\"") && page.contains("class=\"typical\" d=\"M"));
    assert!(!page.contains("<loose>") && page.len() < 1_500_000, "{}", page.len());
    let config = place.text("run/config.toml");
    assert!(config.contains("series = [\"x\", \"y\"]"), "{config}");

    let mut clean = waves(300, 2);
    let kept = |row: &usize| clean.sensors[*row] != "<loose>";
    let kept: Vec<usize> = (0..300).filter(kept).collect();
    clean = Waves {
        x: kept.iter().map(|&row| clean.x[row].clone()).collect(),
        y: kept.iter().map(|&row| clean.y[row].clone()).collect(),
        sensors: kept.iter().map(|&row| clean.sensors[row]).collect(),
        shapes: kept.iter().map(|&row| clean.shapes[row]).collect(),
    };
    clean.save(&place, "clean.parquet");
    let found: Value =
        serde_json::from_str(&stdout(&place, "evaluate run clean.parquet --json")).unwrap();
    let all = if found["all"].is_null() { &found } else { &found["all"] };
    assert!(all["accuracy"].as_f64().unwrap() > 0.9, "{found}");
    let predicted = stdout(&place, "predict run clean.parquet");
    assert_eq!(predicted.lines().count(), 241, "{predicted}");
    assert!(stdout(&place, "rows run --top 3").contains("<loose>"));
}

#[test]
fn a_killed_training_on_series_goes_on_to_the_same_bytes() {
    let place = Place::new();
    waves(200, 1).save(&place, "waves.parquet");
    let train = format!("{TRAIN} --no-folds").replace("epochs 12", "epochs 4");
    place.lapwing(&format!("{train} --out whole --threads 1")).assert().success();
    killed(&place, &train, "cut");
    place.lapwing("train --resume cut -q --threads 2").assert().success();
    place.lapwing("train --config whole/config.toml -q --out again").assert().success();
    for name in ["model.safetensors", "model.json", "sources.csv", "report.html"] {
        let whole = place.read(&format!("whole/{name}"));
        assert!(whole == place.read(&format!("cut/{name}")), "{name}");
        assert!(whole == place.read(&format!("again/{name}")), "{name}");
    }
}

#[test]
fn a_column_for_each_moment_is_a_series_in_the_order_of_the_numbers() {
    let place = Place::new();
    let waves = waves(200, 1);
    place.write("moments.csv", &waves.as_moments());
    waves.save(&place, "waves.parquet");
    let flags = "--target shape --source sensor --epochs 1 --no-folds -q --out";
    place.lapwing(&format!("train moments.csv --series t_* {flags} moments")).assert().success();
    place.lapwing(&format!("train waves.parquet --series x {flags} lists")).assert().success();
    // The same numbers, however they are kept.
    assert!(place.read("moments/model.safetensors") == place.read("lists/model.safetensors"));
    assert_eq!(
        stdout(&place, "predict moments moments.csv"),
        stdout(&place, "predict lists waves.parquet")
    );
    let piped = place.lapwing("predict moments -").write_stdin(waves.as_moments()).assert();
    assert_eq!(
        String::from_utf8(piped.success().get_output().stdout.clone()).unwrap(),
        stdout(&place, "predict moments moments.csv")
    );
    place.refuses("predict lists moments.csv", &["moments.csv", "no column \"x\""]);
    place.write("x.csv", "x\n[1.0 2.0]\n");
    place.refuses("predict lists x.csv", &["x.csv, line 2", "\"x\"", "a list of numbers"]);
    let text = waves.as_moments();
    let gap = text.lines().nth(3).unwrap().rsplit_once(',').unwrap().0;
    place.write("gap.csv", &text.replacen(text.lines().nth(3).unwrap(), &format!("{gap},"), 1));
    place.refuses("predict moments gap.csv", &["gap.csv, line 4", "\"t_0\"", "no gaps"]);
    place.write("word.csv", &text.replacen(text.lines().nth(3).unwrap(), &format!("{gap},x"), 1));
    place.refuses("predict moments word.csv", &["word.csv, line 4", "\"t_0\"", "numeric"]);
}

#[test]
fn a_source_of_short_series_is_told_of_by_their_length_however_they_are_kept() {
    let place = Place::new();
    let mut waves = waves(400, 5);
    for (at, x) in waves.x.iter_mut().enumerate().filter(|(at, _)| waves.sensors[*at] == "b") {
        x.truncate(6 + at % 3);
    }
    place.write("moments.csv", &waves.as_moments());
    save(
        &place,
        "waves.parquet",
        vec![
            ("x", lists(&waves.x)),
            ("sensor", texts(&waves.sensors)),
            ("shape", texts(&waves.shapes)),
        ],
    );
    let flags = "--target shape --source sensor --epochs 3 --no-folds -q --out";
    place.lapwing(&format!("train moments.csv --series t_* {flags} moments")).assert().success();
    place.lapwing(&format!("train waves.parquet --series x {flags} lists")).assert().success();
    let (wide, list) =
        (stdout(&place, "sources moments --json"), stdout(&place, "sources lists --json"));
    assert!(list.contains("length of x"), "{list}");
    assert_eq!(wide.replace("t_0 to t_19", "x"), list);
}

#[test]
fn series_that_cannot_be_are_named_with_row_and_column() {
    let place = Place::new();
    let train = format!("{TRAIN} --out run");
    let refused = |change: &dyn Fn(&mut Waves), parts: &[&str]| {
        let mut waves = waves(60, 1);
        change(&mut waves);
        waves.save(&place, "waves.parquet");
        place.refuses(&train, parts);
    };
    let row = ["waves.parquet, row 8", "column \"y\""];
    refused(&|w| w.y[7].truncate(3), &[row[0], row[1], "3 moments", "\"x\""]);
    refused(&|w| w.y[7][2] = f32::NAN, &[row[0], row[1], "place 3", "not finite"]);
    refused(&|w| w.y[7][2] = f32::INFINITY, &[row[0], row[1], "place 3"]);
    refused(&|w| w.y[7].clear(), &[row[0], row[1], "no numbers"]);
    refused(&|w| w.y.iter_mut().for_each(Vec::clear), &["row 1", row[1], "no numbers"]);
    refused(&|w| w.y[7] = vec![0.0; 70_000], &[row[0], row[1], "70000 moments"]);

    waves(60, 1).save(&place, "waves.parquet");
    let asked = |series: &str| TRAIN.replace("--series x,y", &format!("--series {series}"));
    place.refuses(&asked("x,z"), &["no column \"z\""]);
    let vectors = TRAIN.replace("--series x,y", "");
    place.refuses(&vectors, &["\"x\"", "numbers, found", "hint: --ignore", "--series"]);
    place.refuses(&asked("q*"), &["no column \"q*\""]);
    place.refuses(&asked("x,x"), &["\"x\"", "twice"]);
    place.refuses(&asked("sensor"), &["\"sensor\"", "lists of numbers"]);
    place.refuses(&asked("x --ignore x"), &["\"x\"", "ignored", "series"]);
    place.refuses(&format!("{TRAIN} --model mlp"), &["mlp", "rows of numbers", "series"]);
    place.refuses(&format!("{TRAIN} --model trees"), &["trees", "series"]);
    place.refuses(&format!("{TRAIN} --hidden 8"), &["resnet1d", "hidden"]);
    let mut words = ListBuilder::new(StringBuilder::new());
    (0..4).for_each(|row: u32| words.append_value([Some(row.to_string())]));
    let columns = vec![
        ("x", Arc::new(words.finish()) as ArrayRef),
        ("sensor", texts(&["a", "b", "a", "b"])),
        ("shape", texts(&["a", "b", "b", "a"])),
    ];
    save(&place, "waves.parquet", columns);
    place.refuses(&asked("x"), &["\"x\"", "a list of something other than numbers"]);
}

#[test]
fn a_longer_series_than_any_in_training_is_cut_with_a_warning_and_forged_scales_are_refused() {
    let place = Place::new();
    waves(60, 1).save(&place, "waves.parquet");
    let train = TRAIN.replace("epochs 12 --patience 12", "epochs 1");
    place.lapwing(&format!("{train} --no-folds --out run")).assert().success();
    let mut long = waves(10, 2);
    long.x[3] = vec![0.5; 40];
    long.y[3] = vec![0.5; 40];
    long.save(&place, "long.parquet");
    let done = place.lapwing("predict run long.parquet").assert().success();
    let said = String::from_utf8(done.get_output().stderr.clone()).unwrap();
    assert!(said.contains("1 of 10") && said.contains("more than"), "{said}");

    // A table that was replaced since: one with gaps, and one whose lists are words.
    let mut gaps = waves(10, 2);
    gaps.y[3][2] = f32::NAN;
    gaps.save(&place, "gaps.parquet");
    let parts = ["gaps.parquet, row 4", "\"y\"", "place 3", "not finite"];
    place.refuses("predict run gaps.parquet --out said.csv", &parts);
    let words = vec![("x", texts(&["a", "b"])), ("y", texts(&["a", "b"]))];
    save(&place, "words.parquet", words);
    place.refuses("predict run words.parquet --out said.csv", &["words.parquet", "\"x\""]);

    let whole = place.text("run/model.json");
    let edit = |change: &dyn Fn(&mut Value)| {
        let mut model: Value = serde_json::from_str(&whole).unwrap();
        change(&mut model["preprocessing"]);
        place.write("run/model.json", &model.to_string());
        place.refuses("predict run long.parquet", &["model.json"]);
    };
    edit(&|scale| scale["longest"] = 0.into());
    edit(&|scale| scale["longest"] = 4_000_000_000_u32.into());
    edit(&|scale| scale["channels"][0]["std"] = 0.into());
    edit(&|scale| scale["channels"] = Value::Array(Vec::new()));
    edit(&|scale| scale["schema"]["series"] = Value::Array(Vec::new()));
    edit(&|scale| scale["schema"]["series"][0][0] = "sensor".into());
}

#[test]
fn methods_are_compared_on_series() {
    let place = Place::new();
    waves(100, 1).save(&place, "waves.parquet");
    let said = stdout(
        &place,
        "compare waves.parquet --target shape --source sensor --series x,y --methods standard,lap --repeats 1 \
         --epochs 1 -q",
    );
    assert!(said.contains("standard") && said.contains("lap"), "{said}");
}
