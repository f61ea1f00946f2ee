//! `lapwing report`.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use lapwing_run::RunDirectory;

use crate::say::printable;

/// Write report.html of a run again, and print where it is
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  lapwing report runs/visits")]
pub(crate) struct Arguments {
    /// The directory of the run
    run: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let path = RunDirectory::open(&arguments.run)?.rewrite_report()?;
    let terminal = std::io::stdout().is_terminal();
    Ok(writeln!(crate::output::stdout(), "{}", shown(&path, terminal))?)
}

/// A path as it is for programs, and without what a terminal would act on for people.
fn shown(path: &Path, terminal: bool) -> String {
    let text = path.display().to_string();
    if terminal { printable(&text) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_an_escape_sequence_reached_the_terminal() {
        let path = Path::new("a\u{1b}[31mb");
        assert_eq!(shown(path, true), "a⟨U+001B⟩[31mb");
        assert_eq!(shown(path, false), "a\u{1b}[31mb");
    }
}
