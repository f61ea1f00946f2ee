//! `lapwing replay`: the rule over a log of losses, without training.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use lapwing_core::{Lap, Present};
use lapwing_data::{LogColumns, LossLog, number_text};
use lapwing_judge::{Cell, SourceRow};
use lapwing_run::Replay;
use serde::{Serialize, Serializer};

use crate::arguments::RuleArguments;
use crate::formulas::Formulas;
use crate::output::{Output, count};
use crate::progress::Progress;
use crate::say::say;

/// Rows between two looks at the clock.
const ROWS_BETWEEN_UPDATES: u64 = 1 << 14;

/// Run the weighting rule over a log of losses from any training run
///
/// The log is a CSV or Parquet file with the columns step, source and loss, one row per sample (or
/// per source and step); consecutive rows of one step are one batch. Nothing is trained: the output
/// tells what the rule would have done with these losses.
///
/// The output is CSV with the columns step, source, loss, unreliability and weight, one row per
/// step and source. A loss that is not finite is left out of its source's mean and counted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapwing replay losses.csv > weights.csv
  lapwing replay losses.parquet --step iteration --source hospital --summary
  zcat losses.csv.gz | lapwing replay - --leniency 1 --json
  lapwing replay losses.csv --false-alarm 0.05 --out weights.csv")]
pub(crate) struct Arguments {
    /// The log: CSV, TSV (.gz and .zst, too), Parquet, or - for CSV from standard input
    log: PathBuf,

    /// The column that holds the step
    #[arg(long, value_name = "COLUMN", default_value_t = LogColumns::default().step)]
    step: String,

    /// The column that holds the source
    #[arg(long, value_name = "COLUMN", default_value_t = LogColumns::default().source)]
    source: String,

    /// The column that holds the loss
    #[arg(long, value_name = "COLUMN", default_value_t = LogColumns::default().loss)]
    loss: String,

    #[command(flatten)]
    rule: RuleArguments,

    /// One row per source at the end instead of one per step and source
    #[arg(long, help_heading = "Output")]
    summary: bool,

    /// JSON, one object per line, instead of CSV
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Write to a file, which appears once it is complete, instead of standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,

    #[command(flatten)]
    formulas: Formulas,

    /// Replace the file given by --out if it exists
    #[arg(long, requires = "out", help_heading = "Output")]
    force: bool,

    /// No progress, no closing remarks but warnings
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let columns =
        LogColumns { step: arguments.step, source: arguments.source, loss: arguments.loss };
    let LogColumns { step, source, loss } = &columns;
    anyhow::ensure!(
        step != source && source != loss && loss != step,
        "--step {step:?}, --source {source:?} and --loss {loss:?}: expected three different columns"
    );
    let lap = Lap::new(arguments.rule.config(|| sources_in(&arguments.log, &columns))?)?;
    let log = match arguments.log == Path::new("-") {
        true => LossLog::from_reader("standard input", std::io::stdin(), &columns)?,
        false => LossLog::open(&arguments.log, &columns)?,
    };
    let output = Output::open(arguments.out.as_deref(), arguments.force)?;
    let mut table = Table::new(output, arguments.json, arguments.formulas);
    if !arguments.summary {
        table.header(&STEP)?;
    }
    let mut replay = Replay::new(lap);
    let mut progress = Progress::new("replay", log.length(), arguments.quiet);
    let write = |table: &mut Table, replay: &Replay<String>, step| match arguments.summary {
        true => Ok(()),
        false => replay.present().try_for_each(|present| table.step(step, &present)),
    };
    log.each_row(|row| {
        if let Some(step) = replay.row(row.step, row.source, row.loss)? {
            write(&mut table, &replay, step)?;
        }
        if replay.rows().is_multiple_of(ROWS_BETWEEN_UPDATES) {
            progress.set(row.read, || format!("{} rows", count(replay.rows())));
        }
        anyhow::Ok(())
    })?;
    if let Some(step) = replay.finish()? {
        write(&mut table, &replay, step)?;
    }
    progress.finish();
    let sources = replay.sources(String::clone);
    if arguments.summary {
        table.header(&SUMMARY)?;
        for source in &sources {
            table.source(source)?;
        }
    }
    if !arguments.quiet {
        remark(&replay, &sources);
    }
    warn(&replay, &sources);
    table.finish()
}

/// How many sources a log has, which takes a reading of its own.
fn sources_in(log: &Path, columns: &LogColumns) -> anyhow::Result<usize> {
    if log == Path::new("-") || std::fs::metadata(log).is_ok_and(|log| !log.is_file()) {
        bail!(
            "--false-alarm needs the number of sources before the first step, and this log can be read only once: \
             save it as a file, or choose --leniency"
        );
    }
    let mut sources = HashSet::new();
    LossLog::open(log, columns)?.each_row(|row| {
        if !sources.contains(row.source) {
            sources.insert(row.source.to_owned());
        }
        anyhow::Ok(())
    })?;
    Ok(sources.len())
}

