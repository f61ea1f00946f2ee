//! `lapwing completions`.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lapwing completions bash > ~/.local/share/bash-completion/completions/lapwing
  lapwing completions zsh > ~/.zfunc/_lapwing
  lapwing completions fish > ~/.config/fish/completions/lapwing.fish")]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    // Completed in memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    let mut command = crate::arguments::Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "lapwing", &mut script);
    Ok(crate::output::stdout().write_all(&script)?)
}
