//! `lapwing replay`: the rule over a log of losses, without training.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use lapwing_core::{BatchSums, Lap};
use lapwing_data::{LogColumns, LossLog};
use serde::Serialize;

use crate::arguments::RuleArguments;
use crate::output::{Output, count, number};
use crate::progress::Progress;

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

    /// Replace the file given by --out if it exists
    #[arg(long, requires = "out", help_heading = "Output")]
    force: bool,

    /// No progress, no closing remarks
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let columns =
        LogColumns { step: arguments.step, source: arguments.source, loss: arguments.loss };
    let lap = Lap::new(arguments.rule.config()?)?;
    let log = match arguments.log == Path::new("-") {
        true => LossLog::from_reader("standard input", std::io::stdin(), &columns)?,
        false => LossLog::open(&arguments.log, &columns)?,
    };
    let output = Output::open(arguments.out.as_deref(), arguments.force)?;
    let mut table = Table::new(output, arguments.json);
    if !arguments.summary {
        table.header(&["step", "source", "loss", "unreliability", "weight"])?;
    }
    let mut replay = Replay {
        lap,
        sums: BatchSums::new(),
        step: None,
        departures: HashMap::new(),
        rows: 0,
        steps: table,
        summary: arguments.summary,
    };
    let mut progress = Progress::new("replay", log.length(), arguments.quiet);
    log.each_row(|row| {
        replay.row(row.step, row.source, row.loss)?;
        if replay.rows.is_multiple_of(ROWS_BETWEEN_UPDATES) {
            progress.set(row.read, || format!("{} rows", count(replay.rows)));
        }
        anyhow::Ok(())
    })?;
    replay.end_step()?;
    progress.finish();
    if arguments.summary {
        replay.write_summary()?;
    }
    if !arguments.quiet {
        replay.remark();
    }
    replay.steps.finish()
}

struct Replay {
    lap: Lap<String>,
    sums: BatchSums<String>,
    step: Option<i64>,
    /// The step of the log at which each source was first above the threshold.
    departures: HashMap<String, i64>,
    rows: u64,
    steps: Table,
    summary: bool,
}

/// A row of the output.
#[derive(Serialize)]
struct StepRow<'a> {
    step: i64,
    source: &'a str,
    loss: Option<f64>,
    unreliability: u64,
    weight: f64,
}

/// A row of the summary.
#[derive(Serialize)]
struct SummaryRow<'a> {
    source: &'a str,
    rows: u64,
    batches: u64,
    unreliability: u64,
    weight: f64,
    mean_loss: Option<f64>,
    reference_loss: Option<f64>,
    reference_std: Option<f64>,
    nonfinite: u64,
    first_departure_step: Option<i64>,
}

impl Replay {
    fn row(&mut self, step: i64, source: &str, loss: f64) -> anyhow::Result<()> {
        if self.step != Some(step) {
            self.end_step()?;
            self.step = Some(step);
        }
        self.sums.add(source, loss);
        self.rows += 1;
        Ok(())
    }

    fn end_step(&mut self) -> anyhow::Result<()> {
        let Some(step) = self.step else { return Ok(()) };
        self.lap.update(&self.sums)?;
        self.sums.clear();
        for present in self.lap.present() {
            // Unreliability starts at 0 and moves by 1, so a first departure makes it 1.
            if present.unreliability == 1 && !self.departures.contains_key(present.source) {
                self.departures.insert(present.source.clone(), step);
            }
            if !self.summary {
                self.steps.step(&StepRow {
                    step,
                    source: present.source,
                    loss: present.loss,
                    unreliability: present.unreliability,
                    weight: present.weight,
                })?;
            }
        }
        Ok(())
    }

