//! `lapwing train`.

mod flags;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use lapwing_data::{ColumnSchema, Role};
use lapwing_run::{
    Candidates, Checkpoints, Job, Prepared, Results, RunDirectory, RunError, Settings,
};
use lapwing_train::{CheckpointDir, TrainError};
use serde::Serialize;

use crate::failure::Interrupted;
use crate::interrupt::Interrupt;
use crate::output::count;
use crate::run_name::default_directory;
use crate::say::{counted, say, word};
use crate::table::printable;
use crate::team::{Said, Team};
use crate::training::{
    TrainingProgress, describe, describe_choice, describe_folds, warn, warn_of_unseen,
};
use crate::{names, verdicts};

pub(crate) use flags::Arguments;
use flags::OutputFlags;

/// Columns that are said to matter.
const SHOWN_COLUMNS: usize = 5;
/// Most threads on machines that have fewer cores.
const MOST_THREADS: usize = 512;

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let team = Team::find()?;
    team.end(run_among(&arguments, &team))
}

/// What the first process begins with; the others are told of the settings, and touch no directory.
struct Beginning {
    asked: Settings,
    out: PathBuf,
    /// The run to go on with.
    before: Option<RunDirectory>,
}

impl Beginning {
    /// With so many processes; `None` where there is nothing left to do.
    fn new(arguments: &Arguments, processes: usize) -> anyhow::Result<Option<Self>> {
        let mut asked = arguments.settings();
        if let Some(path) = &arguments.output.config {
            asked = asked.over(Settings::read(path)?);
        }
        let resumed = arguments.resumed()?;
        // A run that was killed before its first file has no settings: it starts anew, if it is said on what.
        let before = match resumed {
            None => None,
            Some(path) => match RunDirectory::resume(path)? {
                None if asked.data.is_none() => {
                    return Err(RunError::NoRun(path.to_owned()).into());
                }
                before => before,
            },
        };
        if let Some(before) = &before {
            let settings = before.settings()?;
            if before.is_finished()? {
                finished(before, asked, settings)?;
                return Ok(None);
            }
            // What was chosen for the table is what was asked for.
            asked.model = asked.model.filter(|model| model.chosen().is_some());
            asked = asked.over(settings);
            if processes > 1 {
                // It began with one, unless it says otherwise.
                asked.shards = asked.shards.or(Some(1));
            }
        }
        let out = match (resumed, &arguments.output.out) {
            (Some(run), _) => run.to_owned(),
            (None, Some(out)) => out.clone(),
            (None, None) => default_directory(asked.data()?),
        };
        if before.is_none() {
            let inputs: Vec<&Path> = asked.data.iter().chain(&asked.test).map(|p| &**p).collect();
            RunDirectory::check(&out, arguments.output.force, &inputs)?;
        }
        let asked = asked.for_folder();
        Ok(Some(Self { asked, out, before }))
    }
}

