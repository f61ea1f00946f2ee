//! The program `lapwing`: arguments in, libraries called, results out.

mod arguments;
mod completions;
mod corrupt;
mod corruption;
mod failure;
mod output;
mod progress;
mod replay;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Replay(arguments) => replay::run(arguments),
        Command::Corrupt(arguments) => corrupt::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
    };
    failure::exit_code(done)
}
