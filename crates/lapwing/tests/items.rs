//! Several answers on the same item: splits that keep items whole, and what the answers amount to.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tables::{Numbers, Place, doses, killed};

const TRAIN: &str =
    "train answers.csv --target side --source who --item question --epochs 40 -q --no-folds";

/// Columns a, b, question, who and side: on which side of a diagonal a point is. Each of 150 questions is answered by four
/// of five people; eve and fay guess.
fn answers() -> (String, BTreeMap<String, &'static str>) {
    let mut numbers = Numbers::new(11);
    let (mut text, mut truth) = ("a,b,question,who,side\n".to_owned(), BTreeMap::new());
    for question in 0..150 {
        let (a, b) = (numbers.next(), numbers.next());
        let side = |over: bool| if over { "over" } else { "under" };
        truth.insert(format!("q{question}"), side(a + b > 1.0));
        for (at, who) in ["ann", "ben", "cleo", "eve", "fay"].into_iter().enumerate() {
            if question % 5 == at {
                continue;
            }
            let guess = numbers.next() > 0.5;
            let over = if at < 3 { a + b > 1.0 } else { guess };
            writeln!(text, "{a:.4},{b:.4},q{question},{who},{}", side(over)).unwrap();
        }
    }
    (text, truth)
}

fn asked() -> (Place, BTreeMap<String, &'static str>) {
    let (text, truth) = answers();
    let place = Place::new();
    place.write("answers.csv", &text);
    (place, truth)
}

#[test]
fn items_are_split_whole_and_what_answers_amount_to_is_right() {
    let (place, truth) = asked();
    let train = TRAIN.replace("--no-folds", "--folds 2");
    place.lapwing(&format!("{train} --out run")).assert().success();
    let mut reader = csv::Reader::from_path(place.path("run/items.csv")).unwrap();
    let header = reader.headers().unwrap().iter().collect::<Vec<_>>().join(",");
    assert_eq!(header, "item,label,probability,answers,disagreement");
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), truth.len());
    let right = rows.iter().filter(|row| truth[&row[0]] == &row[1]).count();
    assert!(right >= 140, "{right} of {}", rows.len());
    for row in &rows {
        let number = |at: usize| row[at].parse::<f64>().unwrap();
        assert!(number(2) >= 0.5 && number(2) <= 1.0 && number(3) == 4.0, "{row:?}");
        assert!((0.0..=1.0).contains(&number(4)), "{row:?}");
    }
    assert!(rows.iter().any(|row| &row[4] != "0.0"));
    assert!(place.text("run/config.toml").contains("item = \"question\""));

    // Whose answers were neither trained nor validated on are tested on, and on none of their items was any other.
    let table = place.text("answers.csv");
    let question =
        |line: usize| table.lines().nth(line).unwrap().split(',').nth(2).unwrap().to_owned();
    let mut judged = csv::Reader::from_path(place.path("run/rows.csv")).unwrap();
    let seen: BTreeSet<usize> =
        judged.records().map(|row| row.unwrap()[0].parse().unwrap()).collect();
    let unseen: BTreeSet<String> =
        (1..=600).filter(|row| !seen.contains(row)).map(question).collect();
    let seen: BTreeSet<String> = seen.into_iter().map(question).collect();
    assert!(unseen.len() == 30 && seen.len() == 120, "{} {}", unseen.len(), seen.len());
    assert!(seen.is_disjoint(&unseen));

    place.lapwing("compare answers.csv --target side --source who --item question --methods standard,noise-rate --repeats 2 --epochs 3 -q").assert().success();
}

#[test]
fn killed_and_resumed_it_ends_in_the_same_items_and_another_run_without_items_leaves_none() {
    let (place, _) = asked();
    place.lapwing(&format!("{TRAIN} --out whole")).assert().success();
    killed(&place, TRAIN, "killed");
    place.lapwing("train --resume killed -q").assert().success();
    for name in ["model.safetensors", "sources.csv", "items.csv", "run.json"] {
        assert!(
            place.read(&format!("whole/{name}")) == place.read(&format!("killed/{name}")),
            "{name}"
        );
    }
    assert!(place.text("whole/run.json").contains("items.csv"));
    let plain = TRAIN.replace("--item question", "--ignore question --no-items");
    place.lapwing(&format!("{plain} --out whole --force")).assert().success();
    assert!(!place.path("whole/items.csv").exists());
}

#[test]
fn items_that_nobody_names_are_found_by_their_inputs_and_said() {
    let (place, truth) = asked();
    let train = TRAIN.replace("--item question", "--ignore question");
    let done = place.lapwing(&format!("{train} --out found")).assert().success();
    let said = String::from_utf8(done.get_output().stderr.clone()).unwrap();
    assert!(said.contains("warning: the 600 rows are taken for answers on 150 items"), "{said}");
    assert!(said.contains("--no-items"), "{said}");
    let items = place.text("found/items.csv");
    assert_eq!(items.lines().count(), truth.len() + 1);
    assert!(items.lines().nth(1).unwrap().starts_with("row 1,"), "{items}");

    // Trees do not weigh answers, but are not tested on what they have seen either.
    place.lapwing(&format!("{train} --model trees --out trees")).assert().success();
    place.lapwing(&format!("{train} --no-items --out alone")).assert().success();
    assert!(!place.path("alone/items.csv").exists());
    assert!(place.text("alone/config.toml").contains("find-items = false"));
    place.refuses(&format!("{TRAIN} --no-items --out both"), &["--no-items", "--item"]);
}

#[test]
fn what_cannot_be_is_refused_with_a_sentence_and_items_of_one_answer_are_a_warning() {
    let (place, _) = asked();
    let refuses = |flags: &str, parts: &[&str]| {
        place.refuses(&format!("train answers.csv --source who --out run -q {flags}"), parts);
    };
    refuses("--target side --item question --model trees", &["item is for networks"]);
    refuses("--target side --item who", &["who", "source", "item"]);
    refuses("--target side --item question --features a,question", &["feature", "item"]);
    refuses("--target side --item nobody", &["nobody"]);
    place.write("doses.csv", &doses(100, 1));
    let words = "train doses.csv --target dose --source ward --item b --out doses -q";
    place.refuses(words, &["the targets are values"]);
    let one = "row,".to_owned() + &place.text("answers.csv");
    let lines = one.lines().enumerate();
    let numbered =
        lines.map(|(at, line)| if at == 0 { line.into() } else { format!("{at},{line}") });
    place.write("one.csv", &numbered.collect::<Vec<_>>().join("\n"));
    let words = "train one.csv --target side --source who --item row --ignore question --epochs 2 -q --no-folds --out one";
    let done = place.lapwing(words).assert().success();
    let said = String::from_utf8(done.get_output().stderr.clone()).unwrap();
    assert!(said.contains("warning: no two rows have the same item"), "{said}");
    assert_eq!(place.text("one/items.csv").lines().count(), 601);

    // What a row has in common with a third of the table is no item.
    let lines = one.lines().enumerate();
    let few = lines.map(|(at, line)| match at {
        0 => format!("desk{}", &line[3..]),
        _ => format!("desk {},{line}", at % 3),
    });
    place.write("few.csv", &few.collect::<Vec<_>>().join("\n"));
    let words = "train few.csv --target side --source who --item desk --ignore question --epochs 2 -q --no-folds --out few";
    let done = place.lapwing(words).assert().success();
    let said = String::from_utf8(done.get_output().stderr.clone()).unwrap();
    assert!(said.contains("\"desk\" has 3 items for 600 rows"), "{said}");
}