fn run_among(arguments: &Arguments, team: &Team) -> anyhow::Result<()> {
    let OutputFlags { force, json, .. } = arguments.output;
    let quiet = arguments.output.quiet || !team.leads();
    let mut lead = None;
    let told = team.told(|| {
        lead = Beginning::new(arguments, team.count())?;
        let Some(Beginning { asked, before, .. }) = &lead else { return Ok(String::new()) };
        let word = if before.is_some() { RESUME } else { START };
        Ok(format!("{word}{}", asked.to_toml()?))
    })?;
    let (resuming, settings) = match (told.strip_prefix(RESUME), told.strip_prefix(START)) {
        (Some(settings), _) => (true, settings),
        (None, Some(settings)) => (false, settings),
        (None, None) => return Ok(()),
    };
    let mut asked = match &lead {
        Some(lead) => lead.asked.clone(),
        None => Settings::from_toml(settings)?,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = (team.local() > 1).then(|| (cores / team.local()).max(1));
    if let Some(threads) = arguments.training.threads.or(share) {
        team.agree(set_threads(threads))?;
    }
    team.share_kernels()?;

    let place = lead.as_ref().map_or(Path::new("."), |lead| existing(&lead.out));
    let prepared = team.agree(read(&mut asked, place))?;
    let candidates = Candidates::among(team.peers(), &prepared.dataset, &prepared.split, &asked);
    let candidates = team.agree(candidates.map_err(Into::into))?;
    let same = match &lead {
        Some(Beginning { before: Some(before), .. }) => {
            before.check_unchanged(candidates.settings())
        }
        _ => Ok(()),
    };
    team.agree(same.map_err(Into::into))?;
    team.agree(candidates.first().check_workers().map_err(Into::into))?;
    if !quiet {
        describe(&prepared, &candidates);
        describe_folds(candidates.first());
        if team.count() > 1 || candidates.first().shards() > 1 {
            let (processes, shards) = (team.count() as u64, candidates.first().shards() as u64);
            say!(
                "{}, each batch in {}",
                match processes {
                    1 => "one process".to_owned(),
                    _ => format!("{} processes", count(processes)),
                },
                counted(shards, "shard")
            );
        }
    }
    if team.leads() {
        warn(&prepared.dataset);
        if let Some(test) = &prepared.test {
            warn_of_unseen(&candidates.first().input.unseen(&test.table));
        }
    }

    let directory = match lead {
        None => Ok(None),
        Some(Beginning { before: Some(before), .. }) => Ok(Some(before)),
        Some(Beginning { out, .. }) => {
            RunDirectory::create(&out, force, candidates.settings()).map(Some)
        }
    };
    let directory = team.agree(directory.map_err(Into::into))?;
    let interrupt = Interrupt::watch().context("cannot watch for signals")?;
    let mut progress = TrainingProgress::new("train", candidates.first(), quiet).until(&interrupt);
    let interval = Duration::from_secs(arguments.output.checkpoint_every);
    let checkpoints = match &directory {
        Some(directory) => directory.checkpoints(interval, resuming),
        // The first process writes and reads for all.
        None => {
            let directory = CheckpointDir::new("checkpoint");
            Checkpoints { directory, interval, resume: resuming, last: false }
        }
    };
    let (begin, talked) = (Instant::now(), team.talked());
    let trees = matches!(&candidates, Candidates::One(job) if job.trees().is_some());
    let tried = matches!(&candidates, Candidates::Both(_));
    let fitted = match candidates {
        Candidates::One(job) => {
            let fitted = job.run(Some(&checkpoints), &mut progress);
            fitted.map(|fit| fit.map(|fit| (*job, fit)))
        }
        Candidates::Both(both) => both.run(Some(&checkpoints), &mut progress),
    };
    let (trained, talked) = (begin.elapsed().as_secs_f64(), team.talked() - talked);
    progress.finish();
    if let Err(RunError::Train(TrainError::Diverged { .. }) | RunError::Trees(_)) = fitted {
        team.together();
        match directory {
            None => return Err(Said.into()),
            // It would diverge again: nothing in there is of use to anybody.
            Some(directory) if !resuming => directory.abandon(),
            Some(_) => {}
        }
        fitted?;
        return Ok(());
    }
    let when = progress.when();
    let stopped = |when: &str, trees| -> anyhow::Error {
        team.together();
        match &directory {
            None => Said.into(),
            Some(directory) => stopped(directory, when, &interrupt, trees).into(),
        }
    };
    let Some((job, fit)) = fitted? else {
        return Err(stopped(&when, trees));
    };
    if tried && let Some(directory) = &directory {
        directory.settle_on(&job.settings)?;
        if !quiet {
            describe_choice(&job);
        }
    }
    lapwing_ops::release_memory();
    let mut progress = TrainingProgress::judging(&job, quiet).until(&interrupt);
    let judged = job.judge(fit, Some(&checkpoints), &mut progress);
    progress.finish();
    let Some(mut fit) = judged? else {
        return Err(stopped(&progress.when(), job.trees().is_some()));
    };
    // The others have nothing left to do.
    let Some(directory) = directory else { return Ok(()) };
    lapwing_ops::release_memory();
    let results = Results::new(&prepared, &job, &mut fit, None)?;
    lapwing_ops::release_memory();
    directory.write(&job, &fit, &results)?;

    for warning in &results.limits {
        say!("warning: {}", uncapitalised(&warning.to_string()).replace('\u{202f}', " "));
    }
    print(&results, &job, &directory, json)?;
    if !quiet {
        importance(&results);
        say!(
            "{}, the best was {}; the report is {}",
            counted(
                fit.history.len() as u64,
                if job.trees().is_some() { "round" } else { "epoch" }
            ),
            results.report.summary.best_epoch.unwrap_or_default(),
            directory.report_path().display()
        );
        if team.count() > 1 {
            say!("{:.0} % of the time of training went into exchanges", 100.0 * talked / trained);
        }
    }
    Ok(())
}

/// What the first process tells the others, before the settings.
const RESUME: &str = "resume\n";
const START: &str = "start\n";

/// The part of a path that exists: where a run will be, there is room for rows that do not fit into memory.
fn existing(out: &Path) -> &Path {
    let found = out.ancestors().skip(1).find(|path| path.is_dir());
    found.unwrap_or(Path::new("."))
}

/// Reads the table, and names of columns and sources that hold commas.
fn read(asked: &mut Settings, place: &Path) -> anyhow::Result<Prepared> {
    names::columns(asked)?;
    let prepared = Prepared::read_beside(asked, Some(place))?;
    names::sources(asked, &prepared.dataset.sources.names);
    Ok(prepared)
}

/// What trees split by, the columns first that gained most.
fn importance(results: &Results) {
    let shown = results.report.importance.iter().take(SHOWN_COLUMNS);
    let shown: Vec<String> = shown
        .filter(|column| column.share >= 0.005)
        .map(|column| format!("{} ({:.0} %)", printable(&column.name), 100.0 * column.share))
        .collect();
    if !shown.is_empty() {
        say!("the trees gained most by {}", shown.join(", "));
    }
}

/// As the other warnings begin.
fn uncapitalised(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// There is nothing left to do, unless something else is asked for than was done.
fn finished(run: &RunDirectory, mut asked: Settings, done: Settings) -> anyhow::Result<()> {
    // Whatever was chosen for the table is what was asked for.
    asked.strength = asked.strength.filter(|strength| strength.chosen().is_some());
    asked.task = asked.task.filter(|task| task.chosen().is_some());
    asked.model = asked.model.filter(|model| model.chosen().is_some());
    asked.loss = asked.loss.filter(|loss| loss.chosen().is_some());
    names::as_in(&mut asked, &done);
    run.check_settings(&asked.over(done))?;
    run.tidy();
    say!(
        "{} is finished: nothing to do (`lapwing sources {}` shows its verdicts)",
        run.path().display(),
        word(run.path())
    );
    Ok(())
}

/// What to do after a signal.
fn stopped(
    directory: &RunDirectory,
    when: &str,
    interrupt: &Interrupt,
    trees: bool,
) -> Interrupted {
    let before = match directory.replaces() {
        true => " (until it is finished, the run that was there stays)",
        false => "",
    };
    let run = word(directory.path());
    Interrupted {
        signal: interrupt.signal().unwrap_or_default(),
        message: match trees {
            false => format!(
                "stopped {when}, and saved: `lapwing train --resume {run}` goes on from there{before}"
            ),
            true => format!(
                "stopped {when}: `lapwing train --resume {run}` grows the trees again from the first round, to the \
                 same result{before}"
            ),
        },
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'a> {
    run: String,
    model: &'static str,
    /// Nothing where it was asked for.
    model_reason: Option<&'a str>,
    test: Option<serde_json::Value>,
    validation: Option<serde_json::Value>,
    sources: verdicts::Objects<'a>,
    warnings: Vec<String>,
    ignored: Vec<Ignored<'a>>,
}

/// A column that was not trained on, and why.
#[derive(Serialize)]
struct Ignored<'a> {
    column: &'a str,
    reason: String,
    note: Option<&'a str>,
}

impl<'a> Ignored<'a> {
    fn of(column: &'a ColumnSchema) -> Option<Self> {
        let Role::Ignored(reason) = column.role else { return None };
        let reason = reason.to_string();
        Some(Self { column: &column.name, reason, note: column.note.as_deref() })
    }
}

/// The verdicts and how good the model is, on standard output.
fn print(
    results: &Results,
    job: &Job<'_>,
    directory: &RunDirectory,
    json: bool,
) -> anyhow::Result<()> {
    let sources = verdicts::worst_first(results.sources());
    let mut out = crate::output::stdout();
    if json {
        let printed = Printed {
            run: directory.path().display().to_string(),
            model: job.model().name(),
            model_reason: job.settings.model_reason.as_deref(),
            test: results.test.as_ref().map(verdicts::metrics_object),
            validation: results.validation.as_ref().map(verdicts::metrics_object),
            sources: verdicts::Objects(&sources),
            warnings: results.report.warnings.iter().map(ToString::to_string).collect(),
            ignored: job.dataset().schema.columns.iter().filter_map(Ignored::of).collect(),
        };
        serde_json::to_writer(&mut out, &printed)?;
        writeln!(out)?;
        return Ok(());
    }
    write!(out, "{}{}", verdicts::table(&sources), verdicts::reasons(&sources))?;
    write!(out, "{}", verdicts::findings(&sources))?;
    writeln!(out, "{}", verdicts::tally(&sources))?;
    if let Some(items) = &results.items {
        let items = counted(items.len() as u64, "item");
        writeln!(out, "consensus on {items}: items.csv")?;
    }
    if let Some(test) = &results.test {
        writeln!(out, "test ({} rows): {}", count(test.rows()), verdicts::metrics(test))?;
    }
    Ok(())
}

/// Computes with this many threads, everywhere.
pub(crate) fn set_threads(threads: usize) -> anyhow::Result<()> {
    // More than there are cores gains nothing, and some thousand take minutes to start.
    let most =
        std::thread::available_parallelism().map_or(MOST_THREADS, |n| MOST_THREADS.max(n.get()));
    anyhow::ensure!(
        (1..=most).contains(&threads),
        "--threads {threads}: expected a number from 1 to {most}"
    );
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .context("cannot set the number of threads")
}
