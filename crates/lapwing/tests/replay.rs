//! `lapwing replay`, run as a user runs it.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use assert_cmd::Command;
use flate2::read::GzDecoder;
use parquet::arrow::ArrowWriter;
use tempfile::TempDir;

fn lapwing() -> Command {
    Command::cargo_bin("lapwing").unwrap()
}

fn golden(name: &str) -> String {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let mut text = String::new();
    GzDecoder::new(File::open(golden.join(format!("{name}.csv.gz"))).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text
}

fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(|row| row.unwrap()).collect()
}

/// A file in a directory that is removed at the end of the test.
fn file(content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("losses.csv");
    std::fs::write(&path, content).unwrap();
    (directory, path)
}

fn replay(path: &Path, arguments: &[&str]) -> Output {
    lapwing().arg("replay").arg(path).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Exit code 2, nothing that looks like a panic, and a message with all of the given parts.
fn refused(output: &Output, parts: &[&str]) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

#[test]
fn a_trace_of_the_authors_is_replayed_exactly() {
    let trace = rows(&golden("trace_H50_d1.0_l1.0"));
    let mut log = String::from("step,source,loss\n");
    for row in &trace {
        for source in 0..5 {
            writeln!(log, "{},{source},{}", row["step"], row[&format!("loss_{source}")]).unwrap();
        }
    }
    let (_directory, path) = file(log);
    let output = replay(&path, &["--history", "50", "--leniency", "1", "--warmup", "100"]);
    let replayed = rows(&stdout(&output));
    assert_eq!(replayed.len(), trace.len() * 5);
    for (at, row) in replayed.iter().enumerate() {
        let (expected, source) = (&trace[at / 5], at % 5);
        assert_eq!(row["step"], expected["step"]);
        assert_eq!(row["source"], source.to_string());
        assert_eq!(row["loss"].parse(), expected[&format!("loss_{source}")].parse::<f64>());
        assert_eq!(row["unreliability"], expected[&format!("C_{source}")]);
        let weight: f64 = row["weight"].parse().unwrap();
        let multiplier: f64 = expected[&format!("m_{source}")].parse().unwrap();
        assert!((weight - multiplier).abs() < 2e-7);
    }
}

fn check_package_trace(name: &str, arguments: &[&str]) {
    let (_directory, path) = file(golden(&format!("pkg_{name}_samples")));
    let replayed = rows(&stdout(&replay(&path, arguments)));
    let states = rows(&golden(&format!("pkg_{name}_state")));
    for row in &replayed {
        let state = &states[row["step"].parse::<usize>().unwrap()];
        let expected = &state[&format!("C_{}", row["source"])];
        assert_eq!(&row["unreliability"], expected, "step {}", row["step"]);
    }
    assert!(replayed.len() > states.len());
}

#[test]
fn traces_of_the_package_are_replayed_exactly() {
    check_package_trace("partial", &["--history", "5"]);
    check_package_trace(
        "late",
        &["--history", "10", "--warmup", "30", "--strength", "2", "--leniency", "0.5"],
    );
    check_package_trace("tie", &["--history", "1", "--leniency", "0", "--ties", "package"]);
}

#[test]
fn ties_follow_the_paper_unless_asked_otherwise() {
    let (_directory, path) = file(golden("pkg_tie_samples"));
    let paper = rows(&stdout(&replay(&path, &["--history", "1", "--leniency", "0"])));
    assert_eq!(paper[0]["unreliability"], "0");
}

#[test]
fn losses_that_are_not_finite_are_counted_and_reported_and_poison_nobody() {
    let (_directory, path) = file(golden("pkg_quirk_nan_samples"));
    let output = replay(&path, &["--history", "3", "--leniency", "1", "--summary"]);
    let summary = rows(&stdout(&output));
    let column = |name: &str| summary.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
    assert_eq!(column("source"), ["0", "1", "2"]);
    assert_eq!(column("unreliability"), ["0", "10", "0"]);
    assert_eq!(column("nonfinite"), ["1", "0", "0"]);
    assert_eq!(column("first_departure_step"), ["", "2", ""]);
    let remarks = String::from_utf8(output.stderr).unwrap();
    assert!(remarks.contains("not finite: \"0\" 1"), "{remarks}");

    let steps = rows(&stdout(&replay(&path, &["--history", "3", "--leniency", "1"])));
    let poisoned = steps.iter().find(|row| row["step"] == "5" && row["source"] == "0").unwrap();
    assert_eq!((poisoned["loss"].as_str(), poisoned["unreliability"].as_str()), ("", "0"));
}

#[test]
fn the_loss_of_a_row_is_the_mean_of_the_finite_losses_in_order_of_first_appearance() {
    let (_directory, path) = file(
        "step,source,loss,note\n7,b,1,x\n7,a,0.1,\"y,z\"\n7,b,2,\n7,b,inf,\n\
         9,\"q\"\"uoted, name\",-3e-9,\n9,a,,\n",
    );
    let expected = "step,source,loss,unreliability,weight\n7,b,1.5,0,1\n7,a,0.1,0,1\n\
                    9,\"q\"\"uoted, name\",-3e-9,0,1\n9,a,,0,1\n";
    assert_eq!(stdout(&replay(&path, &[])), expected);
    // What was written can be read again.
    let (_directory, again) = file(expected);
    assert_eq!(stdout(&replay(&again, &[])), expected);
}

#[test]
fn json_has_one_object_per_line() {
    let (_directory, path) = file("step,source,loss\n0,a,0.5\n0,b,\n");
    let steps = stdout(&replay(&path, &["--json"]));
    let parsed: Vec<serde_json::Value> =
        steps.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first = serde_json::json!(
        {"step": 0, "source": "a", "loss": 0.5, "unreliability": 0, "weight": 1.0}
    );
    assert_eq!(parsed[0], first);
    assert!(parsed[1]["loss"].is_null());
    let summary = stdout(&replay(&path, &["--json", "--summary"]));
    assert_eq!(summary.lines().count(), 2);
}

fn noisy_log() -> String {
    let mut log = String::from("step,source,loss\n");
    for step in 0..400 {
        for (at, source) in ["a", "b", "c", "d"].iter().enumerate() {
            let jitter = f64::from((step * 7 + at as i32 * 3) % 11) * 0.01;
            let loss = if *source == "c" { 0.9 + jitter } else { 0.3 + jitter };
            writeln!(log, "{step},{source},{loss}").unwrap();
        }
    }
    log
}

#[test]
fn parquet_stdin_and_gzip_give_what_csv_gives() {
    let log = noisy_log();
    let (directory, path) = file(&log);
    let expected = stdout(&replay(&path, &[]));

    let piped = lapwing().args(["replay", "-"]).write_stdin(log.clone()).output().unwrap();
    assert_eq!(stdout(&piped), expected);

    let table = rows(&log);
    let text = |name: &str| table.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
    let steps: Vec<i64> = text("step").iter().map(|s| s.parse().unwrap()).collect();
    let losses: Vec<f64> = text("loss").iter().map(|s| s.parse().unwrap()).collect();
    let batch = RecordBatch::try_from_iter([
        ("it", Arc::new(Int64Array::from(steps)) as ArrayRef),
        ("who", Arc::new(StringArray::from(text("source")))),
        ("nll", Arc::new(Float64Array::from(losses))),
    ])
    .unwrap();
    let parquet = directory.path().join("losses.parquet");
    let created = File::create(&parquet).unwrap();
    let mut writer = ArrowWriter::try_new(created, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let names = ["--step", "it", "--source", "who", "--loss", "nll"];
    assert_eq!(stdout(&replay(&parquet, &names)), expected);

    let gzip = directory.path().join("losses.csv.gz");
    let mut encoder =
        flate2::write::GzEncoder::new(File::create(&gzip).unwrap(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, log.as_bytes()).unwrap();
    encoder.finish().unwrap();
    assert_eq!(stdout(&replay(&gzip, &[])), expected);

    // A file that breaks off is an error, whatever its format.
    for (whole, arguments) in [(&parquet, &names[..]), (&gzip, &[])] {
        let bytes = std::fs::read(whole).unwrap();
        std::fs::write(whole, &bytes[..bytes.len() / 2]).unwrap();
        let name = whole.file_name().unwrap().to_str().unwrap();
        refused(&replay(whole, arguments), &[name, "cut short"]);
    }
}

#[test]
fn the_leniency_can_be_chosen_by_its_false_alarms() {
    let (_directory, path) = file(noisy_log());
    let chosen = stdout(&replay(&path, &["--false-alarm", "0.3", "--history", "5"]));
    let leniency = lapwing_core::leniency_for_false_alarm(0.3, 4, 5).unwrap().to_string();
    assert_eq!(chosen, stdout(&replay(&path, &["--leniency", &leniency, "--history", "5"])));
    let seldom = stdout(&replay(&path, &["--false-alarm", "1e-20", "--history", "5"]));
    assert_ne!(chosen, seldom, "the leniency is above the distance of the worst source");
    let mut piped = lapwing();
    piped.args(["replay", "-", "--false-alarm", "0.3"]).write_stdin(noisy_log());
    let piped = piped.output().unwrap();
    refused(&piped, &["--false-alarm needs the number of sources", "--leniency"]);
    refused(&replay(&path, &["--false-alarm", "0.7"]), &["false-alarm probability is 0.7"]);
    refused(&replay(&path, &["--false-alarm", "0.1", "--leniency", "1"]), &["cannot be used with"]);
}

#[test]
fn other_weightings_are_offered() {
    let (_directory, path) = file(noisy_log());
    let last = |weighting| {
        let output = replay(&path, &["--weighting", weighting, "--summary"]);
        rows(&stdout(&output))[2]["weight"].parse::<f64>().unwrap()
    };
    // c is above the threshold at each of the 376 steps with complete histories.
    assert!((last("exponential") - (-0.005f64 * 376.0).exp()).abs() < 1e-12);
    assert!((last("tanh2") - (1.0 - (0.005f64 * 376.0).tanh().powi(2))).abs() < 1e-12);
    assert_eq!(last("cut"), 0.0);
}

#[test]
fn a_history_can_be_read_as_evidence() {
    // b is lower than the others but for a spike in every history.
    let mut log = "step,source,loss\n".to_owned();
    for step in 0..100 {
        let spiked = if step % 5 == 0 { "9.0" } else { "0.05" };
        log.push_str(&format!("{step},a,0.{}\n{step},b,{spiked}\n{step},c,0.3\n", 2 + step % 3));
    }
    let (_directory, path) = file(log);
    let last = |reading: &[&str]| {
        let flags = [&["--history", "5", "--summary"], reading].concat();
        rows(&stdout(&replay(&path, &flags)))[1]["unreliability"].clone()
    };
    assert_eq!(last(&[]), "96");
    assert_eq!(last(&["--reading", "mean"]), "96");
    assert_eq!(last(&["--reading", "evidence"]), "0");
    refused(&replay(&path, &["--reading", "tea-leaves"]), &["mean, evidence"]);
}

#[test]
fn a_file_appears_only_when_complete_and_is_not_replaced_unasked() {
    let (directory, path) = file(noisy_log());
    let out = directory.path().join("weights.csv");
    let plain = ["--out", out.to_str().unwrap()];
    let forced = ["--force", "--out", out.to_str().unwrap()];
    assert_eq!(stdout(&replay(&path, &plain)), "");
    let written = std::fs::read_to_string(&out).unwrap();
    assert_eq!(written, stdout(&replay(&path, &[])));

    refused(&replay(&path, &plain), &["weights.csv", "--force"]);
    std::fs::write(&path, "step,source,loss\n0,a,0.5\n0,b,oops\n").unwrap();
    refused(&replay(&path, &forced), &["oops"]);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), written, "a failed run changed the file");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "something is left behind");

    std::fs::write(&path, "step,source,loss\n0,a,0.5\n").unwrap();
    stdout(&replay(&path, &forced));
    assert_ne!(std::fs::read_to_string(&out).unwrap(), written);
}

