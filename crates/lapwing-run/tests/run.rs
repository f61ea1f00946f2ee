//! A run from Rust: results, evidence, directory and model file, against slow oracles.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use lapwing_data::NewRows;
use lapwing_judge::{
    Comparison, Fault, Interval, LabelError, SourceRow, Verdict, label_error, wilson,
};
use lapwing_run::{
    Fit, Job, MetricLine, Metrics, Predictor, Prepared, Results, RunDirectory, RunError, Settings,
};
use lapwing_train::{DeviceName, Predictions};

/// Columns a, b, ward and ill: ill where a + b > 1. The attic says the contrary, and the cellar always no.
fn wards(rows: usize) -> String {
    let mut state = 7_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut text = "a,b,ward,ill\n".to_owned();
    for row in 0..rows {
        let (a, b) = (next(), next());
        let ward = ["north", "south", "east", "attic", "cellar"][row % 5];
        let ill = match ward {
            "attic" => a + b <= 1.0,
            "cellar" => false,
            _ => a + b > 1.0,
        };
        text += &format!("{a:.4},{b:.4},{ward},{}\n", if ill { "yes" } else { "no" });
    }
    text
}

/// A run that is made once for all tests.
struct Finished {
    directory: tempfile::TempDir,
    prepared: Prepared,
    results: Results,
}

fn settings(path: PathBuf) -> Settings {
    Settings {
        data: Some(path),
        target: Some("ill".to_owned()),
        source: Some("ward".to_owned()),
        epochs: Some(40),
        ..Settings::default()
    }
}

fn fitted<'a>(prepared: &'a Prepared, settings: &Settings) -> (Job<'a>, Fit) {
    let job = Job::new(&prepared.dataset, &prepared.split, settings).unwrap();
    let fit = job.run(None, &mut ()).unwrap().unwrap();
    let fit = job.judge(fit, None, &mut ()).unwrap().unwrap();
    (job, fit)
}

fn finished() -> &'static Finished {
    static RUN: OnceLock<Finished> = OnceLock::new();
    RUN.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("wards.csv");
        std::fs::write(&path, wards(1500)).unwrap();
        let settings = settings(path);
        let prepared = Prepared::read(&settings).unwrap();
        let (job, mut fit) = fitted(&prepared, &settings);
        let results = Results::new(&prepared, &job, &mut fit, Some(0.5)).unwrap();
        let run =
            RunDirectory::create(&directory.path().join("run"), false, &job.settings).unwrap();
        run.write(&job, &fit, &results).unwrap();
        drop((job, fit));
        Finished { directory, prepared, results }
    })
}

impl Finished {
    fn path(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    /// Ward and label of each row, by row of the table.
    fn rows(&self) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(self.directory.path().join("wards.csv")).unwrap();
        let row = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[2].to_owned(), cells[3].to_owned())
        };
        text.lines().skip(1).map(row).collect()
    }

    /// What the saved model says of each row: label, and probabilities of no and yes.
    fn said(&self) -> Vec<(String, [f32; 2])> {
        let predictor = Predictor::load(&self.path(), DeviceName::Cpu).unwrap();
        assert_eq!(predictor.schema().classes, ["no", "yes"]);
        let table = self.directory.path().join("wards.csv");
        let table = NewRows::open(table, predictor.schema()).unwrap();
        let mut probabilities = Vec::new();
        let unseen = predictor.predict(table, |part| {
            let Predictions::Classes { probabilities: of_part, classes: 2 } = &part.predictions
            else {
                panic!("two classes")
            };
            probabilities.extend_from_slice(of_part);
            Ok::<(), RunError>(())
        });
        assert_eq!(unseen.unwrap(), []);
        let word = |p: &[f32]| (if p[1] > p[0] { "yes" } else { "no" }.to_owned(), [p[0], p[1]]);
        probabilities.chunks(2).map(word).collect()
    }

    fn source(&self, name: &str) -> &SourceRow {
        self.results.sources().iter().find(|row| row.source == name).unwrap()
    }
}

#[test]
fn the_contrary_source_is_found_with_its_fault_and_the_others_are_not_accused() {
    let run = finished();
    assert_eq!(run.source("attic").verdict, Verdict::Unreliable);
    assert!(!run.source("attic").reasons.is_empty());
    let faults = |name: &str| -> Vec<&str> {
        run.source(name).findings.iter().map(|finding| finding.fault.word()).collect()
    };
    assert!(faults("attic").contains(&"exchanged-classes"), "{:?}", faults("attic"));
    for name in ["north", "south", "east"] {
        assert_eq!(run.source(name).verdict, Verdict::Reliable);
        assert!(faults(name).is_empty(), "{name}: {:?}", faults(name));
    }
    let label =
        faults("cellar").into_iter().find(|word| ["one-label", "default-label"].contains(word));
    assert!(label.is_some(), "{:?}", faults("cellar"));
}

