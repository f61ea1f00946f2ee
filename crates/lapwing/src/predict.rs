//! `lapwing predict`.

use std::path::{Path, PathBuf};

use clap::Args;
use lapwing_data::NewRows;
use lapwing_run::{Predicted, Predictor};
use lapwing_train::{DeviceName, Predictions};

use crate::formulas::Formulas;
use crate::output::Output;
use crate::training::warn_of_unseen;

/// Predict the rows of a table with the model of a run
///
/// The output is CSV: row (counted from 1, without the header), prediction, and for classes the probability of each as
/// `p_<class>`. Columns are found by name; a column that training did not use may be missing. Rows are read, predicted
/// and written part by part, in the same memory for a million as for a thousand.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapwing predict runs/visits new.csv > predictions.csv
  lapwing predict runs/visits new.parquet --out predictions.csv
  zcat new.csv.gz | lapwing predict runs/visits - | gzip > predictions.csv.gz")]
pub(crate) struct Arguments {
    /// The directory of the run, of which model.json and model.safetensors are needed
    run: PathBuf,

    /// The table; `-` reads CSV from standard input
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
    let predictor = Predictor::load(&arguments.run, device)?;
    let table = match arguments.data == Path::new("-") {
        true => NewRows::from_reader("standard input", std::io::stdin(), predictor.schema())?,
        false => NewRows::open(&arguments.data, predictor.schema())?,
    };
    let mut writer =
        csv::Writer::from_writer(Output::open(arguments.out.as_deref(), arguments.force)?);
    let classes = &predictor.schema().classes;
    let shown = if arguments.no_probabilities { 0 } else { classes.len() };
    let unseen = predictor.predict(table, |part| {
        // Not before: nothing is written for a table that turns out to have no rows.
        if part.first == 1 {
            let names = classes.iter().take(shown).map(|class| format!("p_{class}"));
            let header = ["row".to_owned(), "prediction".to_owned()];
            writer.write_record(header.into_iter().chain(names))?;
        }
        arguments.write(part, classes, shown, &mut writer)
    })?;
    warn_of_unseen(&unseen);
    writer.into_inner().map_err(csv::IntoInnerError::into_error)?.finish()
}

impl Arguments {
    fn write(
        &self,
        part: &Predicted,
        classes: &[String],
        shown: usize,
        writer: &mut csv::Writer<Output>,
    ) -> anyhow::Result<()> {
        match &part.predictions {
            Predictions::Values(values) => {
                for (row, value) in (part.first..).zip(values) {
                    writer.write_record([row.to_string(), value.to_string()])?;
                }
            }
            Predictions::Classes { probabilities, classes: width } => {
                let labels = part.predictions.labels();
                let chances = probabilities.chunks_exact(*width);
                for ((row, label), chances) in (part.first..).zip(labels).zip(chances) {
                    let class = self.formulas.cell(&classes[label as usize]);
                    let head = [row.to_string(), class.into_owned()];
                    let chances = chances.iter().take(shown).map(|&chance| number_of(chance));
                    writer.write_record(head.into_iter().chain(chances))?;
                }
            }
        }
        Ok(())
    }
}

/// The shortest text that reads back to the same 32-bit number.
fn number_of(value: f32) -> String {
    if value == 0.0 || value.abs() >= 1e-5 { value.to_string() } else { format!("{value:e}") }
}
