//! What is written with `--out` and to standard output.

use crate::tables::{Place, WARDS, wards};

fn trained() -> Place {
    let place = Place::new();
    place.write("wards.csv", &wards(300, &WARDS, 1));
    place
        .lapwing("train wards.csv --target ill --source ward --model mlp --epochs 3 --out run -q")
        .assert()
        .success();
    place
}

#[cfg(unix)]
#[test]
fn force_replaced_a_device_by_a_file() {
    use std::os::unix::fs::FileTypeExt;
    let place = trained();
    place.write("log.csv", "step,source,loss\n0,a,0.5\n0,b,0.7\n");
    let corrupt =
        "corrupt wards.csv --target ill --source ward --noise random-label --sources north";
    for words in ["predict run wards.csv", "replay log.csv", corrupt] {
        place.lapwing(&format!("{words} --out /dev/null --force")).assert().success();
        assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device(), "{words}");
    }
    let pipe = place.path("pipe");
    if std::process::Command::new("mkfifo").arg(&pipe).status().is_ok_and(|made| made.success()) {
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read_to_string(pipe).unwrap()
        });
        place.lapwing("predict run wards.csv --out pipe --force").assert().success();
        assert!(reader.join().unwrap().starts_with("row,prediction,"));
        assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }
    place.refuses("predict run wards.csv --out run --force", &["found a directory"]);
}

#[cfg(unix)]
#[test]
fn force_replaced_a_link_instead_of_what_it_leads_to() {
    let place = trained();
    place.write("there.csv", "old");
    std::os::unix::fs::symlink("there.csv", place.path("link.csv")).unwrap();
    place.refuses("predict run wards.csv --out link.csv", &["exists already"]);
    place.lapwing("predict run wards.csv --out link.csv --force").assert().success();
    assert!(place.path("link.csv").is_symlink());
    assert!(place.text("there.csv").starts_with("row,prediction,"));
}

#[test]
fn what_killed_commands_left_stayed_for_ever() {
    let place = trained();
    let left = place.write(".lapwing-AbCdEf", "half a prediction");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    std::fs::File::options().write(true).open(&left).unwrap().set_modified(old).unwrap();
    let young = place.write(".lapwing-GhIjKl", "somebody may be about to write this");
    place.lapwing("predict run wards.csv --out p.csv").assert().success();
    assert!(!left.exists() && young.exists());
    let left = place.write("run/.lapwing-AbCdEf", "half a report");
    place.lapwing("report run").assert().success();
    assert!(!left.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_was_not_named() {
    let place = trained();
    for words in ["sources run", "predict run wards.csv", "evaluate run wards.csv", "report run"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let ended = crate::tables::start(&place, words).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(2), "{words}: {said}");
        assert!(said.contains("standard output: No space left"), "{words}: {said}");
    }
}

#[test]
fn a_name_that_a_spreadsheet_takes_for_a_formula_could_not_be_escaped() {
    let place = Place::new();
    let table = wards(300, &["north", "=cmd|'/c calc'!A1"], 1).replace(",yes", ",=yes");
    place.write("wards.csv", &table);
    place
        .lapwing("train wards.csv --target ill --source ward --model mlp --epochs 3 --out run -q")
        .assert()
        .success();
    let output = |words: &str| {
        let done = place.lapwing(words).assert().success();
        String::from_utf8(done.get_output().stdout.clone()).unwrap()
    };
    assert!(output("predict run wards.csv").contains(",=yes,"));
    let escaped = output("predict run wards.csv --escape-formulas");
    assert!(escaped.contains(",'=yes,") && !escaped.contains(",=yes,"));
    place.write("log.csv", "step,source,loss\n0,=a,0.5\n0,b,0.7\n");
    assert!(output("replay log.csv").contains("\n0,=a,"));
    assert!(output("replay log.csv --escape-formulas").contains("\n0,'=a,"));
    assert!(output("replay log.csv --escape-formulas --summary").contains("\n'=a,"));
}

#[test]
fn probabilities_could_not_be_left_out() {
    let place = trained();
    let done = place.lapwing("predict run wards.csv --no-probabilities").assert().success();
    let text = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    assert!(text.starts_with("row,prediction\n1,"), "{text}");
    assert!(text.lines().all(|line| line.split(',').count() == 2));
}

#[test]
fn a_column_could_be_step_and_source_at_once() {
    let place = Place::new();
    place.write("log.csv", "step,source,loss\n0,a,0.5\n0,b,0.7\n");
    place.refuses("replay log.csv --source step", &["three different columns"]);
    place.refuses("replay log.csv --loss source --source source", &["three different columns"]);
}

#[test]
fn thousands_of_sources_were_thousands_of_lines() {
    let place = Place::new();
    let names: Vec<String> = (0..1200).map(|n| format!("s{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    place.write("wards.csv", &wards(2400, &names, 1));
    let train = "train wards.csv --target ill --source ward --model mlp --epochs 1 --out run -q";
    for words in [train, "sources run"] {
        let done = place.lapwing(words).assert().success();
        let text = String::from_utf8(done.get_output().stdout.clone()).unwrap();
        assert!(text.lines().count() < 110, "{words}: {}", text.lines().count());
        assert!(text.contains("\n… and 1,100 more"), "{words}: {text}");
        assert!(text.contains("1,200 sources: 1,200 insufficient"), "{words}: {text}");
    }
    assert_eq!(place.text("run/sources.csv").lines().count(), 1201);
}