#[test]
fn examples_of_a_finding_are_rows_of_its_source_that_show_it() {
    let run = finished();
    let (rows, said) = (run.rows(), run.said());
    let exchanged = &run.source("attic").findings;
    let exchanged = exchanged.iter().find(|f| f.fault.word() == "exchanged-classes").unwrap();
    assert_eq!(exchanged.rows.len(), 5);
    for &row in &exchanged.rows {
        let at = row as usize - 1;
        assert_eq!(rows[at].0, "attic");
        assert_ne!(rows[at].1, said[at].0, "row {row}");
    }
}

/// Rows and disagreements of a ward among these rows, counted one by one.
fn disagreement(run: &Finished, of: &[u32], ward: impl Fn(&str) -> bool) -> LabelError {
    let (rows, said) = (run.rows(), run.said());
    let own: Vec<usize> = of.iter().map(|&r| r as usize).filter(|&r| ward(&rows[r].0)).collect();
    LabelError {
        rows: own.len() as u64,
        disagreeing: own.iter().filter(|&&r| rows[r].1 != said[r].0).count() as u64,
    }
}

#[test]
fn label_errors_are_those_of_a_count_row_by_row() {
    let run = finished();
    let split = &run.prepared.split;
    for row in run.results.sources() {
        let reliable =
            |name: &str| name != row.source && run.source(name).verdict == Verdict::Reliable;
        let held_out = disagreement(run, &split.validation, reliable);
        let baseline =
            if held_out.rows >= 50 { held_out } else { disagreement(run, &split.train, reliable) };
        let own = disagreement(run, &split.train, |name| name == row.source);
        assert_eq!(row.label_error, label_error(own, baseline, Some(2)), "{}", row.source);
        let (low, high) = wilson(own.disagreeing, own.rows);
        assert!(low <= high);
    }
    let Some(Interval { low, .. }) = run.source("attic").label_error else { panic!("an estimate") };
    assert!(low > 0.8, "{low}");
}

#[test]
fn evidence_is_given_on_flagged_sources_and_those_with_a_fault_worst_row_first() {
    let run = finished();
    let (rows, said) = (run.rows(), run.said());
    let report = &run.results.report;
    let mut order: Vec<&SourceRow> = report.sources.iter().collect();
    order.sort_by(|a, b| a.worst_first(b));
    let expected: Vec<&str> = order
        .into_iter()
        .map(|row| row.source.as_str())
        .filter(|name| {
            run.source(name).verdict.is_flagged() || !run.source(name).findings.is_empty()
        })
        .collect();
    let shown: Vec<&str> = report.evidence.iter().map(|e| e.source.as_str()).collect();
    assert_eq!(shown, expected);
    for evidence in &report.evidence {
        assert_eq!(evidence.features, ["a", "b"]);
        assert_eq!(evidence.worst_rows.len(), 10);
        let losses: Vec<f64> = evidence.worst_rows.iter().map(|row| row.loss.unwrap()).collect();
        assert!(losses.windows(2).all(|pair| pair[0] >= pair[1]), "{losses:?}");
        for row in &evidence.worst_rows {
            let at = row.row as usize - 1;
            assert_eq!(rows[at], (evidence.source.clone(), row.given.clone()));
            assert_eq!(said[at].0, row.predicted);
            let probabilities = said[at].1.map(f64::from);
            let best = probabilities[0].max(probabilities[1]);
            assert!((row.probability.unwrap() - best).abs() < 1e-6);
            let given = probabilities[usize::from(row.given == "yes")];
            assert!((row.loss.unwrap() + given.ln()).abs() < 1e-3, "{row:?} {given}");
        }
    }
    let attic = report.evidence.iter().find(|e| e.source == "attic").unwrap();
    let Some(Comparison::Labels(confusion)) = &attic.comparison else { panic!("labels") };
    // Labels are compared with what networks say that have not seen them, which stands in rows.csv.
    let mut counted = [[0_u64; 2]; 2];
    for line in std::fs::read_to_string(run.path().join("rows.csv")).unwrap().lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [row, ward, given, _, probability, other, of_other] = cells[..] else {
            panic!("{line}")
        };
        let [row, probability, of_other] =
            [row, probability, of_other].map(|number| number.parse::<f64>().unwrap());
        if ward == "attic" && run.prepared.split.train.contains(&(row as u32 - 1)) {
            let place = |word: &str| usize::from(word == "yes");
            let unseen = if probability >= of_other { given } else { other };
            counted[place(given)][place(unseen)] += 1;
        }
    }
    assert_eq!(confusion.counts, counted.map(|row| row.to_vec()).to_vec());
}

