//! `lapwing train`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::{Args, ValueEnum};
use lapwing_data::{ColumnSchema, Kind, Role, TableFile};
use lapwing_run::{
    BadRow, Candidates, Checkpoints, Choice, Job, LossName, ModelKind, OptimiserName, Prepared,
    Results, RunDirectory, RunError, Settings,
};
use lapwing_sample::Change;
use lapwing_train::{CheckpointDir, MethodKind, Task, TrainError};
use serde::Serialize;

use crate::failure::Interrupted;
use crate::interrupt::Interrupt;
use crate::method_flags::{MethodFlags, method_parser};
use crate::names;
use crate::output::count;
use crate::say::{counted, say, word};
use crate::table::printable;
use crate::team::{Said, Team};
use crate::training::{
    TrainingProgress, describe, describe_choice, describe_folds, warn, warn_of_unseen,
};
use crate::{verdicts, words};

/// Columns that are said to matter.
const SHOWN_COLUMNS: usize = 5;
/// Most threads on machines that have fewer cores.
const MOST_THREADS: usize = 512;

/// Train on a table whose rows come from many sources, and judge the sources
///
/// DATA is a CSV, TSV or Parquet file (.gz and .zst, too) with a header, or a folder with a folder of pictures per class
/// and a sources.csv. The run directory holds the model, a verdict
/// per source (sources.csv), metrics, the course of every source's loss and weight, and report.html.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapwing train visits.csv --target outcome --source hospital
  lapwing train visits.csv --target outcome --source hospital --test checked.csv --out runs/visits
  lapwing train visits.csv --target outcome --source hospital --trust \"St. Mary\" --floor 0.05
  lapwing train answers.csv --target label --source annotator --item question
  lapwing train photos.csv --target species --source camera --image file --augment
  lapwing train --resume runs/visits")]
pub(crate) struct Arguments {
    /// The table
    data: Option<PathBuf>,

    #[command(flatten)]
    table: TableFlags,
    #[command(flatten)]
    training: TrainingFlags,
    #[command(flatten)]
    rule: RuleFlags,
    #[command(flatten)]
    output: OutputFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Table")]
struct TableFlags {
    /// The column to predict
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,

    /// The column that says where a row came from
    #[arg(long, value_name = "COLUMN")]
    source: Option<String>,

    /// The column that says what a row is an answer to, where several sources answer on the same item: items stay whole in
    /// every split, answers on them are weighed against each other, and items.csv has what they amount to
    #[arg(long, value_name = "COLUMN")]
    item: Option<String>,

    /// Do not look for items where no column names them (rows with the same inputs, from several sources)
    #[arg(long, conflicts_with = "item")]
    no_items: bool,

    /// Learn from these columns and no other; give the flag once per column where names hold commas
    #[arg(long, value_name = "A,B")]
    features: Option<Vec<String>>,

    /// Do not learn from these columns; likewise
    #[arg(long, value_name = "A,B")]
    ignore: Option<Vec<String>>,

    /// Learn from these columns of free text, by their words and word pairs; other features stand beside them
    #[arg(long, value_name = "A,B")]
    text: Option<Vec<String>>,

    /// Learn from these channels of series: columns of lists of numbers (Parquet), or a pattern such as 'ecg_*' for
    /// columns that are the moments of a channel; they are learnt from alone
    #[arg(long, value_name = "A,B")]
    series: Option<Vec<String>>,

    /// The column with paths of pictures (PNG, JPEG, GIF, WebP), relative to the table; they are learnt from alone
    #[arg(long, value_name = "COLUMN")]
    image: Option<String>,

    /// The column that says when a row was taken, a date or a number: since when is a source bad? It is not learnt from
    /// unless it is among --features
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// Pixels of a side that pictures are stretched to [default: 64 where half of them are that large, else 32]
    #[arg(long, value_name = "PIXELS")]
    image_size: Option<usize>,

    /// Megabytes of pictures to hold; larger sets are read from their files batch by batch [default: 1073]
    #[arg(long, value_name = "MB")]
    image_memory: Option<u64>,

