//! The program `lapwing`: arguments in, libraries called, results out.
//!
//! It is a library so that the Python package can bring the program without a second copy of everything it is made of.

// `eprintln!` panics where nobody listens; `say!` does not.
#![warn(clippy::print_stderr)]

mod arguments;
mod compare;
mod completions;
mod corrupt;
mod demo;
mod evaluate;
mod export;
mod failure;
mod formulas;
mod interrupt;
mod launcher;
mod method_flags;
mod names;
mod output;
mod paper;
mod predict;
mod progress;
mod replay;
mod report;
mod rows;
mod run_name;
mod say;
mod sources;
mod table;
mod table_flags;
mod team;
mod train;
mod training;
mod verdicts;
mod words;

use std::ffi::OsString;

use anyhow::Context;
use clap::Parser;
use lapwing_ops::Level;

use arguments::{Arguments, Command};
use failure::Stage;

/// Runs the program with these words, the first of which is its name, and returns its exit code.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(answer) => {
            // Help for stdout, or a message for stderr: where nobody listens there is nobody to tell.
            let _ = answer.print();
            return u8::try_from(answer.exit_code()).unwrap_or(2);
        }
    };
    lapwing_ops::tune_process();
    let stage = match arguments.command {
        Command::Predict(_) | Command::Evaluate(_) | Command::Export(_) => Stage::Use,
        _ => Stage::Training,
    };
    failure::exit_code(choose_kernels().and_then(|()| execute(arguments.command)), stage)
}

fn execute(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Train(arguments) => train::run(*arguments),
        Command::Predict(arguments) => predict::run(&arguments),
        Command::Evaluate(arguments) => evaluate::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Sources(arguments) => sources::run(&arguments),
        Command::Rows(arguments) => rows::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Replay(arguments) => replay::run(arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Corrupt(arguments) => corrupt::run(&arguments),
        Command::Paper(arguments) => paper::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
    }
}

/// The kernels asked for by `LAPWING_KERNELS`, so that runs on different machines can be compared.
fn choose_kernels() -> anyhow::Result<()> {
    let Some(name) = std::env::var_os("LAPWING_KERNELS") else { return Ok(()) };
    let level = name.to_string_lossy().parse::<Level>();
    level.and_then(|level| Level::force(Some(level))).context("LAPWING_KERNELS")
}
