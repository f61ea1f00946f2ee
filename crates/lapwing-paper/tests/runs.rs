//! Experiments run small: records, resumption, parts, figures and the summary.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::Mutex;

use lapwing_paper::{
    DataDir, FigureKind, Form, Record, Records, Request, Results, Selection, Version, Watch,
    recipe, run, summary, write_figures,
};

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn request(conditions: &[&str], methods: &[&str], shard: Option<(usize, usize)>) -> Request {
    Request {
        selection: Selection {
            runs: Some(1),
            conditions: words(conditions),
            methods: words(methods),
            shard,
        },
        form: Form { limit_train: Some(600), epochs: Some(2), ..Form::FULL },
        version: Version::Code,
        jobs: Some(2),
    }
}

/// Counts the cells that were really run.
#[derive(Default)]
struct Count(Mutex<(usize, usize, Vec<Record>)>);

impl Watch for Count {
    fn planned(&self, done: usize, to_do: usize, _: u64) {
        let mut count = self.0.lock().unwrap();
        (count.0, count.1) = (done, to_do);
    }

    fn finished(&self, record: &Record) {
        self.0.lock().unwrap().2.push(record.clone());
    }
}

fn run_toy(out: &Path, request: &Request) -> (usize, usize, Vec<Record>) {
    let count = Count::default();
    let toy = recipe("toy", Version::Code).unwrap();
    run(&toy, request, &DataDir::new(None), out, &count).unwrap();
    count.0.into_inner().unwrap()
}

#[test]
fn finished_cells_are_kept_and_the_same_whoever_runs_them() {
    let conditions = ["base", "history-2", "history-5"];
    let (once, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (done, to_do, mut whole) = run_toy(once.path(), &request(&conditions, &[], None));
    assert_eq!((done, to_do, whole.len()), (0, 3, 3));
    let (done, to_do, again) = run_toy(once.path(), &request(&conditions, &[], None));
    assert_eq!((done, to_do, again.len()), (3, 0, 0));

    let mut united = Vec::new();
    for part in 1..=2 {
        united.extend(run_toy(parts.path(), &request(&conditions, &[], Some((part, 2)))).2);
    }
    for records in [&mut whole, &mut united] {
        records.sort_by(|a, b| a.cell.cmp(&b.cell));
        records.iter_mut().for_each(|record| record.seconds = 0.0);
    }
    assert_eq!(whole, united, "parts come to the same, bit by bit");
    let record = &whole[0];
    assert_eq!((record.rows, record.unreliability.len()), ([600, 2000], 5));
    // 600 rows in batches of 128, twice.
    assert!(record.unreliability.iter().all(|line| line.len() == 10));
    assert_eq!(record.series["loss"].len(), 2);
}

#[test]
fn a_run_that_was_killed_goes_on_with_what_is_missing() {
    let out = tempfile::tempdir().unwrap();
    let request = request(&["base", "history-2"], &[], None);
    run_toy(out.path(), &request);
    let folder = out.path().join("records/toy/limit-600-epochs-2");
    // What a killed run leaves: records that are whole, and maybe a temporary file.
    std::fs::remove_file(folder.join("base.lap.0.json")).unwrap();
    std::fs::write(folder.join(".lapwing-abandoned"), b"{").unwrap();
    let (done, to_do, records) = run_toy(out.path(), &request);
    assert_eq!((done, to_do, records.len()), (1, 1, 1));
    assert_eq!(records[0].cell.condition, "base");
}

#[test]
fn small_and_full_runs_are_never_mixed() {
    let out = tempfile::tempdir().unwrap();
    let small = request(&["base"], &[], None);
    run_toy(out.path(), &small);
    let smaller =
        Request { form: Form { limit_train: Some(300), epochs: Some(1), ..Form::FULL }, ..small };
    assert_eq!(run_toy(out.path(), &smaller).1, 1, "another form is another cell");
    let toy = recipe("toy", Version::Code).unwrap();
    let records = Records::new(out.path());
    let full = Results::gather(&toy, Version::Code, Form::FULL, &records).unwrap();
    assert!(full.is_empty());
    let text = Results::gather(&toy, Version::Paper, smaller.form, &records).unwrap();
    assert!(text.is_empty());
    assert_eq!(records.forms("toy", Version::Code).unwrap().len(), 2);
}

#[test]
fn the_summary_tells_of_what_was_run_and_how() {
    let out = tempfile::tempdir().unwrap();
    run_toy(out.path(), &request(&["base"], &[], None));
    let demonstration = recipe("figure-3", Version::Code).unwrap();
    let full = Request { form: Form::FULL, ..request(&[], &[], None) };
    run(&demonstration, &full, &DataDir::new(None), out.path(), &()).unwrap();
    let written = summary(out.path()).unwrap();
    let text = std::fs::read_to_string(out.path().join("RESULTS.md")).unwrap();
    assert!(text.contains("**Reduced**: 600 samples to train on, 2 epochs instead of 25."));
    let again = "`lapwing paper toy --noise base --limit-train 600 --epochs 2`";
    assert!(text.contains(again) && text.contains("`lapwing paper figure-3`"), "{text}");
    assert!(text.contains("toy-limit-600-epochs-2.png") && text.contains("figure-3.png"), "{text}");
    assert!(
        text.contains("| `sensitivity` | appendix box plots | 0 of 200 | 0 |"),
        "what was not run is said"
    );
    assert!(!text.contains("H = 1000"), "rows without a record are left out");
    for path in written {
        let bytes = std::fs::read(&path).unwrap();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("png") => assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 5_000),
            Some("svg") => assert!(bytes.starts_with(b"<svg")),
            _ => {}
        }
    }
    let numbers = std::fs::read_to_string(out.path().join("results.json")).unwrap();
    assert!(numbers.contains("\"n_runs\": 1") && numbers.contains("\"limit_train\": 600"));
}