    /// What becomes of pictures at random while training: flip, crop, or both
    #[arg(long, value_name = "CHANGE,…", value_delimiter = ',', num_args = 0..=1, default_missing_value = "flip,crop")]
    augment: Option<Vec<Change>>,

    /// A row whose picture cannot be read is an error, or left out and counted [default: fail]
    #[arg(long, value_name = "WHAT", value_enum)]
    on_bad_row: Option<BadRowWord>,

    /// What columns hold, where it is inferred wrongly: numeric, categorical, date or text
    #[arg(long, value_name = "A=TYPE,…", value_parser = typed)]
    types: Option<Vec<Types>>,

    /// What is learnt [default: auto]
    #[arg(long, value_parser = words::task())]
    task: Option<Choice<Task>>,

    /// A table to test on
    #[arg(long, value_name = "FILE", conflicts_with = "test_fraction")]
    test: Option<PathBuf>,

    /// Share of rows to test on [default: 0.2, or 0 with --test]
    #[arg(long, value_name = "SHARE")]
    test_fraction: Option<f64>,

    /// Share of rows that decide when to stop [default: 0.1]
    #[arg(long, value_name = "SHARE")]
    validation_fraction: Option<f64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Training (defaults are chosen for the table)")]
struct TrainingFlags {
    /// How sources are treated [default: noise-rate for classes, lap for values and with parameters of its rule]
    #[arg(long, value_parser = method_parser())]
    method: Option<&'static dyn MethodKind>,

    /// What is trained [default: auto]
    #[arg(long, value_parser = words::model())]
    model: Option<Choice<ModelKind>>,

    /// What is made small [default: auto]
    #[arg(long, value_parser = words::loss())]
    loss: Option<Choice<LossName>>,

    /// With --loss huber: where its linear part begins, in standard deviations of the target [default: 1]
    #[arg(long, value_name = "DELTA", allow_negative_numbers = true)]
    huber_delta: Option<f64>,

    /// Units of the hidden layers
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    hidden: Option<Vec<usize>>,

    /// Share of hidden units dropped at each step
    #[arg(long, value_name = "SHARE")]
    dropout: Option<f64>,

    /// What moves the parameters [default: adam]
    #[arg(long, value_enum)]
    optimiser: Option<OptimiserWord>,

    /// Share of the last step that sgd carries into the next [default: 0.9]
    #[arg(long, value_name = "SHARE")]
    momentum: Option<f64>,

    /// How strongly parameters are drawn to zero
    #[arg(long, value_name = "RATE")]
    weight_decay: Option<f64>,

    /// Most epochs; of trees, rounds
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,

    /// Epochs without a better validation loss before training ends
    #[arg(long, value_name = "N")]
    patience: Option<usize>,

    /// Rows per step
    #[arg(long, value_name = "N")]
    batch_size: Option<usize>,

    /// Highest learning rate
    #[arg(long, value_name = "RATE")]
    learning_rate: Option<f64>,

    /// Decides split, first parameters and order; the same seed gives the same bytes [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Memory to keep to, such as 2GB: rows that do not fit are trained on from disk, in another order. Without it, a table
    /// that does not fit is refused
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory_limit: Option<u64>,

    /// With --memory-limit: keep the rows on disk in this file, and begin with them next time, if the table is the same
    /// and read in the same way [default: they are gone at the end]
    #[arg(long, value_name = "FILE")]
    cache: Option<PathBuf>,

    /// Shards of each batch, whose gradients are added in a fixed tree: with the same shards the same bytes on any number
    /// of processes [default: 1, or with MPI the processes rounded up to a power of two]
    #[arg(long, value_name = "N")]
    shards: Option<usize>,

    /// Where to compute: cpu, wgpu, cuda or cuda:N [default: cpu]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,

    /// Threads to compute with; the results do not depend on it [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Sources")]
struct RuleFlags {
    /// How many batch-mean losses of a source are remembered [default: 25]
    #[arg(long, value_name = "H")]
    history: Option<usize>,

