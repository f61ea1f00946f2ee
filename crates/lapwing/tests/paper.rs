//! `paper`: small runs of real experiments, and what is refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use tables::Place;

const SMALL: &str = "--limit-train 400 --epochs 2 --noise base,history-2 --quiet";

fn stdout(place: &Place, words: &str) -> String {
    let done = place.lapwing(words).env_remove("LAPWING_DATA").assert().success();
    String::from_utf8(done.get_output().stdout.clone()).unwrap()
}

#[test]
fn an_experiment_leaves_table_figure_records_and_summary() {
    let place = Place::new();
    let table = stdout(&place, &format!("paper toy {SMALL}"));
    assert!(table.contains("H = 2") && table.contains("C of source 3"), "{table}");
    assert!(table.contains("1475"), "the paper's number is beside ours: {table}");
    assert!(!table.contains("H = 1000"), "what was not run has no line: {table}");
    let folder = "paper-results/records/toy/limit-400-epochs-2";
    let record = place.text(&format!("{folder}/history-2.lap.0.json"));
    assert!(record.contains("\"limit_train\":400") && record.contains("\"epochs\":2"));
    assert!(place.read("paper-results/toy-limit-400-epochs-2.png").starts_with(b"\x89PNG"));

    let listed = stdout(&place, &format!("paper toy {SMALL} --list"));
    assert_eq!(listed.lines().filter(|line| line.ends_with("\tdone")).count(), 2, "{listed}");
    let full = stdout(&place, "paper toy --list");
    assert_eq!(full.lines().count(), 19);
    assert!(!full.contains("done"), "a small run is not the full one: {full}");

    stdout(&place, "paper summary --quiet");
    let summary = place.text("paper-results/RESULTS.md");
    assert!(summary.contains("**Reduced**: 400 samples to train on, 2 epochs instead of 25."));
    assert!(place.text("paper-results/results.json").contains("\"experiment\": \"toy\""));
}

#[test]
fn what_is_done_is_not_done_again_and_parts_make_a_whole() {
    let place = Place::new();
    let loud = SMALL.replace("--quiet", "");
    let said = |words: &str| {
        let done = place.lapwing(words).assert().success();
        String::from_utf8(done.get_output().stderr.clone()).unwrap()
    };
    assert!(said(&format!("paper toy {loud} --shard 1/2")).contains("1 cells to run, 0 done"));
    assert!(said(&format!("paper toy {loud} --shard 2/2")).contains("1 cells to run, 0 done"));
    let before = place.read("paper-results/records/toy/limit-400-epochs-2/base.lap.0.json");
    assert!(said(&format!("paper toy {loud} --jobs 1")).contains("0 cells to run, 2 done"));
    let after = place.read("paper-results/records/toy/limit-400-epochs-2/base.lap.0.json");
    assert_eq!(before, after);
    assert!(said(&format!("paper toy {loud} --as paper")).contains("2 cells to run, 0 done"));
}

#[test]
fn parts_of_several_machines_make_a_whole() {
    let place = Place::new();
    for part in [1, 2] {
        stdout(&place, &format!("paper toy {SMALL} --shard {part}/2 --out part-{part}"));
    }
    let merge = "paper summary part-1 part-2 --out all";
    let said = |words: &str| {
        let done = place.lapwing(words).assert().success();
        String::from_utf8(done.get_output().stderr.clone()).unwrap()
    };
    assert!(said(merge).contains("took 2 records into all"));
    assert!(said(merge).contains("took 0 records into all"));
    let folder = "records/toy/limit-400-epochs-2";
    let part_of = |cell: &str| {
        let parts = ["part-1", "part-2"].map(|part| format!("{part}/{folder}/{cell}"));
        parts.into_iter().find(|path| place.path(path).exists()).unwrap()
    };
    for cell in ["base.lap.0.json", "history-2.lap.0.json"] {
        assert_eq!(place.read(&format!("all/{folder}/{cell}")), place.read(&part_of(cell)));
    }
    assert!(place.text("all/RESULTS.md").contains("(reduced, 2 of 19 runs)"));
    // Two records of one cell that differ in more than time.
    let path = part_of("base.lap.0.json");
    let other = place.text(&path).replace("\"noisy_sources\":[", "\"noisy_sources\":[9,");
    place.write(&path, &other);
    place.refuses(merge, &["of one cell and differ", "base.lap.0.json"]);
    place.refuses("paper summary nowhere --out all", &["nowhere is no directory of results"]);
}

#[test]
fn without_a_name_the_experiments_are_listed() {
    let place = Place::new();
    let listed = stdout(&place, "paper");
    for name in ["toy", "table-1-cifar-100", "percentage-difference", "Table 13", "figure-3"] {
        assert!(listed.contains(name), "{listed}");
    }
    assert!(!place.path("paper-results").exists(), "listing writes nothing");
    let measured = stdout(&place, "paper toy california --measure --quiet");
    let lines: Vec<&str> = measured.lines().collect();
    assert!(lines[1].starts_with("toy") && lines[2].contains("  20  "), "{measured}");
    let help = stdout(&place, "paper --help");
    assert!(help.contains("RESULTS.md") && help.contains("--shard"), "{help}");
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let place = Place::new();
    place.refuses("paper table-99", &["\"table-99\" is no experiment", "table-1-cifar-10"]);
    place.refuses("paper toy summary", &["stands alone"]);
    place.refuses("paper summary", &["no directory of results"]);
    place.refuses("paper toy --noise salt", &["\"salt\"", "history-1000"]);
    place.refuses("paper toy --methods standard", &["\"standard\" is no method", "lap"]);
    place.refuses("paper toy --shard 3/2", &["I/N"]);
    place.refuses("paper toy --shard 0/2", &["I/N"]);
    place.refuses("paper toy --runs 0", &["from 1"]);
    place.refuses("paper toy --epochs x", &["from 1"]);
    place.refuses("paper california --data nowhere", &["nowhere", "no such directory"]);
    std::fs::create_dir(place.path("empty")).unwrap();
    place.refuses("paper california --data empty", &["cal_housing.data", "lib.stat.cmu.edu"]);
    std::fs::create_dir_all(place.path("empty/california_housing")).unwrap();
    place.write("empty/california_housing/cal_housing.data", "1,2,3\n");
    place.refuses("paper california --data empty", &["3 numbers, not 9"]);
}

#[test]
fn a_damaged_record_is_named_and_not_trusted() {
    let place = Place::new();
    stdout(&place, &format!("paper toy {SMALL}"));
    place.write("paper-results/records/toy/limit-400-epochs-2/base.lap.0.json", "{\"format\":1");
    place.refuses(&format!("paper toy {SMALL}"), &["base.lap.0.json", "remove the file"]);
}
