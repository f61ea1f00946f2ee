//! The program `lapwing`: arguments in, libraries called, results out.

// `eprintln!` panics where nobody listens; `say!` does not.
#![warn(clippy::print_stderr)]

mod arguments;
mod compare;
mod completions;
mod corrupt;
mod demo;
mod evaluate;
mod failure;
mod formulas;
mod interrupt;
mod method_flags;
mod names;
mod output;
mod paper;
mod predict;
mod progress;
mod replay;
mod report;
mod rows;
mod say;
mod sources;
mod table;
mod train;
mod training;
mod verdicts;
mod words;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use lapwing_ops::Level;

use arguments::{Arguments, Command};
use failure::Stage;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    lapwing_ops::tune_process();
    let stage = match arguments.command {
        Command::Predict(_) | Command::Evaluate(_) => Stage::Use,
        _ => Stage::Training,
    };
    failure::exit_code(choose_kernels().and_then(|()| run(arguments.command)), stage)
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Train(arguments) => train::run(*arguments),
        Command::Predict(arguments) => predict::run(&arguments),
        Command::Evaluate(arguments) => evaluate::run(&arguments),
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