#[test]
fn metrics_are_those_of_the_predictions() {
    let run = finished();
    let (rows, said) = (run.rows(), run.said());
    let accuracy = |of: &[u32]| {
        let right = of.iter().filter(|&&row| rows[row as usize].1 == said[row as usize].0).count();
        right as f64 / of.len() as f64
    };
    let split = &run.prepared.split;
    let told = |metrics: &Option<Metrics>| metrics.as_ref().unwrap().primary();
    assert_eq!(told(&run.results.test), ("accuracy", accuracy(&split.test)));
    assert_eq!(told(&run.results.validation), ("accuracy", accuracy(&split.validation)));
    let lines = &run.results.metrics;
    let is = |line: &&MetricLine, split: &str| line.split == split && line.metric == "accuracy";
    let test: Vec<f64> = lines.iter().filter(|l| is(l, "test")).map(|l| l.value).collect();
    assert_eq!(test, [accuracy(&split.test)]);
    let best = run.results.report.summary.best_epoch.unwrap();
    let line = lines.iter().find(|line| is(line, "test")).unwrap();
    assert_eq!(line.epoch as u64, best);
    let outcome = run.results.report.summary.outcome.as_ref().unwrap();
    assert_eq!((outcome.value, outcome.standard), (accuracy(&split.test), Some(0.5)));
}

#[test]
fn phases_cover_the_run_and_show_the_departure() {
    let report = &finished().results.report;
    let names: Vec<&str> = report.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["early", "middle", "late"]);
    assert_eq!(report.phases[0].first_step, 0);
    assert_eq!(report.phases[2].last_step + 1, report.summary.steps);
    for pair in report.phases.windows(2) {
        assert_eq!(pair[0].last_step + 1, pair[1].first_step);
    }
    let late = &report.phases[2];
    let weight = |name: &str| late.sources.iter().find(|s| s.source == name).unwrap().weight;
    assert!(weight("attic") < 0.5 && weight("north") > 0.9);
    assert!(late.threshold.unwrap() > late.reference_mean.unwrap());
}

#[test]
fn a_directory_gives_back_what_was_written() {
    let run = finished();
    let directory = RunDirectory::open(&run.path()).unwrap();
    let mut expected = run.results.sources().to_vec();
    expected.sort_by(SourceRow::worst_first);
    assert_eq!(directory.sources().unwrap(), expected);
    assert_eq!(directory.report().unwrap(), run.results.report);
    let settings = directory.settings().unwrap();
    assert_eq!(settings.epochs, Some(40));
    let page = std::fs::read(directory.report_path()).unwrap();
    assert_eq!(lapwing_report::render(&run.results.report).unwrap().as_bytes(), page);
    let table = std::fs::read_to_string(run.path().join("sources.csv")).unwrap();
    let verdicts: BTreeMap<&str, &str> = table
        .lines()
        .skip(1)
        .map(|line| (line.split(',').next().unwrap(), line.split(',').nth(10).unwrap()))
        .collect();
    assert_eq!(verdicts["attic"], "unreliable");
    let metrics = std::fs::read_to_string(run.path().join("metrics.csv")).unwrap();
    assert_eq!(metrics.lines().count(), run.results.metrics.len() + 1);
}

/// A copy of the run that may be damaged.
fn copied() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run");
    std::fs::create_dir(&path).unwrap();
    for entry in std::fs::read_dir(finished().path()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), path.join(entry.file_name())).unwrap();
        }
    }
    (directory, path)
}