    fn write_summary(&mut self) -> anyhow::Result<()> {
        self.steps.header(&[
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
        ])?;
        for status in self.lap.sources() {
            self.steps.summary(&SummaryRow {
                source: status.source,
                rows: status.rows,
                batches: status.batches,
                unreliability: status.unreliability,
                weight: status.weight,
                mean_loss: status.mean_loss,
                reference_loss: status.reference.map(|reference| reference.mean),
                reference_std: status.reference.map(|reference| reference.std),
                nonfinite: status.nonfinite,
                first_departure_step: self.departures.get(status.source).copied(),
            })?;
        }
        Ok(())
    }

    /// What a person would like to know when all is done.
    fn remark(&self) {
        let statuses: Vec<_> = self.lap.sources().collect();
        let lowered = statuses.iter().filter(|status| status.weight < 0.5).count();
        eprintln!(
            "{} rows, {} steps, {} sources, {lowered} of them below half weight",
            count(self.rows),
            count(self.lap.step()),
            count(statuses.len() as u64),
        );
        if statuses.iter().all(|status| status.judged == 0) {
            eprintln!(
                "warning: nobody was judged: that takes two sources with {} batches each after {} \
                 steps of warm-up; a shorter --history may help",
                self.lap.config().history_length,
                self.lap.config().warmup,
            );
        }
        let mut poisoned: Vec<_> = statuses.iter().filter(|status| status.nonfinite > 0).collect();
        poisoned.sort_by_key(|status| std::cmp::Reverse(status.nonfinite));
        if !poisoned.is_empty() {
            let total = poisoned.iter().map(|status| status.nonfinite).sum();
            let named = poisoned.iter().take(5);
            let named: Vec<String> = named
                .map(|status| format!("{:?} {}", status.source, count(status.nonfinite)))
                .collect();
            let more = if poisoned.len() > 5 { ", …" } else { "" };
            let losses = if total == 1 { "loss is" } else { "losses are" };
            eprintln!("warning: {} {losses} not finite: {}{more}", count(total), named.join(", "));
        }
    }
}

/// Rows as CSV, or as JSON objects, one per line.
enum Table {
    Csv(Box<csv::Writer<Output>>),
    Json(Output),
}

impl Table {
    fn new(output: Output, json: bool) -> Self {
        match json {
            true => Self::Json(output),
            false => Self::Csv(Box::new(csv::Writer::from_writer(output))),
        }
    }

    fn header(&mut self, names: &[&str]) -> anyhow::Result<()> {
        match self {
            Self::Csv(writer) => Ok(writer.write_record(names)?),
            Self::Json(_) => Ok(()),
        }
    }

    fn step(&mut self, row: &StepRow<'_>) -> anyhow::Result<()> {
        let Self::Csv(writer) = self else { return self.json(row) };
        Ok(writer.write_record([
            &row.step.to_string(),
            row.source,
            &optional(row.loss),
            &row.unreliability.to_string(),
            &number(row.weight),
        ])?)
    }

    fn summary(&mut self, row: &SummaryRow<'_>) -> anyhow::Result<()> {
        let Self::Csv(writer) = self else { return self.json(row) };
        Ok(writer.write_record([
            row.source,
            &row.rows.to_string(),
            &row.batches.to_string(),
            &row.unreliability.to_string(),
            &number(row.weight),
            &optional(row.mean_loss),
            &optional(row.reference_loss),
            &optional(row.reference_std),
            &row.nonfinite.to_string(),
            &row.first_departure_step.map(|step| step.to_string()).unwrap_or_default(),
        ])?)
    }

    fn json(&mut self, row: &impl Serialize) -> anyhow::Result<()> {
        let Self::Json(output) = self else { return Ok(()) };
        serde_json::to_writer(&mut *output, row)?;
        Ok(output.write_all(b"\n")?)
    }

    fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Csv(writer) => {
                writer.into_inner().map_err(csv::IntoInnerError::into_error)?.finish()
            }
            Self::Json(output) => output.finish(),
        }
    }
}

fn optional(value: Option<f64>) -> String {
    value.map(number).unwrap_or_default()
}