#[test]
fn bad_logs_are_refused_with_file_line_and_column() {
    let long = "x".repeat(10 << 20);
    let with_long = |before: &str, after: &str| format!("{before}{long}{after}\n").into_bytes();
    let header = "step,source,loss\n";
    let long_name = format!("{header}0,{},1\n", &long[..5000]);
    let cases: &[(&[u8], &[&str])] = &[
        (b"", &["losses.csv", "empty"]),
        (b"\n\n", &["losses.csv"]),
        (b"step,source,loss\n", &["losses.csv", "no data rows"]),
        (b"step,source\n0,a\n", &["no column \"loss\"", "step, source", "hint: options such as"]),
        (b"step,source,loss,loss\n0,a,1,2\n", &["both called \"loss\""]),
        (b"step,source,loss\n0,a,0.5\n0,b\n", &["losses.csv, line 3", "3 fields", "found 2"]),
        (b"step,source,loss\n0,a,0.5\n0,b,1,2\n", &["line 3", "found 4"]),
        (
            b"step,source,loss\n0,a,0.5\n0,b,hi\n",
            &["line 3, column \"loss\"", "a number", "\"hi\""],
        ),
        (b"step,source,loss\n0,a,0.5\none,b,1\n", &["line 3, column \"step\"", "\"one\""]),
        (b"step,source,loss\n1.5,a,0.5\n", &["line 2, column \"step\"", "a whole number"]),
        (b"step,source,loss\n0,,0.5\n", &["line 2, column \"source\""]),
        (
            b"step,source,loss\n3,a,0.5\n\n2,a,0.5\n",
            &["line 4, column \"step\"", "2 comes after step 3"],
        ),
        (b"step,source,loss\n0,a\xff,0.5\n", &["line 2, column \"source\"", "UTF-8"]),
        (b"st\xffep,source,loss\n0,a,0.5\n", &["line 1", "UTF-8"]),
        (b"step,source,loss\n0,\"a,0.5\n0,b,1\n", &["line 2", "never closed"]),
        (&with_long(&format!("{header}0,"), ",1"), &["losses.csv, line 2", "longer than"]),
        (&with_long(&format!("{header}0,a,"), ""), &["losses.csv, line 2", "longer than"]),
        (&with_long("step,source,loss,note\n0,a,1,", ""), &["line 2", "longer than"]),
        (long_name.as_bytes(), &["line 2, column \"source\"", "4096"]),
        (b"PAR1 is not enough to be Parquet", &["losses.csv"]),
        (b"PAR1PAR1", &["losses.csv"]),
        (b"\x1f\x8b\x08 this is not gzip", &["losses.csv"]),
        (b"\x28\xb5\x2f\xfd this is not zstd", &["losses.csv"]),
    ];
    for (content, parts) in cases {
        let (_directory, path) = file(content);
        refused(&replay(&path, &[]), parts);
        if content.first().is_none_or(|&byte| byte == b's' || byte == b'\n') {
            let piped = lapwing().args(["replay", "-"]).write_stdin(*content).output().unwrap();
            let parts: Vec<_> =
                parts.iter().map(|part| part.replace("losses.csv", "standard input")).collect();
            refused(&piped, &parts.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}

#[test]
fn lines_are_counted_through_blank_lines_and_line_breaks_in_fields() {
    let header = "step,source,loss\n";
    for (body, line) in [
        ("0,a,x\n", 2),
        ("0,a,x", 2),
        ("\n\n0,a,x", 4),
        ("\n\n0,a,x\n", 4),
        ("0,a,1\r\n\r\n0,a,x\r\n", 4),
        ("0,\"a\nb\",1\n0,a,x\n", 4),
        ("\n0,\"a\n\nb\",x\n", 3),
        ("\n0,\"a\n\nb\",x", 3),
    ] {
        let (_directory, path) = file(format!("{header}{body}"));
        refused(&replay(&path, &[]), &[&format!("line {line}, column \"loss\"")]);
    }
}

#[test]
fn bad_usage_is_refused() {
    let (directory, path) = file("step,source,loss\n0,a,0.5\n");
    refused(&replay(&directory.path().join("absent.csv"), &[]), &["absent.csv"]);
    refused(&replay(directory.path(), &[]), &[directory.path().to_str().unwrap()]);
    refused(&replay(&path, &["--history", "0"]), &["history_length is 0"]);
    refused(&replay(&path, &["--leniency", "-1"]), &["leniency is -1"]);
    refused(&replay(&path, &["--strength", "nan"]), &["depression_strength is NaN"]);
    refused(&replay(&path, &["--out", "/no/such/directory/out.csv"]), &["/no/such/directory"]);
    refused(&lapwing().output().unwrap(), &["Usage"]);
    refused(&lapwing().arg("replai").output().unwrap(), &["replay"]);
}

#[test]
fn windows_files_and_whole_numbers_written_as_decimals_are_read() {
    let (_directory, path) = file("\u{feff}step,source,loss\r\n0.0,a, 0.5\r\n1.0,a,1\r\n");
    let replayed = rows(&stdout(&replay(&path, &["--quiet"])));
    assert_eq!((replayed[1]["step"].as_str(), replayed[0]["loss"].as_str()), ("1", "0.5"));
}

#[test]
fn it_is_said_when_nobody_was_judged() {
    let (_directory, path) = file("step,source,loss\n0,a,0.5\n0,b,0.5\n");
    // A warning, so also to those who asked for no remarks.
    for arguments in [&[][..], &["--quiet"]] {
        let remarks = String::from_utf8(replay(&path, arguments).stderr).unwrap();
        assert!(
            remarks.contains("nobody was judged") && remarks.contains("--history"),
            "{remarks}"
        );
    }
}

#[test]
fn a_reader_that_stops_early_is_no_failure() {
    let (_directory, path) = file(noisy_log());
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("lapwing"))
        .arg("replay")
        .arg(&path)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn help_has_examples_and_completions_are_there() {
    for arguments in [&["--help"][..], &["replay", "--help"], &["completions", "--help"]] {
        let help = stdout(&lapwing().args(arguments).output().unwrap());
        assert!(help.contains("Examples:\n  "), "{help}");
    }
    let version = stdout(&lapwing().arg("--version").output().unwrap());
    assert_eq!(version.trim(), concat!("lapwing ", env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = stdout(&lapwing().args(["completions", shell]).output().unwrap());
        assert!(script.contains("replay"), "{shell}");
    }
}
