//! `lapwing export`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use lapwing_run::Predictor;
use lapwing_train::DeviceName;

use crate::output::Output;

/// Write the model of a run as ONNX, with its preprocessing
///
/// Raw columns go in, each under its name:
///   numbers    doubles of shape [rows, 1], where NaN is missing
///   levels     texts of shape [rows, 1], where an empty one is missing
///   vectors    doubles of shape [rows, width]
///   texts      their words in small letters, [rows, words], with empty ones behind those of shorter texts. Words end
///              where Unicode says (UAX #29); `lapwing.words(text)` in Python finds them
///   pictures   bytes of shape [rows, side, side, 3], red, green and blue, stretched to the size of training
///   series     doubles of shape [rows, moments] per channel, with NaN behind those of shorter ones; where there is a
///              column for each moment, the name is that of the first and the last, FIRST..LAST
///
/// Out come `prediction` and, for classes, `probabilities` in the order of `lapwing predict`. Networks and trees can be
/// exported; what ONNX cannot express, such as dates, is refused with the reason.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Example:
  lapwing export runs/visits --onnx visits.onnx"
)]
pub(crate) struct Arguments {
    /// The directory of the run, of which model.json and model.safetensors (or model.ubj) are needed
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
