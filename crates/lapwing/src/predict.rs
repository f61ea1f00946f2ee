//! `lapwing predict`.

use std::path::PathBuf;

use clap::Args;
use lapwing_run::Predictor;
use lapwing_train::{DeviceName, Predictions};

use crate::formulas::Formulas;
use crate::output::Output;
use crate::training::warn_of_unseen;

/// Predict the rows of a table with the model of a run
///
/// The output is CSV: row (counted from 1, without the header), prediction, and for classes the probability of each as
/// `p_<class>`. Columns are found by name; a column that training did not use may be missing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapwing predict runs/visits new.csv > predictions.csv
  lapwing predict runs/visits new.parquet --out predictions.csv")]
pub(crate) struct Arguments {
    /// The directory of the run, of which model.json and model.safetensors are needed
    run: PathBuf,

    /// The table
    data: PathBuf,

    /// Write to a file, which appears once it is complete, instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Leave the probabilities out: with many classes they are most of the output
    #[arg(long)]
    no_probabilities: bool,

    #[command(flatten)]
    formulas: Formulas,

    /// Replace the file given by --out if it exists
    #[arg(long, requires = "out")]
    force: bool,

    /// Where to compute: cpu, wgpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let device: DeviceName = arguments.device.parse()?;
    let predicted = Predictor::load(&arguments.run, device)?.predict(&arguments.data)?;
    warn_of_unseen(&predicted.unseen);
    let output = Output::open(arguments.out.as_deref(), arguments.force)?;
    let mut writer = csv::Writer::from_writer(output);
    let header = ["row".to_owned(), "prediction".to_owned()];
    let shown = if arguments.no_probabilities { &[][..] } else { &predicted.classes };
    let classes = shown.iter().map(|class| format!("p_{class}"));
    writer.write_record(header.into_iter().chain(classes))?;
    match &predicted.predictions {
        Predictions::Values(values) => {
            for (row, value) in predicted.rows.iter().zip(values) {
                writer.write_record([row.to_string(), value.to_string()])?;
            }
        }
        Predictions::Classes { probabilities, classes } => {
            let labels = predicted.predictions.labels();
            for ((row, label), chances) in
                predicted.rows.iter().zip(labels).zip(probabilities.chunks_exact(*classes))
            {
                let class = &predicted.classes[label as usize];
                let head = [row.to_string(), arguments.formulas.cell(class).into_owned()];
                let chances = chances.iter().take(shown.len()).map(|&chance| number_of(chance));
                writer.write_record(head.into_iter().chain(chances))?;
            }
        }
    }
    writer.into_inner().map_err(csv::IntoInnerError::into_error)?.finish()
}

/// The shortest text that reads back to the same 32-bit number.
fn number_of(value: f32) -> String {
    if value == 0.0 || value.abs() >= 1e-5 { value.to_string() } else { format!("{value:e}") }
}
