//! What is wrong with a source, and since when, from a table to the report: for networks and for trees.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::Value;
use tables::{Numbers, Place};

/// Nearly normal.
fn normal(numbers: &mut Numbers) -> f64 {
    (0..12).map(|_| numbers.next()).sum::<f64>() - 6.0
}

/// Visits of seven sites, of which three are sound: size and mass hang together, the quarter follows from both. `gap` lost a
/// column, `twice` sends rows again, `inches` measures otherwise, and `late` guesses from July on.
fn visits() -> String {
    let sites = ["ann", "ben", "cleo", "gap", "twice", "inches", "late"];
    let mut numbers = Numbers::new(7);
    let mut text = "size,mass,span,day,site,quarter\n".to_owned();
    let mut before = String::new();
    for row in 0..1400 {
        let site = sites[row % sites.len()];
        let (size, other, span) =
            (normal(&mut numbers), normal(&mut numbers), 50.0 + 8.0 * normal(&mut numbers));
        let mass = 0.6 * size + 0.8 * other;
        let lost = numbers.next() < 0.6;
        let span = match site {
            "gap" if lost => String::new(),
            "inches" => format!("{:.3}", span / 2.54),
            _ => format!("{span:.3}"),
        };
        let day = row * 365 / 1400;
        let (month, day) = (day / 31 + 1, day % 31 % 28 + 1);
        let guess = (4.0 * numbers.next()) as usize;
        let quarter = match site {
            "late" if month >= 7 => guess,
            _ => usize::from(size > 0.0) + 2 * usize::from(mass > 0.0),
        };
        let quarter = ["sw", "se", "nw", "ne"][quarter];
        let own = format!("{size:.4},{mass:.4},{span}");
        let again = site == "twice" && row / sites.len() % 2 == 1;
        let shown = if again { &before } else { &own };
        let quarter = match again {
            true => before.rsplit_once('|').unwrap().1.to_owned(),
            false => quarter.to_owned(),
        };
        let cells = shown.split('|').next().unwrap();
        writeln!(text, "{cells},2024-{month:02}-{day:02},{site},{quarter}").unwrap();
        if site == "twice" && !again {
            before = format!("{own}|{quarter}");
        }
    }
    text
}

fn sources(place: &Place, run: &str) -> BTreeMap<String, Value> {
    let done = place.lapwing(&format!("sources {run} --json")).assert().success();
    let text = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.map(|source| (source["source"].as_str().unwrap().to_owned(), source)).collect()
}

fn faults(source: &Value) -> BTreeSet<&str> {
    let found = source["findings"].as_array().unwrap().iter();
    found.map(|finding| finding["fault"].as_str().unwrap()).collect()
}

fn finding<'a>(source: &'a Value, fault: &str) -> &'a Value {
    let mut found = source["findings"].as_array().unwrap().iter();
    found.find(|finding| finding["fault"] == fault).unwrap_or_else(|| panic!("{fault}: {source}"))
}

#[test]
fn what_is_wrong_with_a_source_and_since_when_is_found_from_a_table() {
    let place = Place::new();
    let table = visits();
    place.write("visits.csv", &table);
    let train =
        "train visits.csv --target quarter --source site --time day --epochs 40 -q --out run";
    place.lapwing(train).assert().success();
    let known = sources(&place, "run");
    for site in ["ann", "ben", "cleo"] {
        assert!(faults(&known[site]).is_empty(), "{}", known[site]);
    }
    let rows: Vec<&str> = table.lines().skip(1).collect();
    for (site, fault) in [
        ("gap", "missing-column"),
        ("twice", "duplicated-rows"),
        ("inches", "column-unit"),
        ("late", "since"),
    ] {
        let found = finding(&known[site], fault);
        assert!(found["strength"].as_f64().unwrap() > 0.1, "{found}");
        let shown = found["rows"].as_array().unwrap();
        assert!(!shown.is_empty(), "{found}");
        for row in shown {
            let row = rows[row.as_u64().unwrap() as usize - 1];
            assert!(row.contains(&format!(",{site},")), "{row}: {found}");
        }
    }
    assert_eq!(finding(&known["gap"], "missing-column")["columns"][0], "span");
    let factor = finding(&known["inches"], "column-unit")["factor"].as_f64().unwrap();
    assert!((factor * 2.54 - 1.0).abs() < 0.1, "{factor}");

    // Since when: in JSON, in the table, in the report and on a terminal.
    let since = finding(&known["late"], "since");
    let time = since["from"]["time"].as_str().unwrap();
    assert!(("2024-06-15".."2024-07-20").contains(&time), "{since}");
    assert!(since["from"]["low"].as_str().unwrap() < time && since["until"].is_null(), "{since}");
    assert_eq!(known["late"]["bad_from"], time);
    assert_eq!(known["ann"]["bad_from"], Value::Null);
    let csv = place.text("run/sources.csv");
    assert!(csv.lines().next().unwrap().ends_with(
        ",class_mix,bad_from,bad_from_low,bad_from_high,bad_until,bad_until_low,bad_until_high,faults"
    ));
    let line = csv.lines().find(|line| line.starts_with("late,")).unwrap();
    assert!(line.contains(&format!(",{time},")) && line.contains("since"), "{line}");
    let page = place.text("run/report.html");
    assert!(page.contains(&format!("From {time} (95 % interval: after ")), "{time}");
    let shown = place.lapwing("sources run").assert().success();
    let shown = String::from_utf8_lossy(&shown.get_output().stdout).into_owned();
    assert!(shown.contains(&format!("  late: From {time}")), "{shown}");

    // The day is written down, and not learnt from.
    assert!(place.text("run/config.toml").contains("time = \"day\"\n"));
    place.write("new.csv", "size,mass,span\n0.5,0.5,50\n");
    place.lapwing("predict run new.csv").assert().success();
}

