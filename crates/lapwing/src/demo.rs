//! `lapwing demo`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use lapwing_judge::{SourceRow, Verdict};
use lapwing_run::{Demonstration, Job, Prepared, Results, RunDirectory, Settings};
use lapwing_train::method_named;
use serde_json::json;

use crate::output::count;
use crate::say::say;
use crate::training::{TrainingProgress, describe_plan};
use crate::verdicts;

/// Handwritten digits from ten hospitals, six of them bad in different ways: standard training beside LAP
///
/// Brings its own data: 1,200 handwritten digits to train on, dealt out to ten hospitals that do not exist, and 597 with
/// right labels to test. Trains twice as `lapwing train --method …` does (but on all rows, to the last epoch): once
/// with standard training, which believes everybody, and once with LAP. Prints a verdict on each hospital,
/// what was done to it and what was found, and both test accuracies, and writes a run directory with report.html, beside
/// the data it was made from.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapwing demo
  lapwing demo --seed 7 --out seven
  lapwing demo --moons")]
pub(crate) struct Arguments {
    /// The run directory
    #[arg(long, value_name = "RUN", default_value = "lapwing-demo")]
    out: PathBuf,

    /// Replace the run in the directory
    #[arg(long)]
    force: bool,

    /// Decides who gets which rows, what is spoilt and how, and training
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// The paper's two moons instead: five sources with 0, 2.5, 5, 25 and 100 % wrong labels
    #[arg(long)]
    moons: bool,

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
    let made =
        if arguments.moons { Demonstration::moons(*seed) } else { Demonstration::digits(*seed)? };
    let write = |part: &str, text: &str| {
        let path = directory.work().join(format!("{}-{part}.csv", made.name));
        lapwing_store::replace(&path, &[text.as_bytes()])?;
        anyhow::Ok(path)
    };
    let settings = Settings {
        data: Some(write("train", &made.train)?),
        test: Some(write("test", &made.test)?),
        target: Some(made.target.to_owned()),
        source: Some(made.source.to_owned()),
        seed: Some(*seed),
        // As in the paper: on all rows, to the last epoch, where memorised noise shows.
        validation_fraction: Some(0.0),
        ..Settings::default()
    };
    let prepared = Prepared::read(&settings)?;
    let job = |settings: &Settings| Job::new(&prepared.dataset, &prepared.split, settings);
    let standard = job(&settings.for_method(method_named("standard")?))?;
    // Not the default for classes: what is to be seen is a weight per source that falls while training goes on. It is ahead
    // of noise rates here, too, as two hospitals err by rule and not by chance.
    let ours = job(&settings.for_method(method_named("lap")?))?;
    if !quiet {
        say!("{}", made.origin);
        describe_plan(&prepared, &ours);
    }
    directory.start(&ours.settings)?;
    let fit = |job: &Job<'_>| {
        let mut progress = TrainingProgress::new(job.method().kind().name(), job, *quiet);
        let fit = job.run(None, &mut progress);
        progress.finish();
        anyhow::Ok(fit?)
    };
    let Some(fit_standard) = fit(&standard)? else { return Ok(()) };
    let baseline = standard.test(&fit_standard.model, &prepared)?;
    let baseline = baseline.map(|metrics| metrics.primary().1);
    let Some(fit_ours) = fit(&ours)? else { return Ok(()) };
    let mut progress = TrainingProgress::judging(&ours, *quiet);
    let judged = ours.judge(fit_ours, None, &mut progress);
    progress.finish();
    let Some(mut fit_ours) = judged? else { return Ok(()) };
    let mut results = Results::new(&prepared, &ours, &mut fit_ours, baseline)?;
    results.report.summary.origin = format!("{}.", made.origin);
    directory.write(&ours, &fit_ours, &results)?;

    let accuracy = results.test.as_ref().map(|metrics| metrics.primary().1);
    let sources = verdicts::worst_first(results.sources());
    let method = ours.method().kind().name();
    let mut stdout = crate::output::stdout();
    if *json {
        let listed = sources.iter().map(|source| {
            let mut object = verdicts::object(source)?;
            object["made"] = json!(done_to(&made, source));
            anyhow::Ok(object)
        });
        let object = json!({
            "run": out.display().to_string(),
            "method": method,
            "accuracy": {"standard": baseline, method: accuracy},
            "sources": listed.collect::<anyhow::Result<Vec<_>>>()?,
        });
        writeln!(stdout, "{object}")?;
    } else {
        write!(stdout, "{}", verdicts::table(&sources))?;
        writeln!(stdout, "\nwhat was done to them, and what was found:")?;
        for source in &sources {
            writeln!(stdout, "{}", told(&made, source))?;
        }
        let per_cent = |share: Option<f64>| format!("{:.1} %", 100.0 * share.unwrap_or(f64::NAN));
        writeln!(
            stdout,
            "\ntest accuracy on {} clean rows: {} with {method}, {} with standard training",
            count(prepared.test_rows() as u64),
            per_cent(accuracy),
            per_cent(baseline),
        )?;
    }
    if !quiet {
        say!("the report is {}", directory.report_path().display());
    }
    Ok(())
}

/// What was done to a source, if anything.
fn done_to<'a>(made: &'a Demonstration, source: &SourceRow) -> Option<&'a str> {
    made.sources.iter().find(|(name, _)| *name == source.source)?.1.as_deref()
}

/// What was done to a source, and what was found about it: the report has the rest.
fn told(made: &Demonstration, source: &SourceRow) -> String {
    let done = done_to(made, source).unwrap_or("nothing");
    let mut text = format!("{}: {done}", source.source);
    let is_told = !matches!(source.verdict, Verdict::Reliable | Verdict::Insufficient);
    let reason = is_told.then(|| lapwing_report::reason(source));
    // How often it disagrees is the reason for the verdict; the fault says in which way.
    let mut faults = source.findings.iter().filter(|_| source.verdict.is_flagged());
    let fault = faults.find(|finding| !verdicts::DESCRIPTIONS.contains(&finding.fault.word()));
    for sentence in reason.into_iter().chain(fault.map(lapwing_report::phrase)) {
        text.push_str(&format!("\n  → {}", sentence.replace('\u{202f}', " ")));
    }
    text
}