#[test]
fn data_that_is_missing_is_named_before_anything_is_run() {
    let out = tempfile::tempdir().unwrap();
    let fashion = recipe("table-1-fashion-mnist", Version::Code).unwrap();
    let request = request(&["original"], &["standard"], None);
    let error = run(&fashion, &request, &DataDir::new(None), out.path(), &()).unwrap_err();
    assert!(error.to_string().contains("LAPWING_DATA"), "{error}");
    let empty = DataDir::new(Some(out.path().to_owned()));
    let error = run(&fashion, &request, &empty, out.path(), &()).unwrap_err();
    assert!(error.to_string().contains("github.com/zalandoresearch/fashion-mnist"), "{error}");
}

/// Small files in the layout of Fashion-MNIST: a bright stripe tells the class.
fn fashion(root: &Path, train: u32, test: u32) {
    let folder = root.join("fashion_mnist");
    std::fs::create_dir_all(&folder).unwrap();
    let file = |lengths: &[u32], values: Vec<u8>| {
        let mut bytes = vec![0, 0, 8, lengths.len() as u8];
        bytes.extend(lengths.iter().flat_map(|length| length.to_be_bytes()));
        bytes.extend(values);
        bytes
    };
    for (part, count) in [("train", train), ("t10k", test)] {
        let class = |at: u32| (at * 7 + at / 10) % 10;
        let pixels = (0..count)
            .flat_map(|at| (0..784).map(move |p| if p / 78 == class(at) { 220 } else { 10 }));
        let images = file(&[count, 28, 28], pixels.collect());
        std::fs::write(folder.join(format!("{part}-images-idx3-ubyte")), images).unwrap();
        let labels = file(&[count], (0..count).map(|at| class(at) as u8).collect());
        std::fs::write(folder.join(format!("{part}-labels-idx1-ubyte")), labels).unwrap();
    }
}

