//! The program `lapwing`: arguments in, libraries called, results out.

mod arguments;
mod compare;
mod completions;
mod corrupt;
mod demo;
mod evaluate;
mod failure;
mod output;
mod paper;
mod predict;
mod progress;
mod replay;
mod report;
mod sources;
mod table;
mod train;
mod training;
mod verdicts;
mod words;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    lapwing_ops::tune_process();
    let done = match arguments.command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Train(arguments) => train::run(*arguments),
        Command::Predict(arguments) => predict::run(&arguments),
        Command::Evaluate(arguments) => evaluate::run(&arguments),
        Command::Sources(arguments) => sources::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Replay(arguments) => replay::run(arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Corrupt(arguments) => corrupt::run(&arguments),
        Command::Paper(arguments) => paper::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
    };
    failure::exit_code(done)
}
