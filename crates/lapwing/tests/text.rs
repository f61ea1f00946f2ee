//! Texts: trained on, resumed, predicted, judged and shown, and what is wrong with them said.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use tables::{Numbers, Place, killed};

const TRAIN: &str =
    "train reviews.csv --target verdict --source critic --text review --epochs 25 --patience 25 -q";
const CRITICS: [&str; 6] = ["ann", "ben", "cleo", "dora", "emil", "parrot"];

/// Columns review, stars, critic and verdict: good or bad by the words, which "not" turns round. The parrot guesses.
fn reviews(rows: usize, seed: u64) -> String {
    let mut numbers = Numbers::new(seed);
    let mut any = |words: &[&'static str]| words[(numbers.next() * words.len() as f64) as usize];
    let mut text = "review,stars,critic,verdict\n".to_owned();
    for row in 0..rows {
        let (fine, sorry) = (["great", "lovely", "moving"], ["awful", "boring", "clumsy"]);
        let good = any(&["y", "n"]) == "y";
        let turned = any(&["y", "n", "n"]) == "y";
        let word = any(if good != turned { &fine } else { &sorry });
        let not = if turned { "not " } else { "" };
        let (who, what) = (any(&["The", "This", "His"]), any(&["film", "book", "play", "opera"]));
        let critic = CRITICS[row % CRITICS.len()];
        let guess = any(&["y", "n"]) == "y";
        let said = if critic == "parrot" { guess } else { good };
        let stars = any(&["1", "2", "3"]);
        let verdict = if said { "good" } else { "bad" };
        writeln!(text, "\"{who} {what}, I say, was {not}{word}.\",{stars},{critic},{verdict}")
            .unwrap();
    }
    text
}

fn trained(flags: &str) -> Place {
    let place = Place::new();
    place.write("reviews.csv", &reviews(900, 1));
    place.lapwing(&format!("{TRAIN} --out run {flags}")).assert().success();
    place
}

fn stdout(place: &Place, words: &str) -> String {
    let done = place.lapwing(words).assert().success();
    String::from_utf8(done.get_output().stdout.clone()).unwrap()
}

fn accuracy(place: &Place, table: &str) -> f64 {
    let found: Value =
        serde_json::from_str(&stdout(place, &format!("evaluate run {table} --json"))).unwrap();
    let all = if found["all"].is_null() { &found } else { &found["all"] };
    all["accuracy"].as_f64().unwrap_or_else(|| panic!("{found}"))
}

#[test]
fn the_epoch_that_is_kept_has_the_lowest_validation_loss() {
    let place = Place::new();
    place.write("reviews.csv", &reviews(900, 1));
    let longer = TRAIN.replace("25", "60");
    let flags = "--out run --method standard --learning-rate 0.02 --no-folds";
    place.lapwing(&format!("{longer} {flags}")).assert().success();
    let report: Value = serde_json::from_str(&place.text("run/report.json")).unwrap();
    let loss = |row: &&Value| row["split"] == "validation" && row["metric"] == "loss";
    let losses = report["epochs"].as_array().unwrap().iter().filter(loss);
    let of = |row: &Value| row["value"].as_f64().unwrap();
    let lowest = losses.min_by(|a, b| of(a).total_cmp(&of(b))).unwrap();
    assert_eq!(report["summary"]["best_epoch"], lowest["epoch"]);
    // Once a bag of words knows its texts by heart it is surer, and wrong more often.
    assert!(lowest["epoch"].as_u64().unwrap() < 30, "{lowest}");
}

#[test]
fn right_labels_of_texts_that_say_nothing_are_not_called_wrong() {
    let place = Place::new();
    let mut text = reviews(900, 1);
    // The labels of ben's reviews are right, and of what ben saw two words are left.
    for line in reviews(900, 3).lines().filter(|line| line.contains(",ben,")) {
        let (review, rest) = line.rsplit_once("\",").unwrap();
        let words: Vec<&str> = review.split([' ', ',']).take(2).collect();
        writeln!(text, "{}\",{}", words.join(" "), rest.replace("ben", "wire")).unwrap();
    }
    place.write("reviews.csv", &text);
    place.lapwing(&format!("{TRAIN} --out run")).assert().success();
    let sources = stdout(&place, "sources run --json");
    let of = |name: &str| {
        let rows = sources.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.into_iter().find(|row| row["source"] == name).unwrap()
    };
    assert_eq!(of("parrot")["verdict"], "unreliable");
    assert_ne!(of("wire")["verdict"], "unreliable", "{sources}");
    assert!(of("wire").to_string().contains("other-inputs"), "{sources}");
}

#[test]
fn words_and_word_pairs_are_learnt_and_who_guesses_is_found() {
    let place = trained("");
    let clean: String = reviews(400, 2)
        .lines()
        .filter(|line| !line.contains("parrot"))
        .fold(String::new(), |text, line| text + line + "\n");
    place.write("clean.csv", &clean);
    let right = accuracy(&place, "clean.csv");
    // Without pairs, "not" could not be understood: two thirds would be right.
    assert!(right > 0.95, "{right}");
    let sources = stdout(&place, "sources run --json");
    let verdicts: BTreeMap<String, String> = sources
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|row| [&row["source"], &row["verdict"]].map(|v| v.as_str().unwrap().to_owned()))
        .map(|[source, verdict]| (source, verdict))
        .collect();
    assert_eq!(verdicts["parrot"], "unreliable");
    assert!(CRITICS[..5].iter().all(|name| verdicts[*name] == "reliable"), "{verdicts:?}");

    let rows = stdout(&place, "rows run --top 5");
    assert!(rows.lines().next().unwrap().ends_with("text"), "{rows}");
    assert!(rows.lines().nth(1).unwrap().contains("I say, was"), "{rows}");
    let file = place.text("run/rows.csv");
    assert!(file.starts_with(
        "row,source,label,wrong,label_probability,suggestion,suggestion_probability,text\n"
    ));
    let page = place.text("run/report.html");
    assert!(page.contains("class=\"text passage\"") && page.contains("I say, was"));
    assert!(place.text("run/config.toml").contains("text = [\"review\"]"));
    assert!(place.text("run/config.toml").contains("model = \"bag\""));
}