    /// How many standard deviations above the others a source may lie [default: 0.8]
    #[arg(long, value_name = "λ", allow_negative_numbers = true)]
    leniency: Option<f64>,

    /// Chooses the leniency by the probability of accusing a clean source in a step (at most 0.5), if losses of a batch
    /// are normal and all sources alike; training accuses less often
    #[arg(long, value_name = "P", conflicts_with = "leniency", allow_negative_numbers = true)]
    false_alarm: Option<f64>,

    /// How fast weight falls; auto: half weight after a tenth of the steps above the threshold [default: auto]
    #[arg(long, value_name = "δ", allow_negative_numbers = true)]
    strength: Option<Choice<f64>>,

    /// Steps before the first judgement [default: 0]
    #[arg(long, value_name = "STEPS")]
    warmup: Option<u64>,

    #[command(flatten)]
    method: MethodFlags,

    /// Least weight of a source that is not blocked [default: 0]
    #[arg(long, value_name = "WEIGHT")]
    floor: Option<f64>,

    /// Sources that are never down-weighted; give the flag once per source where names hold commas
    #[arg(long, value_name = "A,B")]
    trust: Option<Vec<String>>,

    /// Sources that count for nothing; likewise
    #[arg(long, value_name = "A,B")]
    block: Option<Vec<String>>,

    /// Networks that judge labels, each those that it has not seen [default: 3 for classes]
    #[arg(long, value_name = "N")]
    folds: Option<usize>,

    /// No such networks: verdicts rest on the losses alone, and no row is judged
    #[arg(long, conflicts_with = "folds")]
    no_folds: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
struct OutputFlags {
    /// Settings from a file, such as the config.toml of a run; flags win
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,

    /// The run directory [default: runs/DATA-TIME]
    #[arg(long, value_name = "RUN")]
    out: Option<PathBuf>,

    /// Go on with a run that was interrupted, named here or by --out
    #[arg(long, value_name = "RUN", num_args = 0..=1, conflicts_with = "force")]
    resume: Option<Option<PathBuf>>,

    /// Replace the run in the directory given by --out, once this one is finished
    #[arg(long)]
    force: bool,

    /// Seconds between two checkpoints
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    checkpoint_every: u64,

    /// Results as one JSON object on standard output
    #[arg(long)]
    json: bool,