#[test]
fn rows_that_are_held_out_are_measured_and_points_of_a_search_share_their_draws() {
    let (data, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fashion(data.path(), 600, 200);
    let data = DataDir::of_other_files(data.path().to_owned());
    let search = recipe("parameter-search", Version::Code).unwrap();
    let request = Request {
        form: Form { limit_train: Some(400), epochs: Some(8), ..Form::FULL },
        ..request(&["h25-d0.5-l0.5", "h25-d2-l2"], &[], None)
    };
    let count = Count::default();
    run(&search, &request, &data, out.path(), &count).unwrap();
    let mut records = count.0.into_inner().unwrap().2;
    records.sort_by(|a, b| a.cell.cmp(&b.cell));
    assert_eq!(records.len(), 4);
    for record in &records {
        assert_eq!(record.failure, None, "{}", record.cell);
        assert_eq!(record.noisy_sources, records[0].noisy_sources, "{}", record.cell);
        let searched = record.cell.method == "search";
        assert_eq!(record.rows, [if searched { 300 } else { 400 }, 200], "{}", record.cell);
        for series in ["valid-top-1", "valid-top-5", "weighted-valid-top-1"] {
            let measured = record.series.get(series).map(Vec::len);
            assert_eq!(measured, searched.then_some(8), "{}", record.cell);
        }
    }
    // No figure shows what training loses.
    assert!(records.iter().all(|record| !record.series.contains_key("train-loss")));
    // Nobody is judged in 16 steps: one point is as good as the other, to the last bit, and all sources weigh alike.
    assert_eq!(records[0].series, records[2].series);
    assert_eq!(records[1].series, records[3].series);
    assert_ne!(records[0].series["top-1"], records[1].series["top-1"]);
    let searched = &records[1].series;
    assert_eq!(searched["valid-top-1"], searched["weighted-valid-top-1"]);
    // Six sources of ten give wrong classes, in the rows that are held out, too.
    let best = records[1].metric("max-valid-top-1").unwrap();
    assert!(best < 80.0, "{best}");
}

#[test]
fn curves_over_epochs_are_of_training_validation_and_test() {
    let (data, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fashion(data.path(), 600, 200);
    let data = DataDir::of_other_files(data.path().to_owned());
    let mut table = recipe("table-1-fashion-mnist", Version::Code).unwrap();
    (table.figure, table.hold_out) = (Some(FigureKind::Epochs), 0.25);
    // Both begin alike, and sources are judged, and harshly, within the epochs there are.
    table.paired = true;
    table.training.as_mut().unwrap().batch = 30;
    (table.lap.history, table.lap.warmup, table.lap.strength) = (Some(3), Some(0), Some(20.0));
    let form = Form { limit_train: Some(400), epochs: Some(10), ..Form::FULL };
    let mut request = Request { form, ..request(&["random-label"], &["standard", "lap"], None) };
    request.selection.runs = Some(2);
    run(&table, &request, &data, out.path(), &()).unwrap();
    let results = Results::gather(&table, Version::Code, form, &Records::new(out.path())).unwrap();
    assert_eq!(results.records.len(), 4);
    // A softmax of a softmax: no row loses less, unless it is weighed.
    let least = (1.0_f64.exp() + 9.0).ln() - 1.0;
    for record in &results.records {
        assert_eq!((record.rows, &record.failure), ([300, 200], &None));
        for series in ["train-loss", "valid-top-5", "top-5"] {
            assert_eq!(record.series[series].len(), 10, "{series} of {}", record.cell);
        }
        let top = |series: &str| record.series[series].iter().copied();
        assert!(top("valid-top-1").zip(top("valid-top-5")).all(|(one, five)| one <= five));
        let lost = &record.series["train-loss"];
        if record.cell.method == "standard" {
            assert!(lost.iter().all(|loss| (least..least + 1.0).contains(loss)), "{lost:?}");
        } else {
            let plain = results
                .records
                .iter()
                .find(|other| other.cell.method == "standard" && other.cell.run == record.cell.run);
            let plain = &plain.unwrap().series["train-loss"];
            assert!(lost.iter().zip(plain).all(|(ours, plain)| ours <= plain), "{lost:?}");
            assert!(lost[9] < least, "{lost:?}");
        }
    }
    let drawn = write_figures(&results, out.path()).unwrap();
    let svg = std::fs::read_to_string(&drawn[0]).unwrap();
    for name in ["train loss, weighed", "validation top-1, %", "test top-1, %"] {
        assert_eq!(svg.matches(name).count(), 1, "{name}");
    }
    // Three panels with a band for each method that was run.
    assert_eq!(svg.matches("<polygon").count(), 3 * 2);
    assert!(!svg.contains("the paper's"), "it has no such curve");

    // What was not measured has no panel, and a curve of the paper's is dashed.
    let mut older = results.clone();
    older.recipe.paper.curves = recipe("imagenet64", Version::Code).unwrap().paper.curves;
    older.recipe.metric = "max-top-5".to_owned();
    for record in &mut older.records {
        record.series.remove("train-loss");
    }
    let drawn = write_figures(&older, out.path()).unwrap();
    let svg = std::fs::read_to_string(&drawn[0]).unwrap();
    assert!(svg.contains("test top-5, %") && svg.contains("dashed: the paper's"));
    assert!(!svg.contains("train loss"), "{svg}");
}

#[test]
fn an_epoch_is_chosen_by_noisy_rows() {
    let (data, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fashion(data.path(), 600, 200);
    let data = DataDir::of_other_files(data.path().to_owned());
    let choice = recipe("epoch-choice", Version::Code).unwrap();
    let request = Request {
        form: Form { limit_train: Some(400), epochs: Some(4), ..Form::FULL },
        ..request(&["batch-label-flip"], &[], None)
    };
    run(&choice, &request, &data, out.path(), &()).unwrap();
    let results =
        Results::gather(&choice, Version::Code, request.form, &Records::new(out.path())).unwrap();
    assert_eq!(results.records.len(), 2);
    for record in &results.records {
        let (test, valid) = (&record.series["top-1"], &record.series["valid-top-1"]);
        let best = valid.iter().copied().fold(0.0, f64::max);
        let epoch = valid.iter().position(|share| *share == best).unwrap();
        assert_eq!(record.metric("top-1-by-valid-top-1"), Some(test[epoch]));
        assert!(record.metric("max-top-1") >= Some(test[epoch]));
        assert_eq!(record.rows, [300, 200]);
    }
    let drawn = write_figures(&results, out.path()).unwrap();
    let svg = std::fs::read_to_string(&drawn[0]).unwrap();
    assert!(svg.contains("gain of LAP over Standard"), "{svg}");
    assert!(svg.contains("test accuracy where weighted validation is best"), "{svg}");
}

#[test]
fn columns_of_the_arithmetic_are_one_until_somebody_is_judged() {
    let out = tempfile::tempdir().unwrap();
    let arithmetic = recipe("arithmetic", Version::Code).unwrap();
    let count = Count::default();
    // Ten steps, of which none comes after the warm-up.
    let request = request(&["strength-1", "strength-8"], &[], None);
    run(&arithmetic, &request, &DataDir::new(None), out.path(), &count).unwrap();
    let records = count.0.into_inner().unwrap().2;
    assert_eq!(records.len(), 10);
    for record in &records {
        assert_eq!(record.failure, None, "{}", record.cell);
        assert_eq!(record.series, records[0].series, "{}", record.cell);
        assert_eq!(record.noisy_sources, records[0].noisy_sources, "{}", record.cell);
        assert_eq!(record.metric("unreliability-clean"), Some(0.0), "{}", record.cell);
    }
}

#[test]
fn every_method_runs_on_every_kind_of_noise() {
    let (data, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fashion(data.path(), 600, 200);
    let data = DataDir::of_other_files(data.path().to_owned());
    let table = recipe("table-1-fashion-mnist", Version::Code).unwrap();
    let request = Request {
        form: Form { limit_train: Some(450), epochs: Some(3), ..Form::FULL },
        ..request(&[], &[], None)
    };
    let count = Count::default();
    run(&table, &request, &data, out.path(), &count).unwrap();
    let records = count.0.into_inner().unwrap().2;
    assert_eq!(records.len(), 49);
    for record in &records {
        assert_eq!(record.failure, None, "{}", record.cell);
        assert_eq!(record.series["top-1"].len(), 3, "{}: epochs that count", record.cell);
        let best = record.series["top-1"].iter().copied().reduce(f64::max);
        assert_eq!(record.metric("max-top-1"), best, "{}", record.cell);
        let noisy = if record.cell.condition == "original" { 0 } else { 6 };
        assert_eq!(record.noisy_sources.len(), noisy);
    }
    // The images are bands that tell their class: somebody learns them, or nobody learns anything.
    let clean = records.iter().filter(|record| record.cell.condition == "original");
    let best = clean.filter_map(|record| record.metric("max-top-1")).fold(0.0, f64::max);
    assert!(best > 30.0, "{best} % of ten classes");
    let gains = recipe("percentage-difference", Version::Code).unwrap();
    let gains =
        Results::gather(&gains, Version::Code, request.form, &Records::new(out.path())).unwrap();
    let told = gains.entries.iter().filter(|entry| entry.ours.is_some()).count();
    assert_eq!(told, 7 * 6);
}