/// A bag of words that learns the parrot's labels by heart would believe them.
#[test]
fn labels_are_judged_first_and_training_goes_by_what_was_found() {
    let place = Place::new();
    place.write("reviews.csv", &reviews(900, 1));
    let words = TRAIN.replace(" -q", "");
    let done = place.lapwing(&format!("{words} --out run")).assert().success();
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("before that, judging labels by 3 networks of"), "{said}");
    for line in stdout(&place, "sources run --json").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let (weight, rate) = (&row["weight"], &row["noise_rate"]);
        let [weight, rate] = [weight, rate].map(|number| number.as_f64().unwrap());
        assert!((weight - (1.0 - rate)).abs() < 1e-3, "{line}");
        assert_eq!(weight < 0.5, row["source"] == "parrot", "{line}");
    }
    place.lapwing(&format!("{TRAIN} --no-folds --out alone")).assert().success();
}

#[test]
fn killed_and_resumed_and_with_one_thread_it_ends_in_the_same_bytes() {
    let place = Place::new();
    place.write("reviews.csv", &reviews(400, 1));
    place.lapwing(&format!("{TRAIN} --out whole")).assert().success();
    killed(&place, TRAIN, "killed");
    place.lapwing("train --resume killed -q").assert().success();
    place.lapwing(&format!("{TRAIN} --out one --threads 1")).assert().success();
    for name in ["model.safetensors", "model.json", "sources.csv", "rows.csv", "report.html"] {
        let whole = place.read(&format!("whole/{name}"));
        assert!(whole == place.read(&format!("killed/{name}")), "killed/{name}");
        assert!(whole == place.read(&format!("one/{name}")), "one/{name}");
    }
}

#[test]
fn new_texts_are_predicted_from_files_and_from_a_pipe_whatever_is_in_them() {
    let place = trained("--no-folds --features review");
    let ugly = [
        "a great film",
        "",
        "NA",
        "none of these wyrds öccur 🤷",
        "<script>alert(1)</script> \u{1b}[31m \0 \u{202e}",
        "=HYPERLINK(1)",
    ];
    let mut text = "review\n".to_owned();
    ugly.iter().for_each(|line| writeln!(text, "\"{line}\"").unwrap());
    place.write("new.csv", &text);
    let said = stdout(&place, "predict run new.csv");
    assert_eq!(said.lines().count(), 1 + ugly.len(), "{said}");
    let piped = place.lapwing("predict run -").write_stdin(text).assert().success();
    assert_eq!(String::from_utf8(piped.get_output().stdout.clone()).unwrap(), said);
    let first = |line: usize| said.lines().nth(line).unwrap().split_once(',').unwrap().1.to_owned();
    assert!(first(1).starts_with("good"), "{said}");
}

