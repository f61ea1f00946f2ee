//! `lapwing evaluate`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use lapwing_run::{Metrics, Predictor};
use lapwing_train::DeviceName;

use crate::output::count;
use crate::say::{counted, say};
use crate::table::TextTable;
use crate::training::warn_of_unseen;
use crate::verdicts::{metrics_object, short};

/// Measure the model of a run on a table that has the target
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapwing evaluate runs/visits checked.csv
  lapwing evaluate runs/visits checked.csv --by hospital --json")]
pub(crate) struct Arguments {
    /// The directory of the run
    run: PathBuf,

    /// The table
    data: PathBuf,

    /// Also by the values of this column
    #[arg(long, value_name = "COLUMN")]
    by: Option<String>,

    /// JSON, one object per line, instead of a table
    #[arg(long)]
    json: bool,

    /// No remarks but warnings
    #[arg(long, short)]
    quiet: bool,

    /// Where to compute: cpu, wgpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let device: DeviceName = arguments.device.parse()?;
    let by = arguments.by.as_deref();
    let found = Predictor::load(&arguments.run, device)?.evaluate(&arguments.data, by)?;
    if found.dropped > 0 {
        say!("warning: {} not measured: no target", counted(found.dropped, "row"));
    }
    warn_of_unseen(&found.unseen);
    let mut out = crate::output::stdout();
    if arguments.json {
        let mut all = metrics_object(&found.all);
        if let Some(fields) = all.as_object_mut().filter(|_| !found.unseen.is_empty()) {
            let warnings: Vec<String> = found.unseen.iter().map(ToString::to_string).collect();
            fields.insert("warnings".to_owned(), warnings.into());
        }
        writeln!(out, "{all}")?;
        for (group, metrics) in &found.groups {
            let mut object = metrics_object(metrics);
            if let (Some(fields), Some(by)) = (object.as_object_mut(), by) {
                fields.insert("by".to_owned(), by.into());
                fields.insert("group".to_owned(), group.as_str().into());
            }
            writeln!(out, "{object}")?;
        }
        return Ok(());
    }
    let header: &[&str] = match found.all {
        Metrics::Classification { .. } => &[
            "rows of",
            ">rows",
            ">accuracy",
            ">balanced accuracy",
            ">macro F1",
            ">log loss",
            ">AUC",
        ],
        Metrics::Regression { .. } => &["rows of", ">rows", ">MSE", ">MAE", ">R²"],
    };
    let mut table = TextTable::new(header);
    let all = ("(all)".to_owned(), found.all);
    for (group, metrics) in std::iter::once(&all).chain(&found.groups) {
        let values = metrics.named().into_iter();
        let values = values.map(|(_, value)| value.map_or_else(|| "–".to_owned(), short));
        table.row([group.clone(), count(metrics.rows())].into_iter().chain(values));
    }
    write!(out, "{}", table.render())?;
    Ok(())
}
