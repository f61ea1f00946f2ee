//! Preprocessing against slow oracles, and properties that hold for every table.
#![allow(clippy::unwrap_used)]

use std::fs;

use lapwing_data::{
    Dataset, Encoder, EncoderConfig, Kind, NewData, NewDataOptions, ReadOptions, Reason, Role,
    Split, SplitConfig, Table, Task,
};
use lapwing_sample::{Exhibit, SampleError, Samples, View};
use proptest::prelude::*;
use tempfile::TempDir;

fn read_with(text: &str, options: &ReadOptions) -> Dataset {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t.csv");
    fs::write(&path, text).unwrap();
    Dataset::read(path, options).unwrap()
}

fn read(text: &str) -> Dataset {
    read_with(text, &ReadOptions::new("y", "s"))
}

fn encode(encoder: &Encoder, table: &Table, rows: &[u32]) -> Vec<Vec<f32>> {
    let bound = encoder.bind(table).unwrap();
    let out = bound.gather(rows, View::Plain).unwrap().into_floats().unwrap();
    out.chunks(encoder.width()).map(<[f32]>::to_vec).collect()
}

/// Rows of a number that may be missing, one of a few levels that may be missing, a source and a class.
fn table() -> impl Strategy<Value = Vec<(Option<f64>, Option<u8>)>> {
    prop::collection::vec(
        (prop::option::weighted(0.9, -1e3..1e3_f64), prop::option::weighted(0.9, 0_u8..12)),
        30..200,
    )
}