#[test]
fn what_is_in_a_text_is_shown_and_does_nothing() {
    let place = Place::new();
    let evil = "<script>alert(1)</script> \u{1b}]0;x\u{7} \u{202e} great ";
    let text = reviews(600, 1).replace("great", evil);
    place.write("reviews.csv", &text);
    place.lapwing(&format!("{TRAIN} --out run --block ann")).assert().success();
    let page = place.text("run/report.html");
    assert!(!page.contains("<script>alert") && !page.contains('\u{1b}'));
    assert!(page.contains("&lt;script&gt;alert(1)"));
    let rows = stdout(&place, "rows run --top 500");
    assert!(rows.contains("<script>alert(1)") && !rows.contains('\u{1b}'), "{rows}");
    assert!(rows.lines().all(|line| line.chars().count() < 200), "{rows}");
}

#[test]
fn a_text_of_ten_megabytes_is_cut_and_one_that_is_too_long_for_a_record_is_refused() {
    let place = Place::new();
    let long = "great ".repeat(10_000_000 / 6);
    let text = reviews(200, 1).replacen("The", &long, 1);
    place.write("reviews.csv", &text);
    place.lapwing(&format!("{TRAIN} --no-folds --out run")).assert().success();
    assert!(place.read("run/report.html").len() < 3_000_000);
    let text = reviews(200, 1).replacen("The", &"great ".repeat(3_000_000), 1);
    place.write("reviews.csv", &text);
    place.refuses(&format!("{TRAIN} --out other"), &["reviews.csv, line", "longer than 16"]);
}

#[test]
fn empty_texts_are_texts_and_a_table_of_nothing_else_is_trained_on() {
    let place = Place::new();
    let mut text = "t,s,y\n".to_owned();
    (0..60).for_each(|row| writeln!(text, ",s{},{}", row % 3, row % 2).unwrap());
    place.write("empty.csv", &text);
    let words = "train empty.csv --target y --source s --text t --epochs 2 --no-folds -q --out run";
    place.lapwing(words).assert().success();
}

#[test]
fn columns_of_text_that_cannot_be_are_refused_by_name() {
    let place = trained("--no-folds");
    let train = "train reviews.csv --target verdict --source critic --out other";
    place.refuses(&format!("{train} --text reveiw"), &["\"reveiw\"", "review"]);
    place.refuses(&format!("{train} --text verdict"), &["verdict", "target", "text"]);
    place.refuses(&format!("{train} --text critic"), &["critic", "source", "text"]);
    place.refuses(&format!("{train} --text review --ignore review"), &["review", "ignored"]);
    place.refuses(
        &format!("{train} --text review --model mlp"),
        &["mlp", "rows of numbers", "texts"],
    );
    place.refuses(
        &format!("{train} --text review --model trees"),
        &["trees", "categories", "texts"],
    );
    place.refuses(&format!("{train} --model bag"), &["bag", "texts", "rows of"]);
    place.write("new.csv", "stars,comment\n1,great\n");
    place.refuses("predict run new.csv", &["new.csv", "\"review\"", "comment"]);
}

#[test]
fn a_model_whose_vocabulary_could_not_have_been_written_is_refused() {
    let place = trained("--no-folds");
    place.write("new.csv", "review,stars\na great film,1\n");
    let whole = place.text("run/model.json");
    place.lapwing("predict run new.csv").assert().success();
    let edit = |change: &dyn Fn(&mut Value)| {
        let mut model: Value = serde_json::from_str(&whole).unwrap();
        change(&mut model["preprocessing"]["vocabulary"]);
        place.write("run/model.json", &model.to_string());
        place.refuses("predict run new.csv", &["model.json"]);
    };
    edit(&|vocabulary| vocabulary["words"][0] = "great".into());
    edit(&|vocabulary| vocabulary["words"][0] = "".into());
    edit(&|vocabulary| vocabulary["words"][0] = "x".repeat(1000).into());
    edit(&|vocabulary| vocabulary["pairs"][0][0] = 4_000_000_000_u32.into());
    edit(&|vocabulary| vocabulary["pairs"][0][0] = (-1).into());
    edit(&|vocabulary| vocabulary["pairs"] = Value::Array(Vec::new()));
    edit(&|vocabulary| vocabulary["words"].as_array_mut().unwrap().push("new".into()));
    edit(&|vocabulary| *vocabulary = Value::Null);
}

#[test]
fn free_text_that_is_not_used_is_a_warning_that_says_how_to_use_it() {
    let place = Place::new();
    place.write("reviews.csv", &reviews(600, 1).replace("I say", "I say to you and to you"));
    let words =
        "train reviews.csv --target verdict --source critic --epochs 1 --no-folds -q --out run";
    let done = place.lapwing(words).assert().success();
    let said = String::from_utf8(done.get_output().stderr.clone()).unwrap();
    assert!(
        said.contains("\"review\" holds free text") && said.contains("--text review"),
        "{said}"
    );
}