/// Columns of the output.
const STEP: [&str; 5] = ["step", "source", "loss", "unreliability", "weight"];

/// Columns of the summary.
const SUMMARY: [&str; 10] = [
    "source",
    "rows",
    "batches",
    "unreliability",
    "weight",
    "mean_loss",
    "reference_loss",
    "reference_std",
    "nonfinite",
    "first_departure_step",
];

/// What a person would like to know when all is done.
fn remark(replay: &Replay<String>, sources: &[SourceRow]) {
    let lowered = sources.iter().filter(|source| source.weight < 0.5).count();
    say!(
        "{} rows, {} steps, {} sources, {lowered} of them below half weight",
        count(replay.rows()),
        count(replay.lap().step()),
        count(sources.len() as u64),
    );
}

/// What may be wrong with the log, which is said to those who asked for no remarks, too.
fn warn(replay: &Replay<String>, sources: &[SourceRow]) {
    if sources.iter().all(|source| source.judged == 0) {
        say!(
            "warning: nobody was judged: that takes two sources with {} batches each after {} \
             steps of warm-up; a shorter --history may help",
            replay.lap().config().history_length,
            replay.lap().config().warmup,
        );
    }
    let mut poisoned: Vec<_> = sources.iter().filter(|source| source.nonfinite > 0).collect();
    poisoned.sort_by_key(|source| std::cmp::Reverse(source.nonfinite));
    if !poisoned.is_empty() {
        let total = poisoned.iter().map(|source| source.nonfinite).sum();
        let named = poisoned.iter().take(5);
        let named: Vec<String> = named
            .map(|source| format!("{:?} {}", source.source, count(source.nonfinite)))
            .collect();
        let more = if poisoned.len() > 5 { ", …" } else { "" };
        let losses = if total == 1 { "loss is" } else { "losses are" };
        say!("warning: {} {losses} not finite: {}{more}", count(total), named.join(", "));
    }
}

/// A row of the output under the names of its columns.
struct Named<'a>(&'a [&'static str], &'a [Cell<'a>]);

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().zip(self.1))
    }
}

/// Rows as CSV, or as JSON objects, one per line.
enum Table {
    Csv(Box<csv::Writer<Output>>, Formulas),
    Json(Output),
}

impl Table {
    fn new(output: Output, json: bool, formulas: Formulas) -> Self {
        match json {
            true => Self::Json(output),
            false => Self::Csv(Box::new(csv::Writer::from_writer(output)), formulas),
        }
    }

    fn header(&mut self, names: &[&str]) -> anyhow::Result<()> {
        match self {
            Self::Csv(writer, _) => Ok(writer.write_record(names)?),
            Self::Json(_) => Ok(()),
        }
    }

    fn step(&mut self, step: i64, present: &Present<'_, String>) -> anyhow::Result<()> {
        self.row(
            &STEP,
            &[
                Cell::Step(Some(step)),
                Cell::Text(present.source),
                Cell::Number(present.loss),
                Cell::Count(present.unreliability),
                Cell::Number(Some(present.weight)),
            ],
        )
    }

    fn source(&mut self, source: &SourceRow) -> anyhow::Result<()> {
        self.row(&SUMMARY, &SUMMARY.map(|column| source.cell(column)))
    }

    fn row(&mut self, columns: &[&'static str], cells: &[Cell<'_>]) -> anyhow::Result<()> {
        match self {
            Self::Csv(writer, formulas) => {
                for cell in cells {
                    match cell {
                        Cell::Text(text) => writer.write_field(formulas.cell(text).as_ref())?,
                        Cell::Maybe(text) => {
                            let text = text.as_deref().unwrap_or_default();
                            writer.write_field(formulas.cell(text).as_ref())?;
                        }
                        Cell::Count(count) => writer.write_field(count.to_string())?,
                        Cell::Number(value) => {
                            writer.write_field(value.map(number_text).unwrap_or_default())?;
                        }
                        Cell::Step(step) => {
                            let step = step.map(|step| step.to_string());
                            writer.write_field(step.unwrap_or_default())?;
                        }
                    }
                }
                Ok(writer.write_record(None::<&[u8]>)?)
            }
            Self::Json(output) => {
                serde_json::to_writer(&mut *output, &Named(columns, cells))?;
                Ok(output.write_all(b"\n")?)
            }
        }
    }

    fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Csv(writer, _) => {
                writer.into_inner().map_err(csv::IntoInnerError::into_error)?.finish()
            }
            Self::Json(output) => output.finish(),
        }
    }
}
