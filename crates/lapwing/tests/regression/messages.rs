//! What is said on stderr.

use std::process::Stdio;

use crate::tables::{Place, WARDS, start, wards};

const TRAIN: &str = "train wards.csv --target ill --source ward --epochs 3 --out run";

fn place() -> Place {
    let place = Place::new();
    place.write("wards.csv", &wards(300, &WARDS, 1));
    place.write("log.csv", "step,source,loss\n0,a,0.5\n0,b,NaN\n");
    place
}

#[cfg(target_os = "linux")]
#[test]
fn an_unwritable_stderr_was_a_panic() {
    let place = place();
    let corrupt = "corrupt wards.csv --target ill --source ward --noise random-label --sources north --out noisy.csv";
    let compare = "compare wards.csv --target ill --source ward --repeats 2 --epochs 2";
    for (words, code) in [
        (TRAIN, 0),
        ("evaluate run wards.csv", 0),
        ("replay log.csv", 0),
        (corrupt, 0),
        (compare, 0),
        ("sources nowhere", 2),
        ("sources run", 0),
        ("rows run", 0),
        ("predict run nowhere.csv", 2),
        ("train --bogus", 2),
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let ended = start(&place, words).stdout(Stdio::null()).stderr(full).status().unwrap();
        assert_eq!(ended.code(), Some(code), "{words}");
        std::fs::remove_file(place.path("noisy.csv")).ok();
    }
}

#[test]
fn a_thousand_threads_and_more_were_started_without_a_word() {
    let place = place();
    for threads in ["0", "20000", "18446744073709551615"] {
        place.refuses(&format!("{TRAIN} --threads {threads}"), &["--threads", "from 1 to "]);
    }
}

#[test]
fn a_cause_was_printed_twice() {
    let place = place();
    place.lapwing(TRAIN).assert().success();
    place.write("bad.toml", "epochs = \"all\"\n");
    for (words, once) in [
        ("train wards.csv --config bad.toml", "expected"),
        ("train . --target ill --source ward", "holds no PNG"),
        ("predict run nowhere.csv", "No such file"),
        ("train --config nowhere.toml", "No such file"),
        ("predict run wards.csv --out nowhere/p.csv", "No such file"),
    ] {
        let done = place.lapwing(words).assert().code(2);
        let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert_eq!(said.matches(once).count(), 1, "{words}: {said}");
    }
}

#[test]
fn advice_about_training_was_given_while_training() {
    let place = place();
    for flags in ["--types a=date", "--target ward --source ill --task regression"] {
        let words = format!("{} {flags}", TRAIN.replace("--target ill --source ward", ""));
        let words = if flags.contains("--target") { words } else { format!("{TRAIN} {flags}") };
        let done = place.lapwing(&words).assert().code(2);
        let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert!(!said.contains("in training") && said.contains("--types"), "{said}");
    }
}

#[test]
fn corrupt_and_types_could_not_name_what_holds_a_comma() {
    let place = Place::new();
    let names = ["Smith, John", "Jones, Ann", "east"];
    place.write("wards.csv", &wards(300, &names, 1).replace("a,b,ward", "\"a, first\",b,ward"));
    let corrupt = |flags: &[&str]| {
        let words = "corrupt wards.csv --target ill --source ward --out out.csv --force";
        let done = place.lapwing(words).args(flags).assert().success();
        String::from_utf8_lossy(&done.get_output().stderr).into_owned()
    };
    let said = corrupt(&["--noise", "random-label", "--sources", "Smith, John"]);
    assert!(said.contains("of 100 rows (\"Smith, John\" "), "{said}");
    let labels = ["--noise", "random-label", "--sources", "east", "--sources", "Jones, Ann"];
    assert!(corrupt(&labels).contains("of 200 rows (\"east\" "));
    let inputs = ["--noise", "added-noise", "--sources", "east", "--features", "a, first"];
    assert!(corrupt(&inputs).contains("changed 100 of 100 rows"));
    let types = ["--types", "a, first=numeric,b=categorical"];
    place.lapwing(TRAIN).args(types).args(["-q"]).assert().success();
    let config = place.text("run/config.toml");
    assert!(config.contains("\"a, first\" = \"numeric\""), "{config}");
    assert!(config.contains("b = \"categorical\""), "{config}");
}

#[test]
fn a_source_with_a_comma_in_its_name_could_not_be_named() {
    let place = Place::new();
    let names = ["Smith, John", "Jones, Ann", "east", "west", "attic"];
    place.write("wards.csv", &wards(300, &names, 1).replace("a,b,ward", "\"a, first\",b,ward"));
    let sources = |run: &str| place.text(&format!("{run}/config.toml"));
    let train = |out: &str, flags: &[&str]| {
        let words = TRAIN.replace("--out run", &format!("--out {out} -q"));
        place.lapwing(&words).args(flags).assert().success();
    };
    train("one", &["--trust", "Smith, John", "--block", "east,west"]);
    assert!(sources("one").contains("trust = [\"Smith, John\"]"), "{}", sources("one"));
    assert!(sources("one").contains("block = [\"east\", \"west\"]"), "{}", sources("one"));
    train("two", &["--trust", "Smith, John", "--trust", "Jones, Ann", "--trust", "east,west"]);
    let trusted = "trust = [\"Smith, John\", \"Jones, Ann\", \"east\", \"west\"]";
    assert!(sources("two").contains(trusted), "{}", sources("two"));
    train("three", &["--ignore", "a, first"]);
    assert!(sources("three").contains("ignore = [\"a, first\"]"), "{}", sources("three"));
    train("four", &["--features", "a, first", "--features", "b"]);
    assert!(sources("four").contains("features = [\"a, first\", \"b\"]"), "{}", sources("four"));
    let done = place
        .lapwing(&TRAIN.replace("run", "five"))
        .args(["--trust", "Smith, Jon", "--trust", "east"])
        .assert()
        .code(2);
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("\"Smith, Jon\"") && said.contains("\"Smith, John\""), "{said}");
}

#[test]
fn an_escape_sequence_in_a_path_reached_the_terminal() {
    let place = place();
    let out = "r\u{1b}[31mun";
    let done = place
        .lapwing("train wards.csv --target ill --source ward --epochs 1 --out")
        .arg(out)
        .assert()
        .success();
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(!said.contains('\u{1b}') && said.contains("r⟨U+001B⟩[31mun"), "{said}");
    assert!(said.contains("1 epoch, the best was 1"), "{said}");
}

#[test]
fn a_warning_was_silenced_by_quiet_and_missing_in_json() {
    let place = Place::new();
    place.write("wards.csv", &wards(300, &["north"], 1));
    let done = place.lapwing(&format!("{TRAIN} -q --json")).assert().success();
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.starts_with("warning: ") && said.contains("one source"), "{said}");
    let object: serde_json::Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
    let warnings = object["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|w| w.as_str().unwrap().contains("one source")), "{warnings:?}");
    assert!(place.text("run/report.html").contains("All rows come from one source"));
}

#[test]
fn rows_that_were_not_measured_were_not_spoken_of() {
    let place = place();
    place.lapwing(&format!("{TRAIN} -q")).assert().success();
    place.write("holes.csv", &wards(300, &WARDS, 1).replacen(",yes", ",", 3));
    let done = place.lapwing("evaluate run holes.csv -q").assert().success();
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("warning: 3 rows not measured: no target"), "{said}");
}

#[test]
fn losses_that_are_not_finite_were_not_spoken_of_in_a_quiet_replay() {
    let place = place();
    let done = place.lapwing("replay log.csv -q").assert().success();
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("warning: 1 loss is not finite: \"b\" 1"), "{said}");
}
