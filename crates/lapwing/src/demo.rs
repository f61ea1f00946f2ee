//! `lapwing demo`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use lapwing_run::{DEMO_LEVELS, Job, Moon, Prepared, Results, RunDirectory, Settings, two_moons};
use lapwing_train::method_named;

use crate::output::count;
use crate::say::say;
use crate::training::{TrainingProgress, describe};
use crate::verdicts;

/// A twentieth of the paper's points: with all of them every method is right on 99.9 % of the test rows, because the
/// right labels outvote the wrong ones everywhere. With 100 rows a source there is little to outvote with, as in most
/// tables that people have, and what a network takes from a bad source shows.
const TRAINING_POINTS: usize = 500;
/// Many, so that a difference between the methods is not one of luck with the test rows.
const TEST_POINTS: usize = 10_000;
/// The paper's.
const NOISE: f64 = 0.1;

/// Two moons, five sources with 0, 2.5, 5, 25 and 100 % wrong labels: standard training beside LAP
///
/// Makes its own data (500 rows to train on, 10,000 clean ones to test), trains twice with the defaults of `lapwing train`
/// (but on all rows, to the last epoch), prints the verdicts and both test accuracies, and writes a run directory with
/// report.html, beside the data it was made from.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapwing demo
  lapwing demo --seed 7 --out moons")]
pub(crate) struct Arguments {
    /// The run directory
    #[arg(long, value_name = "RUN", default_value = "lapwing-demo")]
    out: PathBuf,

    /// Replace the run in the directory
    #[arg(long)]
    force: bool,

    /// Decides the points, the flipped labels and training
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Threads to compute with; the results do not depend on it [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Results as one JSON object on standard output
    #[arg(long)]
    json: bool,

    /// No progress and no remarks
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { out, force, seed, json, quiet, .. } = arguments;
    if let Some(threads) = arguments.threads {
        crate::train::set_threads(threads)?;
    }
    let mut directory = RunDirectory::reserve(out, *force, &[])?;
    let (train, test) = two_moons(TRAINING_POINTS, TEST_POINTS, NOISE, *seed);
    let settings = Settings {
        data: Some(write_points(directory.work(), "moons-train.csv", &train)?),
        test: Some(write_points(directory.work(), "moons-test.csv", &test)?),
        target: Some("moon".to_owned()),
        source: Some("source".to_owned()),
        seed: Some(*seed),
        // As in the paper: on all rows, to the last epoch, where memorised noise shows.
        validation_fraction: Some(0.0),
        ..Settings::default()
    };
    let prepared = Prepared::read(&settings)?;
    let with = |method| anyhow::Ok(settings.for_method(method_named(method)?));

    let standard = with("standard")?;
    let standard = Job::new(&prepared.dataset, &prepared.split, &standard)?;
    let lap = with("lap")?;
    let lap = Job::new(&prepared.dataset, &prepared.split, &lap)?;
    if !quiet {
        describe(&prepared, &lap);
    }
    directory.start(&lap.settings)?;
    let fit = |what, job: &Job<'_>| {
        let mut progress = TrainingProgress::new(what, job, *quiet);
        let fit = job.run(None, &mut progress);
        progress.finish();
        anyhow::Ok(fit?)
    };
    let Some(fit_standard) = fit("standard", &standard)? else { return Ok(()) };
    let baseline = standard.test(&fit_standard.model, &prepared)?;
    let baseline = baseline.map(|metrics| metrics.primary().1);
    let Some(fit_lap) = fit("lap", &lap)? else { return Ok(()) };
    let results = Results::new(&prepared, &lap, &fit_lap, baseline)?;
    directory.write(&lap, &fit_lap, &results)?;

    let accuracy = results.test.as_ref().map(|metrics| metrics.primary().1);
    let sources = verdicts::worst_first(results.sources());
    let mut stdout = crate::output::stdout();
    if *json {
        let accuracies = serde_json::json!({"standard": baseline, "lap": accuracy});
        let object = serde_json::json!({
            "run": out.display().to_string(), "accuracy": accuracies, "sources": verdicts::Objects(&sources),
        });
        writeln!(stdout, "{object}")?;
    } else {
        write!(stdout, "{}", verdicts::table(&sources))?;
        let per_cent = |share: Option<f64>| format!("{:.2} %", 100.0 * share.unwrap_or(f64::NAN));
        writeln!(
            stdout,
            "test accuracy on {} clean rows: {} with LAP, {} with standard training",
            count(test.len() as u64),
            per_cent(accuracy),
            per_cent(baseline),
        )?;
    }
    if !quiet {
        say!("the report is {}", directory.report_path().display());
    }
    Ok(())
}

/// Writes points as a table, so that they can be looked at and trained on.
fn write_points(out: &Path, name: &str, points: &[Moon]) -> anyhow::Result<PathBuf> {
    let mut text = "x,y,source,moon\n".to_owned();
    for point in points {
        let level = 100.0 * DEMO_LEVELS[point.source];
        let moon = if point.label { "lower" } else { "upper" };
        text.push_str(&format!("{:.6},{:.6},{level} % wrong,{moon}\n", point.x, point.y));
    }
    let path = out.join(name);
    lapwing_store::replace(&path, &[text.as_bytes()])?;
    Ok(path)
}