/// Doses of five sites for boosted trees: `cap` cannot show more than 3, and `drift` adds 4 from week 30 on.
fn doses() -> String {
    let sites = ["ann", "ben", "cleo", "cap", "drift"];
    let mut numbers = Numbers::new(11);
    let mut text = "a,b,week,site,dose\n".to_owned();
    for row in 0..1500 {
        let site = sites[row % sites.len()];
        let (a, b, week) = (normal(&mut numbers), normal(&mut numbers), row / 30);
        let dose = 2.0 * a + b + 0.3 * normal(&mut numbers);
        let dose = match site {
            "cap" => dose.min(3.0),
            "drift" if week >= 30 => dose + 4.0,
            _ => dose,
        };
        writeln!(text, "{a:.4},{b:.4},{week},{site},{dose:.4}").unwrap();
    }
    text
}

#[test]
fn trees_and_numbers_to_predict_are_examined_as_well() {
    let place = Place::new();
    place.write("doses.csv", &doses());
    let train = "train doses.csv --target dose --source site --time week --model trees --epochs 60 -q --out run";
    place.lapwing(train).assert().success();
    let known = sources(&place, "run");
    assert_eq!(finding(&known["cap"], "clipped-range")["limit"], 3.0);
    let from = finding(&known["drift"], "since")["from"]["time"].as_str().unwrap().to_owned();
    assert!((28..=32).contains(&from.parse::<i64>().unwrap()), "{from}");
    for site in ["ann", "ben", "cleo"] {
        assert!(faults(&known[site]).is_empty(), "{}", known[site]);
    }
}

#[test]
fn a_column_that_does_not_say_when_is_refused_and_gaps_in_it_are_told() {
    let place = Place::new();
    place.write("doses.csv", &doses());
    let train = "train doses.csv --target dose --source site --epochs 1 -q --out run";
    place.refuses(&format!("{train} --time when"), &["no column \"when\"", "week"]);
    place.refuses(&format!("{train} --time dose"), &["\"dose\"", "target", "time"]);
    place.refuses(&format!("{train} --time site"), &["\"site\"", "source", "time"]);
    let named: String = doses()
        .lines()
        .enumerate()
        .map(|(at, line)| match at {
            0 => format!("{line},season,day\n"),
            at => format!(
                "{line},{},{}\n",
                ["spring", "autumn"][at % 2],
                if at == 7 { "soon" } else { "2024-01-05" }
            ),
        })
        .collect();
    place.write("doses.csv", &named);
    let expected = ["\"season\"", "does not say when", "2024-12-31"];
    place.refuses(&format!("{train} --time season"), &expected);
    place.refuses(&format!("{train} --time day"), &["line 8", "\"day\"", "\"soon\""]);
    place.write("doses.csv", &named.replace("soon", ""));
    let told = place.lapwing(&format!("{train} --time day")).assert().success();
    let told = String::from_utf8_lossy(&told.get_output().stderr).into_owned();
    assert!(told.contains("1 rows have no time in column \"day\""), "{told}");
}