fn text(rows: &[(Option<f64>, Option<u8>)]) -> String {
    rows.iter().enumerate().fold("x,c,s,y\n".to_owned(), |text, (i, (number, level))| {
        let number = number.map_or(String::new(), |number| number.to_string());
        let level = level.map_or(String::new(), |level| format!("L{level}"));
        text + &format!("{number},{level},s{},{}\n", i % 4, i % 2)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn numbers_have_mean_0_and_std_1_on_training_rows(rows in table(), seed: u64) {
        let dataset = read(&text(&rows));
        let split = Split::new(&dataset.target, &SplitConfig { seed, ..SplitConfig::default() }).unwrap();
        let encoder = Encoder::fit(&dataset, &split.train, &EncoderConfig::default());
        let encoded = encode(&encoder, &dataset.table, &split.train);

        let present: Vec<f64> = split.train.iter().filter_map(|&row| rows[row as usize].0).collect();
        let mean = present.iter().sum::<f64>() / present.len() as f64;
        let std = (present.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / present.len() as f64).sqrt();
        for (&row, encoded) in split.train.iter().zip(&encoded) {
            let expected = rows[row as usize].0.map_or(0.0, |x| (x - mean) / std);
            prop_assert!((f64::from(encoded[0]) - expected).abs() < 1e-4, "{} {}", encoded[0], expected);
        }
        let with_indicator = present.len() < split.train.len();
        prop_assert_eq!(encoder.feature_names()[1] == "x (missing)", with_indicator);
        if with_indicator {
            for (&row, encoded) in split.train.iter().zip(&encoded) {
                prop_assert_eq!(encoded[1], f32::from(u8::from(rows[row as usize].0.is_none())));
            }
        }
    }

    #[test]
    fn levels_sum_to_one_and_frequent_ones_have_their_own_feature(rows in table(), min_level_rows in 1_u64..20) {
        let dataset = read(&text(&rows));
        let all: Vec<u32> = (0..rows.len() as u32).collect();
        let (train, _) = all.split_at(rows.len() / 2);
        let encoder = Encoder::fit(&dataset, train, &EncoderConfig { min_level_rows, ..EncoderConfig::default() });
        let names = encoder.feature_names();
        prop_assert_eq!(names.len(), encoder.width());
        for (&row, encoded) in all.iter().zip(encode(&encoder, &dataset.table, &all)) {
            let sum: f32 = encoded.iter().zip(&names).filter(|(_, name)| name.starts_with("c=")).map(|(x, _)| x).sum();
            prop_assert!((sum - 1.0).abs() < 1e-5);
            let Some(level) = rows[row as usize].1 else { continue };
            let count = train.iter().filter(|&&other| rows[other as usize].1 == Some(level)).count() as u64;
            let own = names.iter().position(|name| *name == format!("c=L{level}"));
            prop_assert_eq!(own.is_some(), count >= min_level_rows);
            if let Some(own) = own {
                prop_assert_eq!(encoded[own], 1.0);
            } else if let Some(other) = names.iter().position(|name| name == "c=(other)") {
                prop_assert_eq!(encoded[other], 1.0);
            }
        }
    }

    #[test]
    fn the_order_of_rows_does_not_matter(rows in table(), order in Just((0..30_u32).collect::<Vec<_>>()).prop_shuffle()) {
        let dataset = read(&text(&rows));
        let encoder = Encoder::fit(&dataset, &(0..rows.len() as u32).collect::<Vec<_>>(), &EncoderConfig::default());
        let sorted = encode(&encoder, &dataset.table, &(0..30).collect::<Vec<_>>());
        let shuffled = encode(&encoder, &dataset.table, &order);
        for (&row, encoded) in order.iter().zip(shuffled) {
            prop_assert_eq!(&encoded, &sorted[row as usize]);
        }
    }

    #[test]
    fn a_saved_encoder_encodes_a_new_file_to_the_same_bits(rows in table()) {
        let text = text(&rows);
        let dataset = read(&text);
        let all: Vec<u32> = (0..rows.len() as u32).collect();
        let encoder = Encoder::fit(&dataset, &all, &EncoderConfig::default());
        let saved = serde_json::to_string(&encoder).unwrap();
        let loaded: Encoder = serde_json::from_str(&saved).unwrap();
        prop_assert_eq!(&loaded, &encoder);

        // Columns in another order, rows in reverse: other codes, same encoding.
        let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
        let turned = lines.iter().rev().fold("c,unused,x\n".to_owned(), |text, f| text + &format!("{},7,{}\n", f[1], f[0]));
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("new.csv"), turned).unwrap();
        let new = NewData::read(dir.path().join("new.csv"), loaded.schema(), &NewDataOptions::default()).unwrap();
        let mut encoded = encode(&loaded, &new.table, &all);
        encoded.reverse();
        prop_assert_eq!(encoded, encode(&encoder, &dataset.table, &all));
    }
}

#[test]
fn a_few_wild_values_do_not_flatten_the_rest() {
    let text = (0..5000).fold("x,s,y\n".to_owned(), |text, i| {
        let wild = if i % 2500 == 7 { 1e6 } else { 0.0 };
        text + &format!("{},s{},{}\n", f64::from(i * 37 % 100) / 10.0 + wild, i % 3, i % 2)
    });
    let dataset = read(&text);
    let rows: Vec<u32> = (0..5000).collect();
    let encoder = Encoder::fit(&dataset, &rows, &EncoderConfig::default());
    let encoded = encode(&encoder, &dataset.table, &rows);
    // Without fences the first two would be 1e-4 apart.
    assert!((encoded[0][0] - encoded[1][0]).abs() > 0.5);
    let largest = encoded.iter().map(|row| row[0].abs()).fold(0.0, f32::max);
    assert!(largest > 3.0 && largest <= 10.0, "{largest}");
}

#[test]
fn rare_values_of_a_mostly_constant_column_survive() {
    let text = (0..5000).fold("x,s,y\n".to_owned(), |text, i| {
        text + &format!("{},s{},{}\n", u8::from(i % 2500 == 7), i % 3, i % 2)
    });
    let dataset = read(&text);
    let rows: Vec<u32> = (0..5000).collect();
    let encoder = Encoder::fit(&dataset, &rows, &EncoderConfig::default());
    let encoded = encode(&encoder, &dataset.table, &[6, 7]);
    assert!(encoded[0][0] < 0.0 && encoded[1][0] == 10.0, "{encoded:?}");
}

#[test]
fn rows_that_do_not_exist_are_refused_and_others_can_be_shown() {
    let text = (0..40).fold("x,c,s,y\n".to_owned(), |text, i| {
        let x = if i == 1 { String::new() } else { format!("{i}.5") };
        text + &format!("{x},{},s{},{}\n", ["u", "v"][i % 2], i % 3, i % 2)
    });
    let dataset = read(&text);
    let encoder = Encoder::fit(&dataset, &(0..40).collect::<Vec<_>>(), &EncoderConfig::default());
    let rows = encoder.bind(&dataset.table).unwrap();
    let error = rows.gather(&[0, 40], View::Plain).unwrap_err();
    assert!(matches!(error, SampleError::NoSuchRow { row: 40, rows: 40 }), "{error}");
    assert!(rows.exhibit(40).is_err());
    let cells = |cells: [&str; 2]| Exhibit::Cells(cells.map(str::to_owned).to_vec());
    assert_eq!(rows.exhibit(2).unwrap(), cells(["2.5", "u"]));
    assert_eq!(rows.exhibit(1).unwrap(), cells(["", "v"]));
}

#[test]
fn rows_of_pixels_are_shown_as_pictures() {
    // The first pixel is always 0 and no feature therefore; one value is missing.
    let text =
        (0..40).fold("pixel_0_0,pixel_0_1,pixel_1_0,pixel_1_1,s,y\n".to_owned(), |text, i| {
            let last = if i == 1 { String::new() } else { format!("{}", i % 5) };
            text + &format!("0,{},{}.5,{last},s{},{}\n", i % 17, i % 3, i % 3, i % 2)
        });
    let dataset = read(&text);
    let encoder = Encoder::fit(&dataset, &(0..40).collect::<Vec<_>>(), &EncoderConfig::default());
    let rows = encoder.bind(&dataset.table).unwrap();
    let greys = |row| match rows.exhibit(row).unwrap() {
        Exhibit::Picture { width: 2, height: 2, rgb } => {
            rgb.chunks_exact(3).map(|grey| (grey[0] == grey[2]).then_some(grey[0])).collect()
        }
        other => vec![None; format!("{other:?}").len()],
    };
    // Values are from 0 to 16: 0, 16, 1.5 and 1 in row 16.
    assert_eq!(greys(16), [Some(0), Some(255), Some(24), Some(16)]);
    assert_eq!(greys(1), [Some(0), Some(16), Some(24), Some(0)]);
    assert!(rows.exhibit(40).is_err());

    let beside = read(&text.replace("pixel_0_1", "age"));
    let encoder = Encoder::fit(&beside, &(0..40).collect::<Vec<_>>(), &EncoderConfig::default());
    let shown = encoder.bind(&beside.table).unwrap().exhibit(16).unwrap();
    assert!(matches!(shown, Exhibit::Cells(_)), "{shown:?}");
}

#[test]
fn what_training_never_saw_says_nothing() {
    let text = (0..40).fold("x,c,s,y\n".to_owned(), |text, i| {
        text + &format!("{i}.5,{},s{},{}\n", ["u", "v", "v", "v"][i % 4], i % 3, i % 2)
    });
    let dataset = read(&text);
    let encoder = Encoder::fit(&dataset, &(0..40).collect::<Vec<_>>(), &EncoderConfig::default());
    assert_eq!(encoder.feature_names(), ["x", "c=u", "c=v"]);
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("new.csv"), "x,c\n,w\n20,\n").unwrap();
    let new =
        NewData::read(dir.path().join("new.csv"), encoder.schema(), &NewDataOptions::default())
            .unwrap();
    assert_eq!(encode(&encoder, &new.table, &[0, 1]), [[0.0, 0.25, 0.75], [0.0, 0.25, 0.75]]);
}

