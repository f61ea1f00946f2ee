//! `lapwing report`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use lapwing_run::RunDirectory;

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
    Ok(writeln!(crate::output::stdout(), "{}", path.display())?)
}