#[test]
fn methods_are_compared_and_labels_corrupted_beside_a_text() {
    let place = Place::new();
    place.write("reviews.csv", &reviews(400, 1));
    let noise = "corrupt reviews.csv --target verdict --source critic --noise random-label \
                 --sources ann,ben --level 1 --out bad.csv -q";
    place.lapwing(noise).assert().success();
    let said = stdout(
        &place,
        "compare bad.csv --target verdict --source critic --text review --methods standard,noise-rate,cdr \
         --repeats 1 --epochs 4 -q",
    );
    assert!(said.contains("noise-rate") && said.contains("cdr"), "{said}");
}

#[test]
fn networks_that_read_word_by_word_learn_what_a_word_does_to_the_next() {
    let place = Place::new();
    place.write("reviews.csv", &reviews(600, 1));
    let clean: String = reviews(300, 2)
        .lines()
        .filter(|line| !line.contains("parrot"))
        .fold(String::new(), |text, line| text + line + "\n");
    place.write("clean.csv", &clean);
    let train = "train reviews.csv --target verdict --source critic --text review --no-folds --out";
    for (model, flags) in [
        ("lstm", "--hidden 32 --learning-rate 0.01 --epochs 20"),
        ("transformer", "--hidden 32 --learning-rate 0.002 --epochs 12"),
    ] {
        let words = format!("{train} run --force --model {model} {flags}");
        let done = place.lapwing(&words).assert().success();
        let said = String::from_utf8(done.get_output().stderr.clone()).unwrap();
        assert!(said.contains("the network reads text alone"), "{said}");
        let right = accuracy(&place, "clean.csv");
        assert!(right > 0.9, "{model}: {right}");
        place.write("new.csv", "review\n\nthis film was not great\nwyrds\n");
        assert_eq!(stdout(&place, "predict run new.csv").lines().count(), 4);
    }
    assert!(place.text("run/model.json").contains("\"tokens\""));
}

#[test]
fn a_killed_lstm_goes_on_to_the_same_bytes() {
    let place = Place::new();
    place.write("reviews.csv", &reviews(200, 1));
    let train = "train reviews.csv --target verdict --source critic --text review --no-folds -q --model lstm \
                 --hidden 20,12 --epochs 4";
    place.lapwing(&format!("{train} --out whole --threads 1")).assert().success();
    killed(&place, train, "cut");
    place.lapwing("train --resume cut -q --threads 2").assert().success();
    for name in ["model.safetensors", "model.json", "sources.csv"] {
        assert!(
            place.read(&format!("whole/{name}")) == place.read(&format!("cut/{name}")),
            "{name}"
        );
    }
}

#[test]
fn where_networks_learn_texts_by_heart_nobody_is_accused_whose_labels_are_right() {
    // Two words of each say what it is, mostly, and eight are any words: too few rows to tell which. Four of ten sources
    // have labels at random. Networks that were as sure as they could be took all ten for noise.
    let place = Place::new();
    let mut numbers = Numbers::new(1);
    let mut text = "text,label,source\n".to_owned();
    for row in 0..1_400 {
        let good = numbers.next() < 0.5;
        for word in 0..10 {
            let rank = numbers.next().powf(1.5);
            match word {
                0 | 1 => {
                    let kind = if (numbers.next() < 0.85) == good { "fine" } else { "poor" };
                    write!(text, "{kind}{:.0} ", 40.0 * rank).unwrap();
                }
                _ => write!(text, "word{:.0} ", 300.0 * rank).unwrap(),
            }
        }
        let source = row % 10;
        let said = if source < 4 { numbers.next() < 0.5 } else { good };
        let (label, kind) =
            (if said { "yes" } else { "no" }, if source < 4 { "bad" } else { "good" });
        writeln!(text, ",{label},{kind}{source}").unwrap();
    }
    place.write("texts.csv", &text);
    let train =
        "train texts.csv --target label --source source --text text --epochs 40 -q --out run";
    place.lapwing(train).assert().success();
    let sources = place.text("run/sources.csv");
    let accused = |kind: &str| {
        let of = sources.lines().filter(|line| line.starts_with(kind));
        of.filter(|line| line.split(',').any(|cell| cell == "unreliable")).count()
    };
    assert!(accused("bad") >= 3 && accused("good") == 0, "{sources}");
}