    /// No progress and no remarks but warnings
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OptimiserWord {
    /// Adam
    Adam,
    /// Stochastic gradient descent with momentum
    Sgd,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BadRowWord {
    /// It is an error that names the row
    Fail,
    /// It is left out, and counted
    Skip,
}

impl From<BadRowWord> for BadRow {
    fn from(word: BadRowWord) -> Self {
        match word {
            BadRowWord::Fail => Self::Fail,
            BadRowWord::Skip => Self::Skip,
        }
    }
}

/// Columns with their types.
type Types = Vec<(String, Kind)>;

/// `a=date,b=numeric`. A comma belongs to the name where what stands before it has no type.
fn typed(text: &str) -> Result<Types, String> {
    let mut types = Types::new();
    let mut begin = 0;
    for end in text.match_indices(',').map(|(at, _)| at).chain([text.len()]) {
        let part = &text[begin..end];
        let (column, kind) = match part.rsplit_once('=') {
            None if end < text.len() => continue,
            None => return Err(format!("expected COLUMN=TYPE, found {part:?}")),
            Some(pair) => pair,
        };
        match kind.parse::<Kind>() {
            Ok(kind) => types.push((column.to_owned(), kind)),
            Err(error) => return Err(error.to_string()),
        }
        begin = end + 1;
    }
    Ok(types)
}

/// `500MB`, `2GB`, `2GiB`, or a number of bytes.
fn bytes(text: &str) -> Result<u64, String> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" | "k" => 1e3,
        "mb" | "m" => 1e6,
        "gb" | "g" => 1e9,
        "tb" | "t" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(format!("{unit:?} is no unit: expected MB, GB, MiB or GiB")),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && (number * unit).is_finite() => Ok((number * unit) as u64),
        _ => Err("expected a size such as 500MB or 2GB".to_owned()),
    }
}

impl TableFlags {
    /// What columns hold, as far as it is said.
    fn types(&self) -> Option<BTreeMap<String, Kind>> {
        let types = self.types.iter().flatten().flatten().cloned();
        let images = self.image.iter().map(|column| (column.clone(), Kind::Image));
        Some(types.chain(images).collect()).filter(|types: &BTreeMap<_, _>| !types.is_empty())
    }
}

impl Arguments {
    /// The flags as settings.
    fn settings(&self) -> Settings {
        let Self { data, table, training, rule, .. } = self;
        Settings {
            data: data.clone(),
            target: table.target.clone(),
            source: table.source.clone(),
            item: table.item.clone(),
            find_items: table.no_items.then_some(false),
            features: table.features.clone(),
            ignore: table.ignore.clone(),
            text: table.text.clone(),
            series: table.series.clone(),
            time: table.time.clone(),
            image_size: table.image_size,
            image_memory: table.image_memory,
            augment: table.augment.clone(),
            on_bad_row: table.on_bad_row.map(BadRow::from),
            types: table.types(),
            task: table.task,
            test: table.test.clone(),
            test_fraction: table.test_fraction,
            validation_fraction: table.validation_fraction,
            method: training.method,
            parameters: rule.method.0.clone(),
            model: training.model,
            model_reason: None,
            loss: training.loss,
            huber_delta: training.huber_delta,
            hidden: training.hidden.clone(),
            dropout: training.dropout,
            optimiser: training.optimiser.map(|optimiser| match optimiser {
                OptimiserWord::Adam => OptimiserName::Adam,
                OptimiserWord::Sgd => OptimiserName::Sgd,
            }),
            momentum: training.momentum,
            weight_decay: training.weight_decay,
            epochs: training.epochs,
            patience: training.patience,
            batch_size: training.batch_size,
            learning_rate: training.learning_rate,
            history: rule.history,
            leniency: rule.leniency,
            false_alarm: rule.false_alarm,
            strength: rule.strength,
            warmup: rule.warmup,
            floor: rule.floor,
            trust: rule.trust.clone(),
            block: rule.block.clone(),
            folds: if rule.no_folds { Some(0) } else { rule.folds },
            memory_limit: training.memory_limit,
            cache: training.cache.clone(),
            shards: training.shards,
            seed: training.seed,
            device: training.device.clone(),
        }
    }

    /// The run to go on with, if one is asked for.
    fn resumed(&self) -> anyhow::Result<Option<&Path>> {
        match (&self.output.resume, &self.output.out) {
            (None, _) => Ok(None),
            (Some(Some(run)), Some(out)) if run != out => {
                anyhow::bail!("--resume and --out name different directories")
            }
            (Some(Some(run)), _) | (Some(None), Some(run)) => Ok(Some(run)),
            (Some(None), None) => {
                anyhow::bail!("--resume needs a run: --resume RUN, or --resume with --out RUN")
            }
        }
    }
}

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
    let steps = counted(progress.step(), "step");
    let stopped = |when: &str, trees| -> anyhow::Error {
        team.together();
        match &directory {
            None => Said.into(),
            Some(directory) => stopped(directory, when, &interrupt, trees).into(),
        }
    };
    let Some((job, fit)) = fitted? else {
        return Err(stopped(&format!("after {steps}"), trees));
    };
    if tried && let Some(directory) = &directory {
        directory.settle_on(&job.settings)?;
        if !quiet {
            describe_choice(&job);
        }
    }
    let mut progress = TrainingProgress::judging(&job, quiet).until(&interrupt);
    let judged = job.judge(fit, Some(&checkpoints), &mut progress);
    progress.finish();
    let Some(mut fit) = judged? else {
        return Err(stopped("while labels were judged", job.trees().is_some()));
    };
    // The others have nothing left to do.
    let Some(directory) = directory else { return Ok(()) };
    let results = Results::new(&prepared, &job, &mut fit, None)?;
    directory.write(&job, &fit, &results)?;

