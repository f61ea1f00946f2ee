//! `lapwing rows`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use lapwing_run::RunDirectory;

use crate::table::{TextTable, printable};

/// Characters of a text that are shown.
const WIDEST_TEXT: usize = 72;

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
    let mut columns = vec![">row", "source", "label", ">wrong", "suggestion", ">probability"];
    let texts = rows.iter().any(|row| row.text.is_some());
    let files = rows.iter().any(|row| row.file.is_some());
    columns.extend(texts.then_some("text").into_iter().chain(files.then_some("file")));
    let mut table = TextTable::new(&columns);
    for row in &rows {
        let cells = [
            row.row.to_string(),
            printable(&row.source),
            printable(&row.label),
            row.wrong.map_or_else(|| "–".to_owned(), probability),
            printable(&row.suggestion),
            probability(row.suggestion_probability),
        ];
        let text = texts.then(|| beginning(row.text.as_deref().unwrap_or_default()));
        let file = files.then(|| printable(row.file.as_deref().unwrap_or_default()));
        table.row_in_full(cells.into_iter().chain(text).chain(file));
    }
    Ok(write!(out, "{}", table.render())?)
}

/// What of a text fits on a line, safe to print.
fn beginning(text: &str) -> String {
    let line = lapwing_report::passage(text);
    match line.char_indices().nth(WIDEST_TEXT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn probability(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
