//! `lapwing rows`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use lapwing_run::RunDirectory;

use crate::table::TextTable;

/// Show the rows of a run whose labels are most likely wrong
///
/// Each label was judged by a network that had not seen it, and by the noise rate of its source. Row 1 is the first below
/// the header. All rows that were judged are in rows.csv of the run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapwing rows runs/visits
  lapwing rows runs/visits --top 20 --source \"St. Mary\"
  lapwing rows runs/visits --top 1000 --json")]
pub(crate) struct Arguments {
    /// The directory of the run
    run: PathBuf,

    /// How many rows at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    top: usize,

    /// Rows of this source only
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,

    /// JSON, one object per line, instead of a table
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let directory = RunDirectory::open(&arguments.run)?;
    let rows = directory.rows(arguments.top, arguments.source.as_deref())?;
    let mut out = crate::output::stdout();
    if arguments.json {
        for row in &rows {
            writeln!(out, "{}", serde_json::to_string(row)?)?;
        }
        return Ok(());
    }
    let mut table =
        TextTable::new(&[">row", "source", "label", ">wrong", "suggestion", ">probability"]);
    for row in &rows {
        table.row([
            row.row.to_string(),
            row.source.clone(),
            row.label.clone(),
            row.wrong.map_or_else(|| "–".to_owned(), probability),
            row.suggestion.clone(),
            probability(row.suggestion_probability),
        ]);
    }
    Ok(write!(out, "{}", table.render())?)
}

fn probability(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
