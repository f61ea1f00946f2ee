//! `predict` of tables that are long, and of those that come through a pipe.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use tables::{Place, WARDS, wards};

/// More than two parts.
const ROWS: usize = 40_000;

/// A run on `wards.csv`, of which `floor` is a column of names.
fn trained() -> Place {
    let place = Place::new();
    let floors = wards(300, &WARDS, 1).replace("a,b,", "a,b,floor,");
    let mut lines = floors.lines();
    let mut text = lines.next().unwrap().to_owned() + "\n";
    for (at, line) in lines.enumerate() {
        let (a, rest) = line.split_once(',').unwrap();
        let (b, rest) = rest.split_once(',').unwrap();
        text += &format!("{a},{b},{},{rest}\n", ["ground", "first"][at % 2]);
    }
    place.write("wards.csv", &text);
    let train = "train wards.csv --target ill --source ward --epochs 2 --out run --quiet";
    place.lapwing(train).assert().success();
    place
}

fn long() -> String {
    let mut text = "floor,b,a\n".to_owned();
    for row in 0..ROWS {
        let floor = if row < 30_000 { "ground" } else { ["cellar", "roof"][row % 2] };
        text += &format!("{floor},0.{},0.{}\n", row % 997, row % 89);
    }
    text
}

#[test]
fn a_long_table_is_predicted_as_its_pieces_are_from_a_file_and_from_a_pipe() {
    let place = trained();
    let text = long();
    place.write("long.csv", &text);
    let done = place.lapwing("predict run long.csv").assert().success();
    let whole = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    let rows: Vec<&str> =
        whole.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(rows, (1..=ROWS).map(|row| row.to_string()).collect::<Vec<_>>());
    // Counted over all parts, also those in which nothing is new.
    let message = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    let warning =
        r#"column "floor": 10000 of 40000 values were not in training ("cellar", "roof")"#;
    assert_eq!(message.matches("warning").count(), 1, "{message}");
    assert!(message.contains(warning), "{message}");

    let piped = place.lapwing("predict run -").write_stdin(text.clone()).assert().success();
    assert_eq!(piped.get_output().stdout, whole.as_bytes());

    let lines: Vec<&str> = text.lines().collect();
    let mut pieces = Vec::new();
    for piece in lines[1..].chunks(7_001) {
        let table = format!("{}\n{}\n", lines[0], piece.join("\n"));
        let done = place.lapwing("predict run -").write_stdin(table).assert().success();
        let out = String::from_utf8(done.get_output().stdout.clone()).unwrap();
        pieces.extend(out.lines().skip(1).map(|line| line.split_once(',').unwrap().1.to_owned()));
    }
    let whole: Vec<&str> =
        whole.lines().skip(1).map(|line| line.split_once(',').unwrap().1).collect();
    assert_eq!(whole, pieces);
}

#[test]
fn a_value_that_does_not_fit_far_down_leaves_no_file() {
    let place = trained();
    place.write("long.csv", &format!("{}ground,low,0.5\n", long()));
    place
        .refuses("predict run long.csv --out p.csv", &["long.csv, line 40002", "\"b\"", "\"low\""]);
    let refused = place.lapwing("predict run -").write_stdin("a,b,floor\n").assert().code(2);
    assert!(refused.get_output().stdout.is_empty());
    let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(message.contains("standard input"), "{message}");
    let missing =
        place.lapwing("predict run -").write_stdin("a,floor\n0,ground\n").assert().code(2);
    let message = String::from_utf8_lossy(&missing.get_output().stderr).into_owned();
    assert!(message.contains("standard input") && message.contains("\"b\""), "{message}");
    assert!(message.contains("hint: the model reads the columns"), "{message}");
}

/// Rows behind a blank line were numbered one too low in a file; a pipe is no better place for it.
#[test]
fn in_a_pipe_of_one_column_a_blank_line_is_a_missing_value() {
    let place = Place::new();
    let table = wards(300, &WARDS, 1);
    place.write("one.csv", &table);
    let train = "train one.csv --target ill --source ward --ignore b --epochs 2 --out one --quiet";
    place.lapwing(train).assert().success();
    for text in ["a\n-2\n\n2\n-1.5\n", "\n\"a\"\r\n-2\r\n\r\n2\r\n-1.5\r\n"] {
        let done = place.lapwing("predict one -").write_stdin(text).assert().success();
        let out = String::from_utf8(done.get_output().stdout.clone()).unwrap();
        assert_eq!(out.lines().count(), 5, "{text:?}: {out}");
    }
}

/// That a file of ONNX names these operators, inputs and outputs; `python/tests/test_onnx.py` runs it.
fn names(place: &Place, file: &str, parts: &[&str]) {
    let bytes = place.read(file);
    for part in parts {
        assert!(bytes.windows(part.len()).any(|found| found == part.as_bytes()), "{part}");
    }
}

#[test]
fn models_on_a_table_are_exported() {
    let place = Place::new();
    place.write("wards.csv", &wards(300, &WARDS, 5));
    let train = "train wards.csv --target ill --source ward --epochs 2 --no-folds -q";
    for (model, operator) in
        [("mlp", "MatMul"), ("linear", "MatMul"), ("trees", "TreeEnsembleRegressor")]
    {
        place.lapwing(&format!("{train} --model {model} --out {model}")).assert().success();
        place.lapwing(&format!("export {model} --onnx {model}.onnx")).assert().success();
        let parts = [operator, "prediction", "probabilities", "lapwing"];
        names(&place, &format!("{model}.onnx"), &parts);
    }
    place.refuses("export mlp --onnx mlp.onnx", &["exists already"]);
    place.lapwing("export mlp --onnx mlp.onnx --force").assert().success();
    place.refuses("export nobody --onnx a.onnx", &["nobody: there is no such run"]);
}

#[test]
fn what_cannot_be_exported_is_refused_with_the_reason() {
    let place = Place::new();
    let mut text = "day,note,more,ward,y\n".to_owned();
    for row in 0..80 {
        let (word, other) = (["calm", "loud"][row % 2], ["a", "b", "c"][row % 3]);
        let day = format!("2024-0{}-1{}", 1 + row % 9, row % 7);
        text += &format!("{day},{word} {other},{other} and {word},w{},{}\n", row % 4, row % 2);
    }
    place.write("notes.csv", &text);
    let train = "train notes.csv --target y --source ward --epochs 1 --no-folds -q";
    for (out, flags) in [
        ("dates", "--ignore note,more --model mlp"),
        ("grown", "--ignore note,more --model trees"),
        ("beside", "--text note --ignore more"),
        ("both", "--text note,more --ignore day --model lstm --hidden 4"),
        ("bag", "--text note,more --ignore day"),
    ] {
        place.lapwing(&format!("{train} {flags} --out {out}")).assert().success();
    }
    for run in ["dates", "grown", "beside"] {
        let parts = ["cannot be exported", "\"day\"", "dates", "--ignore"];
        place.refuses(&format!("export {run} --onnx model.onnx"), &parts);
    }
    place.refuses("export both --onnx model.onnx", &["several columns of text", "--model bag"]);
    place.lapwing("export bag --onnx model.onnx").assert().success();
    names(&place, "model.onnx", &["LabelEncoder", "note", "more", "calm"]);
}