fn refused<T>(result: Result<T, RunError>) -> String {
    match result {
        Ok(_) => panic!("expected an error"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_directory_that_is_none_or_damaged_is_refused_with_the_file() {
    let (directory, path) = copied();
    let run = RunDirectory::open(&path).unwrap();
    std::fs::write(path.join("report.json"), "{\"sources\": 3}").unwrap();
    let message = refused(run.sources());
    assert!(message.contains("report.json is not what the run wrote"), "{message}");
    std::fs::remove_file(path.join("report.json")).unwrap();
    let message = refused(run.sources());
    assert!(message.contains("holds no finished run: report.json is not there"), "{message}");
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(refused(RunDirectory::open(&file)).contains("found a file"));
    assert!(RunDirectory::open(&directory.path().join("nothing")).is_err());
    assert!(refused(RunDirectory::check(&path, false, &[])).contains("not empty"));
}

/// Changes `model.json` as text.
fn with_model(change: impl Fn(&str) -> String) -> String {
    let (_directory, path) = copied();
    let description = path.join("model.json");
    let text = std::fs::read_to_string(&description).unwrap();
    let changed = change(&text);
    assert_ne!(changed, text, "nothing was changed");
    std::fs::write(&description, changed).unwrap();
    refused(Predictor::load(&path, DeviceName::Cpu))
}

#[test]
fn a_model_file_that_does_not_hold_what_it_should_is_refused() {
    let format = |text: &str| text.replacen("\"format\": ", "\"format\": 9", 1);
    assert!(with_model(format).contains("model.json: format"), "{}", with_model(format));
    let message = with_model(|text| text.replace('}', ""));
    assert!(message.contains("model.json"), "{message}");
    let (_directory, path) = copied();
    let weights = path.join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&weights, bytes).unwrap();
    assert!(Predictor::load(&path, DeviceName::Cpu).is_err(), "other parameters than were saved");
    std::fs::remove_file(path.join("model.json")).unwrap();
    let message = refused(Predictor::load(&path, DeviceName::Cpu));
    assert!(message.contains("model.json is not there"), "{message}");
}

#[test]
fn the_saved_model_says_what_the_trained_one_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wards.csv");
    std::fs::write(&path, wards(200)).unwrap();
    let settings = Settings { epochs: Some(2), ..settings(path.clone()) };
    let prepared = Prepared::read(&settings).unwrap();
    let (job, mut fit) = fitted(&prepared, &settings);
    let results = Results::new(&prepared, &job, &mut fit, None).unwrap();
    let run = RunDirectory::create(&directory.path().join("run"), false, &job.settings).unwrap();
    run.write(&job, &fit, &results).unwrap();
    let predictor = Predictor::load(run.path(), DeviceName::Cpu).unwrap();
    let evaluated = predictor.evaluate(&path, Some("ward")).unwrap();
    assert_eq!((evaluated.all.rows(), evaluated.groups.len()), (200, 5));
    assert_eq!(evaluated.groups[3].0, "attic");
    // The accuracy on all rows is the mean of the wards', which are of one size.
    let mean = evaluated.groups.iter().map(|(_, metrics)| metrics.primary().1).sum::<f64>() / 5.0;
    assert!((mean - evaluated.all.primary().1).abs() < 1e-12);
    assert_eq!(job.test(&fit.model, &prepared).unwrap(), results.test);
}

#[test]
fn a_table_to_test_on_is_tested_on_whole() {
    let directory = tempfile::tempdir().unwrap();
    let (path, checked) = (directory.path().join("w.csv"), directory.path().join("checked.csv"));
    std::fs::write(&path, wards(200)).unwrap();
    std::fs::write(&checked, wards(70)).unwrap();
    let settings = Settings { epochs: Some(2), test: Some(checked), ..settings(path) };
    let prepared = Prepared::read(&settings).unwrap();
    let (job, mut fit) = fitted(&prepared, &settings);
    let tested = job.test(&fit.model, &prepared).unwrap().unwrap();
    assert_eq!(tested.rows(), 70);
    assert_eq!(Results::new(&prepared, &job, &mut fit, None).unwrap().test, Some(tested));
}

#[test]
fn every_row_for_training_and_validation_is_judged_and_the_seed_decides() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wards.csv");
    std::fs::write(&path, wards(400)).unwrap();
    let settings = Settings { epochs: Some(4), folds: Some(2), ..settings(path) };
    let prepared = Prepared::read(&settings).unwrap();
    let (job, fit) = fitted(&prepared, &settings);
    let labels = fit.labels.as_ref().unwrap();
    let mut expected = [&prepared.split.train[..], &prepared.split.validation].concat();
    expected.sort_unstable();
    assert_eq!((labels.networks, &labels.rows), (2, &expected));
    assert!(labels.noise.rows.iter().all(|row| row.wrong.is_some()));
    let folds = job.folds().unwrap();
    assert_eq!((folds.judged(), folds.rows(), folds.networks()), (320, 320, 2));
    assert_eq!(folds.steps(), 2 * folds.steps_each());
    let (_, again) = fitted(&prepared, &settings);
    assert_eq!(again.labels.unwrap().noise, labels.noise);
    let (_, other) = fitted(&prepared, &Settings { seed: Some(1), ..settings.clone() });
    assert_ne!(other.labels.unwrap().noise, labels.noise);
}

#[test]
fn one_label_for_all_is_told_of_a_source_that_is_not_flagged() {
    let run = finished();
    let cellar = run.source("cellar");
    let finding = cellar.findings.iter().find_map(|finding| match &finding.fault {
        Fault::OneLabel(found) => Some((found.label.clone(), found.of)),
        Fault::DefaultLabel(found) => Some((found.label.clone(), cellar.rows)),
        _ => None,
    });
    assert_eq!(finding, Some(("no".to_owned(), cellar.rows)));
}