#[test]
fn roles_follow_inference_unless_asked_otherwise() {
    let text = (0..200).fold("n,flat,zip,note,day,s,y\n".to_owned(), |text, i| {
        let note = format!("row {i} is one of the many rows of this table");
        text + &format!(
            "{i},1,0{},{note},2024-01-{:02},s{},{}\n",
            i % 7,
            i % 28 + 1,
            i % 3,
            f64::from(i * 17 % 41) / 4.0
        )
    });
    let base = ReadOptions::new("y", "s");
    let roles = |options: &ReadOptions| {
        read_with(&text, options)
            .schema
            .columns
            .into_iter()
            .map(|c| (c.kind, c.role))
            .collect::<Vec<_>>()
    };
    use Role::{Feature, Ignored, Source, SourceAndFeature, Target};
    assert_eq!(
        roles(&base),
        [
            (Kind::Numeric, Ignored(Reason::IdLike)),
            (Kind::Numeric, Ignored(Reason::Constant)),
            (Kind::Categorical, Feature),
            (Kind::Text, Ignored(Reason::FreeText)),
            (Kind::Date, Feature),
            (Kind::Categorical, Source),
            (Kind::Numeric, Target),
        ]
    );
    let types = [
        ("n".to_owned(), Kind::Numeric),
        ("zip".to_owned(), Kind::Numeric),
        ("day".to_owned(), Kind::Text),
    ]
    .into();
    assert_eq!(
        roles(&ReadOptions { types, ignore: vec!["flat".into()], ..base.clone() })[..5],
        [
            (Kind::Numeric, Feature),
            (Kind::Numeric, Ignored(Reason::Asked)),
            (Kind::Numeric, Feature),
            (Kind::Text, Ignored(Reason::FreeText)),
            (Kind::Text, Ignored(Reason::FreeText)),
        ]
    );
    assert_eq!(
        roles(&ReadOptions { features: Some(vec!["s".into(), "note".into()]), ..base.clone() })
            [3..6],
        [
            (Kind::Categorical, Feature),
            (Kind::Date, Ignored(Reason::Asked)),
            (Kind::Categorical, SourceAndFeature)
        ]
    );
}

#[test]
fn the_task_follows_the_target_unless_asked_otherwise() {
    let task = |values: &[&str], task| {
        let text = values
            .iter()
            .enumerate()
            .fold("x,s,y\n".to_owned(), |text, (i, y)| text + &format!("{i}.5,s{},{y}\n", i % 2));
        let dataset = read_with(&text, &ReadOptions { task, ..ReadOptions::new("y", "s") });
        (dataset.schema.task, dataset.schema.classes)
    };
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(task(&["b", "a", "b"], None), (Task::Classification, names(&["a", "b"])));
    assert_eq!(
        task(&["10", "9", "1.0", "1"], None),
        (Task::Classification, names(&["1", "9", "10"]))
    );
    assert_eq!(task(&["1.5", "2", "3"], None), (Task::Regression, vec![]));
    assert_eq!(task(&["1", "2", "3"], Some(Task::Regression)), (Task::Regression, vec![]));
    let many: Vec<String> = (0..21).map(|i| i.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(task(&many, None).0, Task::Regression);
    assert_eq!(task(&many, Some(Task::Classification)).1.len(), 21);
}