    for warning in &results.limits {
        say!("warning: {}", uncapitalised(&warning.to_string()));
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
    name_columns(asked)?;
    let prepared = Prepared::read_beside(asked, Some(place))?;
    name_sources(asked, &prepared.dataset.sources.names);
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
    name_as(&mut asked, &done);
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

/// Names of columns may hold commas.
fn name_columns(asked: &mut Settings) -> anyhow::Result<()> {
    let lists = || {
        asked.features.iter().chain(&asked.ignore).chain(&asked.text).chain(&asked.series).flatten()
    };
    if lists().any(|value| value.contains(',')) {
        let file = TableFile::open(asked.data()?)?;
        let known = |name: &str| file.columns().iter().any(|column| column == name);
        let lists = [&mut asked.features, &mut asked.ignore, &mut asked.text, &mut asked.series];
        for list in lists.into_iter().flatten() {
            *list = names::listed(list, known);
        }
    }
    Ok(())
}

/// Names of sources may hold commas.
fn name_sources(asked: &mut Settings, known: &[String]) {
    let known = |name: &str| known.iter().any(|known| known == name);
    for list in [&mut asked.trust, &mut asked.block].into_iter().flatten() {
        *list = names::listed(list, known);
    }
}

/// Names with commas as a run has them that was made with such names.
fn name_as(asked: &mut Settings, done: &Settings) {
    let lists = [
        (&mut asked.features, &done.features),
        (&mut asked.ignore, &done.ignore),
        (&mut asked.text, &done.text),
        (&mut asked.series, &done.series),
        (&mut asked.trust, &done.trust),
        (&mut asked.block, &done.block),
    ];
    for (list, known) in lists {
        let known = |name: &str| known.iter().flatten().any(|known| known == name);
        if let Some(list) = list {
            *list = names::listed(list, known);
        }
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

/// `runs/<data>-<time>`, with a number where two runs start in one second.
fn default_directory(data: &Path) -> PathBuf {
    let name = data.file_name().unwrap_or(data.as_os_str()).to_string_lossy();
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or("data");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let base = Path::new("runs").join(format!("{stem}-{}", stamp(now)));
    let numbered = |n: u32| PathBuf::from(format!("{}-{n}", base.display()));
    [base.clone()].into_iter().chain((2..1000).map(numbered)).find(|p| !p.exists()).unwrap_or(base)
}

/// Seconds since 1970 as `20260131-235959` in UTC.
fn stamp(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of year 0, in eras of 400 years, so that leap days come last.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) =
        (year + 400 * era + u64::from(month >= 10), if month < 10 { month + 3 } else { month - 9 });
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_dates() {
        // date -u -d @N +%Y%m%d-%H%M%S
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_782_399), "20000228-235959");
        assert_eq!(stamp(951_782_400), "20000229-000000");
        assert_eq!(stamp(1_767_225_599), "20251231-235959");
        assert_eq!(stamp(4_102_444_800), "21000101-000000");
    }

    #[test]
    fn sizes_are_given_with_their_unit() {
        let sizes = ["1GB", "1.5 gb", "512MiB", "4096", "20k"].map(|text| bytes(text).unwrap());
        assert_eq!(sizes, [1_000_000_000, 1_500_000_000, 536_870_912, 4096, 20_000]);
        for wrong in ["", "GB", "-1GB", "1XB", "0", "nan"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn types_are_given_as_pairs() {
        let pairs = |text: &str| typed(text).unwrap();
        assert_eq!(pairs("a=b=date"), [("a=b".to_owned(), Kind::Date)]);
        let (name, other) = ("dose, mg".to_owned(), "b".to_owned());
        let expected = [(name, Kind::Numeric), (other, Kind::Date)];
        assert_eq!(pairs("dose, mg=numeric,b=date"), expected);
        for wrong in ["a", "a=colour", "a=date,b", "a=date,", ""] {
            assert!(typed(wrong).is_err(), "{wrong}");
        }
    }
}
