//! The program `lapwing`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lapwing::run(std::env::args_os()).into()
}
