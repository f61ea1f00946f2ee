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
/// `p_<class>`; for a folder of pictures also the file of each. Columns are found by name; a column that training did not
/// use may be missing. Rows are read, predicted and written part by part, in the same memory for a million as for a thousand.
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
            let file = arguments.data.is_dir().then_some("file");
            let header = ["row"].into_iter().chain(file).chain(["prediction"]).map(str::to_owned);
            writer.write_record(header.chain(names))?;
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
        // A row of a table can be found by its number, a picture of a folder by its name.
        let named = self.data.is_dir();
        let head = |at: usize| {
            let file = named.then(|| part.files.get(at)).flatten();
            let file = file.map(|file| self.formulas.cell(file).into_owned());
            [(part.first + at as u64).to_string()].into_iter().chain(file)
        };
        match &part.predictions {
            Predictions::Values(values) => {
                for (at, value) in values.iter().enumerate() {
                    writer.write_record(head(at).chain([value.to_string()]))?;
                }
            }
            Predictions::Classes { probabilities, classes: width } => {
                let labels = part.predictions.labels();
                let chances = probabilities.chunks_exact(*width);
                for (at, (label, chances)) in labels.into_iter().zip(chances).enumerate() {
                    let class = self.formulas.cell(&classes[label as usize]).into_owned();
                    let chances = chances.iter().take(shown).map(|&chance| number_of(chance));
                    writer.write_record(head(at).chain([class]).chain(chances))?;
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
