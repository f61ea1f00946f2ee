//! `lapwing export`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use lapwing_run::Predictor;
use lapwing_train::DeviceName;

use crate::output::Output;

/// Write the model of a run as ONNX, with its preprocessing
///
/// Raw columns go in, each under its name: numbers as doubles of shape [rows, 1], where NaN is missing; levels as texts of
/// that shape, where an empty one is missing; vectors as doubles of shape [rows, width]. Out come `prediction` and, for
/// classes, `probabilities` in the order of `lapwing predict`. Networks on tables of numbers and categories can be exported
/// (mlp, linear); anything else is refused with the reason.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lapwing export runs/visits --onnx visits.onnx")]
pub(crate) struct Arguments {
    /// The directory of the run, of which model.json and model.safetensors are needed
    run: PathBuf,

    /// The file to write, which appears once it is complete
    #[arg(long, value_name = "FILE")]
    onnx: PathBuf,

    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let bytes = Predictor::load(&arguments.run, DeviceName::Cpu)?.onnx()?;
    let mut output = Output::open(Some(&arguments.onnx), arguments.force)?;
    output.write_all(&bytes)?;
    output.finish()
}
